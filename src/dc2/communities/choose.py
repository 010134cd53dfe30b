"""Choosing the number of clusters: persistence over resolutions, agreement of resamples, valleys between clusters."""

from __future__ import annotations

import itertools
import math
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dc2.communities.agreement import agreement, resampled, resamples
from dc2.communities.profile import MOST_CROSSING, Nodes, Profile, communities
from dc2.communities.search import Search
from dc2.communities.strays import community_ties
from dc2.communities.valleys import Valleys
from dc2.communities.wish import Wish

# Resamples of a flat cloud agree to about this much on how to cut it. The more dimensions, the more ways there are to
# cut, and the less they agree: it falls with this power of the dimension.
CHANCE, FALL = 0.75, 0.4
# What agreement and valleys must come to together.
LEAST_EVIDENCE = 0.33
# A cloud of d dimensions has plateaus of about (1 + 1/d)/k: at most 2/k.
CLOUD = 2.0
# Between 0, the best evidence whatever the number of clusters, and 1, the sum over clusters.
POWER = 0.65
# What the score must reach for more than one cluster.
BAR = 0.15
LOOKS = 3
# Plateaus that are looked at together, side by side in threads.
TOGETHER = 4
# How much may speak for a layer at least, in terms of the best plateau.
LAYER_SHARE = 0.9
# What lies beyond an end of the profile, in the logarithm of resolutions: at least, and at most.
END, FARTHEST_END = 0.125, 4.0


@dataclass(frozen=True)
class Plateau:
    """A run of resolutions with the same number of clusters.

    Attributes
    ----------
    n_clusters : int
    places : ndarray
        In the profile.
    width : float
        In the logarithm of resolutions.
    """

    n_clusters: int
    places: NDArray[np.intp]
    width: float

    def looks(self) -> NDArray[np.intp]:
        """Return the places at which to look: three at most, spread over the plateau."""
        count = min(LOOKS, len(self.places))
        spread = np.rint(np.linspace(0, len(self.places) - 1, count)).astype(np.intp)
        looks: NDArray[np.intp] = self.places[spread]
        return looks


@dataclass(frozen=True)
class Candidate:
    """A plateau and what speaks for it.

    Attributes
    ----------
    plateau : Plateau
    place : int
        Where in the profile its partition is: where most speaks for it.
    agreement : float
        There.
    depth : float
        Of the valleys around clusters there, each between 0 and 1, the mean.
    crossing : float
        The share of ties that cross between clusters, 1 being that of chance.
    score : float
    """

    plateau: Plateau
    place: int
    agreement: float
    depth: float
    crossing: float
    score: float


def plateaus(profile: Profile, below: float = END) -> list[Plateau]:
    """Return the plateaus of the number of clusters, which is made monotone; those of one cluster left out.

    Between two resolutions that differ by one cluster a plateau ends half way. Where numbers in between are left out
    it gets its share only: on a fast rise no number persists. `below` is how far below the lowest resolution its
    plateau goes on.
    """
    counts = np.maximum.accumulate(profile.n_clusters)
    logs = np.log(profile.resolutions)
    edges = np.concatenate([[0], np.flatnonzero(np.diff(counts)) + 1, [len(counts)]])
    found = []
    for first, stop in itertools.pairwise(edges):
        last = stop - 1
        n_clusters = int(counts[first])
        if n_clusters > 1:
            start = (logs[first] - logs[first - 1]) / (n_clusters - counts[first - 1]) / 2 if first else below
            end = (logs[stop] - logs[last]) / (counts[stop] - n_clusters) / 2 if stop < len(counts) else END
            width = float(logs[last] - logs[first] + start + end)
            places = first + np.flatnonzero(profile.n_clusters[first:stop] == n_clusters)
            found.append(Plateau(n_clusters, places, width))
    return found


class Evidence:
    """Agreement and valleys of a profile's partitions, each taken once, when it is asked for."""

    def __init__(self, nodes: Nodes, profile: Profile, known: dict[str, NDArray[Any]] | None = None) -> None:
        self._nodes = nodes
        self._profile = profile
        self._volumes = nodes.graph.volumes()
        self._resampled: list[Search] | None = None
        nothing = np.full(len(profile.resolutions), np.nan)
        self.agreements = (known["agreement"] if known else nothing).copy()
        self.depths = (known["depth"] if known else nothing).copy()
        self.crossings = (known["crossing"] if known else nothing).copy()

    @cached_property
    def _valleys(self) -> Valleys:
        nodes = self._nodes
        return Valleys.of(nodes.graph, nodes.points, nodes.masses, nodes.n_threads)

    @property
    def dimension(self) -> float:
        """The dimension that distances between nodes show."""
        return self._valleys.dimension

    def valleys(self, place: int) -> tuple[float, float]:
        """Return the mean depth of the valleys around the clusters of a partition, and the share of crossing ties."""
        if np.isnan(self.depths[place]):
            depths, crossing = self._valleys.of_partition(self._profile.partitions[place])
            self.depths[place] = np.clip(depths, 0, 1).mean()
            self.crossings[place] = crossing
        return float(self.depths[place]), float(self.crossings[place])

    def below(self) -> float:
        """Return how far below the profile, in the logarithm, its coarsest clusters would merge.

        Two merge where their ties are as many as the resolution allows by chance. Parts without ties never do.
        """
        labels = self._profile.partitions[0]
        if not labels.any():
            return END
        ties = community_ties(self._nodes.graph, labels, int(labels.max()) + 1).tocoo()
        volumes = np.bincount(labels, self._volumes)
        between = ties.row != ties.col
        by_chance = volumes[ties.row[between]] * (volumes[ties.col[between]] / volumes.sum())
        merging = float((ties.data[between] / by_chance).max(initial=0.0))
        lowest = float(self._profile.resolutions[0])
        far = math.log(lowest / merging) if merging > 0 else FARTHEST_END
        return min(max(far, END), FARTHEST_END)

    def agreement(self, places: NDArray[np.intp]) -> NDArray[np.float64]:
        """Return the mean agreement between partitions of the graph and of its resamples."""
        missing = [int(place) for place in places if np.isnan(self.agreements[place])]
        searches = self._searches() if missing else []
        jobs = [(place, search) for place in missing for search in searches]
        resolutions = self._profile.resolutions
        with ThreadPoolExecutor(self._nodes.n_threads) as pool:
            answers = list(
                pool.map(lambda job: communities(self._nodes, float(resolutions[job[0]]), job[1]), jobs)
            )
        for i, place in enumerate(missing):
            parts = [self._profile.partitions[place], *answers[i * len(searches) : (i + 1) * len(searches)]]
            pairs = [(a, b) for j, a in enumerate(parts) for b in parts[:j]]
            self.agreements[place] = float(np.mean([agreement(a, b, self._volumes) for a, b in pairs]))
        found: NDArray[np.float64] = self.agreements[places]
        return found

    def _searches(self) -> list[Search]:
        if self._resampled is None:
            nodes = self._nodes
            parts = nodes.search.parts

            def resample(number: int) -> Search:
                return Search.of(resampled(nodes.graph, nodes.seed + number), parts, nodes.seed)

            with ThreadPoolExecutor(nodes.n_threads) as pool:
                self._resampled = list(pool.map(resample, range(1, resamples(nodes.graph.n_nodes) + 1)))
        return self._resampled


def candidates(profile: Profile, evidence: Evidence, wish: Wish) -> list[Candidate]:
    """Return the plateaus that matter, best first.

    Agreement costs most, so it is taken first where most may speak for a plateau, then only where one could still
    have half the score of the best, or as much a cluster: as runner-up, or as a layer.
    """
    allowed = [plateau for plateau in plateaus(profile, evidence.below()) if wish.allows(plateau.n_clusters)]
    bounds = [_upper_bound(plateau, evidence) for plateau in allowed]
    left = sorted(range(len(allowed)), key=lambda i: (-bounds[i], i))
    found: list[Candidate] = []
    while left:
        batch, left = [allowed[i] for i in left[:TOGETHER]], left[TOGETHER:]
        evidence.agreement(np.concatenate([plateau.looks() for plateau in batch]))
        found += [weighed(plateau, evidence) for plateau in batch]
        best = max(found, key=lambda candidate: candidate.score)
        least = max(best.score, BAR)
        left = [
            i
            for i in left
            if bounds[i] >= least / 2
            or bounds[i] / _weight(allowed[i]) >= LAYER_SHARE * least / _weight(best.plateau)
        ]
    return sorted(found, key=lambda c: (-c.score, c.plateau.n_clusters))


def looked_at(profile: Profile, evidence: Evidence) -> list[Candidate]:
    """Return the plateaus whose agreement is known, now or from an earlier answer, whatever was wished for then."""
    if np.isnan(evidence.agreements).all():
        return []
    return [
        weighed(plateau, evidence)
        for plateau in plateaus(profile, evidence.below())
        if not np.isnan(evidence.agreements[plateau.looks()]).any()
    ]


def weighed(plateau: Plateau, evidence: Evidence) -> Candidate:
    """Look at what speaks for a plateau, and where on it most does."""
    looks = plateau.looks()
    found = []
    for place, agrees in zip(looks.tolist(), evidence.agreement(looks).tolist(), strict=True):
        depth, crossing = evidence.valleys(place)
        value = score(plateau, agrees, depth, crossing, evidence.dimension)
        found.append(Candidate(plateau, place, agrees, depth, crossing, value))
    return max(found, key=lambda candidate: (candidate.score, candidate.agreement))


def score(plateau: Plateau, agrees: float, depth: float, crossing: float, dimension: float) -> float:
    """Return how much speaks for a plateau.

    Evidence is agreement beyond chance, discounted where many ties cross, and the depth of valleys. In few dimensions
    valleys tell clusters from clouds, whose cuts resamples may well repeat: on a line all the time. In many
    distances hardly show valleys, but there resamples of a cloud do not agree at all. Either alone can be enough.
    Widths are taken in terms of what a cloud shows; beyond a few times of that it makes no difference how wide a
    plateau is.
    """
    by_chance = CHANCE * math.pow(2 / max(dimension, 2.0), FALL)
    beyond_chance = min(max((agrees - by_chance) / (1 - by_chance), 0.0), 1.0)
    kept = max(1 - crossing / MOST_CROSSING, 0.0)
    told = max(1 - 1 / dimension, 0.0)
    evidence = max(min(beyond_chance * kept * told + depth, 1.0) - LEAST_EVIDENCE, 0.0)
    persistence = plateau.width * plateau.n_clusters
    return _weight(plateau) * persistence / (persistence + CLOUD) * evidence


def _weight(plateau: Plateau) -> float:
    return math.pow(plateau.n_clusters, POWER)


def clearest(plateau: Plateau, evidence: Evidence) -> int:
    """Return the place of a plateau with the deepest valleys and fewest crossing ties; of equals one in the middle."""
    looks = plateau.looks().tolist()
    middle = looks[len(looks) // 2]
    bounds = {place: _bound_at(plateau, place, evidence) for place in looks}
    return int(max(looks, key=lambda place: (bounds[place], -abs(place - middle))))


def _upper_bound(plateau: Plateau, evidence: Evidence) -> float:
    """Return the score that a plateau would have if its resamples agreed, by a look at its middle."""
    looks = plateau.looks().tolist()
    return _bound_at(plateau, looks[len(looks) // 2], evidence)


def _bound_at(plateau: Plateau, place: int, evidence: Evidence) -> float:
    return score(plateau, 1.0, *evidence.valleys(place), evidence.dimension)
