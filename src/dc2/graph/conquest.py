"""Stability: how much of a cluster is found again when signatures are resampled and clustered again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.random import SeedSequence
from numpy.typing import NDArray
from scipy.sparse import coo_array

from dc2.errors import InputError
from dc2.graph.layers import CommunityResult
from dc2.graph.n_clusters import RequestedClusters
from dc2.graph.nodes import Nodes
from dc2.io.model_file import saved_record

RESAMPLINGS = 10  # for the stability of clusters

Path = dict[str, NDArray[Any]]


@saved_record
@dataclass(frozen=True, eq=False)
class Spectrum:
    """What spectral clustering measured."""

    eigenvalues: NDArray[np.float64]  # leading eigenvalues of the normalized similarity, descending
    embedding: NDArray[np.float64]  # the first eigenvectors, with rows at unit length
    bandwidth: float  # the bandwidth in use
    bandwidth_path: Path | None = None  # "bandwidth" and "score" of each that was considered, where one was chosen
    # "n_clusters" and "score" of each that was considered, where a number was chosen
    n_clusters_path: Path | None = None

    def check(self) -> None:
        """Raise if the parts do not fit together; called when a spectrum was read from a model file."""
        numbers = (self.eigenvalues, self.embedding)
        if (
            self.eigenvalues.ndim != 1
            or self.embedding.ndim != 2
            or not all(array.dtype == np.float64 and np.isfinite(array).all() for array in numbers)
            or not isinstance(self.bandwidth, float)
            or not 0 < self.bandwidth < np.inf
            or not all(np.abs(array).max(initial=0.0) <= 1.0 + 1e-6 for array in numbers)
            or not _is_path(self.bandwidth_path, "bandwidth")
            or not _is_path(self.n_clusters_path, "n_clusters")
        ):
            raise InputError("the parts of a Spectrum do not fit together.")


@saved_record
@dataclass(frozen=True, eq=False)
class Conquest:
    """Clusters of nodes, and how they were found."""

    # the cluster of each node; clusters are numbered by weight, heaviest first, equals by the first node
    labels: NDArray[np.int32]
    wanted: int  # the number of clusters that was asked for or chosen; fewer are found only where nodes are equal
    spectrum: Spectrum | None = None  # how, where eigenvectors decided
    communities: CommunityResult | None = None  # how, where communities decided

    def check(self) -> None:
        """Raise if the parts do not fit together; called when a conquest was read from a model file."""
        labels = self.labels
        if (
            type(self.wanted) is not int
            or labels.dtype != np.int32
            or labels.ndim != 1
            or not len(labels)
            or not 0 <= labels.min() <= labels.max() < len(labels)
            or not np.bincount(labels).all()
            or (self.spectrum is not None and len(self.spectrum.embedding) != len(labels))
            or (self.communities is not None and not np.array_equal(self.communities.labels, labels))
        ):
            raise InputError("the parts of a Conquest do not fit together.")

    @property
    def n_clusters(self) -> int:
        """The number of clusters found."""
        return int(self.labels.max()) + 1


class Conqueror(Protocol):
    """Finds clusters of nodes by a similarity of the kind that it is made for."""

    def conquer(
        self,
        similarity: Any,
        nodes: Nodes,
        requested: RequestedClusters,
        seeds: SeedSequence,
        n_jobs: int | None,
        before: Conquest | None = None,
    ) -> Conquest:
        """Return the clusters; what was found before may be used again."""

    def bootstrap(
        self, found: Conquest, similarity: Any, nodes: Nodes, seeds: SeedSequence, n_jobs: int | None
    ) -> list[NDArray[np.int32]]:
        """Return the clusters of resampled nodes or rows, for `stability`."""


def _is_path(path: Path | None, considered: str) -> bool:
    """Return whether there is a score for each thing that was considered."""
    if path is None:
        return True
    values, scores = path[considered], path["score"]
    return bool(
        len(path) == 2
        and values.ndim == 1
        and len(values) > 0
        and values.shape == scores.shape
        and values.dtype.kind in "if"
        and scores.dtype == np.float64
    )


@dataclass(frozen=True, eq=False)
class Stability:
    """How much is found again."""

    per_cluster: NDArray[np.float64]  # from 0 to 1
    overall: float  # the mean over clusters, by weight


def stability(
    labels: NDArray[np.int32], bootstrap: Sequence[NDArray[np.int32]], node_weights: NDArray[np.float64]
) -> Stability:
    """Return the mean over other partitions of how much of each cluster is found again in them.

    Examples
    --------
    >>> halves = np.array([0, 0, 1, 1], dtype=np.int32)
    >>> found = stability(halves, [1 - halves, np.array([0, 1, 1, 1])], np.ones(4))
    >>> found.per_cluster.round(3).tolist(), round(found.overall, 3)
    ([0.75, 0.833], 0.792)
    """
    weights = np.maximum(node_weights, 1e-9 * node_weights.mean()) if node_weights.any() else np.ones(len(node_weights))
    per_cluster = np.mean([came_back(labels, other, weights) for other in bootstrap], axis=0)
    sizes = np.bincount(labels, weights)
    return Stability(per_cluster, float(sizes @ per_cluster / sizes.sum()))


def came_back(labels: NDArray[np.int32], other: NDArray[np.int32], weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return for each cluster how like it the most similar cluster of another partition is.

    It is Jaccard's index, by weight: what both share over what either has; 1 if the same cluster is found again.
    """
    shape = (int(labels.max()) + 1, int(other.max()) + 1)
    shared = coo_array((weights, (labels, other)), shape=shape).tocsr().tocoo()
    either = np.bincount(labels, weights)[shared.row] + np.bincount(other, weights)[shared.col] - shared.data
    best = np.zeros(shape[0])
    np.maximum.at(best, shared.row, shared.data / either)
    return np.minimum(best, 1.0)
