"""The profile: the communities of a graph at many resolutions, coarse to fine."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components

from dc2 import core
from dc2.communities.graph import TieGraph
from dc2.communities.strays import join_strays

LOWEST = 0.002
STEP = 0.5  # in the logarithm of resolutions; halved where numbers change
EVERYDAY = 17  # that many resolutions make the grid: up to about 6
START = 5  # the first of them to be looked at
UPWARD = 3  # that many more at a time, where more clusters are looked for
HIGHEST = 1e6
LEAST_SIZE = 12  # of clusters on average, where finer ones are looked for
STEEP = 2  # numbers that grow so much within a step persist nowhere inside
ITERATIONS = 2


@dataclass(frozen=True)
class Profile:
    """Partitions at rising resolutions, strays joined.

    Attributes
    ----------
    resolutions : ndarray of shape (n_resolutions,)
    partitions : ndarray of shape (n_resolutions, n_nodes), int32
        Clusters counted from 0.
    n_clusters : ndarray of shape (n_resolutions,)
    """

    resolutions: NDArray[np.float64]
    partitions: NDArray[np.int32]
    n_clusters: NDArray[np.int64]


@dataclass(frozen=True)
class Nodes:
    """A tie graph with what is known of its nodes."""

    graph: TieGraph
    points: NDArray[Any]
    masses: NDArray[np.float64]
    seed: int
    n_threads: int


def communities(
    nodes: Nodes, resolutions: Sequence[float], graph: TieGraph | None = None
) -> list[NDArray[np.int32]]:
    """Return the communities at each resolution, of the nodes' own graph or of a resampled one, with strays joined.

    They may differ a little with the other resolutions that are looked at in the same call.
    """
    graph = graph or nodes.graph
    if not len(resolutions):
        return []
    found = core.leiden_path(
        graph.indptr,
        graph.indices,
        graph.weights,
        np.array(resolutions, dtype=np.float64),
        nodes.seed,
        ITERATIONS,
        nodes.n_threads,
    )
    with ThreadPoolExecutor(nodes.n_threads) as pool:
        joined = pool.map(lambda labels: join_strays(graph, labels, nodes.masses, nodes.points), found)
        return list(joined)


def raw_communities(nodes: Nodes, resolution: float) -> NDArray[np.int32]:
    """Return the communities at a resolution, strays among them."""
    graph = nodes.graph
    labels: NDArray[np.int32] = core.leiden(
        graph.indptr, graph.indices, graph.weights, float(resolution), nodes.seed, None, ITERATIONS
    )
    return labels


def make_profile(nodes: Nodes) -> Profile:
    """Take partitions at rising resolutions, until clusters get too small to be any.

    The grid is fixed up to a resolution of about 6, where 2 to 100 clusters are told apart. More clusters need
    higher ones: it goes on while their number still grows and they have a dozen nodes each on average. It is left
    out below where the parts of the graph are reached, since nothing merges there any more, and halved where numbers
    change.
    """

    def look(places: list[float]) -> dict[float, NDArray[np.int32]]:
        found = communities(nodes, [_resolution(place) for place in places])
        return dict(zip(places, found, strict=True))

    seen = look([float(place) for place in range(START, EVERYDAY)])
    _look_below(nodes, seen, look)
    _look_above(nodes, seen, look)
    seen |= look(_between(seen))
    places = sorted(seen)
    counts = np.array([_count(seen[place]) for place in places], dtype=np.int64)
    # Past the largest number clusters fall apart into strays.
    kept = places[: int(np.argmax(counts)) + 1]
    partitions = np.array([seen[place] for place in kept], dtype=np.int32)
    return Profile(np.array([_resolution(place) for place in kept]), partitions, counts[: len(kept)])


Look = Callable[[list[float]], dict[float, NDArray[np.int32]]]


def _resolution(place: float) -> float:
    return LOWEST * math.exp(STEP * place)


def _count(labels: NDArray[np.int32]) -> int:
    return int(labels.max()) + 1


def _look_below(nodes: Nodes, seen: dict[float, NDArray[np.int32]], look: Look) -> None:
    """Go down, unless the parts of the graph are reached: lower resolutions give the same."""
    parts = connected_components(nodes.graph.matrix(), directed=False)[1].astype(np.int32)
    fewest = _count(join_strays(nodes.graph, parts, nodes.masses, nodes.points))
    if _count(seen[START]) > fewest:
        seen |= look([float(place) for place in range(START)])
    else:
        seen[0.0] = seen[START]


def _look_above(nodes: Nodes, seen: dict[float, NDArray[np.int32]], look: Look) -> None:
    """Go up while there are ever more clusters."""
    highest = EVERYDAY - 1
    while (
        _count(seen[highest]) > _count(seen[highest - 1])
        and _count(seen[highest]) * LEAST_SIZE < nodes.graph.n_nodes
        and _resolution(highest) < HIGHEST
    ):
        seen |= look([float(place) for place in range(highest + 1, highest + 1 + UPWARD)])
        highest += UPWARD


def _between(seen: dict[float, NDArray[np.int32]]) -> list[float]:
    """Return places half way where a number changes, but not on a steep rise."""
    return [
        (low + high) / 2
        for low, high in itertools.pairwise(sorted(seen))
        if high - low == 1 and _count(seen[low]) < _count(seen[high]) <= STEEP * _count(seen[low])
    ]
