"""The profile: the communities of a graph at many resolutions, coarse to fine."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dc2.communities.graph import TieGraph
from dc2.communities.search import Search, small_parts
from dc2.communities.strays import join_strays
from dc2.errors import InputError
from dc2.model_file import saved_record

LOWEST = 0.002
STEP = 0.25  # in the logarithm of resolutions
EVERYDAY = 34  # that many resolutions are always looked at: up to about 8
COARSE_STEP = 0.5  # beyond
HIGHEST = 1e6
COARSE_LOOKS = 4  # places of the grid from one to the next, where a given number is looked for
LEAST_SIZE = 12  # of clusters on average, where finer ones are looked for


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
    complete : bool
        Whether it was made to choose a number of clusters, or only to find a given one.
    """

    resolutions: NDArray[np.float64]
    partitions: NDArray[np.int32]
    n_clusters: NDArray[np.int64]
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
        ):
            raise InputError("the parts of a Profile do not fit together.")


@dataclass(frozen=True, eq=False)
class Nodes:
    """A tie graph with what is known of its nodes."""

    graph: TieGraph
    points: NDArray[Any]
    masses: NDArray[np.float64]
    seed: int
    n_threads: int

    @cached_property
    def search(self) -> Search:
        """What finds communities of the graph."""
        return Search.of(self.graph, small_parts(self.graph, self.seed), self.seed)


def communities(nodes: Nodes, resolution: float, search: Search | None = None) -> NDArray[np.int32]:
    """Return the communities at a resolution, of the nodes' own graph or of a resampled one, with strays joined."""
    search = search or nodes.search
    return join_strays(search.graph, search.communities(float(resolution)), nodes.masses, nodes.points)


def make_profile(nodes: Nodes) -> Profile:
    """Take partitions from the coarsest on, until clusters get too small to be any.

    The grid is fixed up to a resolution of about 8, where 2 to 100 clusters are told apart. More clusters
    need higher ones: it goes on while their number still grows and they have a dozen nodes each on average.
    """
    n_nodes = nodes.graph.n_nodes
    looks = Looks(nodes)
    looks.at(range(EVERYDAY))
    last = EVERYDAY - 1
    while (
        looks.count(last) > looks.count(last - 1)
        and looks.count(last) * LEAST_SIZE < n_nodes
        and resolution_at(last) < HIGHEST
    ):
        looks.at(range(last + 1, last + 3))
        last += 2
    return looks.profile(complete=True)


def profile_around(nodes: Nodes, k: int) -> Profile:
    """Take only those partitions of the grid that tell where k clusters are: a few far apart, then all around k."""
    looks = Looks(nodes)
    coarse = list(range(0, EVERYDAY, COARSE_LOOKS))
    looks.at(coarse)
    while looks.count(coarse[-1]) <= k and resolution_at(coarse[-1]) < HIGHEST and k < nodes.graph.n_nodes:
        coarse.append(coarse[-1] + 2)
        looks.at(coarse[-1:])
    counts = np.array([looks.count(place) for place in coarse])
    below, above = np.flatnonzero(counts < k), np.flatnonzero(counts > k)
    first = coarse[below[-1]] if len(below) else coarse[0]
    last = coarse[above[0]] if len(above) else coarse[-1]
    # Where k clusters fill a long run its middle is known already; its ends are what is looked for.
    hits = [place for place in coarse if looks.count(place) == k] or [last]
    looks.at([*range(first, min(hits)), *range(max(hits) + 1, last + 1)])
    return looks.profile(complete=False)


class Looks:
    """Partitions at places of the grid, taken when they are first asked for, side by side in threads."""

    def __init__(self, nodes: Nodes) -> None:
        self._nodes = nodes
        self._found: dict[int, NDArray[np.int32]] = {}

    def at(self, places: Iterable[int]) -> None:
        """Look at places of the grid."""
        new = [place for place in places if place not in self._found]
        search = self._nodes.search  # made before threads ask for it
        with ThreadPoolExecutor(self._nodes.n_threads) as pool:
            found = pool.map(lambda place: communities(self._nodes, resolution_at(place), search), new)
            self._found |= dict(zip(new, found, strict=True))

    def count(self, place: int) -> int:
        """Return the number of clusters at a place that was looked at."""
        return int(self._found[place].max()) + 1

    def profile(self, complete: bool) -> Profile:
        """Return all that was looked at."""
        places = sorted(self._found)
        return Profile(
            np.array([resolution_at(place) for place in places]),
            np.array([self._found[place] for place in places], dtype=np.int32),
            np.array([self.count(place) for place in places], dtype=np.int64),
            complete,
        )


def resolution_at(place: int) -> float:
    """Return a resolution of the grid, which is even in the logarithm; its steps are wider beyond the everyday ones."""
    beyond = max(place - EVERYDAY + 1, 0)
    return float(LOWEST * np.exp(STEP * (place - beyond) + COARSE_STEP * beyond))
