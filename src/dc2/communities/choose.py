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
from dc2.communities.dimension import dimension_for_cuts, large_scale_dimension
from dc2.communities.profile import MOST_CROSSING, Nodes, Profile, communities
from dc2.communities.search import Search
from dc2.communities.strays import community_ties
from dc2.communities.valleys import Valleys
from dc2.communities.wish import Wish

# Resamples of a two-dimensional cloud agree about this much on how to cut it. More dimensions offer more ways to cut,
# so they agree less: agreement falls with this power of the dimension.
CHANCE, FALL = 0.75, 0.4
# The least that agreement and valleys must reach together.
LEAST_EVIDENCE = 0.33
# A cloud of d dimensions has plateaus about (1 + 1/d)/k wide: at most 2/k.
CLOUD = 2.0
# How the number of clusters counts: 0 would take the best evidence whatever the number, 1 the sum over clusters.
POWER = 0.65
# The score needed for more than one cluster.
BAR = 0.15
LOOKS = 3
# Plateaus examined together, side by side in threads.
TOGETHER = 4
# The least evidence per cluster that makes a layer, relative to the best plateau.
LAYER_SHARE = 0.9
# How far a plateau reaches beyond an end of the profile, in the logarithm of resolutions: at least, and at most.
END, FARTHEST_END = 0.125, 4.0


@dataclass(frozen=True)
class Plateau:
    """A run of resolutions with the same number of clusters.

    Attributes
    ----------
    n_clusters : int
    places : ndarray
        Its places in the profile.
    width : float
        Its width in the logarithm of resolutions.
    """

    n_clusters: int
    places: NDArray[np.intp]
    width: float

    def looks(self) -> NDArray[np.intp]:
        """Return the places to examine: at most three, spread over the plateau."""
        count = min(LOOKS, len(self.places))
        spread = np.rint(np.linspace(0, len(self.places) - 1, count)).astype(np.intp)
        looks: NDArray[np.intp] = self.places[spread]
        return looks


@dataclass(frozen=True)
class Candidate:
    """A plateau and the evidence for it.

    Attributes
    ----------
    plateau : Plateau
    place : int
        The place in the profile with the strongest evidence.
    agreement : float
        The agreement there.
    depth : float
        The mean depth there of the valleys around clusters, each between 0 and 1.
    crossing : float
        How many ties cross between clusters, as a share of what chance would give.
    score : float
    """

    plateau: Plateau
    place: int
    agreement: float
    depth: float
    crossing: float
    score: float


def plateaus(profile: Profile, below: float = END) -> list[Plateau]:
    """Return the plateaus of the number of clusters, made monotone first; plateaus of one cluster are left out.

    Between two resolutions that differ by one cluster, a plateau ends half way. If numbers in between are skipped, it
    gets only its share of the step: on a steep rise no number persists. `below` is how far the first plateau goes on
    below the lowest resolution.
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
    """Agreement and valleys of a profile's partitions, each computed once, when it is first needed."""

    def __init__(self, nodes: Nodes, profile: Profile, known: dict[str, NDArray[Any]] | None = None) -> None:
        self._nodes = nodes
        self._profile = profile
        self._volumes = nodes.graph.volumes
        self._resampled: list[Search] | None = None
        nothing = np.full(len(profile.resolutions), np.nan)
        self.agreements = (known["agreement"] if known else nothing).copy()
        self.depths = (known["depth"] if known else nothing).copy()
        self.crossings = (known["crossing"] if known else nothing).copy()

    @cached_property
    def _valleys(self) -> Valleys:
        nodes = self._nodes
        return Valleys.of(nodes.graph, nodes.points, nodes.masses, nodes.n_threads)

    @cached_property
    def dimension(self) -> float:
        """The dimension that says how often chance cuts rows at the same places."""
        return dimension_for_cuts(self._valleys.dimension, large_scale_dimension(self._nodes.points))

    def valleys(self, place: int) -> tuple[float, float]:
        """Return the mean depth of the valleys around a partition's clusters, and the share of crossing ties."""
        if np.isnan(self.depths[place]):
            depths, crossing = self._valleys.of_partition(self._profile.partitions[place])
            self.depths[place] = np.clip(depths, 0, 1).mean()
            self.crossings[place] = crossing
        return float(self.depths[place]), float(self.crossings[place])

    def below(self) -> float:
        """Return how far below the profile, in the logarithm of resolutions, its coarsest clusters would merge.

        Two clusters merge where their ties reach what chance would give, times the resolution. Without ties they never
        do.
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
        """Return the mean agreement between the partitions of the graph and of its resamples."""
        missing = [int(place) for place in places if np.isnan(self.agreements[place])]
        searches = self._searches() if missing else []
        jobs = [(place, search) for place in missing for search in searches]
        resolutions = self._profile.resolutions
        with ThreadPoolExecutor(self._nodes.n_threads) as pool:
            answers = list(pool.map(lambda job: communities(self._nodes, float(resolutions[job[0]]), job[1]), jobs))
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

    Agreement costs most. So it is computed for the most promising plateaus first, then only for those that could
    still be the runner-up, with half the best score, or a layer, with as much evidence per cluster as the best.
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
            if bounds[i] >= least / 2 or bounds[i] / _weight(allowed[i]) >= LAYER_SHARE * least / _weight(best.plateau)
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
    """Return the evidence for a plateau, taken where it is strongest.

    Few resamples may agree at one place by luck, so the median of the agreement counts.
    """
    looks = plateau.looks()
    agreements = evidence.agreement(looks)
    typical = float(np.median(agreements))
    found = []
    for place, agrees in zip(looks.tolist(), agreements.tolist(), strict=True):
        depth, crossing = evidence.valleys(place)
        value = score(plateau, typical, depth, crossing, evidence.dimension)
        found.append(Candidate(plateau, place, agrees, depth, crossing, value))
    return max(found, key=lambda candidate: (candidate.score, candidate.agreement))


def score(plateau: Plateau, agrees: float, depth: float, crossing: float, dimension: float) -> float:
    """Return how strong the evidence for a plateau is.

    Evidence is agreement beyond chance, discounted where many ties cross, plus the depth of valleys. In few dimensions
    valleys tell clusters from clouds; agreement does not, since resamples may repeat the same cut through a cloud, and
    on a line always do. In many dimensions distances hardly show valleys, but resamples of a cloud do not agree at
    all. Either alone can be enough. The width of a plateau is taken relative to that of a cloud; beyond a few times
    that, more width makes no difference.
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
    """Return the place of a plateau with the deepest valleys and fewest crossing ties; in a draw, the middlemost."""
    looks = plateau.looks().tolist()
    middle = looks[len(looks) // 2]
    bounds = {place: _bound_at(plateau, place, evidence) for place in looks}
    return int(max(looks, key=lambda place: (bounds[place], -abs(place - middle))))


def _upper_bound(plateau: Plateau, evidence: Evidence) -> float:
    """Return the score that a plateau would have if its resamples agreed, judged at its middle."""
    looks = plateau.looks().tolist()
    return _bound_at(plateau, looks[len(looks) // 2], evidence)


def _bound_at(plateau: Plateau, place: int, evidence: Evidence) -> float:
    return score(plateau, 1.0, *evidence.valleys(place), evidence.dimension)
