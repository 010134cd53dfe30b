"""The profile: the communities of a graph at many resolutions, coarse to fine."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import connected_components
from scipy.spatial import cKDTree
from scipy.spatial.distance import cdist
from sklearn.metrics import euclidean_distances

from dc2 import core
from dc2.errors import InputError
from dc2.graph.density import crossing_share
from dc2.graph.neighbor_graph import SharedRowsGraph, reweighted, reweighted_graph
from dc2.io.model_file import saved_record
from dc2.parameters import one_blas_thread

ITERATIONS = 1
NODES_PER_PART = 20  # roughly, in graphs of few nodes
FINE = 64.0  # as fine as parts need to be, but in large graphs there are more clusters to distinguish
NODES_PER_RESOLUTION = 128
BELOW = 4.0  # resolutions lower than that of parts by this factor are searched on the graph of parts
FAR_BELOW = 16.0  # by this factor: nodes need not move to show the communities
ENOUGH_PARTS = 2000  # fewer show nothing without their nodes, and need no parts of their own
COARSER = 16.0  # resolution of parts over that of parts of parts

Array = NDArray[np.float64]
Edges = tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float64]]


@saved_record
@dataclass(frozen=True, eq=False)
class Parts:
    """Small parts of a graph."""

    part: NDArray[np.int32]  # the part of each node
    resolution: float  # the resolution at which they were found

    def check(self) -> None:
        """Raise if these are no parts; called when they were read from a model file."""
        part = self.part
        if (
            part.ndim != 1
            or part.dtype != np.int32
            or not len(part)
            or not 0 <= int(part.min()) <= int(part.max()) < len(part)
            or not 0 < self.resolution < np.inf
        ):
            raise InputError("the numbers of Parts do not fit together.")


def small_parts(graph: SharedRowsGraph, seed: int) -> Parts:
    """Return parts of about a dozen nodes."""
    n_nodes = graph.n_nodes
    resolution = min(n_nodes / NODES_PER_PART, max(FINE, n_nodes / NODES_PER_RESOLUTION))
    return Parts(core.leiden(graph.rows, resolution, seed, None, 1), resolution)


@dataclass(frozen=True, eq=False)
class Level:
    """A graph whose nodes are parts: of the nodes of a finer graph, or of its parts."""

    graph: core.Graph
    matrix: csr_array
    part: NDArray[np.int32]
    resolution: float

    @classmethod
    def of(cls, edges: Edges, part: NDArray[np.int32], resolution: float) -> Level:
        """Check the edges, and keep them as a matrix too."""
        n_parts = len(edges[0]) - 1
        return cls(
            core.Graph(*edges), csr_array((edges[2], edges[1], edges[0]), shape=(n_parts,) * 2), part, resolution
        )

    @property
    def n_parts(self) -> int:
        """Number of nodes."""
        return int(self.matrix.shape[0])


def _with_coarser(finest: Level, seed: int) -> tuple[Level, ...]:
    """Return parts, parts of parts, and so on."""
    levels = [finest]
    while levels[-1].n_parts > ENOUGH_PARTS:
        below, resolution = levels[-1].graph, levels[-1].resolution / COARSER
        part = core.leiden(below, resolution, seed, None, ITERATIONS)
        levels.append(Level.of(core.join_nodes(below, part, _count(part)), part, resolution))
    return tuple(levels)


class Search:
    """A graph, or one that its bootstrapped rows make, and ever coarser graphs of parts.

    A coarse partition begins on the coarsest graph whose parts are small enough, and then moves the parts of each finer
    graph. Where parts are fine enough to show it, nodes do not move: see `settled`.
    """

    def __init__(
        self, graph: SharedRowsGraph, seed: int, levels: tuple[Level, ...], drawn: Array | None = None
    ) -> None:
        self._graph, self._drawn = graph, drawn
        self.seed = seed
        self.levels = levels

    @classmethod
    def of(cls, graph: SharedRowsGraph, parts: Parts, seed: int) -> Search:
        """Make every part one node; the edges inside it add up on the diagonal."""
        edges = core.join_nodes(graph.rows, parts.part, _count(parts.part))
        return cls(graph, seed, _with_coarser(Level.of(edges, parts.part, parts.resolution), seed))

    def resampled(self, factors: Array, seed: int) -> Search:
        """Return the search on the graph of the same rows with their weights multiplied, and with the same parts.

        Parts of parts are its own: found again, they would make bootstraps agree.
        """
        parts = self.parts
        edges = reweighted(self._graph, factors, parts.part)
        return Search(self._graph, seed, _with_coarser(Level.of(edges, parts.part, parts.resolution), seed), factors)

    @property
    def parts(self) -> Parts:
        """The smallest parts."""
        return Parts(self.levels[0].part, self.levels[0].resolution)

    @cached_property
    def graph(self) -> SharedRowsGraph:
        """The graph of nodes."""
        return self._graph if self._drawn is None else reweighted_graph(self._graph, self._drawn)

    def ends_on_parts(self, resolution: float) -> bool:
        """Whether parts are fine enough to show the communities at a resolution."""
        parts = self.levels[0]
        return parts.n_parts > ENOUGH_PARTS and resolution * FAR_BELOW <= parts.resolution

    def of_parts(self, resolution: float) -> NDArray[np.int32] | None:
        """Return the communities of the smallest parts, each connected; None if the parts are too large."""
        levels = [level for level in self.levels if resolution * BELOW <= level.resolution]
        if not levels:
            return None
        labels = core.leiden(levels[-1].graph, resolution, self.seed, None, ITERATIONS)
        for finer, level in reversed([*itertools.pairwise(levels)]):
            labels = core.leiden(finer.graph, resolution, self.seed, labels[level.part], ITERATIONS)
        return labels

    def communities(self, resolution: float) -> NDArray[np.int32]:
        """Return the communities of nodes at a resolution, each connected; small ones are still among them."""
        labels = self.of_parts(resolution)
        if labels is None:
            start = self.levels[0].part if resolution <= self.levels[0].resolution else None
            return core.leiden(self.graph.rows, resolution, self.seed, start, ITERATIONS)
        return core.leiden(self.graph.rows, resolution, self.seed, labels[self.levels[0].part], 0)


FEWEST = 4.0
SHARE_OF_ALL = 0.002
SHARE_OF_TYPICAL = 0.05
_TREE_COLUMNS = 16
_AT_A_TIME = 16
_NEAR_ISOLATED = 32


def large_enough(sizes: NDArray[np.float64], n_rows: NDArray[np.intp] | None = None) -> NDArray[np.bool_]:
    """Tell which communities are large enough to be clusters.

    A cluster has at least four nodes, and at least 0.2% of all nodes or 5% of the typical size, whichever is less.
    The typical size is that of the community that the median node belongs to. The second rule matters where clusters
    are many, and each is smaller than 0.2% of all nodes; so there is no largest number of clusters.
    Four distinct rows are enough too, even if each is repeated less often than others. Sizes are in nodes, or in units
    of the mean weight of a node; `n_rows` counts distinct rows, where rows are the nodes.
    """
    ordered = np.sort(sizes)
    total = ordered.sum()
    typical = ordered[np.searchsorted(np.cumsum(ordered), total / 2)]
    counts = sizes if n_rows is None else np.maximum(sizes, n_rows)
    kept: NDArray[np.bool_] = (sizes >= min(SHARE_OF_ALL * total, SHARE_OF_TYPICAL * typical)) & (counts >= FEWEST)
    if not kept.any():
        kept[np.argmax(sizes)] = True
    return kept


def join_isolated(
    graph: SharedRowsGraph,
    labels: NDArray[np.int32],
    node_weights: NDArray[np.float64],
    points: NDArray[Any],
    near: NDArray[np.int32] | None = None,
    level: Level | None = None,
) -> NDArray[np.int32]:
    """Join each small community to the large one with the most edges to it, or to the nearest one if it has none.

    Only large communities are left, in the order of their old numbers. `near` holds the nearest nodes, where they are
    known; a node itself stands for none. `level` holds parts that are whole in the communities.
    """
    sizes = np.bincount(labels, weights=node_weights) * (len(labels) / node_weights.sum())
    kept = large_enough(
        sizes, np.bincount(labels[node_weights > 0], minlength=len(sizes)) if graph.rows_are_nodes else None
    )
    if kept.all():
        return labels
    home = np.where(kept, np.cumsum(kept) - 1, -1).astype(np.int32)
    if level is None:
        between = _edges_of(graph.matrix(), labels, kept)
    else:
        of_parts = np.empty(level.n_parts, np.int32)
        of_parts[level.part] = labels
        between = _edges_of(level.matrix, of_parts, kept)
    while True:
        small = np.flatnonzero(home < 0)
        joined = _most_connected(between, small, home)
        if not (joined >= 0).any():
            break
        home[small] = joined
    return _join_nearest(home[labels], labels, points, graph.near if graph.rows_are_nodes else near)


def join_empty(labels: NDArray[np.int32], node_weights: NDArray[np.float64], points: NDArray[Any]) -> NDArray[np.int32]:
    """Join communities that stand for no rows, if there are any, to the community of the nearest node with rows."""
    empty = np.bincount(labels, weights=node_weights)[labels] == 0
    if not empty.any():
        return labels
    filled = np.flatnonzero(node_weights > 0)
    answer = labels.copy()
    answer[empty] = labels[filled[_nearest(points[filled], points[empty])[1]]]
    return np.unique(answer, return_inverse=True)[1].astype(np.int32)


def edges_between(graph: SharedRowsGraph, labels: NDArray[np.int32], n_communities: int) -> csr_array:
    """Return the summed weights of edges between communities; the diagonal holds those inside each, counted twice."""
    indptr, indices, edges = core.join_nodes(graph.rows, labels, n_communities)
    return csr_array((edges, indices, indptr), shape=(n_communities, n_communities))


def _edges_of(matrix: csr_array, labels: NDArray[np.int32], kept: NDArray[np.bool_]) -> csr_array:
    """Return the summed edges of communities that are not kept, to all communities."""
    small = np.flatnonzero(~kept[labels])
    rows = matrix[small].tocoo()
    return coo_array((rows.data, (labels[small[rows.row]], labels[rows.col])), shape=(len(kept),) * 2).tocsr()


def _most_connected(between: csr_array, small: NDArray[np.intp], home: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return for each small community the home it has the most edges to, or the smaller number; -1 without edges."""
    rows = between[small].tocoo()
    has_home = home[rows.col] >= 0
    n_homes = int(home.max()) + 1
    edges = coo_array(
        (rows.data[has_home], (rows.row[has_home], home[rows.col[has_home]])), shape=(len(small), n_homes)
    ).tocsr()
    edges.sort_indices()
    answer = np.full(len(small), -1, dtype=np.int32)
    if edges.nnz:
        row = np.repeat(np.arange(len(small)), np.diff(edges.indptr))
        order = np.lexsort((edges.indices, -edges.data, row))
        first = np.unique(row[order], return_index=True)[1]
        answer[row[order][first]] = edges.indices[order][first]
    return answer


def _nearest(points: NDArray[Any], wanted: NDArray[Any]) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
    """Return the distance to the nearest point and its place; in many columns by brute force, as trees do not help."""
    if points.shape[1] <= _TREE_COLUMNS:
        distances, places = cKDTree(points).query(wanted)
        return np.asarray(distances), np.asarray(places)
    points = points.astype(np.float64)  # once, not for every block
    pairs = [
        (row.min(), row.argmin())
        for start in range(0, len(wanted), _AT_A_TIME)
        for row in cdist(wanted[start : start + _AT_A_TIME], points)
    ]
    return np.array([pair[0] for pair in pairs]), np.array([pair[1] for pair in pairs], dtype=np.intp)


def nearest_of_isolated(graph: SharedRowsGraph, points: NDArray[Any]) -> NDArray[np.int32]:
    """Return the nearest nodes of nodes without edges, found once for all resolutions; of others the node itself."""
    own = np.arange(graph.n_nodes, dtype=np.int32)
    near = np.repeat(own[:, None], min(_NEAR_ISOLATED, graph.n_nodes), axis=1)
    isolated = np.flatnonzero(graph.volumes == 0)
    if graph.rows_are_nodes or not len(isolated):
        return near
    places = points.astype(np.float64)
    places -= places.mean(axis=0)  # squares of large coordinates would hide small distances
    with one_blas_thread():  # other numbers of threads would round differently
        for start in range(0, len(isolated), _AT_A_TIME):
            some = isolated[start : start + _AT_A_TIME]
            rough = euclidean_distances(places[some], places, squared=True)
            found = np.argpartition(rough, near.shape[1] - 1, axis=1)[:, : near.shape[1]]
            exact = [cdist(points[[one]], points[few])[0] for one, few in zip(some, found, strict=True)]
            near[some] = np.take_along_axis(found, np.lexsort((found, exact)), axis=1)
    return near


def _join_nearest(
    answer: NDArray[np.int32], labels: NDArray[np.int32], points: NDArray[Any], near: NDArray[np.int32] | None
) -> NDArray[np.int32]:
    """Give each community without a home that of the nearest node with one."""
    unplaced = np.flatnonzero(answer < 0)
    if not len(unplaced):
        return answer
    distances, nearest = _nearest_with_home(answer, unplaced, points, near)
    order = np.lexsort((unplaced, distances, labels[unplaced]))
    communities, first = np.unique(labels[unplaced][order], return_index=True)
    homes = answer[nearest[order[first]]]
    answer = answer.copy()
    answer[unplaced] = homes[np.searchsorted(communities, labels[unplaced])]
    return answer


def _nearest_with_home(
    answer: NDArray[np.int32], unplaced: NDArray[np.intp], points: NDArray[Any], near: NDArray[np.int32] | None
) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
    """Return the distance of each unplaced node to the nearest one with a home, and the number of that one.

    A search is needed only where none of the nearest nodes that are known has a home.
    """
    distances, nearest = np.full(len(unplaced), np.inf), np.full(len(unplaced), -1, dtype=np.intp)
    if near is not None:
        near = near[unplaced]
        has_home = (answer[near] >= 0) & (near >= 0)
        known = np.flatnonzero(has_home.any(axis=1))
        nearest[known] = near[known, has_home[known].argmax(axis=1)]
        off = points[unplaced[known]].astype(np.float64) - points[nearest[known]]
        distances[known] = np.linalg.norm(off, axis=1)
    unknown = np.flatnonzero(nearest < 0)
    if len(unknown):
        homes = np.flatnonzero(answer >= 0)
        distances[unknown], found = _nearest(points[homes], points[unplaced[unknown]])
        nearest[unknown] = homes[found]
    return distances, nearest


LOWEST = 0.002
STEP = 0.5  # in the logarithm of resolutions; halved where the number of clusters changes
EVERYDAY = 17  # resolutions of the grid, up to about 6
START = 8  # the place in the grid where the search begins
BLOCK = 4  # resolutions searched together, for any number of threads
HIGHEST = 1e6
LEAST_SIZE = 12  # mean size of clusters below which finer ones are not looked for
MOST_CROSSING = 0.5  # share of the crossing edges that chance would give; real clusters have less
STEEP = 2  # if the number of clusters grows by this factor within a step, no number inside it persists
FARTHEST_APART, FAR_APART = 4, 2  # places of the grid per step, in the search for a given number

Evaluate = Callable[[list[float]], dict[float, NDArray[np.int32]]]


@saved_record
@dataclass(frozen=True, eq=False)
class ResolutionSweep:
    """Partitions at rising resolutions, small communities joined."""

    resolutions: NDArray[np.float64]
    partitions: NDArray[np.int32]  # clusters counted from 0
    n_clusters: NDArray[np.int64]
    parts: Parts  # small parts of the graph, by which others of its partitions are found
    # whether it covers all resolutions, to choose a number of clusters, or only those near a given number
    complete: bool = True

    def check(self) -> None:
        """Raise if the parts do not fit together; called when a profile was read from a model file."""
        parts = self.partitions
        if (
            parts.ndim != 2
            or not parts.size
            or parts.dtype != np.int32
            or self.resolutions.shape != (len(parts),)
            or not (np.isfinite(self.resolutions).all() and (self.resolutions > 0).all())
            or not np.array_equal(self.n_clusters, parts.max(axis=1) + 1)
            or not 0 <= int(parts.min()) <= int(parts.max()) < parts.shape[1]
            or len(self.parts.part) != parts.shape[1]
        ):
            raise InputError("the parts of a Profile do not fit together.")


@dataclass(frozen=True, eq=False)
class GraphNodes:
    """A neighbour graph, and what is known about its nodes."""

    graph: SharedRowsGraph
    points: NDArray[Any]
    node_weights: NDArray[np.float64]
    seed: int
    n_threads: int
    parts: Parts | None = None

    @cached_property
    def search(self) -> Search:
        """The search for communities of the graph."""
        parts = small_parts(self.graph, self.seed) if self.parts is None else self.parts
        return Search.of(self.graph, parts, self.seed)

    @cached_property
    def near(self) -> NDArray[np.int32]:
        """The nearest nodes of isolated ones."""
        return nearest_of_isolated(self.graph, self.points)


def communities_at(nodes: GraphNodes, resolution: float, search: Search | None = None) -> NDArray[np.int32]:
    """Return the communities at a resolution, of the nodes' own graph or of a resampled one, with small ones joined.

    Nodes do not leave their parts where these are small enough to show the communities.
    """
    search = search or nodes.search
    if search.ends_on_parts(resolution) and (of_parts := search.of_parts(resolution)) is not None:
        parts = search.levels[0]
        labels = of_parts[parts.part]
        return join_isolated(nodes.graph, labels, nodes.node_weights, nodes.points, nodes.near, parts)
    return join_isolated(search.graph, search.communities(resolution), nodes.node_weights, nodes.points, nodes.near)


def settled(
    nodes: GraphNodes, labels: NDArray[np.int32], resolution: float, search: Search | None = None
) -> NDArray[np.int32]:
    """Return communities at a resolution after nodes have moved, unless their number is another then."""
    search = search or nodes.search
    if not search.ends_on_parts(resolution):
        return labels  # they have moved already
    moved = core.leiden(search.graph.rows, resolution, search.seed, labels, 0)
    moved = join_isolated(search.graph, moved, nodes.node_weights, nodes.points, nodes.near)
    return moved if _count(moved) == _count(labels) else labels


def sweep_resolutions(nodes: GraphNodes) -> ResolutionSweep:
    """Take partitions at rising resolutions, until clusters become too small.

    The grid is fixed up to a resolution of about 6, which distinguishes 2 to 100 clusters. More clusters need higher
    resolutions: the grid goes on while their number still grows and they have a dozen nodes each on average. It stops
    below where only the connected parts of the graph are left, since nothing merges there any more. Its step is halved
    where the number of clusters changes.
    """
    with ThreadPoolExecutor(nodes.n_threads) as pool:
        evaluate = _evaluator(nodes, pool)
        seen = evaluate([float(place) for place in range(START, EVERYDAY)])
        _extend_below(nodes, seen, evaluate)
        _extend_above(nodes, seen, evaluate)
        seen |= evaluate(_between(seen))
    places = sorted(seen)
    # Beyond the resolution with the most clusters, they fall apart into isolated nodes.
    counts = [_count(seen[place]) for place in places]
    kept = places[: int(np.flatnonzero(np.array(counts) == max(counts))[-1]) + 1]
    return _sweep({place: seen[place] for place in kept}, nodes.search.parts, complete=True)


def sweep_around(nodes: GraphNodes, k: int) -> ResolutionSweep:
    """Take only the partitions that show where k clusters are: a few far apart, then ever nearer ones around k."""
    n_nodes = nodes.graph.n_nodes
    with ThreadPoolExecutor(nodes.n_threads) as pool:
        evaluate = _evaluator(nodes, pool)
        highest = EVERYDAY - 1
        seen = evaluate([float(place) for place in range(FARTHEST_APART, EVERYDAY, FARTHEST_APART)])
        while _count(seen[highest]) <= k < n_nodes and _resolution(highest) < HIGHEST:
            highest += FAR_APART
            seen |= evaluate([float(highest)])
        first, last = _next_to(k, seen)
        seen |= evaluate([float(p) for p in range(int(first), int(last), FAR_APART) if float(p) not in seen])
        first, last = _next_to(k, seen)
        # If k clusters fill a long run, its middle is known already, and only its ends are searched.
        hits = [place for place in seen if _count(seen[place]) == k] or [last]
        ends = [*np.arange(first + 0.5, min(hits), 0.5), *np.arange(max(hits) + 0.5, last, 0.5)]
        seen |= evaluate([float(place) for place in ends if float(place) not in seen])
    return _sweep(seen, nodes.search.parts, complete=False)


def _next_to(k: int, seen: dict[float, NDArray[np.int32]]) -> tuple[float, float]:
    """Return the places next to k clusters: the highest with fewer and the lowest with more, or the ends."""
    below = [place for place in seen if _count(seen[place]) < k]
    above = [place for place in seen if _count(seen[place]) > k]
    return max(below, default=0.0), min(above, default=max(seen))


def _sweep(seen: dict[float, NDArray[np.int32]], parts: Parts, complete: bool) -> ResolutionSweep:
    places = sorted(seen)
    return ResolutionSweep(
        np.array([_resolution(place) for place in places]),
        np.array([seen[place] for place in places], dtype=np.int32),
        np.array([_count(seen[place]) for place in places], dtype=np.int64),
        parts,
        complete,
    )


def _evaluator(nodes: GraphNodes, pool: ThreadPoolExecutor) -> Evaluate:
    search, _ = nodes.search, nodes.near  # made before threads ask for them

    def evaluate(places: list[float]) -> dict[float, NDArray[np.int32]]:
        found = pool.map(lambda place: communities_at(nodes, _resolution(place), search), places)
        return dict(zip(places, found, strict=True))

    return evaluate


def _resolution(place: float) -> float:
    return LOWEST * math.exp(STEP * place)


def _count(labels: NDArray[np.int32]) -> int:
    return int(labels.max()) + 1


def _extend_below(nodes: GraphNodes, seen: dict[float, NDArray[np.int32]], evaluate: Evaluate) -> None:
    """Go down until only the connected parts of the graph are left: lower resolutions give the same."""
    parts = nodes.search.levels[0]  # each is connected
    components = connected_components(parts.matrix, directed=False)[1].astype(np.int32)[parts.part]
    fewest = _count(join_isolated(nodes.graph, components, nodes.node_weights, nodes.points, nodes.near))
    lowest = START
    while lowest and _count(seen[lowest]) > fewest:
        seen |= evaluate([float(place) for place in range(lowest - BLOCK, lowest)])
        lowest -= BLOCK
    if lowest:
        seen[0.0] = seen[lowest]


def _extend_above(nodes: GraphNodes, seen: dict[float, NDArray[np.int32]], evaluate: Evaluate) -> None:
    """Go up while the number of clusters grows, and fewer edges cross than half of what chance would give."""
    highest = EVERYDAY - 1
    while (
        _count(seen[highest]) > _count(seen[highest - 1])
        and _count(seen[highest]) * LEAST_SIZE < nodes.graph.n_nodes
        and crossing_share(nodes.graph, seen[highest]) < MOST_CROSSING
        and _resolution(highest) < HIGHEST
    ):
        seen |= evaluate([highest + 1.0, highest + 2.0])
        highest += 2


def _between(seen: dict[float, NDArray[np.int32]]) -> list[float]:
    """Return the places half way between two neighbours with different numbers, but not on a steep rise."""
    return [
        (low + high) / 2
        for low, high in itertools.pairwise(sorted(seen))
        if high - low == 1 and _count(seen[low]) < _count(seen[high]) <= STEEP * _count(seen[low])
    ]
