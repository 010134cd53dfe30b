"""Exactly k clusters, by searching resolutions or merging; and borders through clouds, where both sides are likely."""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree
from scipy.spatial.distance import cdist

from dc2 import core
from dc2.graph.neighbor_graph import SharedRowsGraph
from dc2.graph.resolutions import GraphNodes, ResolutionSweep, communities_at, edges_between, join_empty, settled

_BISECTIONS = 5
_DOUBLINGS = 12
_POINTS_COMPARED = 2048  # of all parts together, but at least one of each
_NEAREST = 16  # length of the first lists of nearest points
_PAIRS_AT_ONCE = 1 << 22
_TREE_COLUMNS = 16  # 4 bits of a hash


def exactly(nodes: GraphNodes, sweep: ResolutionSweep, k: int) -> tuple[NDArray[np.int32], float | None]:
    """Return exactly k clusters where the sweep has none, and the resolution that gave them; None if merged from finer.

    The search is between the neighbouring resolutions; if it fails, the next finer partition is merged.
    """
    n_nodes = nodes.graph.n_nodes
    if k == 1:
        return np.zeros(n_nodes, dtype=np.int32), None
    if k >= np.count_nonzero(nodes.node_weights):
        return _every_node(nodes), None
    labels, resolution = _bisect(nodes, sweep, k)
    labels = settled(nodes, labels, resolution)
    if labels.max() + 1 == k:
        return labels, resolution
    return merged(nodes.graph, nodes.points, labels, k), None


def _bisect(nodes: GraphNodes, sweep: ResolutionSweep, k: int) -> tuple[NDArray[np.int32], float]:
    """Return k clusters or, if no resolution near gives k, the fewest found above k."""
    finer = np.flatnonzero(sweep.n_clusters > k)
    if not len(finer):
        return _finest(nodes, float(sweep.resolutions[np.argmax(sweep.n_clusters)]), k)
    place = finer[np.argmin(sweep.n_clusters[finer])]
    best, high = sweep.partitions[place], float(sweep.resolutions[place])
    if place == 0:
        return best, high
    resolution = high
    low = float(sweep.resolutions[place - 1])
    for _ in range(_BISECTIONS):
        middle = float(np.sqrt(low * high))
        labels = communities_at(nodes, middle)
        found = labels.max() + 1
        if found < k:
            low = middle
            continue
        high = middle
        if found <= best.max():
            best, resolution = labels, middle
        if found == k:
            break
    return best, resolution


def _finest(nodes: GraphNodes, resolution: float, k: int) -> tuple[NDArray[np.int32], float]:
    """Return at least k communities, however small."""
    for _ in range(_DOUBLINGS):
        labels = join_empty(nodes.search.communities(resolution), nodes.node_weights, nodes.points)
        if labels.max() + 1 >= k:
            return labels, resolution
        resolution *= 2
    return _every_node(nodes), resolution


def _every_node(nodes: GraphNodes) -> NDArray[np.int32]:
    """Make every node that stands for rows a cluster."""
    return join_empty(np.arange(nodes.graph.n_nodes, dtype=np.int32), nodes.node_weights, nodes.points)


def merged(graph: SharedRowsGraph, points: NDArray[Any], labels: NDArray[np.int32], k: int) -> NDArray[np.int32]:
    """Merge clusters until k are left: first those with the most edges for the smaller volume, then the nearest parts.

    Edges for both volumes, as in modularity, would merge small clusters that hardly touch before halves of a large one.
    """
    n_clusters = int(labels.max()) + 1
    home = np.arange(n_clusters)
    left = _merge_connected(graph, labels, home, n_clusters - k)
    if left:
        _merge_near(points, labels, home, left)
    roots = np.array([_root(home, i) for i in range(n_clusters)])
    return np.unique(roots[labels], return_inverse=True)[1].astype(np.int32)


def _root(home: NDArray[np.intp], i: int) -> int:
    while home[i] != i:
        home[i] = home[home[i]]
        i = int(home[i])
    return i


def _merge_connected(graph: SharedRowsGraph, labels: NDArray[np.int32], home: NDArray[np.intp], merges: int) -> int:
    """Merge the most strongly connected pairs, and return how many merges are left when no edges are.

    While the edges of a pair stay, its strength only falls, since volumes grow: an old entry of the heap is never too
    low, and is weighed again when it comes first. The cluster with fewer neighbours hands them to the other.
    """
    between = edges_between(graph, labels, len(home)).tocoo()
    edges: list[dict[int, float]] = [{} for _ in home]
    volumes = np.bincount(between.row, between.data, len(home)).tolist()
    for i, j, edge in zip(between.row.tolist(), between.col.tolist(), between.data.tolist(), strict=True):
        if i != j:
            edges[i][j] = edge
    name = list(range(len(home)))  # of a cluster: the smallest of its own, which decides between equal strengths

    def entry(i: int, j: int) -> tuple[float, int, int, int, int]:
        a, b = name[i], name[j]
        smaller = volumes[i] if volumes[i] < volumes[j] else volumes[j]
        return -edges[i][j] / smaller, a if a < b else b, b if a < b else a, i, j

    heap = [entry(i, j) for i in range(len(home)) for j in edges[i] if i < j]
    heapq.heapify(heap)
    while merges and heap:
        seen = heapq.heappop(heap)
        i, j = seen[3:]
        if j not in edges[i]:
            continue
        now = entry(i, j)
        if now != seen:
            if now[0] >= seen[0]:  # otherwise it has a newer entry
                heapq.heappush(heap, now)
            continue
        if len(edges[i]) < len(edges[j]):
            i, j = j, i
        renamed = name[j] < name[i]
        name[i] = min(name[i], name[j])
        home[j] = i
        volumes[i] += volumes[j]
        del edges[i][j]
        for other, edge in edges[j].items():
            if other == i:
                continue
            edges[i][other] = edges[other][i] = edges[i].get(other, 0.0) + edge
            del edges[other][j]
            heapq.heappush(heap, entry(i, other))
        edges[j] = {}
        if renamed:  # equal strengths are ordered by name
            for other in edges[i]:
                heapq.heappush(heap, entry(i, other))
        merges -= 1
    return merges


def _merge_near(points: NDArray[Any], labels: NDArray[np.int32], home: NDArray[np.intp], merges: int) -> None:
    """Join the parts whose nearest points are closest: the shortest edges of their minimum spanning tree."""
    roots = np.array([_root(home, i) for i in range(len(home))])
    parts, part = np.unique(roots[labels], return_inverse=True)
    for _, first, second in distances_of_parts(points, part)[0][:merges]:
        a, b = _root(home, int(parts[first])), _root(home, int(parts[second]))
        home[max(a, b)] = min(a, b)


def distances_of_parts(points: NDArray[Any], part: NDArray[np.intp]) -> tuple[list[tuple[float, int, int]], float]:
    """Return the edges of the minimum spanning tree of parts, the shortest first, and the typical spacing of points.

    Some points of every part are compared, at most 2048 or one of each.
    """
    some = _spread(part, max(int(part.max()) + 1, _POINTS_COMPARED))
    places = _few_columns(points[some])
    nearest = np.asarray(cKDTree(places).query(places, k=min(2, len(places)))[0]).reshape(len(places), -1)[:, -1]
    return _spanning_tree(places, part[some]), float(np.median(nearest))


def _spanning_tree(places: NDArray[np.float64], part: NDArray[np.intp]) -> list[tuple[float, int, int]]:
    """Return the distances and pairs of parts of their minimum spanning tree, the shortest first (Boruvka)."""
    tree, group = cKDTree(places), part.copy()
    found: list[tuple[float, int, int]] = []
    while group.any():
        gaps, ends, others = _ways_out(tree, places, group)
        home = np.arange(int(group.max()) + 1)
        for i in np.lexsort((others, ends, gaps)).tolist():
            a, b = _root(home, int(group[ends[i]])), _root(home, int(group[others[i]]))
            if a != b:
                home[max(a, b)] = min(a, b)
                found.append((float(gaps[i]), int(part[ends[i]]), int(part[others[i]])))
        roots = np.array([_root(home, i) for i in range(len(home))])
        group = np.unique(roots[group], return_inverse=True)[1]
    return sorted(found)


def _ways_out(
    tree: cKDTree, places: NDArray[np.float64], group: NDArray[np.intp]
) -> tuple[NDArray[np.float64], NDArray[np.intp], NDArray[np.intp]]:
    """Return for each group the distance from its points to the nearest of another group, and both points.

    Lists of nearest points grow, but only for points that may still be nearer to another group than those known.
    """
    n_groups = int(group.max()) + 1
    gaps = np.full(n_groups, np.inf)
    ends, others = np.zeros(n_groups, dtype=np.intp), np.zeros(n_groups, dtype=np.intp)
    left, count = np.arange(len(places)), _NEAREST
    while len(left):
        count = min(count, len(places))
        if count > _NEAREST and len(left) * len(places) <= _PAIRS_AT_ONCE:  # few enough to compare them all
            away = np.where(group == group[left][:, None], np.inf, cdist(places[left], places))
            gap, end, other, count = away.min(axis=1), left, away.argmin(axis=1), len(places)
        else:
            distances, near = map(np.asarray, tree.query(places[left], k=count))
            outside = group[near] != group[left][:, None]
            out = outside.any(axis=1)
            rows, column = np.flatnonzero(out), outside[out].argmax(axis=1)
            gap, end, other = distances[rows, column], left[rows], near[rows, column]
        order = np.lexsort((other, end, gap, group[end]))
        first = order[np.unique(group[end][order], return_index=True)[1]]
        first = first[gap[first] < gaps[group[end[first]]]]
        own = group[end[first]]
        gaps[own], ends[own], others[own] = gap[first], end[first], other[first]
        left = left[~out & (distances[:, -1] < gaps[group[left]])] if count < len(places) else left[:0]
        count *= 4
    return gaps, ends, others


def _spread(part: NDArray[np.intp], most: int) -> NDArray[np.intp]:
    """Return some points of every part, at even steps: about as many of each."""
    each = max(1, most // (int(part.max()) + 1))
    order = np.argsort(part, kind="stable")
    sizes = np.bincount(part)
    rank = np.arange(len(part)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    step = np.repeat(-(-sizes // each), sizes)
    chosen: NDArray[np.intp] = order[rank % step == 0]
    return chosen


def _few_columns(points: NDArray[Any]) -> NDArray[np.float64]:
    """Return points in as many columns as trees can search: sums of columns with signs, both by hash."""
    width = points.shape[1]
    if width <= _TREE_COLUMNS:
        return points.astype(np.float64)
    drawn = core.hash_rows(0, 0, width)
    targets = (drawn >> np.uint64(60)).astype(np.intp)
    signs = np.where(drawn & np.uint64(1), 1.0, -1.0)
    made = np.zeros((len(points), _TREE_COLUMNS))
    for column in range(width):
        made[:, targets[column]] += signs[column] * points[:, column]
    return made


# --- borders through clouds ---------------------------------------------------------------------------------------
#
# The graph finds the gaps between clusters. Where clusters overlap there is no gap, and which of many equally good cuts
# the graph prefers depends on chance. The place where two Gaussians, fitted to the clusters, are equally likely depends
# on all nodes of both, and is the better border. Where clusters are no clouds, such borders run across gaps and along
# curves, and many more edges cross them; then the graph's own borders stay.

# Partitions whose normalised cuts differ by no more than this factor are equally good to the graph.
EQUALLY_GOOD = 1.7
ROUNDS, SETTLED = 100, 1e-4  # of expectation maximisation; the gain in log likelihood per node that ends it
MOST_RIVALS = 8  # clusters, besides its own, that a node may move to: those most connected to its own
LEAST_SPREAD = 1e-3  # of a direction, as a share of the mean one
MOST_COLUMNS = 32  # in many, fitting is slow, and such borders made clusters worse


def clouds_apart(nodes: GraphNodes, labels: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return clusters with borders between Gaussians, if the graph finds these about as good; else the given ones.

    Gaussians are fitted only if rows have coordinates, in at most 32 columns, and if each cluster has, on average, more
    nodes than a Gaussian has numbers.

    Parameters
    ----------
    nodes : Nodes
    labels : ndarray of shape (n_nodes,), int32
        Clusters, counted from 0 without gaps.
    """
    n_clusters, width = int(labels.max()) + 1, nodes.points.shape[1]
    numbers = (width + 1) * (width + 2) // 2
    has_few_columns = nodes.graph.lengths is None and width <= MOST_COLUMNS
    if n_clusters == 1 or not has_few_columns or len(labels) < n_clusters * numbers:
        return labels
    cut = normalised_cut(nodes.graph, labels)
    if cut == 0:
        return labels
    node_weights = nodes.node_weights / nodes.node_weights.mean()
    moved = _Mixture.of(nodes, node_weights, labels).settled()
    if len(np.unique(moved[node_weights > 0])) < n_clusters or normalised_cut(nodes.graph, moved) > EQUALLY_GOOD * cut:
        return labels
    return moved


def normalised_cut(graph: SharedRowsGraph, labels: NDArray[np.int32]) -> float:
    """Return the sum over clusters of the share of their edges that leave them."""
    n_clusters = int(labels.max()) + 1
    inside = edges_between(graph, labels, n_clusters).diagonal()
    volumes = np.bincount(labels, graph.volumes, minlength=n_clusters)
    return float((1 - inside / np.maximum(volumes, 1.0))[volumes > 0].sum())


@dataclass(frozen=True, eq=False)
class _Mixture:
    """Pairs of a node and a cluster that it may belong to, sorted by cluster, and the points."""

    points: NDArray[Any]
    node_weights: NDArray[np.float64]
    labels: NDArray[np.int32]
    node: NDArray[np.int64]
    starts: NDArray[np.int64]

    @classmethod
    def of(cls, nodes: GraphNodes, node_weights: NDArray[np.float64], labels: NDArray[np.int32]) -> _Mixture:
        """Let each node move to the clusters that are most connected to its own."""
        rivals = _rivals(nodes.graph, labels)
        order = np.argsort(labels, kind="stable")
        members = np.split(order, np.cumsum(np.bincount(labels))[:-1])
        node = [np.sort(np.concatenate([members[one] for one in with_it])) for with_it in rivals]
        starts = np.concatenate([[0], np.cumsum([len(some) for some in node])])
        points = nodes.points.astype(np.float64) / max(
            float(np.abs(nodes.points).max()), np.finfo(np.float64).tiny
        )  # squares stay finite
        return cls(points - points.mean(axis=0), node_weights, labels, np.concatenate(node), starts)

    def settled(self) -> NDArray[np.int32]:
        """Return each node's likeliest cluster when expectation maximisation has converged."""
        cluster = np.repeat(np.arange(len(self.starts) - 1, dtype=np.int32), np.diff(self.starts))
        belongs = (self.labels[self.node] == cluster).astype(np.float64)
        before = -np.inf
        for _ in range(ROUNDS):
            logs = self._log_densities(belongs)
            best = np.full(len(self.points), -np.inf)
            np.maximum.at(best, self.node, logs)
            belongs = np.exp(logs - best[self.node])
            total = np.bincount(self.node, belongs)
            belongs /= total[self.node]
            likelihood = float(self.node_weights @ (best + np.log(total)) / self.node_weights.sum())
            if likelihood - before < SETTLED:
                break
            before = likelihood
        order = np.lexsort((cluster, -logs, self.node))
        first = np.unique(self.node[order], return_index=True)[1]
        answer: NDArray[np.int32] = cluster[order][first]
        return answer

    def _log_densities(self, belongs: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the log density of each pair's cluster at its node, after fitting Gaussians to shares of nodes.

        Covariances are drawn towards their mean, as if that came from as many more nodes as there are columns and two.
        """
        shares = belongs * self.node_weights[self.node]
        width = self.points.shape[1]
        spans = [slice(a, b) for a, b in zip(self.starts[:-1], self.starts[1:], strict=True)]
        weights = np.array([shares[span].sum() for span in spans])
        weights = np.maximum(weights, np.finfo(np.float64).tiny)
        off, scatter = [], np.empty((len(spans), width, width))
        for i, span in enumerate(spans):
            points = self.points[self.node[span]]
            centre = np.einsum("n,ni->i", shares[span], points) / weights[i]
            off.append(points - centre)
            scatter[i] = np.einsum("ni,nj->ij", off[i] * shares[span][:, None], off[i])
        pooled = scatter.sum(axis=0) / weights.sum()
        pooled += np.eye(width) * max(np.trace(pooled) / width * LEAST_SPREAD, np.finfo(np.float64).tiny)
        extra = width + 2
        logs = np.empty(len(self.node))
        for i, span in enumerate(spans):
            factor = np.linalg.cholesky((scatter[i] + extra * pooled) / (weights[i] + extra))
            scaled = np.einsum("ni,ji->nj", off[i], np.linalg.inv(factor))
            squared = np.einsum("ni,ni->n", scaled, scaled)
            logs[span] = np.log(weights[i] / weights.sum()) - np.log(np.diag(factor)).sum() - squared / 2
        return logs


def _rivals(graph: SharedRowsGraph, labels: NDArray[np.int32]) -> list[NDArray[np.intp]]:
    """Return for each cluster those whose nodes may move to it, itself among them."""
    n_clusters = int(labels.max()) + 1
    edges = edges_between(graph, labels, n_clusters).tocoo()
    order = np.lexsort((edges.col, -edges.data, edges.row != edges.col, edges.row))
    own, other = edges.row[order], edges.col[order]
    rank = np.arange(len(own)) - np.searchsorted(own, own)
    kept = (own != other) & (rank <= MOST_RIVALS)
    source = np.concatenate([np.arange(n_clusters), own[kept]])
    target = np.concatenate([np.arange(n_clusters), other[kept]])
    order = np.lexsort((source, target))
    return np.split(source[order], np.cumsum(np.bincount(target, minlength=n_clusters))[:-1])
