"""Statistics of a fitted clusterer, computed from its signatures; each is computed once, when it is first asked for."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from sklearn.utils.validation import check_is_fitted

from dc2.compress.places import Sphere, arc_length
from dc2.compress.routing import RowRouter
from dc2.compress.signatures import Signatures
from dc2.errors import InputTypeError
from dc2.graph.nodes import Description, Similarity
from dc2.report.explain import LabelledRows, Rule
from dc2.report.layout import Layout, default_layouts, layout_named
from dc2.report.profiles import (
    Profile,
    Silhouette,
    cluster_profile,
    column_remarks,
    heaviest_of_clusters,
    summary_records,
    weighted_silhouette,
)


class FittedRecord(Protocol):
    """What statistics need of the record of a fit."""

    @property
    def is_graph(self) -> bool: ...  # noqa: D102
    @property
    def share_known(self) -> NDArray[np.float32] | None: ...  # noqa: D102
    @property
    def preparer(self) -> Any: ...  # noqa: D102
    def in_units(self, rows: NDArray[np.float64]) -> NDArray[np.float64]: ...  # noqa: D102


class FittedClusterer(Protocol):
    """What statistics need of a fitted clusterer; attributes that only some clusterers have are looked up by name."""

    random_state: Any
    _record: FittedRecord

    @property
    def column_names(self) -> tuple[str, ...] | None: ...  # noqa: D102
    @property
    def cluster_numbers_(self) -> NDArray[np.int32]: ...  # noqa: D102
    @property
    def n_clusters_(self) -> int: ...  # noqa: D102
    @property
    def n_rows_in_(self) -> int: ...  # noqa: D102
    @property
    def router_(self) -> RowRouter: ...  # noqa: D102
    @property
    def signature_labels_(self) -> NDArray[np.int32]: ...  # noqa: D102
    @property
    def signatures_(self) -> Signatures: ...  # noqa: D102
    @property
    def similarity_(self) -> Similarity: ...  # noqa: D102
    @property
    def stability_(self) -> NDArray[np.float64]: ...  # noqa: D102
    def get_params(self, deep: bool = True) -> dict[str, Any]: ...  # noqa: D102
    def representative_rows(self) -> NDArray[np.float64]: ...  # noqa: D102


def variance_kept(signatures: Signatures) -> float:
    """Return the share of the rows' variance that is left in their signatures; 1 if rows do not vary.

    Examples
    --------
    >>> variance_kept(Signatures(np.array([[0.0], [2.0]]), np.ones(2), np.array([1.0, 1.0])))
    0.5
    """
    weights = signatures.weights if signatures.weights.sum() > 0 else np.ones(len(signatures))
    share = weights / weights.sum()
    points = signatures.points.astype(np.float64)
    # Any power of two would do; this one keeps squares of very large and very small values in range.
    exponent = int(np.frexp(max(np.abs(points).max(), np.sqrt(signatures.spread.max())))[1])
    points = np.ldexp(points, -exponent)
    off = points - share @ points
    between = float(share @ (off * off).sum(axis=1))
    lost = float(share @ np.ldexp(signatures.spread, -2 * exponent))
    return between / (between + lost) if between + lost > 0 else 1.0


FREE = 1e-12  # the cost of cutting between pieces without any edge; rounding by LAPACK is smaller
WIDE_JUMP = 1.5
LONELY_JUMP, LONELY_BY = 1.2, 2.5
NEARLY_WIDEST = 0.75


def cut_costs(eigenvalues: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return 1 - eigenvalue, at least 1e-12: the i-th is about the cost of cutting the graph into i groups.

    Notes
    -----
    Sharp kernels put all leading eigenvalues within 1e-4 of 1. Their ratios to each other show on a logarithmic axis
    of 1 - eigenvalue; on an axis of eigenvalues nothing would.
    """
    costs: NDArray[np.float64] = np.maximum(1.0 - eigenvalues, FREE)
    return costs


def gap_after(eigenvalues: NDArray[np.float64]) -> int | None:
    """Return the number of groups before the cost of a cut jumps, or None if no jump stands out.

    It is the first jump (from the second group on) that is nearly as wide as the widest, on a logarithmic scale, if
    the widest is at least by half; or by a fifth and far wider than any other.

    Examples
    --------
    >>> gap_after(1 - np.array([0.0, 2e-6, 3e-6, 9e-5, 1e-4]))
    3
    >>> gap_after(1 - np.array([0.0, 0.5, 0.6, 0.7])) is None
    True
    """
    jumps = np.diff(np.log(cut_costs(eigenvalues)[1:]))
    if len(jumps) == 0:
        return None
    next_widest, widest = np.sort(np.append(jumps, 0.0))[-2:]
    lonely = widest >= np.log(LONELY_JUMP) and widest >= LONELY_BY * next_widest
    if widest < np.log(WIDE_JUMP) and not lonely:
        return None
    return int(np.argmax(jumps >= NEARLY_WIDEST * widest)) + 2


MOST_VIEWS = 16
MOST_CLUSTERS = 40
MOST_DRAWN = 2000  # signatures that are drawn or compared in pairs, since that costs their square
MOST_LISTED = 100  # clusters that pages describe one by one, the largest; a summary has all


@dataclass(frozen=True, eq=False)
class ClusterStatistics:
    """The signatures of a fitted clusterer with their clusters, and statistics of them.

    Attributes
    ----------
    points : ndarray of shape (n_signatures, n_features), float64
        As they were clustered: scaled, if the model scales.
    values : ndarray of shape (n_signatures, n_features), float64
        The same in the units of the data.
    weights : ndarray of shape (n_signatures,), float64
        The rows of each that are in its cluster, or all its rows if it is in none; all 1 if no signature has rows.
    spread : ndarray of shape (n_signatures,), float64
        Mean squared distance of its rows.
    labels : ndarray of shape (n_signatures,), int32
        Place of the cluster of each, heaviest first; -1 if it is in none: its cluster is too small, or all of its rows
        are noise.
    names : tuple of str
        Columns; x0, x1, ... if the data had no names; none for a given graph, whose `points` only serve its map.
    n_clusters : int
    numbers : tuple of int
        The number of each cluster, as in labels; empty if they are counted from 0.
    noise : float or None
        Rows that are in no cluster; None if no noise was asked for.
    fitted : DC2Clustering, RPFCluster, RASP or KASP, optional
        The fitted clusterer; statistics that need only signatures work without one.
    sphere : Sphere or None
        How places became points, if rows are places: then points are in kilometres and values in degrees.
    known : ndarray of shape (n_signatures, n_numbers), float32, or None
        Share of each signature's rows with a value in the first columns; None if no value was missing.

    Examples
    --------
    >>> import numpy as np
    >>> from dc2 import RPFCluster
    >>> X = np.random.default_rng(0).normal(size=(50, 2)) + np.repeat([[0.0], [9.0]], 25, axis=0)
    >>> statistics = ClusterStatistics.of(RPFCluster(2, random_state=0).fit(X))
    >>> statistics.names, statistics.sizes.tolist()
    (('x0', 'x1'), [25.0, 25.0])
    """

    points: NDArray[np.float64]
    values: NDArray[np.float64]
    weights: NDArray[np.float64]
    spread: NDArray[np.float64]
    labels: NDArray[np.int32]
    names: tuple[str, ...]
    n_clusters: int
    numbers: tuple[int, ...] = ()
    noise: float | None = None
    fitted: FittedClusterer | None = None
    sphere: Sphere | None = None
    known: NDArray[np.float32] | None = None

    @classmethod
    def of(cls, model: FittedClusterer) -> ClusterStatistics:
        """Return the statistics of a model, or raise if it is not a fitted clusterer of this package."""
        if not hasattr(type(model), "stability_"):
            raise InputTypeError(
                f"a fitted DC2Clustering, RPFCluster, RASP or KASP is needed; got {type(model).__name__}. "
                "Fit one first, or load a saved one with dc2.load."
            )
        check_is_fitted(model)
        signatures = model.signatures_
        points = signatures.points.astype(np.float64)
        scaling = model.router_.scaling
        sphere = scaling if isinstance(scaling, Sphere) else None
        names, values = model.column_names, points if scaling is None else scaling.undo(points)
        record = model._record
        if record.is_graph:
            names, values = (), points[:, :0]
        elif names is None:
            names = tuple(f"x{i}" for i in range(points.shape[1])) if sphere is None else sphere.names
        if hasattr(model, "preparer_"):
            names, values = model.preparer_.in_units(points)
        weights = signatures.weights if signatures.weights.sum() > 0 else np.ones(len(points))
        noise, numbers = getattr(model, "noise_weights_", None), model.cluster_numbers_
        place = np.full(int(numbers.max()) + 2, -1, np.int32)
        place[numbers] = np.arange(len(numbers), dtype=np.int32)
        labels = place[model.signature_labels_]
        n_clusters = int(labels.max()) + 1
        if noise is not None:
            labels = _without_noise(labels, noise >= weights)
            weights = np.where(labels < 0, weights, weights - noise)
        return cls(
            points=points,
            values=values,
            weights=weights,
            spread=signatures.spread,
            labels=labels,
            names=names,
            n_clusters=n_clusters,
            numbers=tuple(numbers.tolist()),
            noise=None if noise is None else float(noise.sum()),
            fitted=model,
            sphere=sphere,
            known=record.share_known,
        )

    @property
    def model(self) -> FittedClusterer:
        """The fitted clusterer."""
        assert self.fitted is not None, "these statistics were made without a model"
        return self.fitted

    def number_of(self, place: int) -> int:
        """Return the number of a cluster, as in labels."""
        return self.numbers[place] if self.numbers else place

    def places_of(self, labels: NDArray[np.int32]) -> NDArray[np.int32]:
        """Return the places of clusters from their numbers; -1 stays."""
        place = np.full(max(self.numbers, default=self.n_clusters) + 2, -1, np.int32)
        place[[self.number_of(k) for k in range(self.n_clusters)]] = np.arange(self.n_clusters)
        places: NDArray[np.int32] = place[labels]
        return places

    # --- signatures and their clusters ---------------------------------------------------------------------------

    def take(self, signatures: NDArray[np.intp]) -> ClusterStatistics:
        """Return the statistics of some of the signatures; clusters keep their numbers."""
        return replace(
            self,
            points=self.points[signatures],
            values=self.values[signatures],
            weights=self.weights[signatures],
            spread=self.spread[signatures],
            labels=self.labels[signatures],
            known=None if self.known is None else self.known[signatures],
        )

    @cached_property
    def in_clusters(self) -> NDArray[np.intp]:
        """The signatures that are in a cluster."""
        return np.flatnonzero(self.labels >= 0)

    @cached_property
    def drawn(self) -> NDArray[np.intp]:
        """The signatures to draw: from each cluster its share of them, heaviest first; those of noise last."""
        chosen = heaviest_of_clusters(self.labels, self.weights, MOST_DRAWN)
        is_noise = self.labels[chosen] < 0
        return np.concatenate([chosen[~is_noise], chosen[is_noise]])

    @cached_property
    def drawn_signatures(self) -> ClusterStatistics:
        """The signatures to draw, with their clusters, -1 if they are noise."""
        return self.take(self.drawn)

    @cached_property
    def compared(self) -> NDArray[np.intp]:
        """The drawn signatures that are in a cluster: those that are compared in pairs."""
        compared: NDArray[np.intp] = self.drawn[self.labels[self.drawn] >= 0]
        return compared

    @cached_property
    def compared_signatures(self) -> ClusterStatistics:
        """The drawn signatures that are in a cluster, with their clusters."""
        return self.take(self.compared)

    @cached_property
    def other_partitions(self) -> list[ClusterStatistics]:
        """The same signatures in fewer and more clusters, the model's own number among them; fewest first."""
        found: dict[int, NDArray[np.int32]] = dict(getattr(self.fitted, "partitions_", {}))
        found |= {int(layer.max()) + 1: layer for layer in getattr(self.fitted, "layers_", [])}
        own = self.n_clusters
        others = [k for k in found if 1 < k <= MOST_CLUSTERS and k != own]
        nearest_first = sorted(others, key=lambda k: (abs(np.log(k / own)), k))[: MOST_VIEWS - 1]
        # Noise is noise in any number of clusters.
        labels = {k: np.where(self.labels < 0, self.labels, found[k]) for k in nearest_first}
        complete = [k for k, of_k in labels.items() if len(np.unique(of_k[of_k >= 0])) == k]
        by_number = {k: replace(self, labels=labels[k], n_clusters=k, numbers=()) for k in complete} | {own: self}
        return [by_number[k] for k in sorted(by_number)]

    @property
    def layers(self) -> list[int]:
        """The layers of the model that have as many clusters."""
        layers = getattr(self.fitted, "layers_", [])
        return [i for i, layer in enumerate(layers) if int(layer.max()) + 1 == self.n_clusters]

    # --- sizes -----------------------------------------------------------------------------------------------------

    @cached_property
    def sizes(self) -> NDArray[np.float64]:
        """Rows of each cluster, of shape (n_clusters,)."""
        sizes = np.zeros(self.n_clusters)
        np.add.at(sizes, self.labels[self.in_clusters], self.weights[self.in_clusters])
        return sizes

    @property
    def total(self) -> float:
        """Rows of all clusters and of none."""
        return float(self.sizes.sum()) + (self.noise or 0.0)

    @cached_property
    def shares(self) -> NDArray[np.float64]:
        """Share of all rows in each cluster; with noise they add up to less than 1."""
        shares: NDArray[np.float64] = self.sizes / self.total
        return shares

    @property
    def n_listed(self) -> int:
        """How many clusters pages describe one by one."""
        return min(self.n_clusters, MOST_LISTED)

    @property
    def signatures_of_clusters(self) -> list[int]:
        """How many signatures each cluster has."""
        counts: list[int] = np.bincount(self.labels[self.in_clusters], minlength=self.n_clusters).tolist()
        return counts

    @property
    def unit(self) -> str:
        """What sizes count: rows, unless the rows had fractional weights."""
        return "rows" if np.array_equal(self.weights, np.round(self.weights)) else "weight"

    @property
    def n_rows(self) -> float:
        """Rows that were clustered; for signatures that were compressed elsewhere, the rows they represent."""
        compressed_here = hasattr(self.fitted, "stage_seconds_")
        return float(self.model.n_rows_in_) if compressed_here else float(self.weights.sum())

    @property
    def each_row_is_a_signature(self) -> bool:
        """Whether no row was compressed."""
        return self.n_rows == len(self.points)

    # --- what the clusters are --------------------------------------------------------------------------------------

    def means(self, of: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the mean over each cluster's rows of something given per signature, (n_clusters, ...)."""
        if len(self.in_clusters) < len(self.labels):
            return self.take(self.in_clusters).means(of[self.in_clusters])
        # A cluster whose signatures have no rows still has a place: that of its signatures.
        rowless = self.sizes[self.labels] == 0
        weights = np.where(rowless, 1.0, self.weights)
        # Shares first: a sum of large values times weights may overflow.
        shares = weights / np.bincount(self.labels, weights)[self.labels]
        starts = np.arange(len(self.labels) + 1)
        member = csr_array((shares, self.labels, starts), shape=(len(self.labels), self.n_clusters))
        means: NDArray[np.float64] = np.asarray(member.T @ of)
        return means

    @cached_property
    def of_columns(self) -> NDArray[np.float64]:
        """The points, a coordinate for each name: of places the degrees, without a jump at the date line."""
        if self.sphere is None:
            return self.points if self.names else self.values
        return self.sphere.unwrapped(self.values, self.in_units(self.weights @ self.points / self.weights.sum()))

    def in_units(self, means: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the degrees of means of places."""
        assert self.sphere is not None
        return self.sphere.undo(np.atleast_2d(means)).reshape(*means.shape[:-1], 2)

    def known_in(self, columns: slice) -> NDArray[np.float64] | None:
        """Return the share of rows with a value in some columns, (n_signatures, n_columns); None if all have one."""
        if self.known is None:
            return None
        known = np.ones((len(self.labels), len(self.names[columns])))
        of_numbers = self.known[:, columns]
        known[:, : of_numbers.shape[1]] = of_numbers
        return known

    @cached_property
    def level_columns(self) -> dict[int, str]:
        """The places of columns that hold the share of rows with a category, and the table's column of each."""
        preparer = getattr(self.fitted, "preparer_", None)
        return {} if preparer is None else dict(preparer.level_columns)

    @cached_property
    def profile(self) -> Profile:
        """The means of the clusters, and how far they are from the mean of all rows."""
        return cluster_profile(self)

    @cached_property
    def radii(self) -> NDArray[np.float64]:
        """Root mean squared distance of each cluster's rows to their mean; of places in kilometres."""
        off = self.points - self.means(self.points)[self.labels]
        # The spread inside signatures is counted too, so that this is a fact about rows.
        radii: NDArray[np.float64] = np.sqrt(self.means(np.einsum("ij,ij->i", off, off) + self.spread))
        return radii if self.sphere is None else arc_length(radii)

    @cached_property
    def summary(self) -> list[dict[str, Any]]:
        """A record of each cluster, and a last one of rows in no cluster."""
        return summary_records(self)

    @cached_property
    def labelled_rows(self) -> LabelledRows:
        """The signatures in the units of the data, counts and ratings on their steps: rules are found for them."""
        record = self.model._record
        values = record.in_units(self.points)
        categories = {} if record.preparer is None else record.preparer.level_columns
        return LabelledRows(values, self.labels, self.weights, self.names, categories)

    @cached_property
    def rules(self) -> dict[int, Rule]:
        """A short rule for each listed cluster, where there are several clusters, and columns."""
        if self.n_clusters < 2 or not self.names:
            return {}
        rules = {k: self.labelled_rows.rule(k) for k in range(self.n_listed)}
        return {k: rule for k, rule in rules.items() if rule is not None}

    @cached_property
    def remarks(self) -> list[str]:
        """Sentences on columns that are constant, may be ids, or explain the clusters alone."""
        return column_remarks(self, self.n_rows)

    # --- how good they are ------------------------------------------------------------------------------------------

    @property
    def stability(self) -> NDArray[np.float64]:
        """The bootstrap stability of each cluster (mean Jaccard index), 0 to 1."""
        stability: NDArray[np.float64] = self.model.stability_
        return stability

    @cached_property
    def silhouette(self) -> Silhouette | None:
        """The silhouette by straight distances, of the drawn signatures; None for a single cluster or a graph."""
        compared = self.compared_signatures
        return weighted_silhouette(compared.points, compared.labels, compared.weights) if self.names else None

    @cached_property
    def kernel_silhouette(self) -> Silhouette | None:
        """The silhouette in the spectral embedding; None if there is no embedding."""
        embedding = getattr(self.fitted, "embedding_", None)
        if embedding is None:
            return None
        compared = self.compared_signatures
        return weighted_silhouette(embedding[self.compared], compared.labels, compared.weights)

    @cached_property
    def variance_kept(self) -> float:
        """Share of the rows' variance that the signatures keep."""
        return variance_kept(self.model.signatures_)

    @property
    def verdict(self) -> str | None:
        """The evidence for the number of clusters, in one sentence; None if the user gave the number."""
        model, found = self.model, f"{self.model.n_clusters_} cluster{'s' if self.model.n_clusters_ != 1 else ''}"
        verdict, path = getattr(model, "verdict_", None), getattr(model, "n_clusters_path_", None)
        if verdict is not None and model.n_clusters_ != verdict.n_clusters:
            return f"{found}, the layer asked for. Of all numbers: {verdict}"
        if verdict is not None or path is None:
            return None if verdict is None else str(verdict)
        best_first = path["n_clusters"][(-path["score"]).argsort(kind="stable")].tolist()
        others = [int(n) for n in best_first if n != model.n_clusters_]
        return f"{found}; {others[0]} comes next." if others else f"{found}."

    # --- the similarity, and maps by it -----------------------------------------------------------------------------

    @cached_property
    def strength(self) -> NDArray[np.float64]:
        """The similarity of the compared signatures, 0 to 1."""
        strength: NDArray[np.float64] = self.model.similarity_.strength(self.compared)
        return strength

    @cached_property
    def similarity_text(self) -> Description:
        """What the similarity is and what its numbers mean."""
        description: Description = self.model.similarity_.describe()
        return description

    @cached_property
    def layouts(self) -> tuple[Layout, ...]:
        """Maps of the drawn signatures, the best first."""
        return default_layouts(self.drawn_signatures, self._distances)

    def layout(self, name: str) -> Layout:
        """Return a map of the drawn signatures: "auto" is the best."""
        return self.layouts[0] if name == "auto" else layout_named(name, self.drawn_signatures, self._distances)

    def _distances(self) -> NDArray[np.float64]:
        distances: NDArray[np.float64] = self.model.similarity_.apart(self.drawn, self.drawn_signatures.points)
        return distances


def _without_noise(labels: NDArray[np.int32], is_noise: NDArray[np.bool_]) -> NDArray[np.int32]:
    """Return labels with -1 for signatures of noise only; a cluster of nothing else keeps its signatures."""
    left = np.bincount(labels[(labels >= 0) & ~is_noise], minlength=int(labels.max()) + 1) > 0
    return np.where(is_noise & left[labels], np.int32(-1), labels)
