"""Choosing the number of clusters: persistence over resolutions, bootstrap agreement, density gaps."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array

from dc2 import core
from dc2.graph.density import DensityGaps, dimension_for_cuts, large_scale_dimension
from dc2.graph.gaps import GapTree
from dc2.graph.n_clusters import NumberEvidence, RequestedClusters
from dc2.graph.neighbor_graph import SharedRowsGraph
from dc2.graph.resolutions import MOST_CROSSING, GraphNodes, ResolutionSweep, Search, communities_at, edges_between

_RESAMPLED_NODES = 8000
_FEWEST, _MOST = 3, 10
_DENSE = 16  # pairs of clusters for each node, up to which counting all pairs is faster
_STEPS = 16  # weights are whole numbers, in units of 1/16
# A Bayesian bootstrap draws exponential weights; these are 256 evenly spaced quantiles.
_EXPONENTIAL = np.array([round(-_STEPS * math.log((i + 0.5) / 256)) for i in range(256)], dtype=np.float64)


def resamples(n_nodes: int) -> int:
    """Return how many resamples to take: more for few nodes, where chance matters more and a search costs less."""
    return min(max(round(_RESAMPLED_NODES / n_nodes), _FEWEST), _MOST)


def resampled(search: Search, graph: SharedRowsGraph, seed: int) -> Search:
    """Return the search on the graph that other rows might have made, by a Bayesian bootstrap.

    Rows with the same nearest node share one weight: separate draws would average out, and any cut would seem certain.
    """
    return search.resampled(drawn_weights(seed, graph.n_nodes)[graph.near[:, 0]], seed)


def drawn_weights(seed: int, n_nodes: int) -> NDArray[np.float64]:
    """Return the weights of a Bayesian bootstrap, drawn by hash: whole numbers with a mean of 16."""
    indices = (core.hash_rows(seed, 0, n_nodes) >> np.uint64(56)).astype(np.intp)
    drawn: NDArray[np.float64] = _EXPONENTIAL[indices]
    return drawn


def agreement(a: NDArray[np.int32], b: NDArray[np.int32], weights: NDArray[np.float64]) -> float:
    """Return the adjusted Rand index of two partitions by weight; whole numbers make it exact in any order."""
    total = weights.sum()
    if not total > 0:
        return 1.0
    n_a, n_b = int(a.max()) + 1, int(b.max()) + 1
    both: NDArray[Any]
    if n_a * n_b <= _DENSE * len(a):
        both = np.bincount(a.astype(np.int64) * n_b + b, weights)
    else:
        both = coo_array((weights, (a, b))).tocsr().data
    same = float(((both / total) ** 2).sum())
    in_a = float(((np.bincount(a, weights) / total) ** 2).sum())
    in_b = float(((np.bincount(b, weights) / total) ** 2).sum())
    by_chance = in_a * in_b
    most = (in_a + in_b) / 2
    if most - by_chance <= 1e-12:
        return 1.0
    return (same - by_chance) / (most - by_chance)


def mean_agreement(partitions: Sequence[NDArray[np.int32]], weights: NDArray[np.float64]) -> float:
    """Return the mean adjusted Rand index over all pairs of partitions."""
    return float(np.mean([agreement(a, b, weights) for a, b in itertools.combinations(partitions, 2)]))


def information(labels: NDArray[np.int32], volumes: NDArray[np.float64]) -> float:
    """Return the entropy of the clusters' volumes, in nats."""
    shares = np.bincount(labels, volumes)
    shares = shares[shares > 0] / max(shares.sum(), 1.0)
    return float(-(shares * np.log(shares)).sum())


# Resamples of a two-dimensional cloud agree about this much on how to cut it. More dimensions offer more ways to cut,
# so they agree less: agreement falls with this power of the dimension.
CHANCE, FALL = 0.75, 0.4
# The least evidence for more than one cluster. Curves of thousands of nodes reach nearly that. In few nodes chance
# makes gaps that bootstraps repeat, and clouds reach more, by about two over the root of their number.
LEAST_EVIDENCE, LEAST_OF_FEW = 0.4, 2.0
# Groups without any edges between them, found again in every bootstrap, have evidence 1: enough for any number of rows.
MOST_NEEDED = 0.98
# So many of the finest partitions show how well bootstraps agree where nothing is left but arbitrary cuts, if at least
# this share of the edges that chance would give crosses them.
FINEST, ARBITRARY = 3, MOST_CROSSING / 2
# The agreement with one resample may be lower by this much than the mean over all: the others are not drawn where even
# so much more would not be enough.
LUCK = 0.1
EXAMINED = 3
# Of numbers whose scores differ by less than this share, the finer one is chosen, so that chance does not decide.
NEARLY_EQUAL = 0.95
# Plateaus examined together, side by side in threads.
TOGETHER = 4
# The least score that makes a plateau a candidate for a layer, relative to the best.
LAYER_SHARE = 0.25
# How far a plateau reaches beyond an end of the sweep, in the logarithm of resolutions: at least, and at most.
END, FARTHEST_END = 0.125, 4.0


@dataclass(frozen=True)
class Plateau:
    """A run of resolutions with the same number of clusters, and its width in the logarithm of resolutions."""

    n_clusters: int
    indices: NDArray[np.intp]
    width: float

    def examined(self) -> NDArray[np.intp]:
        """Return the indices to examine: at most three, spread over the plateau."""
        spread = np.linspace(0, len(self.indices) - 1, min(EXAMINED, len(self.indices)))
        return np.asarray(self.indices[np.rint(spread).astype(np.intp)])

    @property
    def middle(self) -> int:
        """The middlemost index to examine."""
        examined = self.examined()
        return int(examined[len(examined) // 2])


@dataclass(frozen=True)
class Candidate:
    """A plateau, the index in the sweep with the strongest evidence for it, and this evidence."""

    plateau: Plateau
    index: int
    numbers: NumberEvidence

    @property
    def score(self) -> float:
        """From agreement, information, persistence, scale and evidence beyond the least."""
        return self.numbers.score


def plateaus(sweep: ResolutionSweep, below: float = END) -> list[Plateau]:
    """Return the plateaus of two clusters and more, the numbers made monotone first.

    A plateau ends half way to the next; if numbers are skipped it gets its share of the step: on a steep rise no number
    persists. `below` is how far the first plateau goes on below the lowest resolution.
    """
    counts = np.maximum.accumulate(sweep.n_clusters)
    logs = np.log(sweep.resolutions)
    bounds = np.concatenate([[0], np.flatnonzero(np.diff(counts)) + 1, [len(counts)]])
    found = []
    for first, stop in itertools.pairwise(bounds):
        last = stop - 1
        n_clusters = int(counts[first])
        if n_clusters > 1:
            start = (logs[first] - logs[first - 1]) / (n_clusters - counts[first - 1]) / 2 if first else below
            end = (logs[stop] - logs[last]) / (counts[stop] - n_clusters) / 2 if stop < len(counts) else END
            indices = first + np.flatnonzero(sweep.n_clusters[first:stop] == n_clusters)
            found.append(Plateau(n_clusters, indices, float(logs[last] - logs[first] + start + end)))
    return found


class Evidence:
    """Agreement and density gaps of a sweep's partitions, each computed once, when it is first needed."""

    def __init__(self, nodes: GraphNodes, sweep: ResolutionSweep, known: dict[str, NDArray[Any]] | None = None) -> None:
        self._nodes = nodes
        self._sweep = sweep
        self._volumes = nodes.graph.volumes
        self._resampled: list[Search] | None = None
        self._partitions: dict[tuple[int, int], NDArray[np.int32]] = {}
        nothing = np.full(len(sweep.resolutions), np.nan)
        names = ("agreement", "depth", "crossing")
        self.agreements, self.depths, self.crossings = ((known[name] if known else nothing).copy() for name in names)
        self.least = min(LEAST_EVIDENCE + LEAST_OF_FEW / math.sqrt(nodes.graph.n_nodes), MOST_NEEDED)

    @cached_property
    def _density_gaps(self) -> DensityGaps:
        nodes = self._nodes
        return DensityGaps.of(nodes.graph, nodes.points, nodes.node_weights, nodes.n_threads)

    @cached_property
    def gaps(self) -> GapTree:
        """Groups with empty space between them."""
        return GapTree.of(self._nodes, self._density_gaps.dimension)

    @cached_property
    def dimension(self) -> float:
        """The dimension that says how often chance cuts rows at the same indices."""
        return dimension_for_cuts(self._density_gaps.dimension, self._large_scale_dimension)

    @cached_property
    def _large_scale_dimension(self) -> float:
        return large_scale_dimension(self._nodes.points)

    def density_gaps(self, index: int) -> tuple[float, float]:
        """Return the mean depth of the density gaps around a partition's clusters, and the share of crossing edges."""
        self.measure_gaps([index])
        return float(self.depths[index]), float(self.crossings[index])

    def measure_gaps(self, indices: list[int]) -> None:
        """Measure the density gaps of some partitions side by side in threads."""
        gaps = self._density_gaps
        missing = sorted({index for index in indices if np.isnan(self.depths[index])})
        _ = self._nodes.graph.rows, self._nodes.graph.volumes  # made before threads ask for them
        with ThreadPoolExecutor(self._nodes.n_threads) as pool:
            found = pool.map(lambda index: _mean_depth(*gaps.of_partition(self._sweep.partitions[index])), missing)
            for index, (depth, crossing) in zip(missing, found, strict=True):
                self.depths[index], self.crossings[index] = depth, crossing

    def density_gaps_of(self, labels: NDArray[np.int32]) -> tuple[float, float]:
        """Return the mean depth of the density gaps around clusters, and the share of edges that cross."""
        return _mean_depth(*self._density_gaps.of_partition(labels))

    @cached_property
    def persistence(self) -> NDArray[np.float64]:
        """How little the number of clusters grows near each resolution: 1 if it does not, 2/3 if by a factor of e.

        Growth is taken from a factor of e below to a factor of e above, so that no plateau begins with a jump.
        """
        logs = np.log(self._sweep.resolutions)
        counts = np.log(np.maximum.accumulate(self._sweep.n_clusters))
        merged = logs[0] - self.below
        at = np.concatenate([[np.nextafter(merged, -np.inf), merged], logs])
        number = np.concatenate([[0.0], counts[:1], counts])
        growth = np.interp(logs + 1, at, number) - np.interp(logs - 1, at, number)
        return np.asarray(1 / (1 + growth / 2))

    def at_scale(self, plateau: Plateau) -> float:
        """Return how near a plateau is to resolution 1, that of modularity: 1 if it includes it or in a plane.

        In a plane even a cloud can be cut into pieces with few edges between them. In many dimensions pieces of a cloud
        share most of their edges, and real clusters of any number appear near this scale.
        """
        logs = np.log(self._sweep.resolutions[plateau.indices])
        large = self._large_scale_dimension
        dimension = large if math.isfinite(large) else self._density_gaps.dimension
        weight = max(1 - 2 / dimension, 0.0)
        return math.exp(-weight * float(np.abs(logs).min()) ** 2)

    @cached_property
    def agreement_by_chance(self) -> float:
        """The agreement that arbitrary cuts reach: in a cloud of this dimension or, if higher, in the finest cuts."""
        cloud = CHANCE * math.pow(2 / max(self.dimension, 2.0), FALL)
        finest = np.arange(len(self._sweep.resolutions))[-FINEST:]
        self.measure_gaps(finest.tolist())
        crossing = [self.density_gaps(int(index))[1] for index in finest]
        if not self._sweep.complete or np.median(crossing) < ARBITRARY:
            return cloud
        return max(cloud, float(np.median(self.agreement(finest))))

    def information(self, index: int) -> float:
        """Return the information in a node's cluster."""
        return information(self._sweep.partitions[index], self._volumes)

    @cached_property
    def below(self) -> float:
        """How far below the sweep, in the logarithm of resolutions, its coarsest clusters would merge.

        They do where edges reach what chance would give, times the resolution; without edges they never do.
        """
        labels = self._sweep.partitions[0]
        if not labels.any():
            return END
        edges = edges_between(self._nodes.graph, labels, int(labels.max()) + 1).tocoo()
        volumes = np.bincount(labels, self._volumes)
        between = edges.row != edges.col
        by_chance = volumes[edges.row[between]] * (volumes[edges.col[between]] / volumes.sum())
        merging = float((edges.data[between] / by_chance).max(initial=0.0))
        lowest = float(self._sweep.resolutions[0])
        far = math.log(lowest / merging) if merging > 0 else FARTHEST_END
        return min(max(far, END), FARTHEST_END)

    def agreement(self, indices: NDArray[np.intp]) -> NDArray[np.float64]:
        """Return the mean agreement between the partitions of the graph and of its resamples."""
        missing = [int(index) for index in indices if np.isnan(self.agreements[index])]
        if missing:
            numbers = range(len(self._searches()))
            self._search([(index, number) for index in missing for number in numbers])
            for index in missing:
                parts = [self._sweep.partitions[index], *(self._partitions.pop((index, number)) for number in numbers)]
                self.agreements[index] = mean_agreement(parts, self._volumes)
        return np.asarray(self.agreements[indices])

    def agreement_at_most(self, indices: list[int]) -> list[float]:
        """Return about how much the partitions and those of resamples agree at most, from one resample only."""
        self._search([(index, 0) for index in indices if np.isnan(self.agreements[index])])
        return [
            min(agreement(self._sweep.partitions[index], self._partitions[index, 0], self._volumes) + LUCK, 1.0)
            if np.isnan(self.agreements[index])
            else 1.0
            for index in indices
        ]

    def _search(self, jobs: list[tuple[int, int]]) -> None:
        """Find the partitions of resamples, by index and number of the resample, that are not there yet."""
        jobs = [job for job in jobs if job not in self._partitions]
        searches, resolutions = self._searches() if jobs else [], self._sweep.resolutions
        with ThreadPoolExecutor(self._nodes.n_threads) as pool:
            found = pool.map(
                lambda job: communities_at(self._nodes, float(resolutions[job[0]]), searches[job[1]]), jobs
            )
            self._partitions |= dict(zip(jobs, found, strict=True))

    def _searches(self) -> list[Search]:
        if self._resampled is None:
            nodes = self._nodes

            def resample(number: int) -> Search:
                return resampled(nodes.search, nodes.graph, nodes.seed + number)

            with ThreadPoolExecutor(nodes.n_threads) as pool:
                self._resampled = list(pool.map(resample, range(1, resamples(nodes.graph.n_nodes) + 1)))
        return self._resampled


def _mean_depth(depths: NDArray[np.float64], crossing: float) -> tuple[float, float]:
    return float(np.clip(depths, 0, 1).mean()), crossing


def candidates(sweep: ResolutionSweep, evidence: Evidence, requested: RequestedClusters) -> list[Candidate]:
    """Return the plateaus that matter, best first.

    Agreement costs most, so it is computed from coarse to fine, and only for plateaus of which one resample shows that
    they could still be the best, or a layer, with a quarter of the best score.
    """
    allowed = [plateau for plateau in plateaus(sweep, evidence.below) if requested.allows(plateau.n_clusters)]
    evidence.measure_gaps([index for plateau in allowed for index in plateau.examined().tolist()])
    bounds = [_upper_bound(plateau, evidence) for plateau in allowed]
    left = list(range(len(allowed)))
    found: list[Candidate] = []
    least = 0.0  # what the score must exceed
    while left:
        batch, left = left[:TOGETHER], left[TOGETHER:]
        at_most = evidence.agreement_at_most([allowed[i].middle for i in batch])
        for i, agrees in zip(batch, at_most, strict=True):
            bounds[i] = _upper_bound(allowed[i], evidence, agrees)
        promising = [allowed[i] for i in batch if bounds[i] > least]
        evidence.agreement(np.array([index for one in promising for index in one.examined()], dtype=np.intp))
        found += [weighed(plateau, evidence) for plateau in promising]
        least = LAYER_SHARE * max([0.0, *(candidate.score for candidate in found)])
        left = [i for i in left if bounds[i] > least]
    if allowed and not found:
        found = [weighed(allowed[int(np.argmax(bounds))], evidence)]
    best = max((candidate.score for candidate in found), default=0.0)
    nearly_best = [c for c in found if c.score >= NEARLY_EQUAL * best > 0]
    first = max(nearly_best, key=lambda c: c.plateau.n_clusters, default=None)
    return sorted(found, key=lambda c: (c is not first, -c.score, -c.plateau.n_clusters))


def evaluated(sweep: ResolutionSweep, evidence: Evidence) -> list[Candidate]:
    """Return the plateaus whose agreement is known, now or from an earlier answer, whatever was requested then."""
    if np.isnan(evidence.agreements).all():
        return []
    return [
        weighed(plateau, evidence)
        for plateau in plateaus(sweep, evidence.below)
        if not np.isnan(evidence.agreements[plateau.examined()]).any()
    ]


def weighed(plateau: Plateau, evidence: Evidence) -> Candidate:
    """Return the evidence for a plateau where it is strongest; the best agreement counts for all of it.

    Near the ends of a plateau some bootstraps already find another number.
    """
    examined = plateau.examined()
    agreements = evidence.agreement(examined)
    found = []
    for index, agrees in zip(examined.tolist(), agreements.tolist(), strict=True):
        numbers = replace(_judged(plateau, index, float(agreements.max()), evidence), agreement=agrees)
        found.append(Candidate(plateau, index, numbers))
    return max(found, key=lambda candidate: (candidate.score, candidate.numbers.agreement))


def _judged(plateau: Plateau, index: int, agrees: float, evidence: Evidence) -> NumberEvidence:
    """Return the evidence and score of a place on a plateau if bootstraps agree so well.

    Multiplied are the information that is found again, persistence, the root of the evidence beyond the least, and how
    near the plateau is to the scale of modularity.
    """
    depth, crossing = evidence.density_gaps(index)
    strength = evidence_of(agrees, depth, crossing, evidence)
    beyond = strength - evidence.least
    value = beyond
    if beyond > 0:
        comes_back = agrees * evidence.information(index)
        value = math.sqrt(beyond) * comes_back * float(evidence.persistence[index]) * evidence.at_scale(plateau)
    return NumberEvidence(plateau.n_clusters, agrees, plateau.width, depth, crossing, strength, value)


def evidence_of(agrees: float, depth: float, crossing: float, evidence: Evidence) -> float:
    """Return how strong the evidence for a partition is, between 0 and 1.

    Agreement beyond that of arbitrary cuts, or density gaps: either alone can be enough, and one adds to what the other
    leaves open. In few dimensions gaps distinguish clusters from clouds; agreement does not, since bootstraps may
    repeat the same cut through a cloud, and on a line always do. In many dimensions distances hardly show gaps, but
    bootstraps of a cloud do not agree at all. It does not count where half as many edges cross as chance would give:
    signatures are cut from clouds, and bootstraps repeat these cuts.
    """
    by_chance = evidence.agreement_by_chance
    beyond_chance = max((agrees - by_chance) / max(1 - by_chance, 1e-9), 0.0)
    dimension = max(evidence.dimension, 1.0)
    counts = 1 - 1 / (dimension * dimension) if crossing < MOST_CROSSING else 0.0
    return 1 - (1 - depth) * (1 - min(beyond_chance, 1.0) * counts)


def clearest(plateau: Plateau, evidence: Evidence) -> int:
    """Return the index with the deepest density gaps and fewest crossing edges; if equal, the middlemost."""
    examined = plateau.examined().tolist()
    middle = plateau.middle
    bounds = {index: _judged(plateau, index, 1.0, evidence).evidence for index in examined}
    return int(max(examined, key=lambda index: (bounds[index], -abs(index - middle))))


def _upper_bound(plateau: Plateau, evidence: Evidence, agrees: float = 1.0) -> float:
    """Return the score that a plateau would have if its resamples agreed so well."""
    return max(_judged(plateau, index, agrees, evidence).score for index in plateau.examined().tolist())
