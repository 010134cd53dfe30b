"""Above the sweep: an order of clusters that share no edges, by distance; and the heights of layers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from dc2.graph.fixed_k import distances_of_parts
from dc2.graph.neighbor_graph import SharedRowsGraph
from dc2.graph.resolutions import ResolutionSweep, edges_between

Labels = NDArray[np.int32]
# Groups are a layer if the next merge bridges at least twice the distance of the last one. Distances between clusters
# that lie at random grow by less, except between the first few and the last few.
JUMP = 2.0


@dataclass(frozen=True, eq=False)
class FarGroups:
    """Single linkage of groups of clusters that share no edges.

    Attributes
    ----------
    group : ndarray of shape (n_nodes,), int32
        The group of each node.
    pairs : tuple of (int, int)
        The pairs of groups that merge, the nearest first; one fewer than groups.
    distances : ndarray of shape (n_groups - 1,)
        Between the nearest points of the groups that merge, in units of the typical distance of a point to the
        nearest other one. They never fall.
    """

    group: Labels
    pairs: tuple[tuple[int, int], ...]
    distances: NDArray[np.float64]

    @classmethod
    def of(cls, graph: SharedRowsGraph, points: NDArray[Any], coarsest: Labels) -> FarGroups:
        """Link the groups of clusters of a partition between which there are no edges."""
        edges = edges_between(graph, coarsest, int(coarsest.max()) + 1)
        group = connected_components(edges, directed=False)[1].astype(np.int32)[coarsest]
        if not group.any():
            return cls(group, (), np.zeros(0))
        links, spacing = distances_of_parts(points, group.astype(np.intp))
        distances = np.array([distance for distance, _, _ in links])
        return cls(group, tuple((a, b) for _, a, b in links), distances / spacing if spacing > 0 else distances)

    def layers(self) -> list[Labels]:
        """Return the groups, and groups of groups before each jump of the distance; finest first."""
        if not self.pairs:
            return []
        jumps = [i + 1 for i, (one, next_one) in enumerate(pairwise(self.distances)) if next_one >= JUMP * one]
        return [self.group, *(self._after(merges) for merges in jumps)]

    def _after(self, merges: int) -> Labels:
        """Return the groups of groups that so many merges leave."""
        n_groups = len(self.pairs) + 1
        one, other = np.array(self.pairs[:merges]).T
        merged = coo_array((np.ones(merges), (one, other)), shape=(n_groups, n_groups))
        labels: Labels = connected_components(merged, directed=False)[1].astype(np.int32)[self.group]
        return labels

    def distance_of(self, n_groups: int) -> float:
        """Return the distance that was bridged last when so many groups are left; 0 before the first merge."""
        merges = len(self.pairs) + 1 - n_groups
        return float(self.distances[merges - 1]) if merges > 0 else 0.0


def layer_heights(n_clusters: Sequence[int], sweep: ResolutionSweep, far: FarGroups) -> NDArray[np.float64]:
    """Return how high in the hierarchy layers with these numbers of clusters form, from the finest partition up.

    Up to the coarsest partition of the sweep, the height is the logarithm of the finest resolution over the highest one
    that leaves at most so many clusters. Beyond, clusters share no edges, and the logarithm of 1 plus the distance that
    was bridged last is added. So heights never fall from a layer to a coarser one.
    """
    counts = np.maximum.accumulate(sweep.n_clusters)
    heights = []
    for number in n_clusters:
        index = max(int(np.searchsorted(counts, number, side="right")) - 1, 0)
        depth = float(np.log(sweep.resolutions[-1] / sweep.resolutions[index]))
        heights.append(depth + float(np.log1p(far.distance_of(number))))
    return np.array(heights)
