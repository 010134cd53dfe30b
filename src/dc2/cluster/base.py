"""What the clusterers share: a shell around the record of a fit."""

from __future__ import annotations

import os
import warnings
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from dc2.cluster.changes import NO_CLUSTER, Changes, changes_between, counted_ways
from dc2.cluster.fit import ClusterPlan, fit_rows, fit_signatures, reconquer, stability_of
from dc2.cluster.inspection import TIES, InspectionMixin, Membership
from dc2.cluster.noise import Belonging, LabelsWithNoise, Outliers
from dc2.cluster.record import ClusterRecord
from dc2.compress.populate import Lookup, OutlierScores, on_host, outlier_scores_of, populated
from dc2.compress.signatures import Signatures
from dc2.engines.map_rows import RunOptions, Verbose, engine_for, mapped_rows
from dc2.errors import ClustersDoNotShowWarning, InputError, InputTypeError, ParameterError
from dc2.graph.conquest import Stability
from dc2.graph.n_clusters import RequestedClusters
from dc2.graph.precomputed import GivenGraph, needs_coordinates
from dc2.io.containers import SourceTransformer, in_container
from dc2.io.outputs import check_output_path, check_room, write_labels
from dc2.io.paths import check_not_among, find_files, is_path
from dc2.io.resolve import UNORDERED, as_source, as_table, library_with_engine
from dc2.io.source import Block, Source
from dc2.parameters import check_integer, check_positive, usable_threads
from dc2.random import RandomStateLike
from dc2.tables.preparer import CountsUnseen, PreparedSource

Value = TypeVar("Value")
FEWEST_TO_JUDGE = 50  # signatures needed to judge whether a number of clusters shows in the data


class SignatureClusterer(InspectionMixin, SourceTransformer, BaseEstimator):
    """Clusters rows by clustering their signatures; a subclass defines how in its `_plan`.

    The fitted state is one frozen record, assigned at the very end of a fit; every public attribute reads from it.
    """

    n_clusters: Any
    n_jobs: int | None
    block_bytes: int
    random_state: RandomStateLike
    verbose: Verbose

    @abstractmethod
    def _plan(self) -> ClusterPlan:
        """Check all parameters, before any work, and put them together."""

    # --- fit ----------------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None, sample_weight: ArrayLike | str | None = None) -> Self:
        """Cluster rows.

        Parameters
        ----------
        X : array-like, data frame, path, list of paths, glob, callable, Dask array or data frame, or Source
            The rows.
        y : ignored
        sample_weight : array-like of shape (n_rows,), str or None
            Weights, or the name of the column that holds them. An integer weight w equals w repeated rows.
        """
        record = fit_rows(self._plan(), X, sample_weight)
        warn_if_not_supported(record)
        return self._keep(record)

    def fit_predict(self, X: Any, y: Any = None, sample_weight: ArrayLike | str | None = None) -> Any:
        """Cluster rows and return the cluster of each: ``labels_``, or `predict` for rows not in memory."""
        self.fit(X, y, sample_weight)
        return self._predicted(X)[1] if self._record.ids is None else self.labels_

    def fit_signatures(self, signatures: Signatures) -> Self:
        """Conquer signatures that were compressed elsewhere; `predict` then labels rows by their nearest signature.

        Parameters
        ----------
        signatures : Signatures
            Such as the merged signatures of several sites. ``signature_labels_`` has their labels in this order, and
            each site can label its rows with its own compressor.
        """
        if not isinstance(signatures, Signatures):
            raise InputError(
                f"signatures is a {type(signatures).__name__}, not dc2.Signatures. Make them with Compressor."
            )
        record = fit_signatures(self._plan(), signatures)
        warn_if_not_supported(record)
        return self._keep(record)

    def _keep(self, record: ClusterRecord) -> Self:
        """Take over a finished record, and warn if it has fewer clusters than were asked for."""
        found, wanted = record.conquest.n_clusters, record.conquest.wanted
        if found < wanted:
            why = "distinct signatures" if record.known is None else "clusters that agree with y and the links"
            warnings.warn(
                f"n_clusters={wanted}: there are only {found} {why}, so there are {found} clusters. Ask "
                "for fewer clusters; equal rows are always in one cluster.",
                ConvergenceWarning,
                stacklevel=3,
            )
        self._record = record
        return self

    def _reconquer(self, n_clusters: Any = None, bandwidth: Any = None) -> Self:
        check_is_fitted(self)
        record, plan = self._record, self._plan()
        requested = record.requested if n_clusters is None else RequestedClusters.of(n_clusters)
        similarity = record.similarity
        if bandwidth is not None:
            similarity = record.dense_similarity.at(
                None if isinstance(bandwidth, str) and bandwidth == "auto" else check_positive("bandwidth", bandwidth)
            )
        return self._keep(reconquer(plan, record, similarity, requested))

    # --- answers for rows ---------------------------------------------------------------------------------------

    def predict(self, X: Any) -> Any:
        """Return the cluster of each row, by routing it to its signature.

        Parameters
        ----------
        X : array-like, data frame, path, ... as in `fit`
            The rows. Columns with names are found by name.

        Returns
        -------
        ndarray of shape (n_rows,), int32
            -1 for noise, rows in no cluster, if noise was asked for. For a source that is not in memory, an iterator
            of such arrays, one per block; for a Dask collection, a lazy Dask array with the same chunks; for a
            DataFrame of Spark or a Dataset of Ray, the same, lazily, with a column "label" beside the others.

        Warns
        -----
        PreparationNote
            If a table was prepared and rows have categories unseen in fit: how many, by column.
        """
        check_is_fitted(self)
        counted, labels = self._predicted(X)
        return counted.told(labels)

    def _predicted(self, X: Any) -> tuple[CountsUnseen[NDArray[np.int32]], Any]:
        """Return the cluster of each row, and the counter of unseen levels."""
        record = self._record
        if isinstance(record.router, GivenGraph):
            threshold = None if record.outliers is None else record.outliers.threshold
            return CountsUnseen(_as_they_are), record.router.labels_of(X, record.signature_labels, threshold)
        source = self._source(X)
        counted = CountsUnseen(self._labels_of(source))
        return counted, mapped_rows(source, counted, lambda: np.empty(0, np.int32), RunOptions.of(self))

    def predict_to(
        self,
        X: Any,
        path: str | os.PathLike[str],
        *,
        id_columns: str | Sequence[str] = (),
        column: str = "label",
        top: int | None = None,
        seen: Callable[[NDArray[np.int32]], None] | None = None,
        overwrite: bool = True,
    ) -> int:
        """Write the cluster of each row to a file, in row order, beside chosen columns of the data.

        Parameters
        ----------
        X : data frame, path, list of paths, glob, ... as in `fit`
            The rows. Columns with names are found by name.
        path : path
            A .parquet, .arrow, .feather, .csv, .csv.gz or .npy file. It appears only when it is complete, and replaces
            an older one. It must not be one of the files being read. From Spark and Ray, a folder of Parquet files that
            the workers write, with all columns unless `id_columns` names some.
        id_columns : str or list of str, optional
            Columns of the data to write beside the labels.
        column : str, default="label"
            Name of the column of labels.
        top : int, optional
            Write the best clusters of `predict_proba` too: columns ``cluster_1``, ``share_1``, ... and ``share_rest``.
        seen : callable, optional
            Called with the labels of each block as they are written, for instance to count them.
        overwrite : bool, default=True
            Whether an existing file is replaced; if not, ParameterError is raised.

        Returns
        -------
        int
            Number of rows written.
        """
        check_is_fitted(self)
        if library_with_engine(X) in UNORDERED or getattr(X, "remote", None) is not None:
            names = [id_columns] if isinstance(id_columns, str) else list(id_columns)
            source = self._source(X)
            return int(source.remote.write(self._labels_of(source), source, str(path), names, column, overwrite))  # type: ignore[attr-defined]
        target = check_output_path(path)
        if top is not None and target.suffix == ".npy":
            raise ParameterError(f"top={top!r}: a .npy file holds labels alone. Write .parquet or .csv.")
        X = find_files(X) if is_path(X) else X
        check_not_among(path, X)
        names = [id_columns] if isinstance(id_columns, str) else list(id_columns)
        source = self._source(X, names)
        check_room(target, source.n_rows)
        answer: Callable[[Block], Any] = self._labels_of(source)
        if top is not None:
            answer = _LabelsAndShares(answer, self._membership(shares=True, top=top), column)
        blocks = self._answered(source, answer)
        return write_labels(
            target, blocks if seen is None else _shown(blocks, seen, column), column, overwrite=overwrite
        )

    def labelled_blocks(self, X: Any) -> Iterator[tuple[NDArray[np.int32], Any]]:
        """Yield the labels of each block of rows, and the columns that travelled with it (`Block.extra`).

        Parameters
        ----------
        X : data frame, path, Source, ... as in `fit`
            The rows.
        """
        check_is_fitted(self)
        source = self._source(X)
        return self._answered(source, self._labels_of(source))

    def _answered(self, source: Source, answer: Callable[[Block], Any]) -> Iterator[tuple[Any, Any]]:
        """Yield the answer for each block of rows, and the columns that travelled with it."""

        def answer_with_extra(block: Block) -> tuple[Any, Any]:
            return answer(block), block.extra

        counted = CountsUnseen(answer_with_extra)
        blocks: Iterator[tuple[Any, Any]] = counted.told(
            engine_for(source, RunOptions.of(self)).map(counted, source, stage="populate")
        )
        return blocks

    def _labels_of(self, source: Source) -> Callable[[Block], NDArray[np.int32]]:
        """Return the function that labels the rows of a block."""
        record = self._record
        lookup = Lookup(record.router, record.of_id(record.signature_labels), source.feature_names)
        if record.outliers is None or record.outliers.threshold is None:
            return lookup
        return LabelsWithNoise(lookup, self._scores_of(record.outliers), record.outliers)

    def _scores_of(self, outliers: Outliers) -> OutlierScores:
        """Return the function that scores the rows of a block."""
        record = self._record
        return outlier_scores_of(
            record.router_to_search(usable_threads(self.n_jobs)),
            record.of_id(record.signatures.weights),
            record.of_id(record.signatures.spread),
            outliers.typical,
        )

    def predict_proba(self, X: Any, top: int | None = None) -> Any:
        """Return how much each row belongs to each cluster: shares among its five nearest signatures.

        Nearer signatures count more. The shares tell rows deep inside a cluster (1.0) from rows at its border. They are
        not calibrated probabilities, and at a border the largest may differ from `predict`, which uses only the nearest
        signature.

        A row's shares add up to 1. If noise was asked for they may add up to less, and the rest means "no cluster": if
        the outlier score s of a row is above the threshold t, its shares are multiplied by (1 - s) / (1 - t), and
        clusters that are too small get no share.

        Parameters
        ----------
        X : array-like, data frame, path, ... as in `fit`
            The rows.
        top : int, optional
            Return only so many clusters of each row, those with the largest shares, at most 5: memory does not grow
            with the number of clusters.

        Returns
        -------
        ndarray of shape (n_rows, n_clusters)
            With `top`, a structured array of shape (n_rows,): ``cluster`` and ``share``, each with `top` entries,
            largest share first (-1 and 0 if there are no more), and ``rest``, what is left of 1. For a source that is
            not in memory, an iterator of such arrays, block by block.

        Examples
        --------
        >>> from dc2 import DC2Clustering
        >>> model = DC2Clustering(2, random_state=0).fit([[x] for x in (0.0, 0.1, 0.2, 9.0, 9.1, 9.2)])
        >>> best = model.predict_proba([[0.1]], top=1)
        >>> best["cluster"][:, 0] == model.predict([[0.1]]), (best["share"].sum(axis=1) + best["rest"]).tolist()
        (array([ True]), [1.0])
        """
        check_is_fitted(self)
        return self._memberships(self._source(X), self._membership(shares=True, top=top))

    def transform(self, X: Any) -> Any:
        """Return numbers that place each row among the clusters, of shape (n_rows, n_clusters).

        If clusters come from eigenvectors, this is the spectral embedding of the row's signature. If they come from
        communities, it is the row's edge weights to each cluster: the numbers behind `predict_proba`, not normalised.
        """
        check_is_fitted(self)
        source, record = self._source(X), self._record
        if record.conquest.spectrum is None:
            return in_container(self._memberships(source, self._membership(shares=False)), X, self)
        embedding = record.of_id(record.conquest.spectrum.embedding)
        return in_container(populated(source, record.router, embedding, RunOptions.of(self)), X, self)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Return the names of the columns of `transform`: the class in lower case and a number."""
        check_is_fitted(self)
        prefix = type(self).__name__.lower()
        return np.array([f"{prefix}{number}" for number in range(self._n_features_out)], dtype=object)

    def _memberships(self, source: Source, membership: Membership) -> Any:
        return mapped_rows(source, membership, lambda: membership.like, RunOptions.of(self))

    def _membership(self, shares: bool, top: int | None = None) -> Membership:
        record = self._record
        if len(getattr(record.router, "trees", ())) > 1:
            raise ParameterError(
                "divide='sampling': predict_proba needs one tree over all rows, but this makes one per partition. Fit "
                "with divide='projection'."
            )
        return Membership(
            router=record.router_to_search(usable_threads(self.n_jobs)),
            label_of_id=record.of_id(record.marked(record.conquest.labels) if shares else record.conquest.labels),
            n_clusters=record.conquest.n_clusters,
            shares=shares,
            belongs=self._belonging() if shares else None,
            top=None if top is None else check_integer("top", top, low=1, high=TIES),
        )

    def to_onnx(self, path: str | os.PathLike[str], *, overwrite: bool = True) -> Path:
        """Write `predict` as an ONNX graph, for services without Python or dc2; needs ``pip install "dc2[onnx]"``.

        Parameters
        ----------
        path : path
            The file, such as ``model.onnx``; it appears when it is complete.
        overwrite : bool, default=True
            Whether an existing file is replaced; if not, ParameterError is raised.

        Returns
        -------
        Path

        Notes
        -----
        The input ``X`` has shape (n_rows, n_features), in the dtype of the model: float32 if it was fitted on narrow
        numbers, else float64. The output ``label`` has the cluster of each row, as int64; models with
        `noise` are refused. A prepared table has an input of shape (n_rows, 1) for each column in use: float64 for
        numbers, NaN where missing, and text for categories, empty where missing. Tables with dates, texts or counts
        with jitter are refused.

        The graph compares each row with every signature, which takes memory for one number each: pass some thousand
        rows at a time. `predict` finds the nearest signature by a graph search that may miss it; distances are rounded
        in float64 here. Rows are not checked: NaN gives any label.
        """
        from dc2.cluster.onnx_export import write_onnx

        check_is_fitted(self)
        return write_onnx(self._record, path, overwrite=overwrite)

    def _belonging(self) -> Belonging | None:
        outliers = self._record.outliers
        if outliers is None or outliers.threshold is None:
            return None
        return Belonging(self._scores_of(outliers), outliers)

    def _source(self, X: Any, extra: Sequence[str] = ()) -> Source:
        if self._record.is_graph:
            raise needs_coordinates()
        preparer = self._record.preparer
        prepared = isinstance(X, PreparedSource) and X.feature_names == self.column_names
        return super()._source(X, extra) if preparer is None or prepared else preparer.source(X, extra)

    def relabel(self, old: SignatureClusterer, X: Any = None) -> Self:
        """Take over the numbers of the clusters of another model, by the rows that both have in common.

        Clusters without a counterpart get numbers that the other model never used. Labels, `predict`, `summary` and
        reports then have these numbers.

        Parameters
        ----------
        old : DC2Clustering, RPFCluster, RASP or KASP
            Fitted on the same columns.
        X : array-like, data frame, path, ... as in `fit`, optional
            Rows to match clusters by. None takes the signatures of this model, by weight; a table that was prepared
            needs rows.

        Examples
        --------
        >>> from sklearn.datasets import make_blobs
        >>> from dc2 import DC2Clustering
        >>> X, y = make_blobs([30, 70], centers=[[0, 0], [20, 20]], random_state=0)
        >>> old = DC2Clustering(random_state=0).fit(X)
        >>> new = DC2Clustering(random_state=0).fit(X[:60]).relabel(old)
        >>> bool((new.predict(X) == old.labels_).all())
        True
        """
        check_is_fitted(self)
        _check_clusterer(old)
        record = self._record
        if X is None:
            before, now, weights = old._labels_of_signatures(record), record.conquest.labels, record.signatures.weights
        else:
            ways = counted_ways(old._streamed_labels(X), self._streamed_labels(X))
            before, names = np.array([way[:2] for way in ways], np.int32).reshape(-1, 2).T
            place = np.full(int(record.cluster_names.max()) + 2, -1, np.int32)
            place[record.cluster_names] = np.arange(record.conquest.n_clusters, dtype=np.int32)
            now, weights = place[names], np.array([way[3] for way in ways])
        self._record = self._renamed(old, before, now, weights)
        return self

    def _renamed(
        self, old: SignatureClusterer, before: NDArray[Any], now: NDArray[Any], weights: NDArray[np.float64]
    ) -> ClusterRecord:
        """Return the record with numbers of an old model, by the weight that its clusters share with these places."""
        record = replace(self._record, names=None, unused=old._record.first_unused)
        return record.renamed(record.conquest, before, now, weights)

    def _labels_of_signatures(self, other: ClusterRecord) -> NDArray[np.int32]:
        """Return the label that this model gives each signature of another."""
        if self._record.preparer is not None or other.preparer is not None:
            raise ParameterError("X=None: a table was prepared, so signatures are not in its units. Give rows.")
        scaling, points = other.router.scaling, other.signatures.points
        rows = np.asarray(points if scaling is None else scaling.undo(points))
        if rows.shape[1] != self._record.columns.width:
            raise InputError(
                f"old was fitted on {self._record.columns.width} columns and this model on {rows.shape[1]}. Compare "
                "models of the same columns."
            )
        return self._labels_of(as_source(rows))(Block(0, rows))

    def _streamed_labels(self, X: Any) -> Iterator[NDArray[np.int32]]:
        """Yield the labels of rows, block by block."""
        source = self._source(X)
        yield from (
            on_host(labels)
            for labels in engine_for(source, RunOptions.of(self)).map(self._labels_of(source), source, stage="populate")
        )

    def _arriving(self, X: Any, sample_weight: Any) -> Source:
        """Return new rows with weights, which may be a column's name."""
        if not isinstance(sample_weight, str):
            source = self._source(X)
            return source if sample_weight is None else as_source(source, sample_weight=sample_weight)
        preparer, names = self._record.preparer, self._record.columns.names
        if preparer is None:
            return self._source(as_source(X, columns=names and list(names), sample_weight=sample_weight))
        used, texts = list(preparer.columns_in_use), preparer.read_as_written
        return preparer.source(as_table(X, columns=used, weight=sample_weight, texts=texts))

    @property
    def stability_(self) -> NDArray[np.float64]:
        """How much of each cluster is found again, 0 to 1, when signatures are resampled and clustered again.

        The mean over ten resamples of the Jaccard index, by rows, with the most similar new cluster. It is computed on
        first use, from the signatures alone.
        """
        return self._found_stability().per_cluster

    @property
    def overall_stability_(self) -> float:
        """The mean of `stability_`, weighted by rows."""
        return self._found_stability().overall

    def _found_stability(self) -> Stability:
        record = self._fitted()
        return self._once("stability", lambda: stability_of(self._plan(), record))

    def __getstate__(self) -> dict[str, Any]:
        # Anything with an entry per row is left out: a pickled model is small however many rows it was fitted on.
        state = dict(super().__getstate__())  # a copy: this one is the object's own
        state.pop("_found_later", None)
        if "_record" in state:
            state["_record"] = state["_record"].without_rows()
        return state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = []
        tags.non_deterministic = False
        return tags


def _as_they_are(block: Block) -> NDArray[np.int32]:
    raise needs_coordinates()


def compare(old: SignatureClusterer, new: SignatureClusterer, X: Any, X_new: Any = None) -> Changes:
    """Return what changed between the clusters of two models, as labels of the same rows show it.

    The clusters of a separate fit get the numbers of those that they share most rows with, as `relabel` gives them;
    those of a model that was updated or relabelled keep theirs.

    Parameters
    ----------
    old, new : DC2Clustering, RPFCluster, RASP or KASP
        Fitted or loaded.
    X : array-like, data frame, path, ... as in `fit`
        Rows that both models label.
    X_new : optional
        The same rows for the new model, if it needs other columns of them.

    Returns
    -------
    Changes

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from dc2 import DC2Clustering, compare
    >>> X, _ = make_blobs([40, 50, 60], centers=[[0, 0], [9, 9], [90, 9]], random_state=0)
    >>> old, new = DC2Clustering(2, random_state=0).fit(X), DC2Clustering(3, random_state=0).fit(X)
    >>> compare(old, new, X).of("split")
    [0, 2]
    """
    for model in (old, new):
        _check_clusterer(model)
    ways = counted_ways(old._streamed_labels(X), new._streamed_labels(X if X_new is None else X_new))
    if new._record.names is None:
        labels = np.array([way[:2] for way in ways], np.int32).reshape(-1, 2).T
        renamed = new._renamed(old, labels[0], labels[1], np.array([way[3] for way in ways]))
        names = renamed.cluster_names
        ways = [(a, NO_CLUSTER if b < 0 else int(names[b]), before, after) for a, b, before, after in ways]
    return changes_between(ways)


def _check_clusterer(model: Any) -> None:
    if not isinstance(model, SignatureClusterer):
        raise InputTypeError(f"a fitted clusterer of dc2 is needed; got {type(model).__name__}.")
    check_is_fitted(model)


def warn_if_not_supported(record: ClusterRecord) -> None:
    """Warn if the number of clusters asked for does not show in the data."""
    found, k = record.conquest.communities, record.conquest.n_clusters
    if found is None or not record.requested.exact or len(record.signatures) < FEWEST_TO_JUDGE:
        return
    verdict = found.verdict
    if not verdict.supported:
        agreement = verdict.chosen.agreement
        warnings.warn(
            f"n_clusters={k}: the data do not support {k} clusters (bootstrap agreement {agreement:.2f}). "
            "Use n_clusters='auto', or see summary() for the stability of each cluster.",
            ClustersDoNotShowWarning,
            stacklevel=3,
        )


@dataclass(frozen=True, eq=False)
class _LabelsAndShares:
    """The columns of a file: the label of each row, its best clusters and their shares."""

    labels_of: Callable[[Block], NDArray[np.int32]]
    best_of: Membership
    column: str

    def __call__(self, block: Block) -> dict[str, NDArray[Any]]:
        best = self.best_of(block)
        places = range(best["cluster"].shape[1])
        each = {f"{name}_{k + 1}": best[name][:, k] for k in places for name in ("cluster", "share")}
        return {self.column: self.labels_of(block), **each, "share_rest": best["rest"]}


def _shown(
    blocks: Iterator[tuple[Any, Any]], seen: Callable[[NDArray[np.int32]], None], column: str
) -> Iterator[tuple[Any, Any]]:
    for answer, extra in blocks:
        seen(answer[column] if isinstance(answer, dict) else answer)
        yield answer, extra
