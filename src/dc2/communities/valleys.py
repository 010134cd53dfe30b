"""Valleys: whether nodes are sparser between two communities than inside both."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dc2.communities.graph import TieGraph
from dc2.core.pairs import squared_distances_of_pairs

# A cluster's main neighbours have at least half as many ties to it as the neighbour with the most.
MAIN_NEIGHBOUR = 0.5
_PAIRS_COUNTED = 1 << 20


def sparsity(
    graph: TieGraph, points: NDArray[Any], masses: NDArray[np.float64], n_threads: int = 1
) -> tuple[NDArray[np.float64], float]:
    """Return the negative logarithm of each node's density, up to a common constant, and the dimension.

    Density is the mass near a node divided by the volume that it fills. Near are the m nearest nodes if rows are the
    nodes, otherwise all tied nodes. Volume grows with the d-th power of distance, where d is the dimension estimated
    from the distances (by the method of Levina and Bickel, one estimate for all nodes).
    """
    if graph.rows_are_nodes:
        starts = np.arange(0, graph.near.size - graph.n_nodes + 1, graph.near.shape[1] - 1)
        ties, reach = (starts, graph.near[:, 1:].ravel()), "last"
    else:
        ties, reach = (graph.indptr, graph.indices), "mean"
    nodes = np.repeat(np.arange(graph.n_nodes, dtype=np.int32), np.diff(ties[0]))
    squared = squared_distances_of_pairs(points, nodes, points, ties[1], n_threads)
    return _sparsity(*ties, squared, masses, reach)


def _sparsity(
    starts: NDArray[np.int64],
    others: NDArray[np.int32],
    squared: NDArray[np.float64],
    masses: NDArray[np.float64],
    reach: str,
) -> tuple[NDArray[np.float64], float]:
    n = len(starts) - 1
    counts = np.diff(starts)
    nodes = np.repeat(np.arange(n, dtype=np.int32), counts)
    smallest = max(float(squared.max(initial=0.0)) * 1e-24, np.finfo(np.float64).tiny)
    logs = 0.5 * np.log(np.maximum(squared, smallest))
    tied = counts > 0
    mean = np.bincount(nodes, logs, minlength=n) / np.maximum(counts, 1)
    largest = np.full(n, -np.inf)
    if len(logs):
        largest[tied] = np.maximum.reduceat(logs, starts[:-1][tied])
    spread = float((largest[tied] - mean[tied]).mean()) if tied.any() else 0.0
    if not spread > 0:
        return np.zeros(n), 1.0
    mass = masses + np.bincount(nodes, masses[others], minlength=n)
    radius = largest if reach == "last" else mean
    values = radius / spread - np.log(np.maximum(mass, np.finfo(np.float64).tiny))
    values[~tied] = values[tied].max()
    return values, 1 / spread


@dataclass(frozen=True)
class Valleys:
    """What the search for valleys needs, made once per graph. Each tie is listed once, not in both directions.

    Attributes
    ----------
    ends, others : ndarray of shape (n_pairs,), int32
        The nodes that are tied.
    ties : ndarray of shape (n_pairs,)
    closeness : ndarray of shape (n_pairs,)
        Ties relative to all ties of both nodes.
    between : ndarray of shape (n_pairs,)
        How sparse it is between the two nodes.
    volumes : ndarray of shape (n_nodes,)
    thread : float
        See `ties_of_a_thread`.
    sparsity : ndarray of shape (n_nodes,)
    dimension : float
    """

    ends: NDArray[np.int32]
    others: NDArray[np.int32]
    ties: NDArray[np.float64]
    closeness: NDArray[np.float64]
    between: NDArray[np.float64]
    volumes: NDArray[np.float64]
    thread: float
    sparsity: NDArray[np.float64]
    dimension: float

    @classmethod
    def of(cls, graph: TieGraph, points: NDArray[Any], masses: NDArray[np.float64], n_threads: int = 1) -> Valleys:
        """Take the density of each node."""
        nodes = np.repeat(np.arange(graph.n_nodes, dtype=np.int32), np.diff(graph.indptr))
        once = nodes < graph.indices
        ends, others, ties = nodes[once], graph.indices[once], graph.weights[once]
        volumes = np.maximum(graph.volumes, 1.0)
        sparse, dimension = sparsity(graph, points, masses, n_threads)
        closeness = ties / np.sqrt(volumes[ends] * volumes[others])
        between = (sparse[ends] + sparse[others]) / 2
        return cls(ends, others, ties, closeness, between, volumes, ties_of_a_thread(graph), sparse, dimension)

    def of_partition(self, labels: NDArray[np.int32]) -> tuple[NDArray[np.float64], float]:
        """Return how deep the valleys around each cluster are, and what share of ties crosses them.

        The depth between two clusters is a logarithm of density, at most 1: how much sparser the ends of the ties
        between them are, on average, than the inside of the sparser cluster. The depth of a cluster is half the mean
        over all its neighbours plus half the smallest of its main neighbours: a piece cut from a shape lacks a
        valley on one side, however empty the others are. A cluster without ties to others has infinite depth.

        Next to a dense cluster, a thin one may be as sparse as the gap between them. Then the ties show the gap:
        if fewer leave a cluster than half of what holds a thread together, the cut went through no cloud of two or
        more dimensions.

        The share is 1 if as many ties cross as chance would give.
        """
        n_clusters = int(labels.max()) + 1
        across = np.flatnonzero(labels[self.ends] != labels[self.others])
        ends, others, ties = self.ends[across], self.others[across], self.ties[across]
        leaving = _of_both(ends, others, ties, len(labels))
        # A node counts as inside by the share of its ties that stay inside; at the very border half of them leave.
        inside = np.maximum(1 - 2 * leaving / self.volumes, 0) + 1e-6
        within = np.bincount(labels, self.sparsity * inside) / np.bincount(labels, inside)
        a, b = labels[ends], labels[others]
        rise = self.between[across] - np.maximum(within[a], within[b])
        first, second, total, deep = _by_pairs(a, b, self.closeness[across], rise, n_clusters)
        most, least = np.zeros(n_clusters), np.full(n_clusters, np.inf)
        for cluster in (first, second):
            np.maximum.at(most, cluster, total)
        for cluster in (first, second):
            main = total >= MAIN_NEIGHBOUR * most[cluster]
            np.minimum.at(least, cluster[main], deep[main])
        all_ties = _of_both(first, second, total, n_clusters)
        mean = _of_both(first, second, total * deep, n_clusters) / np.maximum(all_ties, 1e-300)
        depths = (least + mean) / 2
        left = _of_both(a, b, ties, n_clusters) / self.thread
        apart = (1 - 2 * left) * min(max(self.dimension - 1, 0.0), 1.0)
        return np.maximum(depths, apart), _share(2 * float(ties.sum()), labels, self.volumes)


def _of_both(a: NDArray[Any], b: NDArray[Any], values: NDArray[np.float64], count: int) -> NDArray[np.float64]:
    """Add each value to both of its ends."""
    return np.asarray(np.bincount(a, values, count) + np.bincount(b, values, count), dtype=np.float64)


def _by_pairs(
    a: NDArray[np.int32],
    b: NDArray[np.int32],
    closeness: NDArray[np.float64],
    rise: NDArray[np.float64],
    n_clusters: int,
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]:
    """Return the pairs of clusters that are tied, how closely, and how deep the valley between the two is."""
    pair = np.minimum(a, b) * np.int64(n_clusters) + np.maximum(a, b)
    if n_clusters**2 <= _PAIRS_COUNTED:
        pairs, place = np.arange(n_clusters**2), pair
    else:  # sorting takes longer, but needs no memory for every possible pair
        pairs, place = np.unique(pair, return_inverse=True)
    total = np.asarray(np.bincount(place, closeness, len(pairs)), dtype=np.float64)
    summed = np.asarray(np.bincount(place, closeness * rise, len(pairs)), dtype=np.float64)
    tied = total > 0
    deep = np.clip(summed[tied] / total[tied], 0, 1)
    return pairs[tied] // n_clusters, pairs[tied] % n_clusters, total[tied], deep


def ties_of_a_thread(graph: TieGraph) -> float:
    """Return how many ties cross if evenly spaced nodes on a line are cut in two.

    Each row is near m consecutive nodes. For every a from 1 to m - 1, the rows of one node have a of them before the
    cut, and tie these to the m - a behind it.
    """
    m = graph.near.shape[1]
    rows_per_node = float(graph.row_weights.sum()) / graph.n_nodes
    return max(float(rows_per_node * m * (m * m - 1) / 6), 1.0)


def crossing_ties(graph: TieGraph, labels: NDArray[np.int32]) -> float:
    """Return how many ties cross between clusters, as a share of what chance would give."""
    across = np.repeat(labels, np.diff(graph.indptr)) != labels[graph.indices]
    return _share(float(graph.weights[across].sum()), labels, graph.volumes)


def _share(crossing: float, labels: NDArray[np.int32], volumes: NDArray[np.float64]) -> float:
    total = float(volumes.sum())
    by_chance = 1.0 - float(((np.bincount(labels, volumes) / max(total, 1.0)) ** 2).sum())
    return crossing / total / by_chance if by_chance > 0 and total > 0 else 0.0
