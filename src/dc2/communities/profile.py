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
from scipy.sparse.csgraph import connected_components

from dc2.communities.graph import TieGraph
from dc2.communities.search import Parts, Search, small_parts
from dc2.communities.strays import join_strays
from dc2.communities.valleys import crossing_ties
from dc2.errors import InputError
from dc2.model_file import saved_record

LOWEST = 0.002
STEP = 0.5  # in the logarithm of resolutions; halved where the number of clusters changes
EVERYDAY = 17  # resolutions of the grid, up to about 6
START = 8  # the place in the grid where the search begins
BLOCK = 4  # resolutions searched together, for any number of threads
HIGHEST = 1e6
LEAST_SIZE = 12  # mean size of clusters below which finer ones are not looked for
MOST_CROSSING = 0.5  # share of the crossing ties that chance would give; real clusters have less
STEEP = 2  # if the number of clusters grows by this factor within a step, no number inside it persists
FARTHEST_APART, FAR_APART = 4, 2  # places of the grid per step, in the search for a given number

Look = Callable[[list[float]], dict[float, NDArray[np.int32]]]


@saved_record
@dataclass(frozen=True, eq=False)
class Profile:
    """Partitions at rising resolutions, strays joined.

    Attributes
    ----------
    resolutions : ndarray of shape (n_resolutions,)
    partitions : ndarray of shape (n_resolutions, n_nodes), int32
        Clusters counted from 0.
    n_clusters : ndarray of shape (n_resolutions,)
    parts : Parts
        Small parts of the graph, by which others of its partitions are found.
    complete : bool
        Whether it covers all resolutions, to choose a number of clusters, or only those near a given number.
    """

    resolutions: NDArray[np.float64]
    partitions: NDArray[np.int32]
    n_clusters: NDArray[np.int64]
    parts: Parts
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
class Nodes:
    """A tie graph, and what is known about its nodes."""

    graph: TieGraph
    points: NDArray[Any]
    masses: NDArray[np.float64]
    seed: int
    n_threads: int
    parts: Parts | None = None

    @cached_property
    def search(self) -> Search:
        """The search for communities of the graph."""
        parts = small_parts(self.graph, self.seed) if self.parts is None else self.parts
        return Search.of(self.graph, parts, self.seed)


def communities(nodes: Nodes, resolution: float, search: Search | None = None) -> NDArray[np.int32]:
    """Return the communities at a resolution, of the nodes' own graph or of a resampled one, with strays joined."""
    search = search or nodes.search
    return join_strays(search.graph, search.communities(resolution), nodes.masses, nodes.points)


def make_profile(nodes: Nodes) -> Profile:
    """Take partitions at rising resolutions, until clusters become too small.

    The grid is fixed up to a resolution of about 6, which tells 2 to 100 clusters apart. More clusters need higher
    resolutions: the grid goes on while their number still grows and they have a dozen nodes each on average. It stops
    below where only the connected parts of the graph are left, since nothing merges there any more. Its step is halved
    where the number of clusters changes.
    """
    with ThreadPoolExecutor(nodes.n_threads) as pool:
        look = _looker(nodes, pool)
        seen = look([float(place) for place in range(START, EVERYDAY)])
        _look_below(nodes, seen, look)
        _look_above(nodes, seen, look)
        seen |= look(_between(seen))
    places = sorted(seen)
    # Beyond the resolution with the most clusters, they fall apart into strays.
    counts = [_count(seen[place]) for place in places]
    kept = places[: int(np.flatnonzero(np.array(counts) == max(counts))[-1]) + 1]
    return _profile({place: seen[place] for place in kept}, nodes.search.parts, complete=True)


def profile_around(nodes: Nodes, k: int) -> Profile:
    """Take only the partitions that show where k clusters are: a few far apart, then ever nearer ones around k."""
    n_nodes = nodes.graph.n_nodes
    with ThreadPoolExecutor(nodes.n_threads) as pool:
        look = _looker(nodes, pool)
        highest = EVERYDAY - 1
        seen = look([float(place) for place in range(FARTHEST_APART, EVERYDAY, FARTHEST_APART)])
        while _count(seen[highest]) <= k < n_nodes and _resolution(highest) < HIGHEST:
            highest += FAR_APART
            seen |= look([float(highest)])
        first, last = _next_to(k, seen)
        seen |= look([float(p) for p in range(int(first), int(last), FAR_APART) if float(p) not in seen])
        first, last = _next_to(k, seen)
        # If k clusters fill a long run, its middle is known already, and only its ends are searched.
        hits = [place for place in seen if _count(seen[place]) == k] or [last]
        ends = [*np.arange(first + 0.5, min(hits), 0.5), *np.arange(max(hits) + 0.5, last, 0.5)]
        seen |= look([float(place) for place in ends if float(place) not in seen])
    return _profile(seen, nodes.search.parts, complete=False)


def _next_to(k: int, seen: dict[float, NDArray[np.int32]]) -> tuple[float, float]:
    """Return the places next to k clusters: the highest with fewer and the lowest with more, or the ends."""
    below = [place for place in seen if _count(seen[place]) < k]
    above = [place for place in seen if _count(seen[place]) > k]
    return max(below, default=0.0), min(above, default=max(seen))


def _profile(seen: dict[float, NDArray[np.int32]], parts: Parts, complete: bool) -> Profile:
    places = sorted(seen)
    return Profile(
        np.array([_resolution(place) for place in places]),
        np.array([seen[place] for place in places], dtype=np.int32),
        np.array([_count(seen[place]) for place in places], dtype=np.int64),
        parts,
        complete,
    )


def _looker(nodes: Nodes, pool: ThreadPoolExecutor) -> Look:
    search = nodes.search  # made before threads ask for it

    def look(places: list[float]) -> dict[float, NDArray[np.int32]]:
        found = pool.map(lambda place: communities(nodes, _resolution(place), search), places)
        return dict(zip(places, found, strict=True))

    return look


def _resolution(place: float) -> float:
    return LOWEST * math.exp(STEP * place)


def _count(labels: NDArray[np.int32]) -> int:
    return int(labels.max()) + 1


def _look_below(nodes: Nodes, seen: dict[float, NDArray[np.int32]], look: Look) -> None:
    """Go down until only the connected parts of the graph are left: lower resolutions give the same."""
    parts = connected_components(nodes.graph.matrix(), directed=False)[1].astype(np.int32)
    fewest = _count(join_strays(nodes.graph, parts, nodes.masses, nodes.points))
    lowest = START
    while lowest and _count(seen[lowest]) > fewest:
        seen |= look([float(place) for place in range(lowest - BLOCK, lowest)])
        lowest -= BLOCK
    if lowest:
        seen[0.0] = seen[lowest]


def _look_above(nodes: Nodes, seen: dict[float, NDArray[np.int32]], look: Look) -> None:
    """Go up while the number of clusters grows, and fewer ties cross than half of what chance would give."""
    highest = EVERYDAY - 1
    while (
        _count(seen[highest]) > _count(seen[highest - 1])
        and _count(seen[highest]) * LEAST_SIZE < nodes.graph.n_nodes
        and crossing_ties(nodes.graph, seen[highest]) < MOST_CROSSING
        and _resolution(highest) < HIGHEST
    ):
        seen |= look([highest + 1.0, highest + 2.0])
        highest += 2


def _between(seen: dict[float, NDArray[np.int32]]) -> list[float]:
    """Return the places half way between two neighbours with different numbers, but not on a steep rise."""
    return [
        (low + high) / 2
        for low, high in itertools.pairwise(sorted(seen))
        if high - low == 1 and _count(seen[low]) < _count(seen[high]) <= STEEP * _count(seen[low])
    ]
