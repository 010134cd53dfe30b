"""Choosing the number of clusters: persistence over resolutions, agreement of resamples, valleys between clusters."""

from __future__ import annotations

import itertools
import math
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dc2.communities.agreement import RESAMPLES, agreement, resampled
from dc2.communities.profile import Nodes, Profile, communities
from dc2.communities.search import Search
from dc2.communities.valleys import Valleys
from dc2.communities.wish import Wish

POWER = 0.5
CHANCE = 0.75
VALLEY = 0.5
WIDEST = 3.0
BAR = 1.0
LOOKS = 3


@dataclass(frozen=True)
class Plateau:
    """A run of resolutions with the same number of clusters.

    Attributes
    ----------
    n_clusters : int
    first, last : int
        Places in the profile.
    width : float
        In the logarithm of resolutions.
    """

    n_clusters: int
    first: int
    last: int
    width: float

    def looks(self) -> NDArray[np.intp]:
        """Return the places at which to look: three at most, spread over the plateau."""
        count = min(LOOKS, self.last - self.first + 1)
        return np.unique(np.rint(np.linspace(self.first, self.last, count)).astype(np.intp))


@dataclass(frozen=True)
class Candidate:
    """A plateau and what speaks for it.

    Attributes
    ----------
    plateau : Plateau
    place : int
        Where in the profile its partition is: where resamples agree most.
    agreement : float
        There.
    depth : float
        Of the valleys around clusters, at most 1 each, the mean.
    score : float
    """

    plateau: Plateau
    place: int
    agreement: float
    depth: float
    score: float


def plateaus(profile: Profile) -> list[Plateau]:
    """Return the plateaus of the number of clusters, which is made monotone; those of one cluster left out.

    Between two resolutions that differ by one cluster a plateau ends half way. Where numbers in between are left out
    it gets its share only: on a fast rise no number persists.
    """
    counts = np.maximum.accumulate(profile.n_clusters)
    logs = np.log(profile.resolutions)
    edges = np.concatenate([[0], np.flatnonzero(np.diff(counts)) + 1, [len(counts)]])
    found = []
    for first, stop in itertools.pairwise(edges):
        last = stop - 1
        n_clusters = int(counts[first])
        # A plateau that reaches an end of the profile gets what an end between two neighbours would give.
        start = (
            (logs[first] - logs[first - 1]) / (n_clusters - counts[first - 1]) if first else logs[1] - logs[0]
        )
        end = (
            (logs[stop] - logs[last]) / (counts[stop] - n_clusters)
            if stop < len(counts)
            else logs[1] - logs[0]
        )
        if n_clusters > 1:
            width = float(logs[last] - logs[first] + (start + end) / 2)
            found.append(Plateau(n_clusters, int(first), int(last), width))
    return found


class Evidence:
    """Agreement and valleys of a profile's partitions, each taken once, when it is asked for."""

    def __init__(self, nodes: Nodes, profile: Profile, known: dict[str, NDArray[Any]] | None = None) -> None:
        self._nodes = nodes
        self._profile = profile
        self._volumes = nodes.graph.volumes()
        self._valleys: Valleys | None = None
        self._resampled: list[Search] | None = None
        nothing = np.full(len(profile.resolutions), np.nan)
        self.agreements = (known["agreement"] if known else nothing).copy()
        self.depths = (known["depth"] if known else nothing).copy()

    def depth(self, place: int) -> float:
        """Return the mean depth of the valleys around the clusters of a partition, each between 0 and 1."""
        if np.isnan(self.depths[place]):
            if self._valleys is None:
                self._valleys = Valleys.of(self._nodes.graph, self._nodes.points, self._nodes.masses)
            depths = self._valleys.depths(self._nodes.graph, self._profile.partitions[place])
            self.depths[place] = np.clip(depths, 0, 1).mean()
        return float(self.depths[place])

    def agreement(self, places: NDArray[np.intp]) -> NDArray[np.float64]:
        """Return the mean agreement between partitions of the graph and of its resamples."""
        searches = self._searches()
        missing = [int(place) for place in places if np.isnan(self.agreements[place])]
        jobs = [(place, search) for place in missing for search in searches]
        resolutions = self._profile.resolutions
        with ThreadPoolExecutor(self._nodes.n_threads) as pool:
            answers = list(pool.map(lambda job: communities(self._nodes, resolutions[job[0]], job[1]), jobs))
        for i, place in enumerate(missing):
            parts = [self._profile.partitions[place], *answers[i * len(searches) : (i + 1) * len(searches)]]
            pairs = [(a, b) for j, a in enumerate(parts) for b in parts[:j]]
            self.agreements[place] = float(np.mean([agreement(a, b, self._volumes) for a, b in pairs]))
        found: NDArray[np.float64] = self.agreements[places]
        return found

    def _searches(self) -> list[Search]:
        if self._resampled is None:
            nodes = self._nodes
            graphs = [resampled(nodes.graph, nodes.seed + i + 1) for i in range(RESAMPLES)]
            self._resampled = [Search.of(graph, nodes.search.parts, nodes.seed) for graph in graphs]
        return self._resampled


def candidates(profile: Profile, evidence: Evidence, wish: Wish) -> list[Candidate]:
    """Return the plateaus that may win, best first.

    Agreement costs most. It is taken only where a plateau could still be the best one, or the runner-up.
    """
    allowed = [plateau for plateau in plateaus(profile) if wish.allows(plateau.n_clusters)]
    bounds = [_upper_bound(plateau, evidence) for plateau in allowed]
    order = sorted(range(len(allowed)), key=lambda i: (-bounds[i], i))
    found: list[Candidate] = []
    for i in order:
        if len(found) > 1 and sorted(c.score for c in found)[-2] >= bounds[i]:
            break
        found.append(weighed(allowed[i], evidence))
    return sorted(found, key=lambda c: (-c.score, c.plateau.n_clusters))


def weighed(plateau: Plateau, evidence: Evidence) -> Candidate:
    """Look at what speaks for a plateau."""
    places = plateau.looks()
    agreements = evidence.agreement(places)
    best = int(np.argmax(agreements))
    depth = evidence.depth(int(places[best]))
    score = _score(plateau, float(agreements[best]), depth)
    return Candidate(plateau, int(places[best]), float(agreements[best]), depth, score)


def _score(plateau: Plateau, agrees: float, depth: float) -> float:
    beyond_chance = min(max((agrees - CHANCE) / (1 - CHANCE), 0.0), 1.0)
    persists = min(plateau.width, WIDEST) * math.pow(plateau.n_clusters, POWER)
    return persists * (beyond_chance + VALLEY * depth)


def _upper_bound(plateau: Plateau, evidence: Evidence) -> float:
    return _score(plateau, 1.0, max(evidence.depth(int(place)) for place in plateau.looks()))
