"""What the clusterers share: compress, conquer, populate."""

from __future__ import annotations

import os
import warnings
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.random import SeedSequence
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, ClusterMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import pairwise_distances_argmin
from sklearn.utils.validation import check_is_fitted

from dc2.cluster.clock import StageClock
from dc2.compress.compress import Compression
from dc2.compress.lookup import signature_router
from dc2.compress.populate import Lookup, populated
from dc2.compress.signatures import Signatures
from dc2.engines import RunOptions, Verbose, engine_for
from dc2.engines.base import Engine
from dc2.errors import InputError, ParameterError
from dc2.model_file import SaveMixin
from dc2.output import check_output_path, check_room, write_labels
from dc2.parameters import check_choice, check_integer
from dc2.random import RandomStateLike, seed_sequence
from dc2.sources import Block, Source, as_source
from dc2.sources.estimator import SourceTransformer, in_container, source_for
from dc2.sources.paths import check_not_among
from dc2.spectral import SpectralResult


@dataclass(frozen=True, eq=False)
class Seeds:
    """The seed sequences of a fit."""

    compress: SeedSequence
    kernel: SeedSequence
    assign: SeedSequence

    @classmethod
    def of(cls, sequence: SeedSequence) -> Seeds:
        """Spawn them."""
        return cls(*seed_sequence(sequence).spawn(3))


class SignatureClusterer(
    SaveMixin, ClassNamePrefixFeaturesOutMixin, ClusterMixin, SourceTransformer, BaseEstimator
):
    """Clusters rows by clustering their signatures; subclasses say how rows compress and what is similar."""

    n_clusters: Any
    n_signatures: int
    assign: Any
    weighted: bool
    n_jobs: int | None
    block_bytes: int
    random_state: RandomStateLike
    verbose: Verbose

    @abstractmethod
    def _check_parameters(self) -> None:
        """Raise if a parameter is impossible; called before any work."""

    @abstractmethod
    def _compress(self, source: Source, engine: Engine, seeds: Seeds) -> Compression:
        """Return the signatures of a source."""

    @abstractmethod
    def _cluster(
        self, points: NDArray[Any], weights: NDArray[np.float64] | None, seeds: Seeds
    ) -> SpectralResult:
        """Cluster signature points."""

    def fit(self, X: Any, y: Any = None, sample_weight: ArrayLike | str | None = None) -> Self:
        """Cluster rows.

        Parameters
        ----------
        X : array-like, data frame, path, list of paths, glob, callable or Source
            The rows.
        y : ignored
        sample_weight : array-like of shape (n_rows,), str or None
            Weights, or the name of the column that holds them. An integer weight means as many repeats of the row.
        """
        self._check_parameters()
        source = source_for(self, X, reset=True, sample_weight=sample_weight)
        self._check_row_count(source.n_rows)
        clock = StageClock(self.verbose)
        clock.enter("divide")
        engine = engine_for(source, RunOptions(self.n_jobs, self.block_bytes, clock))
        seeds = self._new_seeds()
        compression = self._compress(source, engine, seeds)
        self._check_row_count(compression.n_rows)
        clock.enter("conquer")
        self._router = compression.router
        self._signature_of_id: NDArray[np.int32] | None = None
        self.n_rows_in_ = compression.n_rows
        self._conquer(compression.signatures, seeds)
        clock.enter("populate")
        self._ids = compression.ids
        clock.stop()
        self.stage_seconds_ = clock.seconds
        return self

    def fit_predict(self, X: Any, y: Any = None, sample_weight: ArrayLike | str | None = None) -> Any:
        """Cluster rows and return the cluster of each: ``labels_``, or for rows that are not in memory `predict`."""
        self.fit(X, sample_weight=sample_weight)
        return self.predict(X) if self._ids is None else self.labels_

    def fit_signatures(self, signatures: Signatures) -> Self:
        """Conquer signatures that were compressed elsewhere; `predict` then labels rows by the signature nearest.

        Parameters
        ----------
        signatures : Signatures
            Such as the merged signatures of several sites. ``signature_labels_`` has their labels in this order, so
            that each site can label its rows with its own compressor.
        """
        self._check_parameters()
        if not isinstance(signatures, Signatures):
            raise InputError(f"fit_signatures takes dc2.Signatures; got {type(signatures).__name__}.")
        self._check_row_count(len(signatures))
        self._begin_without_rows()
        if hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        self.n_features_in_ = signatures.points.shape[1]
        self.n_rows_in_ = len(signatures)
        seeds = self._new_seeds()
        self._router, self._signature_of_id = signature_router(signatures.points, seeds.compress)
        self._ids = None
        self._conquer(signatures, seeds)
        return self

    def predict(self, X: Any) -> Any:
        """Return the cluster of each row, by routing it to its signature.

        Parameters
        ----------
        X : array-like, data frame, path, ... as in `fit`
            The rows.

        Returns
        -------
        ndarray of shape (n_rows,), int32
            For a source that is not in memory, an iterator of such arrays, block by block; for a Dask collection a
            lazy Dask array with the same chunks.
        """
        return self._populated(X, self._label_of_id())

    def predict_to(
        self,
        X: Any,
        path: str | os.PathLike[str],
        *,
        id_columns: str | Sequence[str] = (),
        column: str = "label",
        seen: Callable[[NDArray[np.int32]], None] | None = None,
    ) -> int:
        """Write the cluster of each row to a file, in row order, beside chosen columns of the data.

        Parameters
        ----------
        X : data frame, path, list of paths, glob, ... as in `fit`
            The rows.
        path : path
            A .parquet, .arrow, .feather, .csv, .csv.gz or .npy file; it appears when it is complete, in place of
            one that may be there. It must not be one of the files that are read.
        id_columns : str or list of str, optional
            Columns of the data to write beside the labels.
        column : str, default="label"
            Name of the column of labels.
        seen : callable, optional
            Called with the labels of each block as they are written, for instance to count them.

        Returns
        -------
        int
            Number of rows written.
        """
        check_is_fitted(self)
        target = check_output_path(path)
        check_not_among(path, X)
        names = [id_columns] if isinstance(id_columns, str) else list(id_columns)
        fitted = getattr(self, "feature_names_in_", None)
        wanted = list(fitted) if fitted is not None and not isinstance(X, Source) else None
        rows = (
            X if isinstance(X, Source) else as_source(X, columns=wanted if _named(X) else None, extra=names)
        )
        check_room(target, rows.n_rows)
        blocks = self.labelled_blocks(rows)
        return write_labels(target, blocks if seen is None else _shown(blocks, seen), column)

    def labelled_blocks(self, X: Any) -> Iterator[tuple[NDArray[np.int32], Any]]:
        """Yield the labels of each block of rows, and the columns that travelled with it (`Block.extra`).

        Parameters
        ----------
        X : data frame, path, Source, ... as in `fit`
            The rows, with columns as the model knows them.
        """
        source = source_for(self, X, reset=False)
        lookup = Lookup(self._router, self._label_of_id(), source.feature_names)
        engine = engine_for(source, RunOptions.of(self))

        def label(block: Block) -> tuple[NDArray[np.int32], Any]:
            return lookup(block), block.extra

        return engine.map(label, source, stage="populate")

    def transform(self, X: Any) -> Any:
        """Return the spectral embedding of each row's signature, of shape (n_rows, n_clusters)."""
        check_is_fitted(self)
        embedding = (
            self.embedding_ if self._signature_of_id is None else self.embedding_[self._signature_of_id]
        )
        return in_container(self._populated(X, embedding), X, self)

    @property
    def labels_(self) -> NDArray[np.int32]:
        """The cluster of each training row."""
        check_is_fitted(self)
        ids: NDArray[np.int32] | None = getattr(self, "_ids", None)
        if ids is None:
            raise AttributeError(
                "labels_ is kept for rows in memory only, and not in saved or pickled models. Use predict(X), or "
                "predict_to(source, path) to write the label of each row."
            )
        return self._label_of_id()[ids]

    @property
    def distortion_(self) -> float:
        """Mean squared distance of a row to its signature."""
        return self.signatures_.distortion

    @property
    def _n_features_out(self) -> int:
        return int(self.embedding_.shape[1])

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "signature_labels_")

    def __getstate__(self) -> dict[str, Any]:
        # What is as long as the rows stays behind: a pickled model is small, whatever it was fitted on.
        return {name: value for name, value in super().__getstate__().items() if name != "_ids"}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = []
        tags.non_deterministic = False
        return tags

    def _begin_without_rows(self) -> None:
        """Raise if signatures alone are not enough, and forget what is known of rows."""

    def _new_seeds(self) -> Seeds:
        sequence = seed_sequence(self.random_state)
        self._seed_of_fit = sequence.state  # plain numbers, which unlike a sequence can be saved anywhere
        return Seeds.of(sequence)

    def _seeds_of_fit(self) -> Seeds:
        return Seeds.of(SeedSequence(**self._seed_of_fit))

    def _populated(self, X: Any, answer_of_id: NDArray[Any]) -> Any:
        source = source_for(self, X, reset=False)
        return populated(source, self._router, answer_of_id, RunOptions.of(self))

    def _label_of_id(self) -> NDArray[np.int32]:
        check_is_fitted(self)
        labels: NDArray[np.int32] = self.signature_labels_
        return labels if self._signature_of_id is None else labels[self._signature_of_id]

    def _conquer(self, signatures: Signatures, seeds: Seeds) -> None:
        points = conquered_points(signatures)
        weights = relative_weights(signatures.weights) if self.weighted else None
        self.signatures_ = signatures
        self._keep(self._cluster(points, weights, seeds))

    def _keep(self, result: SpectralResult) -> None:
        self.signature_labels_ = result.labels
        self.eigenvalues_ = result.eigenvalues
        self.embedding_ = result.embedding

    def _check_common_parameters(self) -> None:
        check_integer("n_signatures", self.n_signatures, low=1)
        check_choice("assign", self.assign, ("kmeans", "ncut"))
        fewest = self._fewest_clusters()
        if self.n_signatures < fewest:
            raise ParameterError(
                f"n_signatures={self.n_signatures} cannot make n_clusters={fewest} clusters: use at least as many "
                "signatures as clusters, better many times more."
            )

    def _fewest_clusters(self) -> int:
        """Return the smallest number of clusters that is asked for, or raise if that is impossible."""
        return check_integer("n_clusters", self.n_clusters, low=1)

    def _check_row_count(self, n_rows: int | None) -> None:
        fewest = self._fewest_clusters()
        if n_rows is not None and n_rows < fewest:
            raise InputError(
                f"n_samples={n_rows} should be >= n_clusters={fewest}: fewer rows than clusters."
            )

    def _clusters_found(self, result: SpectralResult, wanted: int) -> int:
        """Return the number of clusters found, and say so where it is less than what was wanted."""
        found = int(result.labels.max()) + 1
        if found < wanted:
            warnings.warn(
                f"the rows make only {found} signatures that the kernel tells apart, so there are {found} clusters "
                f"and not n_clusters={wanted}. Ask for fewer clusters; equal rows cannot be told apart.",
                ConvergenceWarning,
                stacklevel=5,
            )
        return found


def _shown(
    blocks: Iterator[tuple[NDArray[np.int32], Any]], seen: Callable[[NDArray[np.int32]], None]
) -> Iterator[tuple[NDArray[np.int32], Any]]:
    for labels, extra in blocks:
        seen(labels)
        yield labels, extra


def _named(X: Any) -> bool:
    return hasattr(X, "columns") or isinstance(X, str | os.PathLike | list | tuple)


def relative_weights(weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return weights with mean 1; a signature that all rows left for nearer ones keeps its place, but has no say."""
    relative: NDArray[np.float64] = np.maximum(weights, 1e-9 * weights.mean())
    relative *= len(relative) / relative.sum()
    return relative


def nearest_with_rows(signatures: Signatures) -> NDArray[np.intp]:
    """Return for each signature itself, or where no row came to it the nearest that has rows.

    Left between clusters when rows walked to nearer ones, a signature without rows would be a cluster of its own.
    """
    nearest = np.arange(len(signatures))
    filled, empty = np.flatnonzero(signatures.weights > 0), np.flatnonzero(signatures.weights <= 0)
    if len(filled) and len(empty):
        points = signatures.points
        nearest[empty] = filled[pairwise_distances_argmin(points[empty], points[filled])]
    return nearest


def conquered_points(signatures: Signatures) -> NDArray[np.float32]:
    """Return points about their mean in float32: what conquer sees does not depend on the last bits of sums."""
    points = signatures.points.astype(np.float64)[nearest_with_rows(signatures)]
    centred: NDArray[np.float32] = (points - points.mean(axis=0)).astype(np.float32)
    return centred
