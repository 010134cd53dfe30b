"""Layers: partitions nested into a tree around the chosen one."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dc2.communities.graph import TieGraph
from dc2.communities.strays import community_ties

Labels = NDArray[np.int32]


def nest(
    graph: TieGraph, masses: NDArray[np.float64], chosen: Labels, others: Sequence[Labels]
) -> tuple[tuple[Labels, ...], int]:
    """Nest partitions around the chosen one, which stays as it is.

    Returns
    -------
    layers : tuple of ndarray
        Finest first. Every cluster of a layer lies within one cluster of the next. Clusters are numbered by mass.
    chosen : int
        The place of the chosen partition.
    """
    n_chosen = int(chosen.max()) + 1
    finer = sorted((labels for labels in others if labels.max() + 1 > n_chosen), key=lambda labels: labels.max())
    coarser = sorted((labels for labels in others if labels.max() + 1 < n_chosen), key=lambda labels: -labels.max())
    below: list[Labels] = []
    around = chosen
    for labels in finer:
        inner = _inside(graph, masses, labels, around)
        if inner.max() > around.max():
            around = by_mass(inner, masses)
            below.append(around)
    above: list[Labels] = []
    inside = chosen
    for labels in coarser:
        outer = majority(inside, labels, masses)[inside]
        outer = np.unique(outer, return_inverse=True)[1].astype(np.int32)
        if outer.max() < inside.max():
            inside = by_mass(outer, masses)
            above.append(inside)
    return (*reversed(below), chosen, *above), len(below)


def parents(layers: Sequence[Labels]) -> tuple[Labels, ...]:
    """Return, for each layer but the last, the cluster of the next layer that contains each of its clusters."""
    links = []
    for fine, coarse in itertools.pairwise(layers):
        link = np.zeros(int(fine.max()) + 1, dtype=np.int32)
        link[fine] = coarse
        links.append(link)
    return tuple(links)


def by_mass(labels: Labels, masses: NDArray[np.float64]) -> Labels:
    """Number clusters by mass, the heaviest first; in a draw, the one with the earlier node comes first."""
    clusters, first, codes = np.unique(labels, return_index=True, return_inverse=True)
    weight = np.bincount(codes, masses, minlength=len(clusters))
    ranks = np.empty(len(clusters), dtype=np.int32)
    ranks[np.lexsort((first, -weight))] = np.arange(len(clusters), dtype=np.int32)
    numbered: Labels = ranks[codes]
    return numbered


def majority(fine: Labels, coarse: Labels, masses: NDArray[np.float64]) -> Labels:
    """Return for each fine cluster the coarse one that holds most of its mass, the smaller number in a draw."""
    n_coarse = int(coarse.max()) + 1
    pairs, codes = np.unique(fine.astype(np.int64) * n_coarse + coarse, return_inverse=True)
    weight = np.bincount(codes, masses)
    order = np.lexsort((pairs, -weight, pairs // n_coarse))
    first = np.unique((pairs // n_coarse)[order], return_index=True)[1]
    homes: Labels = (pairs[order][first] % n_coarse).astype(np.int32)
    return homes


def _inside(graph: TieGraph, masses: NDArray[np.float64], fine: Labels, coarse: Labels) -> Labels:
    """Return the fine clusters, cut to lie inside the coarse ones.

    Each belongs to the coarse cluster that holds most of its mass. A piece inside another coarse cluster joins the
    fine cluster there that it has the most ties to. A coarse cluster without fine ones of its own stays whole.
    """
    n_coarse = int(coarse.max()) + 1
    belongs = majority(fine, coarse, masses)
    pieces, codes = np.unique(fine.astype(np.int64) * n_coarse + coarse, return_inverse=True)
    of_fine, of_coarse = pieces // n_coarse, pieces % n_coarse
    own = belongs[of_fine] == of_coarse
    if own.all():
        return fine
    weight = np.bincount(codes, masses)
    target = np.arange(len(pieces))
    ties = community_ties(graph, codes.astype(np.int32), len(pieces))
    for piece in np.flatnonzero(~own):
        hosts = np.flatnonzero(own & (of_coarse == of_coarse[piece]))
        if not len(hosts):
            target[piece] = np.flatnonzero(of_coarse == of_coarse[piece])[0]
            continue
        row = slice(ties.indptr[piece], ties.indptr[piece + 1])
        tied = np.zeros(len(pieces))
        tied[ties.indices[row]] = ties.data[row]
        target[piece] = hosts[np.lexsort((hosts, -weight[hosts], -tied[hosts]))[0]]
    return np.unique(target[codes], return_inverse=True)[1].astype(np.int32)
