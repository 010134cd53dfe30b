"""Layers: nested partitions of the neighbour graph, and the result that holds them."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from dc2.errors import InputError
from dc2.graph.fixed_k import distances_of_parts
from dc2.graph.n_clusters import Verdict
from dc2.graph.neighbor_graph import SharedRowsGraph
from dc2.graph.resolutions import ResolutionSweep, edges_between
from dc2.graph.select_k import agreement
from dc2.io.model_file import saved_record

Labels = NDArray[np.int32]


def nest(
    graph: SharedRowsGraph, node_weights: NDArray[np.float64], chosen: Labels, others: Sequence[Labels]
) -> tuple[tuple[Labels, ...], int]:
    """Nest partitions around the chosen one, which stays as it is; return all, finest first, and its place."""
    n_chosen = int(chosen.max()) + 1
    finer = sorted((labels for labels in others if labels.max() + 1 > n_chosen), key=lambda labels: labels.max())
    coarser = sorted((labels for labels in others if labels.max() + 1 < n_chosen), key=lambda labels: -labels.max())
    below: list[Labels] = []
    around = chosen
    for labels in finer:
        inner = _inside(graph, node_weights, labels, around)
        if inner.max() > around.max():
            around = by_weight(inner, node_weights)
            below.append(around)
    above: list[Labels] = []
    inside = chosen
    for labels in coarser:
        outer = majority(inside, labels, node_weights)[inside]
        outer = np.unique(outer, return_inverse=True)[1].astype(np.int32)
        if 0 < outer.max() < inside.max():
            inside = by_weight(outer, node_weights)
            above.append(inside)
    return (*reversed(below), chosen, *above), len(below)


# Two partitions whose adjusted Rand index is above this are the same layer to a reader: bootstrap samples of clear
# clusters differ by as much.
SAME_LAYER = 0.95


def distinct(ranked: Sequence[Labels], node_weights: NDArray[np.float64]) -> list[Labels]:
    """Return the partitions, best first, without those that are almost the same as a better one."""
    found: list[Labels] = []
    for labels in ranked:
        if all(agreement(labels, other, node_weights) <= SAME_LAYER for other in found):
            found.append(labels)
    return found


def parents(layers: Sequence[Labels]) -> tuple[Labels, ...]:
    """Return for each layer the cluster of the next layer that contains each of its clusters; last comes one root."""
    links = []
    root = np.zeros(len(layers[-1]), dtype=np.int32)
    for fine, coarse in itertools.pairwise((*layers, root)):
        link = np.zeros(int(fine.max()) + 1, dtype=np.int32)
        link[fine] = coarse
        links.append(link)
    return tuple(links)


def by_weight(labels: Labels, node_weights: NDArray[np.float64]) -> Labels:
    """Number clusters by weight, the heaviest first; if equal, the one with the earlier node comes first."""
    clusters, first, codes = np.unique(labels, return_index=True, return_inverse=True)
    weight = np.bincount(codes, node_weights, minlength=len(clusters))
    ranks = np.empty(len(clusters), dtype=np.int32)
    ranks[np.lexsort((first, -weight))] = np.arange(len(clusters), dtype=np.int32)
    return np.asarray(ranks[codes])


def majority(fine: Labels, coarse: Labels, node_weights: NDArray[np.float64]) -> Labels:
    """Return for each fine cluster the coarse one that holds most of its weight, the smaller number if equal."""
    n_coarse = int(coarse.max()) + 1
    pairs, codes = np.unique(fine.astype(np.int64) * n_coarse + coarse, return_inverse=True)
    weight = np.bincount(codes, node_weights)
    order = np.lexsort((pairs, -weight, pairs // n_coarse))
    first = np.unique((pairs // n_coarse)[order], return_index=True)[1]
    return np.asarray(pairs[order][first] % n_coarse, np.int32)


def _inside(graph: SharedRowsGraph, node_weights: NDArray[np.float64], fine: Labels, coarse: Labels) -> Labels:
    """Return the fine clusters, cut to be inside the coarse ones that hold most of their weight.

    A piece in another coarse cluster joins the fine one there that it shares most edges with; without any it is whole.
    """
    n_coarse = int(coarse.max()) + 1
    belongs = majority(fine, coarse, node_weights)
    pieces, codes = np.unique(fine.astype(np.int64) * n_coarse + coarse, return_inverse=True)
    of_fine, of_coarse = pieces // n_coarse, pieces % n_coarse
    own = belongs[of_fine] == of_coarse
    if own.all():
        return fine
    weight = np.bincount(codes, node_weights)
    target = np.arange(len(pieces))
    edges = edges_between(graph, codes.astype(np.int32), len(pieces))
    for piece in np.flatnonzero(~own):
        hosts = np.flatnonzero(own & (of_coarse == of_coarse[piece]))
        if not len(hosts):
            target[piece] = np.flatnonzero(of_coarse == of_coarse[piece])[0]
            continue
        row = slice(edges.indptr[piece], edges.indptr[piece + 1])
        shared = np.zeros(len(pieces))
        shared[edges.indices[row]] = edges.data[row]
        target[piece] = hosts[np.lexsort((hosts, -weight[hosts], -shared[hosts]))[0]]
    return np.unique(target[codes], return_inverse=True)[1].astype(np.int32)


@saved_record
@dataclass(frozen=True, eq=False)
class CommunityResult:
    """Clusters of nodes, numbered by weight, the heaviest first, and how they were found.

    `layers` are nested partitions, finest first, of which `labels` is number `chosen_layer`; `cluster_tree` gives for
    each the cluster of the next layer, or the root, that contains each of its clusters; `heights` are those of
    `layer_heights`. The resolution path has an entry for each resolution of the sweep, NaN where nothing was measured.
    """

    labels: NDArray[np.int32]
    layers: tuple[NDArray[np.int32], ...]
    chosen_layer: int
    cluster_tree: tuple[NDArray[np.int32], ...]
    heights: NDArray[np.float64]
    resolution_path: dict[str, NDArray[np.generic]]
    verdict: Verdict
    sweep: ResolutionSweep

    def check(self) -> None:
        """Raise if the parts do not fit together; called when a result is read from a model file."""
        n_nodes, path = len(self.labels), self.resolution_path
        n_resolutions = len(self.sweep.resolutions)
        if (
            any(not _is_partition(labels, n_nodes) for labels in (self.labels, *self.layers))
            or type(self.chosen_layer) is not int
            or not 0 <= self.chosen_layer < len(self.layers)
            or not np.array_equal(self.layers[self.chosen_layer], self.labels)
            or len(self.cluster_tree) != len(self.layers)
            or self.heights.shape != (len(self.layers) + 1,)
            or not np.isfinite(self.heights).all()
            or (np.diff(self.heights) < 0).any()
            or self.sweep.partitions.shape != (n_resolutions, n_nodes)
            or set(path) != {"resolution", "n_clusters", "agreement", "depth", "crossing", "score", "chosen"}
            or any(values.shape != (n_resolutions,) for values in path.values())
        ):
            raise InputError("the parts of a CommunityResult do not fit together.")

    @property
    def n_clusters(self) -> int:
        """Number of clusters."""
        return int(self.labels.max()) + 1


def _is_partition(labels: Labels, n_nodes: int) -> bool:
    right = labels.dtype == np.int32 and labels.shape == (n_nodes,) and n_nodes > 0
    return right and 0 <= int(labels.min()) <= int(labels.max()) < n_nodes


# Groups are a layer if the next merge bridges at least twice the distance of the last one. Distances between clusters
# at random places grow by less, except between the first few and the last few.
JUMP = 2.0


@dataclass(frozen=True, eq=False)
class FarGroups:
    """Single linkage of groups of clusters that share no edges: the group of each node, and the pairs that merge.

    Distances are between the nearest points of the groups, in units of the typical distance to the nearest point; they
    never fall.
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
        return np.asarray(connected_components(merged, directed=False)[1], np.int32)[self.group]

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
