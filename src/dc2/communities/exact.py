"""Exactly k clusters: found by searching resolutions or, where none gives k, by merging."""

from __future__ import annotations

import heapq
import itertools
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from dc2.communities.graph import TieGraph
from dc2.communities.profile import Nodes, Profile, communities
from dc2.communities.strays import community_ties, join_empty

_BISECTIONS = 5
_DOUBLINGS = 12
_MOST_DISTANCES = 1 << 22  # between points of parts
_MOST_NUMBERS = 1 << 31  # coordinates read for these distances


def exactly(nodes: Nodes, profile: Profile, k: int) -> tuple[NDArray[np.int32], float | None]:
    """Return exactly k clusters where the profile has none, and the resolution that gave them; None if merged.

    The search is between the neighbouring resolutions. If it fails, the next finer partition is merged, the most
    strongly tied clusters first.
    """
    n_nodes = nodes.graph.n_nodes
    if k == 1:
        return np.zeros(n_nodes, dtype=np.int32), None
    if k >= np.count_nonzero(nodes.masses):
        return _every_node(nodes), None
    labels, resolution = _bisect(nodes, profile, k)
    if labels.max() + 1 == k:
        return labels, resolution
    return merged(nodes.graph, nodes.points, labels, k), None


def _bisect(nodes: Nodes, profile: Profile, k: int) -> tuple[NDArray[np.int32], float]:
    """Return k clusters or, if no resolution near gives k, the fewest found above k."""
    finer = np.flatnonzero(profile.n_clusters > k)
    if not len(finer):
        return _finest(nodes, float(profile.resolutions[-1]), k)
    place = finer[np.argmin(profile.n_clusters[finer])]
    best, high = profile.partitions[place], float(profile.resolutions[place])
    if place == 0:
        return best, high
    resolution = high
    low = float(profile.resolutions[place - 1])
    for _ in range(_BISECTIONS):
        middle = float(np.sqrt(low * high))
        labels = communities(nodes, middle)
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


def _finest(nodes: Nodes, resolution: float, k: int) -> tuple[NDArray[np.int32], float]:
    """Return at least k communities, however small."""
    for _ in range(_DOUBLINGS):
        labels = join_empty(nodes.search.communities(resolution), nodes.masses, nodes.points)
        if labels.max() + 1 >= k:
            return labels, resolution
        resolution *= 2
    return _every_node(nodes), resolution


def _every_node(nodes: Nodes) -> NDArray[np.int32]:
    """Make every node that stands for rows a cluster."""
    return join_empty(np.arange(nodes.graph.n_nodes, dtype=np.int32), nodes.masses, nodes.points)


def merged(graph: TieGraph, points: NDArray[Any], labels: NDArray[np.int32], k: int) -> NDArray[np.int32]:
    """Merge clusters until k are left: first those with the most ties for their volumes, then the nearest parts.

    Ties count as a share of the smaller volume. A share of both, w_ij / (vol_i vol_j), as in modularity, would merge
    small clusters that hardly touch before the two halves of a large one.
    """
    n_clusters = int(labels.max()) + 1
    home = np.arange(n_clusters)
    left = _merge_tied(graph, labels, home, n_clusters - k)
    if left:
        _merge_near(points, labels, home, left)
    roots = np.array([_root(home, i) for i in range(n_clusters)])
    return np.unique(roots[labels], return_inverse=True)[1].astype(np.int32)


def _root(home: NDArray[np.intp], i: int) -> int:
    while home[i] != i:
        home[i] = home[home[i]]
        i = int(home[i])
    return i


def _merge_tied(graph: TieGraph, labels: NDArray[np.int32], home: NDArray[np.intp], merges: int) -> int:
    """Merge the most strongly tied pairs, and return how many merges are left when no ties are."""
    between = community_ties(graph, labels, len(home)).tocoo()
    ties: list[dict[int, float]] = [{} for _ in home]
    volumes = np.zeros(len(home))
    for i, j, tie in zip(between.row.tolist(), between.col.tolist(), between.data.tolist(), strict=True):
        volumes[i] += tie
        if i != j:
            ties[i][j] = tie
    heap = [(-tie / min(volumes[i], volumes[j]), i, j) for i in range(len(home)) for j, tie in ties[i].items() if i < j]
    heapq.heapify(heap)
    while merges and heap:
        strength, i, j = heapq.heappop(heap)
        if home[i] != i or home[j] != j or -ties[i][j] / min(volumes[i], volumes[j]) != strength:
            continue
        home[j] = i
        volumes[i] += volumes[j]
        del ties[i][j]
        for other, tie in ties[j].items():
            if other == i:
                continue
            ties[i][other] = ties[other][i] = ties[i].get(other, 0.0) + tie
            del ties[other][j]
        for other, tie in ties[i].items():
            pair = (min(i, other), max(i, other))
            heapq.heappush(heap, (-tie / min(volumes[i], volumes[other]), *pair))
        merges -= 1
    return merges


def _merge_near(points: NDArray[Any], labels: NDArray[np.int32], home: NDArray[np.intp], merges: int) -> None:
    """Join the parts whose nearest points are closest, one pair after the other."""
    roots = np.array([_root(home, i) for i in range(len(home))])
    parts, part = np.unique(roots[labels], return_inverse=True)
    gaps = _part_distances(points, part, len(parts))
    a, b = np.triu_indices(len(parts), 1)
    for place in np.lexsort((b, a, gaps[a, b])):
        first, second = _root(home, int(parts[a[place]])), _root(home, int(parts[b[place]]))
        if first != second:
            home[max(first, second)] = min(first, second)
            merges -= 1
            if not merges:
                return


def _part_distances(points: NDArray[Any], part: NDArray[np.intp], n_parts: int) -> NDArray[np.float64]:
    """Return the distance between the nearest points of every two parts; large parts are sampled at even steps."""
    most = min(_MOST_DISTANCES, _MOST_NUMBERS // max(1, points.shape[1]))
    each = max(1, int(np.sqrt(most)) // n_parts)
    order = np.argsort(part, kind="stable")
    starts = np.searchsorted(part[order], np.arange(n_parts + 1))
    chosen = [
        points[order[start:stop][:: max(1, -(-(stop - start) // each))]].astype(np.float64)
        for start, stop in itertools.pairwise(starts)
    ]
    begins = np.concatenate([[0], np.cumsum([len(rows) for rows in chosen])])[:-1]
    everything = np.concatenate(chosen)
    gaps = np.empty((n_parts, n_parts))
    for i, rows in enumerate(chosen):
        gaps[i] = np.minimum.reduceat(cdist(rows, everything).min(axis=0), begins)
    return gaps
