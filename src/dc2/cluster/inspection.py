"""What a fitted clusterer tells about its clusters: a summary, typical rows, a map, a report, a notebook view."""

from __future__ import annotations

import html
import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClusterMixin
from sklearn.utils import estimator_html_repr
from sklearn.utils.validation import check_is_fitted

from dc2.cluster.changes import Changes
from dc2.cluster.record import ClusterRecord
from dc2.compress.compression import edge_weights
from dc2.compress.routing import RowRouter
from dc2.compress.sampling import take_sample
from dc2.compress.signatures import Signatures
from dc2.engines.map_rows import RunOptions, engine_for
from dc2.graph.communities import partitions_by_number
from dc2.graph.conquest import Spectrum
from dc2.graph.layers import CommunityResult
from dc2.graph.n_clusters import Verdict
from dc2.graph.nodes import Similarity
from dc2.graph.precomputed import needs_coordinates
from dc2.io.columns import Columns, KnowsItsColumns, as_frame, frame_kind
from dc2.io.model_file import SaveMixin
from dc2.io.resolve import as_source
from dc2.io.source import Block
from dc2.parameters import check_integer
from dc2.tables.preparer import TablePreparer

if TYPE_CHECKING:
    from dc2.report.cluster_report import InlineReport
    from dc2.report.cluster_statistics import ClusterStatistics


TIES = 5


@dataclass(frozen=True, eq=False)
class Membership:
    """How strongly rows are connected to each cluster: the summed weights of edges to their five nearest signatures."""

    router: RowRouter
    label_of_id: NDArray[np.int32]
    n_clusters: int
    shares: bool
    belongs: Callable[[Block], NDArray[np.float64]] | None = None
    top: int | None = None

    def __call__(self, block: Block) -> NDArray[Any]:
        """Return the ties of each row, of shape (n_rows, n_clusters); nearer signatures count more."""
        ids, squared = self.router.nearest_few(block.native_rows, TIES)
        labels, weights = self.label_of_id[ids], edge_weights(squared)
        if self.shares:
            weights = weights / weights.sum(axis=1, keepdims=True)
        if self.belongs is not None:
            weights = weights * self.belongs(block)[:, None]
        if self.top is not None:
            return best_clusters(labels, weights, self.top)
        ties = np.zeros((len(ids), self.n_clusters + 1))  # the last column, -1, means no cluster
        for k in range(ids.shape[1]):
            ties[np.arange(len(ids)), labels[:, k]] += weights[:, k]
        return np.ascontiguousarray(ties[:, :-1])

    @property
    def like(self) -> NDArray[Any]:
        """The answer for no rows."""
        return np.empty((0, self.n_clusters)) if self.top is None else np.empty(0, best_dtype(self.top))


def best_dtype(top: int) -> np.dtype[Any]:
    """Return the dtype of the records of `best_clusters`."""
    return np.dtype([("cluster", np.int32, (top,)), ("share", np.float64, (top,)), ("rest", np.float64)])


def best_clusters(labels: NDArray[np.int32], shares: NDArray[np.float64], top: int) -> NDArray[Any]:
    """Return the clusters with the largest shares of each row, from the labels and shares of its signatures.

    Examples
    --------
    >>> best_clusters(np.array([[4, 7, 4]]), np.array([[0.25, 0.25, 0.5]]), top=1)[0]
    np.void(([4], [0.75], 0.25), dtype=[('cluster', '<i4', (1,)), ('share', '<f8', (1,)), ('rest', '<f8')])
    """
    same = labels[:, :, None] == labels[:, None, :]
    repeated = np.tril(same, -1).any(axis=2)
    together = np.where(repeated | (labels < 0), 0.0, (same * shares[:, None, :]).sum(axis=2))
    order = np.lexsort((labels, -together), axis=1)[:, :top]
    best = np.zeros(len(labels), best_dtype(top))
    best["cluster"], found = -1, np.take_along_axis(together, order, axis=1)
    best["share"][:, : order.shape[1]] = found
    best["cluster"][:, : order.shape[1]] = np.where(found > 0, np.take_along_axis(labels, order, axis=1), -1)
    best["rest"] = np.maximum(1.0 - found.sum(axis=1), 0.0)
    return best


Value = TypeVar("Value")


class FittedAttributes(SaveMixin, KnowsItsColumns, ClusterMixin):
    """The public attributes of a fitted clusterer; each reads from one frozen record and changes nothing."""

    _record: ClusterRecord

    @property
    def n_features_in_(self) -> int:
        """Number of columns seen in fit."""
        return self._columns_in.n_features

    @property
    def feature_names_in_(self) -> NDArray[np.object_]:
        """Names of the columns seen in fit, if they have names."""
        return self._columns_in.feature_names_in

    @property
    def _columns_in(self) -> Columns:
        record = self._fitted()
        return record.columns if record.preparer is None else record.preparer.columns_

    @property
    def column_names(self) -> tuple[str, ...] | None:
        """Names of the columns of the signatures: those of the rows, or of what these were reduced or prepared to."""
        return self._fitted().columns.names_out

    @property
    def preparer_(self) -> TablePreparer:
        """Turned the table into numbers; its ``decisions_`` say how."""
        return _there(self._fitted().preparer, "preparer_", "where a table was prepared")

    @property
    def labels_(self) -> NDArray[np.int32]:
        """The cluster of each training row, -1 for noise."""
        record = self._fitted()
        if record.ids is None:
            raise AttributeError(
                "labels_ is kept for rows in memory only, and not in saved or pickled models. Use predict(X), or "
                "predict_to(source, path) to write the label of each row."
            )
        labels = record.labels_of_rows(record.conquest.labels)
        return record.named(labels if record.known is None else record.known.keep(labels, record.conquest.labels))

    @property
    def classes_(self) -> NDArray[np.object_]:
        """The label that the user gave to each cluster; None for a cluster that was found without one."""
        record = self._fitted()
        known = record.known if record.known is not None and record.known.names else None
        known = _there(known, "classes_", "where y held labels of some rows")
        names = np.array([*known.names, None], dtype=object)
        found: NDArray[np.object_] = names[known.classes_of(record.conquest.labels)]
        return found

    @property
    def n_clusters_(self) -> int:
        """The number of clusters found, before any are marked as noise."""
        return self._fitted().conquest.n_clusters

    @property
    def cluster_numbers_(self) -> NDArray[np.int32]:
        """The number of each living cluster, as in labels: the order of the columns of `predict_proba`."""
        return self._fitted().cluster_names

    @property
    def changes_(self) -> Changes:
        """What the last update changed."""
        return _there(self._fitted().changes, "changes_", "after update")

    @property
    def signatures_(self) -> Signatures:
        """Points, weights and spread of the signatures."""
        return self._fitted().signatures

    @property
    def signature_labels_(self) -> NDArray[np.int32]:
        """The cluster of each signature; -1 if its cluster is too small and counts as noise."""
        return self._fitted().signature_labels

    @property
    def noise_weights_(self) -> NDArray[np.float64]:
        """How many training rows of each signature, or what weight of them, are labelled -1."""
        noise = self._fitted().noise_of_signatures
        return _there(noise, "noise_weights_", "where noise or min_cluster_share was asked for")

    @property
    def router_(self) -> RowRouter:
        """Sends a row to its signature."""
        return self._fitted().router

    @property
    def similarity_(self) -> Similarity:
        """The similarity of the signatures: its matrix, and what it means."""
        return self._fitted().similarity_in_use

    @property
    def distortion_(self) -> float:
        """Mean squared distance of a row to its signature."""
        return self._fitted().signatures.distortion

    @property
    def n_rows_in_(self) -> int:
        """Number of rows seen in fit."""
        return self._fitted().n_rows

    @property
    def stage_seconds_(self) -> dict[str, float]:
        """Seconds spent to divide, compress, conquer and populate."""
        return _there(self._fitted().stage_seconds, "stage_seconds_", "after fit, and not after fit_signatures")

    @property
    def eigenvalues_(self) -> NDArray[np.float64]:
        """Leading eigenvalues of the normalized similarity."""
        return self._spectrum("eigenvalues_").eigenvalues

    @property
    def embedding_(self) -> NDArray[np.float64]:
        """The spectral embedding of the signatures."""
        return self._spectrum("embedding_").embedding

    @property
    def bandwidth_(self) -> float:
        """The bandwidth in use."""
        return self._spectrum("bandwidth_").bandwidth

    @property
    def bandwidth_path_(self) -> dict[str, NDArray[Any]]:
        """The bandwidths that were considered."""
        path = self._spectrum("bandwidth_path_").bandwidth_path
        return _there(path, "bandwidth_path_", "where the bandwidth was chosen")

    @property
    def n_clusters_path_(self) -> dict[str, NDArray[Any]]:
        """The numbers of clusters that were considered."""
        path = self._spectrum("n_clusters_path_").n_clusters_path
        return _there(path, "n_clusters_path_", "where the number of clusters was chosen")

    @property
    def layers_(self) -> list[NDArray[np.int32]]:
        """Every partition of the signatures with enough evidence, finest first; each is within the next.

        Above the coarsest partition that shares edges, groups of clusters follow by distance: one layer wherever the
        next groups are at least twice as far apart.
        """
        return list(self._communities("layers_").layers)

    @property
    def layer_(self) -> int:
        """The number of the layer that the labels come from."""
        return self._communities("layer_").chosen_layer

    @property
    def partitions_(self) -> dict[int, NDArray[np.int32]]:
        """Clusters of the signatures for each number of clusters that was considered, fewest first."""
        found = self._communities("partitions_")
        return partitions_by_number(found, self._fitted().signatures.weights)

    @property
    def cluster_tree_(self) -> list[NDArray[np.int32]]:
        """For each layer the cluster of the next layer that contains each of its clusters; for the last the root."""
        return list(self._communities("cluster_tree_").cluster_tree)

    @property
    def layer_heights_(self) -> NDArray[np.float64]:
        """How high in the hierarchy each of ``layers_`` forms and, last, the root; heights never fall.

        The height is the logarithm of the finest resolution over the layer's. Where clusters share no edges, the
        logarithm of 1 plus their distance is added, in units of the typical distance between nearest signatures.
        """
        return self._communities("layer_heights_").heights

    @property
    def resolution_path_(self) -> dict[str, NDArray[Any]]:
        """The resolutions that were considered."""
        return dict(self._communities("resolution_path_").resolution_path)

    @property
    def verdict_(self) -> Verdict:
        """The evidence for this number of clusters and for the next best; ``print`` shows it as a sentence."""
        return self._communities("verdict_").verdict

    @property
    def _n_features_out(self) -> int:
        spectrum = self._record.conquest.spectrum
        return self.n_clusters_ if spectrum is None else int(spectrum.embedding.shape[1])

    def _fitted(self) -> ClusterRecord:
        if not hasattr(self, "_record"):
            raise AttributeError(f"this {type(self).__name__} is not fitted yet; call fit first.")
        return self._record

    def _spectrum(self, name: str) -> Spectrum:
        return _there(self._fitted().conquest.spectrum, name, "where eigenvectors made the clusters")

    def _communities(self, name: str) -> CommunityResult:
        return _there(self._fitted().conquest.communities, name, "where communities made the clusters")


def _there(value: Value | None, name: str, when: str) -> Value:
    """Return a fitted attribute, or say when there is one."""
    if value is None:
        raise AttributeError(f"{name} exists only {when}.")
    return value


MAP_SEED = 0x6D6170  # seed: which rows are drawn if there are too many


class InspectionMixin(FittedAttributes):
    """Answers what people ask first about clusters: what they are, and whether they are real."""

    _labels_of: Callable[[Any], Callable[[Block], NDArray[np.int32]]]
    _scores_of: Callable[[Any], Callable[[Block], NDArray[np.float64]]]

    def summary(self) -> Any:
        """Return a table with one row per cluster: its size, its stability and what sets it apart.

        Returns
        -------
        data frame
            With the columns

            - ``cluster``: its number, as in ``labels_``. A last row, cluster -1, is for rows in no cluster.
            - ``rows``, ``share``: how many rows it has, or their weight, and its share of all.
            - ``stability``: how much of it is found again, see ``stability_``.
            - ``spread``: root mean squared distance of its rows to their mean, in the scale they were clustered in; in
              kilometres with ``metric="haversine"``.
            - ``nearest``: the other cluster that most of its rows are nearest to.
            - ``sets_apart``: columns in which it is far from all rows, with its median and that of all: "very high
              temperature 21 (all 12)"; of a category its share. Filled-in values do not count.
            - ``typical``: its row of ``representatives_``, in these columns.

            Of the kind chosen by `set_output`, or else of the kind that the model was fitted on, or else of pandas,
            polars or pyarrow, whichever is installed. Without any of these it is a list of records.

        Examples
        --------
        >>> import numpy as np
        >>> from dc2 import DC2Clustering
        >>> X = np.repeat([[0.0, 1.0], [9.0, 1.0]], [60, 40], axis=0)
        >>> X += np.random.default_rng(0).normal(scale=0.1, size=X.shape)
        >>> DC2Clustering(random_state=0).fit(X).summary()[["cluster", "rows", "stability", "nearest"]]
           cluster  rows  stability  nearest
        0        0    60        1.0        1
        1        1    40        1.0        0
        """
        records = self._statistics().summary
        return self._frame({name: [record[name] for record in records] for name in records[0]})

    @property
    def representatives_(self) -> Any:
        """A typical row of each cluster, the one nearest to its middle: ``(n_clusters_, n_features)``.

        A data frame of the kind that the model was fitted on, with the names of the columns; a column of whole numbers
        stays whole, and a value that was missing is missing. An array if the rows were no data frame.

        A real row, not a mean: one of those that the fit kept, at most one per signature; exact except for rounding if
        columns were scaled. Saved and pickled models hold no rows of compressed data; there it is the signature nearest
        to the middle, the mean of a few similar rows.
        """
        record, rows = self._fitted(), self.representative_rows()
        names = record.columns.names_out if record.preparer is None else record.preparer.names_in_units
        if names is None or (record.columns.frame is None and record.preparer is None):
            return rows
        return self._frame(dict(zip(names, map(_column_values, rows.T), strict=True)))

    def representative_rows(self) -> NDArray[np.float64]:
        """Return `representatives_` as an array; NaN for a cluster without rows."""
        from dc2.report.profiles import representatives

        record = self._fitted()
        if record.is_graph:
            raise needs_coordinates()
        members = record.signatures.points if record.members is None else record.members
        return self._once("representatives", lambda: representatives(self._statistics(), members, record.in_units))

    def explain(self, X: Any = None, n_rows: int = 10_000) -> Any:
        """Return a short rule for each cluster: up to three conditions on columns, from a small decision tree.

        Parameters
        ----------
        X : array-like, data frame, path, ... as in `fit`, optional
            Rows to find and measure the rules with, labelled by `predict`. None takes the signatures, by weight: means
            of similar rows, which vary less, so precision and coverage are a little too high.
        n_rows : int, default=10_000
            How many rows of X to use, if there are more: those with the smallest hash of their number.

        Returns
        -------
        data frame
            With the columns

            - ``cluster``: its number.
            - ``rule``: such as "age > 40 and plan is gold", in the units of the data; a missing number counts as what
              preparing the table put in its place. With ``metric="cosine"`` and without X, of rows of length 1.
            - ``precision``: share of the rows that meet the rule and are in the cluster.
            - ``coverage``: share of the rows of the cluster that meet the rule.

            It is the same kind of frame as that of `summary`. The tree saw the rows that measure its rule; to test a
            rule, count new rows.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from dc2 import DC2Clustering
        >>> model = DC2Clustering(2, random_state=0).fit(load_iris(as_frame=True).data)
        >>> model.explain()[["cluster", "rule", "precision"]]
           cluster                     rule  precision
        0        0   petal width (cm) > 0.8        1.0
        1        1  petal width (cm) <= 0.8        1.0
        """
        if self._fitted().is_graph:
            raise needs_coordinates()
        statistics, most = self._statistics(), check_integer("n_rows", n_rows, low=1)
        rows = statistics.labelled_rows
        if X is not None:
            _, values = self._rows_to_place(X, most)
            labels = statistics.places_of(self._labels_of(as_source(values))(Block(0, values)))
            values = values if self._record.preparer is None else self._record.in_units(values)
            rows = replace(rows, values=values.astype(np.float64), labels=labels, weights=np.ones(len(labels)))
        clusters = [int(k) for k in np.unique(statistics.labels) if k >= 0]
        rules = [rows.rule(k) for k in clusters]
        columns = {name: [getattr(rule, name, None) for rule in rules] for name in ("text", "precision", "coverage")}
        numbers = [statistics.number_of(k) for k in clusters]
        return self._frame({"cluster": numbers, "rule": columns.pop("text"), **columns})

    def map(self, X: Any = None, n_rows: int = 10_000) -> Any:
        """Return places in the plane for rows, with their labels, ready to be drawn.

        Rows are placed among their nearest signatures on the report's map. Data with two columns is its own map;
        places have their longitude as ``x``.

        Parameters
        ----------
        X : array-like, data frame, path, ... as in `fit`, optional
            The rows. None takes the rows that the model holds: one for each signature.
        n_rows : int, default=10_000
            How many rows to place. If there are more, those with the smallest hash of their number are taken: the same
            ones each time.

        Returns
        -------
        data frame
            With the columns ``row`` (its number, from 0; without X that of its signature), ``x``, ``y``, ``label``,
            ``layer_0`` (finest) and so on if there are layers, and ``score``, how far out the row lies, if rows are
            scored. It is the same kind of frame as that of `summary`.

        Examples
        --------
        >>> from sklearn.datasets import load_digits
        >>> from dc2 import DC2Clustering
        >>> X = load_digits().data
        >>> DC2Clustering(random_state=0).fit(X).map(X, n_rows=100).shape[0]
        100
        """
        from dc2.report.layout import placed_rows

        check_is_fitted(self)
        record, statistics = self._record, self._statistics()
        rows, values = self._rows_to_place(X, check_integer("n_rows", n_rows, low=1))
        scaling = record.router.scaling
        scaled = values if scaling is None else scaling.apply(values)
        xy = placed_rows(
            scaled.astype(np.float64), values.astype(np.float64), statistics.drawn_signatures, statistics.layouts[0]
        )
        block = Block(0, values)
        columns: dict[str, Any] = {"row": rows, "x": xy[:, 0], "y": xy[:, 1]}
        columns["label"] = self._labels_of(as_source(values))(block)
        ids = record.router.assign(values)
        layers = [] if record.conquest.communities is None else record.conquest.communities.layers
        columns |= {f"layer_{i}": record.of_id(layer)[ids] for i, layer in enumerate(layers)}
        if record.outliers is not None:
            columns["score"] = self._scores_of(record.outliers)(block)
        return self._frame({name: np.asarray(values).tolist() for name, values in columns.items()})

    def report(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        source_description: str | None = None,
        title: str | None = None,
    ) -> Path | InlineReport:
        """Show the report inline in a notebook, or write it to a file.

        Parameters
        ----------
        path : path, optional
            Where to write it, such as ``report.html``; None returns what a notebook shows.
        source_description : str, optional
            What the rows are, in your words; shown under the title.
        title : str, optional
        """
        from dc2.report.cluster_report import InlineReport, write_report

        if path is not None:
            return write_report(self, path, source_description=source_description, title=title)
        return InlineReport.of(self._statistics(), title=title, source_description=source_description)

    def _html_repr(self) -> str:
        """Return what a notebook shows: scikit-learn's diagram, and the summary once there are clusters."""
        diagram: str = estimator_html_repr(self)
        if not hasattr(self, "_record"):
            return diagram
        statistics = self._statistics()
        head = "".join(f"<th>{name.replace('_', ' ')}</th>" for name in statistics.summary[0])
        body = "".join(
            f"<tr>{''.join(f'<td>{_cell(value)}</td>' for value in record.values())}</tr>"
            for record in statistics.summary
        )
        said = "".join(f"<p>{html.escape(text)}</p>" for text in (statistics.verdict, *statistics.remarks) if text)
        return f"{diagram}{said}<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"

    def _rows_to_place(self, X: Any, most: int) -> tuple[NDArray[np.int64], NDArray[Any]]:
        """Return the numbers and the values of the rows to be placed, in the units of the data."""
        record = self._record
        if X is None:
            held = record.signatures.points if record.members is None else record.members
            scaling = record.router.scaling
            source = as_source(held if scaling is None else scaling.undo(held))
        else:
            source = self._source(X)
        sample = take_sample(source, engine_for(source, RunOptions.of(self)), most, MAP_SEED)
        return sample.rows, sample.X

    def _frame(self, columns: dict[str, list[Any]]) -> Any:
        return as_frame(columns, frame_kind(self, self._fitted().columns.frame))

    def _statistics(self) -> ClusterStatistics:
        from dc2.report.cluster_statistics import ClusterStatistics

        check_is_fitted(self)
        return self._once("statistics", lambda: ClusterStatistics.of(self))

    def _once(self, name: str, find: Callable[[], Value]) -> Value:
        """Return what was computed from this record before, or compute it; nothing is kept for a new record."""
        record = self._fitted()
        of_record, found = self.__dict__.get("_found_later", (None, {}))
        if of_record is not record:
            found = {}
            self._found_later = (record, found)
        if name not in found:
            found[name] = find()
        value: Value = found[name]
        return value


def _column_values(column: NDArray[np.float64]) -> list[Any]:
    """Return the values of a column; None for a cluster without rows, and whole numbers if all are whole."""
    known = column[~np.isnan(column)]
    whole = len(known) > 0 and bool((known == np.rint(known)).all() and (np.abs(known) < 2.0**53).all())
    return [None if np.isnan(value) else int(value) if whole else float(value) for value in column]


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.3g}" if isinstance(value, float) else html.escape(str(value))
