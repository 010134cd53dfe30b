"""Conquering a dense similarity by its eigenvectors, with a bandwidth and a number of clusters chosen on request."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any

import numpy as np
from numpy.random import SeedSequence
from numpy.typing import NDArray

from dc2.errors import ParameterError
from dc2.graph.conquest import RESAMPLINGS, Conquest, Path, Spectrum
from dc2.graph.layers import by_weight
from dc2.graph.n_clusters import RequestedClusters
from dc2.graph.nodes import DenseSimilarity, Nodes, SimilarityRecipe
from dc2.graph.select_k import drawn_weights
from dc2.parameters import MOST_SIGNATURES, check_integer, one_blas_thread, usable_threads
from dc2.random import tree_seed
from dc2.spectral.assignment import Assign, SpectralResult, spectral_clustering
from dc2.spectral.eigenvectors import NEGLIGIBLE, normalized_affinity

Floats = NDArray[np.float64]

FEWEST_SIGNATURES = 3  # of a cluster that was not requested
CHOICES_TRIED = 5


def first_solid(tried: Iterator[tuple[Choice, SpectralResult]]) -> tuple[Choice, SpectralResult]:
    """Return the first of a few choices that makes no cluster of one or two signatures, else the first of all."""
    first = next(tried)
    for choice, result in chain([first], islice(tried, CHOICES_TRIED - 1)):
        if np.bincount(result.labels).min() >= FEWEST_SIGNATURES:
            return choice, result
    return first


def check_enough_signatures(n_signatures: Any, requested: RequestedClusters) -> None:
    """Raise if so many signatures cannot make so many clusters."""
    number = check_integer("n_signatures", n_signatures, low=1, high=MOST_SIGNATURES)
    if number < requested.low:
        raise ParameterError(
            f"n_signatures={number} cannot make n_clusters={requested.low} clusters: use at least as many signatures "
            "as clusters, better many times more."
        )


def check_has_rows(similarity: SimilarityRecipe, one_tree: bool) -> None:
    """Raise if a similarity needs the nearest signatures of rows, but rows are assigned at random to several trees."""
    if similarity.uses_rows and not one_tree:
        raise ParameterError(
            "similarity='graph' needs one tree over all rows, but divide='sampling' makes one per partition. Use "
            "divide='projection'."
        )


FALLBACK = 0.04
WEAK = 0.1  # a relative gap below this says nothing
GOOD_ENOUGH = 0.5  # of the largest relative gap
GAP_GROWTH = 0.75
ONE_CLUSTER_LEAST, ONE_CLUSTER_MOST = 0.6, 1.5


@dataclass(frozen=True, eq=False)
class Spectra:
    """Leading eigenvalues of the normalized similarity, descending, for each bandwidth considered (rows)."""

    bandwidths: Floats
    eigenvalues: Floats

    def relative_gaps(self) -> Floats:
        """Return the relative gap after the k-th eigenvalue, for each bandwidth (rows) and k = 1, 2, ..."""
        from_one = np.maximum(1.0 - self.eigenvalues, NEGLIGIBLE)
        gaps: Floats = np.log(from_one[:, 1:] / from_one[:, :-1])
        return gaps


def spectra(
    similarity: DenseSimilarity, bandwidths: Sequence[float], n_eigenvalues: int, weights: Floats, n_jobs: int | None
) -> Spectra:
    """Compute the leading eigenvalues of a similarity at several bandwidths, in threads."""

    def leading(bandwidth: float) -> Floats:
        affinity = normalized_affinity(similarity.matrix(bandwidth), weights)
        # All of them: LAPACK's driver for a few fails on spectra as clustered as these, and is no faster. By NumPy,
        # since SciPy holds the interpreter's lock and lets only one thread work.
        return np.asarray(np.linalg.eigvalsh(affinity)[::-1][:n_eigenvalues], np.float64)

    with one_blas_thread(), ThreadPoolExecutor(usable_threads(n_jobs)) as pool:
        return Spectra(np.array(bandwidths), np.stack(list(pool.map(leading, bandwidths))))


def choose_bandwidth(found: Spectra, n_clusters: int) -> tuple[float, Floats]:
    """Return the bandwidth for a number of clusters, and the score of each that was considered.

    Of those whose relative gap is at least half of the largest it takes the widest, which is the one that depends
    least on single points. Where no gap says anything, as with crowded clusters in many dimensions, it is the one
    nearest to 0.04.
    """
    fallback = float(found.bandwidths[np.abs(np.log(found.bandwidths / FALLBACK)).argmin()])
    if not 1 < n_clusters < found.eigenvalues.shape[1]:
        return fallback, np.zeros(len(found.bandwidths))
    scores = found.relative_gaps()[:, n_clusters - 1]
    if not scores.max() > WEAK:
        return fallback, scores
    return float(found.bandwidths[np.flatnonzero(scores >= GOOD_ENOUGH * scores.max())[-1]]), scores


def choose_n_clusters(found: Spectra, low: int, high: int) -> tuple[int, Floats]:
    """Return the number of clusters between two bounds, and the score of each number.

    The score of k is its largest relative gap times (k/2)^0.75: on data without clusters eigenvalues grow like a
    power of k, so relative gaps fall like 1/k. One cluster scores 0.6 and three times the median of the others, at most
    1.5: more than such data reach, in few dimensions and (where all gaps are small) in many.
    """
    gaps = found.relative_gaps().max(axis=0)
    numbers = np.arange(low, high + 1)
    scores = np.full(len(numbers), -np.inf)
    known = (numbers > 1) & (numbers <= len(gaps))
    scores[known] = gaps[numbers[known] - 1] * (numbers[known] / 2.0) ** GAP_GROWTH
    if known.any():
        scores[numbers == 1] = min(ONE_CLUSTER_MOST, ONE_CLUSTER_LEAST + 3.0 * float(np.median(scores[known])))
    else:
        scores[numbers == 1] = ONE_CLUSTER_MOST
    return int(numbers[scores.argmax()]), scores


@dataclass(frozen=True, eq=False)
class Choice:
    """What was chosen, and the score of each bandwidth and number that was considered."""

    n_clusters: int
    bandwidth: float
    bandwidth_path: Path | None = None
    n_clusters_path: Path | None = None


def choices(
    similarity: DenseSimilarity, weights: Floats, node_weights: Floats, n_jobs: int | None, low: int, high: int
) -> Iterator[Choice]:
    """Yield choices of a number of clusters between two bounds and, where none is in use, a bandwidth; the best first.

    The bandwidth is chosen with the weights of the clustering, the number with those of the nodes, so that isolated
    signatures in the background have little influence. A caller that takes a later choice has rejected the earlier
    ones: their numbers score 0 in its path.
    """
    n_eigenvalues, in_use = min(high + 1, len(similarity)), similarity.bandwidth
    found = spectra(similarity, similarity.bandwidths, n_eigenvalues, weights, n_jobs) if in_use is None else None

    def settle(number: int, considered: Path | None) -> Choice:
        if found is None:
            assert in_use is not None
            return Choice(number, in_use, None, considered)
        chosen, scores = choose_bandwidth(found, number)
        return Choice(number, chosen, {"bandwidth": found.bandwidths, "score": scores}, considered)

    if low == high:
        yield settle(low, None)
        return
    counting = spectra(similarity, similarity.bandwidths_for_counting, n_eigenvalues, node_weights, n_jobs)
    best, scores = choose_n_clusters(counting, low, high)
    numbers = np.arange(low, high + 1)
    while True:
        yield settle(best, {"n_clusters": numbers, "score": scores.copy()})
        scores[numbers == best] = 0.0
        if not scores.max() > 0:
            return
        best = int(numbers[scores.argmax()])


MOST_CLUSTERS, POINTS_PER_CLUSTER = 50, 15


@dataclass(frozen=True)
class SpectralConqueror:
    """Spectral clustering of nodes; `weighted` regards how many rows a node represents."""

    assign: Assign = "kmeans"
    weighted: bool = False

    def conquer(
        self, similarity: DenseSimilarity, nodes: Nodes, requested: RequestedClusters, seeds: SeedSequence,
        n_jobs: int | None, before: Conquest | None = None,
    ) -> Conquest:  # fmt: skip
        """Return the clusters that the leading eigenvectors of a similarity show; nothing is kept from before."""
        weights = nodes.relative_weights if self.weighted else np.ones(len(nodes))

        def clustered(choice: Choice) -> SpectralResult:
            matrix, number = similarity.matrix(choice.bandwidth), min(choice.n_clusters, len(nodes))
            return spectral_clustering(matrix, number, assign=self.assign, weights=weights, random_state=seeds)

        bounds = _bounds(requested, len(nodes))
        considered = choices(similarity, weights, nodes.relative_weights, n_jobs, *bounds)
        choice, result = first_solid((choice, clustered(choice)) for choice in considered)
        spectrum = Spectrum(
            eigenvalues=result.eigenvalues, embedding=result.embedding, bandwidth=choice.bandwidth,
            bandwidth_path=choice.bandwidth_path, n_clusters_path=choice.n_clusters_path,
        )  # fmt: skip
        return Conquest(by_weight(result.labels, nodes.node_weights), choice.n_clusters, spectrum)

    def bootstrap(
        self, found: Conquest, similarity: DenseSimilarity, nodes: Nodes, seeds: SeedSequence, n_jobs: int | None
    ) -> list[NDArray[np.int32]]:
        """Return the clusters of nodes with resampled weights, as many as were found, at the same bandwidth."""
        assert found.spectrum is not None
        if found.n_clusters == 1:
            return [found.labels]
        weights = nodes.relative_weights if self.weighted else np.ones(len(nodes))
        matrix, number, seed = similarity.matrix(found.spectrum.bandwidth), found.n_clusters, tree_seed(seeds)

        def clustered(i: int) -> NDArray[np.int32]:
            drawn = np.maximum(drawn_weights(seed + i, len(nodes)), 1.0)  # no node disappears
            weighing = weights * drawn
            return spectral_clustering(matrix, number, assign=self.assign, weights=weighing, random_state=seeds).labels

        return [clustered(i + 1) for i in range(RESAMPLINGS)]


def _bounds(requested: RequestedClusters, n_nodes: int) -> tuple[int, int]:
    """Return the numbers of clusters to consider; for larger ones the spectrum is noise."""
    if requested.exact:
        return requested.low, requested.low
    if requested.high is None:
        return requested.low, max(requested.low, min(MOST_CLUSTERS, n_nodes // POINTS_PER_CLUSTER))
    return requested.low, max(requested.low, min(requested.high, n_nodes // 2))
