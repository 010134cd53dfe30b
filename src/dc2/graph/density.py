"""DensityGaps: whether nodes are sparser between two communities than inside both."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist, pdist

from dc2 import core
from dc2.core.neighbours_reference import squared_distances_of_pairs
from dc2.parameters import one_blas_thread

if TYPE_CHECKING:
    from dc2.graph.neighbor_graph import SharedRowsGraph

NODES = 300
FEWEST_NODES = 30
# The shares of all pairs between whose distances the dimension is taken: farther apart than neighbours, yet within a
# cluster if there are up to ten; and as far apart as half of the pairs, where columns of noise no longer hide a curve.
SHARES = np.array([0.01, 0.1, 0.5])
CURVE, NO_CURVE = 1.5, 2.5
ROWS = 2048
ROWS_LOOKED_AT, ROWS_NEAR = 64, 8
MATTERS = 0.95  # of the variance; the rest is taken for noise
ALL = 1 - 1e-12  # of the variance; the rest comes from rounding


def large_scale_dimension(points: NDArray[Any]) -> float:
    """Return with which power of the distance the number of pairs grows (the correlation dimension), at least 1.

    The smaller one of two ranges of distances counts. Infinite if there are too few points, or if all are equally far
    apart.

    Examples
    --------
    >>> import numpy as np
    >>> turn = np.linspace(0, 2 * np.pi, 600)
    >>> ring = np.stack([np.cos(turn), np.sin(turn)], axis=1)
    >>> draw = np.random.default_rng(0)
    >>> round(large_scale_dimension(ring + draw.normal(0, 0.02, ring.shape)), 1)
    1.1
    >>> round(large_scale_dimension(draw.uniform(size=(600, 2))), 1)
    1.7
    """
    some = points[:: -(-len(points) // NODES)].astype(np.float64)
    if len(some) < FEWEST_NODES:
        return np.inf
    distances = np.quantile(pdist(some), SHARES)
    if not 0 < distances[0] < distances[1] < distances[2]:
        return np.inf
    return max(float((np.diff(np.log(SHARES)) / np.diff(np.log(distances))).min()), 1.0)


def dimension_for_cuts(local: float, large: float) -> float:
    """Return the dimension that says how often chance cuts rows at the same places.

    Rows along a curve are cut at the same places again and again, however thick the curve is and whatever the dimension
    of its inside. So for a curve the dimension at large counts, otherwise the local one, and in between a part of both.

    Examples
    --------
    >>> dimension_for_cuts(5.0, 1.2), dimension_for_cuts(5.0, 2.0), dimension_for_cuts(5.0, 3.0)
    (1.2, 3.5, 5.0)
    """
    share = min(max((large - CURVE) / (NO_CURVE - CURVE), 0.0), 1.0)
    return local if share == 1 else share * local + (1 - share) * min(local, large)


def linear_dimension(X: NDArray[Any], share: float = MATTERS) -> int:
    """Return how many principal axes hold a share of the variance of rows, by default 95%, at least 1.

    It counts the columns that matter: constant, repeated and dependent columns, and weak noise, add nothing. Up to 2048
    rows, at even steps, are looked at.

    Examples
    --------
    >>> import numpy as np
    >>> cloud = np.random.default_rng(0).normal(size=(1000, 3))
    >>> wider = np.concatenate([cloud, cloud, np.ones((1000, 5))], axis=1)
    >>> linear_dimension(cloud), linear_dimension(wider)
    (3, 3)
    """
    some = X[:: -(-len(X) // ROWS)].astype(np.float64)
    some -= some.mean(axis=0)
    some /= np.abs(some).max() or 1.0  # squares of very large or small values would not be finite
    with one_blas_thread():  # other numbers of threads would round differently
        products = some.T @ some if some.shape[1] <= len(some) else some @ some.T
        variances = np.maximum(np.linalg.eigvalsh(products)[::-1], 0.0)
    held = np.cumsum(variances)
    return int(np.searchsorted(held, share * held[-1])) + 1


def spanned_dimension(X: NDArray[Any]) -> int:
    """Return the dimension of the flat space that holds rows: the columns, without constant and dependent ones.

    Examples
    --------
    >>> import numpy as np
    >>> line = np.random.default_rng(0).normal(size=(1000, 1))
    >>> spanned_dimension(np.concatenate([line, 2 * line, np.ones((1000, 5))], axis=1))
    1
    """
    return linear_dimension(X, ALL)


def dimension_near_rows(X: NDArray[Any]) -> int:
    """Return the dimension of the flat space that holds a typical row and the rows nearest to it.

    A table of one number and categories is made of lines side by side: its parts span less than the whole.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> group = rng.integers(3, size=600)
    >>> dimension_near_rows(np.column_stack([10 * group + rng.normal(size=600), np.eye(3)[group]]))
    1
    """
    some = X[:: -(-len(X) // ROWS)].astype(np.float64)
    few = some[:: -(-len(some) // ROWS_LOOKED_AT)]
    count = min(ROWS_NEAR, len(some))
    near = np.argpartition(cdist(few, some), count - 1, axis=1)[:, :count]
    return int(np.median([spanned_dimension(some[rows]) for rows in near]))


# A cluster's main neighbours have at least half as many edges to it as the neighbour with the most.
MAIN_NEIGHBOUR = 0.5


def sparsity(
    graph: SharedRowsGraph, points: NDArray[Any], node_weights: NDArray[np.float64], n_threads: int = 1
) -> tuple[NDArray[np.float64], float]:
    """Return the negative logarithm of each node's density, up to a common constant, and the dimension.

    Density is the weight near a node divided by the volume that it fills. Near are the m nearest nodes if rows are the
    nodes, otherwise all connected nodes. Volume grows with the d-th power of distance, where d is the dimension
    estimated from the distances (by the method of Levina and Bickel, one estimate for all nodes).
    """
    if graph.rows_are_nodes:
        there = graph.near[:, 1:] >= 0
        starts = np.concatenate([[0], np.cumsum(there.sum(axis=1))])
        edges, reach = (starts, graph.near[:, 1:][there]), "last"
    else:
        edges, reach = (graph.indptr, graph.indices), "mean"
    if graph.lengths is not None:
        squared = graph.lengths[:, 1:][there] ** 2
    else:
        nodes = np.repeat(np.arange(graph.n_nodes, dtype=np.int32), np.diff(edges[0]))
        squared = squared_distances_of_pairs(points, nodes, points, edges[1], n_threads)
    return _sparsity(*edges, squared, node_weights, reach)


def _sparsity(
    starts: NDArray[np.int64],
    others: NDArray[np.int32],
    squared: NDArray[np.float64],
    node_weights: NDArray[np.float64],
    reach: str,
) -> tuple[NDArray[np.float64], float]:
    n = len(starts) - 1
    counts = np.diff(starts)
    nodes = np.repeat(np.arange(n, dtype=np.int32), counts)
    smallest = max(float(squared.max(initial=0.0)) * 1e-24, np.finfo(np.float64).tiny)
    logs = 0.5 * np.log(np.maximum(squared, smallest))
    connected = counts > 0
    mean = np.bincount(nodes, logs, minlength=n) / np.maximum(counts, 1)
    largest = np.full(n, -np.inf)
    if len(logs):
        largest[connected] = np.maximum.reduceat(logs, starts[:-1][connected])
    spread = float((largest[connected] - mean[connected]).mean()) if connected.any() else 0.0
    if not spread > 0:
        return np.zeros(n), 1.0
    mass = node_weights + np.bincount(nodes, node_weights[others], minlength=n)
    radius = largest if reach == "last" else mean
    values = radius / spread - np.log(np.maximum(mass, np.finfo(np.float64).tiny))
    values[~connected] = values[connected].max()
    return values, 1 / spread


@dataclass(frozen=True)
class DensityGaps:
    """What the search for density gaps needs, made once per graph."""

    graph: SharedRowsGraph
    thread: float  # see `edges_of_a_chain`
    sparsity: NDArray[np.float64]
    dimension: float

    @classmethod
    def of(
        cls, graph: SharedRowsGraph, points: NDArray[Any], node_weights: NDArray[np.float64], n_threads: int = 1
    ) -> DensityGaps:
        """Take the density of each node."""
        return cls(graph, edges_of_a_chain(graph), *sparsity(graph, points, node_weights, n_threads))

    def of_partition(self, labels: NDArray[np.int32]) -> tuple[NDArray[np.float64], float]:
        """Return how deep the density gaps around each cluster are, and what share of edges crosses them.

        The depth between two clusters is a logarithm of density, at most 1: how much sparser the ends of the edges
        between them are, on average, than the inside of the sparser cluster. The depth of a cluster is half the mean
        over all its neighbours plus half the smallest of its main neighbours: a piece cut from a shape lacks a
        density gap on one side, however empty the others are. A cluster without edges to others has infinite depth.

        Next to a dense cluster, a thin one may be as sparse as the gap between them. Then the edges show the gap:
        if fewer leave a cluster than half of what holds a thread together, the cut went through no cloud of two or
        more dimensions.

        The share is 1 if as many edges cross as chance would give.
        """
        n_clusters = int(labels.max()) + 1
        volumes = self.graph.volumes
        leaving = core.leaving_edges(self.graph.rows, labels)
        # A node counts as inside by the share of its edges that stay inside; at the very border half of them leave.
        inside = np.maximum(1 - 2 * leaving / np.maximum(volumes, 1.0), 0) + 1e-6
        within = np.bincount(labels, self.sparsity * inside) / np.bincount(labels, inside)
        first, second, total, rise = core.borders(self.graph.rows, labels, n_clusters, self.sparsity, within)
        deep = np.clip(rise / total, 0, 1)
        most, least = np.zeros(n_clusters), np.full(n_clusters, np.inf)
        for cluster in (first, second):
            np.maximum.at(most, cluster, total)
        for cluster in (first, second):
            main = total >= MAIN_NEIGHBOUR * most[cluster]
            np.minimum.at(least, cluster[main], deep[main])
        both = np.concatenate([first, second])
        all_ties = np.bincount(both, np.tile(total, 2), n_clusters)
        mean = np.bincount(both, np.tile(total * deep, 2), n_clusters) / np.maximum(all_ties, 1e-300)
        depths = (least + mean) / 2
        left = np.bincount(labels, leaving, n_clusters) / self.thread
        apart = (1 - 2 * left) * min(max(self.dimension - 1, 0.0), 1.0)
        return np.maximum(depths, apart), _share(float(leaving.sum()), labels, volumes)


def edges_of_a_chain(graph: SharedRowsGraph) -> float:
    """Return how many edges cross if evenly spaced nodes on a line are cut in two.

    Each row is near m consecutive nodes. For every a from 1 to m - 1, the rows of one node have a of them before the
    cut, and connect these to the m - a behind it.
    """
    m = graph.near.shape[1]
    rows_per_node = float(graph.row_weights.sum()) / graph.n_nodes
    return max(float(rows_per_node * m * (m * m - 1) / 6), 1.0)


def crossing_share(graph: SharedRowsGraph, labels: NDArray[np.int32]) -> float:
    """Return how many edges cross between clusters, as a share of what chance would give."""
    return _share(float(core.leaving_edges(graph.rows, labels).sum()), labels, graph.volumes)


def _share(crossing: float, labels: NDArray[np.int32], volumes: NDArray[np.float64]) -> float:
    total = float(volumes.sum())
    by_chance = 1.0 - float(((np.bincount(labels, volumes) / max(total, 1.0)) ** 2).sum())
    return crossing / total / by_chance if by_chance > 0 and total > 0 else 0.0
