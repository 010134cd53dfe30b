"""Choosing a bandwidth and a number of clusters from the spectra of the rpf-kernel, without labels.

For k clusters what matters is how much slower a walk on the graph leaves k clusters than it mixes inside them: the
relative gap log((1 - l_{k+1}) / (1 - l_k)) of the eigenvalues l of the normalized similarity. It is 0 where k means
nothing, and large where k clusters stand apart.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from dc2.engines.threads import usable_threads
from dc2.kernels.rpf import rpf_similarity
from dc2.spectral.affinity import NEGLIGIBLE, normalized_affinity

BANDWIDTHS = (0.02, 0.03, 0.04, 0.05, 0.07, 0.1)
FALLBACK = 0.04
WEAK = 0.1  # a relative gap below this says nothing
GOOD_ENOUGH = 0.5  # of the largest relative gap
FINEST_FOR_K = 0.03  # below it lone outliers pass for clusters
MOST_CLUSTERS, POINTS_PER_CLUSTER = 50, 15
GAP_GROWTH = 0.75
ONE_CLUSTER_LEAST, ONE_CLUSTER_MOST = 0.6, 1.5


@dataclass(frozen=True, eq=False)
class Spectra:
    """Leading eigenvalues for each bandwidth considered.

    Attributes
    ----------
    bandwidths : ndarray of shape (n_bandwidths,)
    eigenvalues : ndarray of shape (n_bandwidths, n_eigenvalues)
        Of the normalized similarity, descending.
    """

    bandwidths: NDArray[np.float64]
    eigenvalues: NDArray[np.float64]

    def relative_gaps(self) -> NDArray[np.float64]:
        """Return the relative gap after the k-th eigenvalue, for each bandwidth (rows) and k = 1, 2, ..."""
        from_one = np.maximum(1.0 - self.eigenvalues, NEGLIGIBLE)
        gaps: NDArray[np.float64] = np.log(from_one[:, 1:] / from_one[:, :-1])
        return gaps


def spectra(
    counts: NDArray[np.integer[Any]],
    n_trees: int,
    n_eigenvalues: int,
    weights: NDArray[np.float64],
    n_jobs: int | None,
    factor: NDArray[np.floating[Any]] | None = None,
) -> Spectra:
    """Compute the leading eigenvalues of the rpf-kernel, times a factor, for every bandwidth, in threads."""

    def leading(bandwidth: float) -> NDArray[np.float64]:
        similarity = rpf_similarity(counts, n_trees, bandwidth)
        affinity = normalized_affinity(similarity if factor is None else similarity * factor, weights)
        # All of them: LAPACK's driver for a few fails on spectra as clustered as these, and is no faster. NumPy's, as
        # SciPy's holds the interpreter's lock and lets only one thread work.
        return np.asarray(np.linalg.eigvalsh(affinity)[::-1][:n_eigenvalues], np.float64)

    with threadpool_limits(limits=1), ThreadPoolExecutor(usable_threads(n_jobs)) as pool:
        return Spectra(np.array(BANDWIDTHS), np.stack(list(pool.map(leading, BANDWIDTHS))))


def choose_bandwidth(found: Spectra, n_clusters: int) -> tuple[float, NDArray[np.float64]]:
    """Return the bandwidth for a number of clusters, and the score of each that was considered.

    Of those whose relative gap is at least half of the largest it takes the widest, which is the one that depends
    least on single points. Where no gap says anything, as with crowded clusters in many dimensions, it is 0.04.
    """
    if not 1 < n_clusters < found.eigenvalues.shape[1]:
        return FALLBACK, np.zeros(len(found.bandwidths))
    scores = found.relative_gaps()[:, n_clusters - 1]
    if not scores.max() > WEAK:
        return FALLBACK, scores
    return float(found.bandwidths[np.flatnonzero(scores >= GOOD_ENOUGH * scores.max())[-1]]), scores


def most_clusters(n_points: int) -> int:
    """Return the largest number of clusters that is looked for among so many points."""
    return max(1, min(MOST_CLUSTERS, n_points // POINTS_PER_CLUSTER))


def choose_n_clusters(found: Spectra, low: int, high: int) -> tuple[int, NDArray[np.float64]]:
    """Return the number of clusters between two bounds, and the score of each number.

    The score of k is its largest relative gap times (k/2)^0.75: on data without clusters eigenvalues grow like a
    power of k, so relative gaps fall like 1/k. One cluster scores 0.6 and three times the median of the others, at most
    1.5: more than such data reach, in few dimensions and (where all gaps are small) in many.
    """
    fine_enough = found.bandwidths >= FINEST_FOR_K
    gaps = found.relative_gaps()[fine_enough].max(axis=0)
    numbers = np.arange(low, high + 1)
    scores = np.full(len(numbers), -np.inf)
    known = (numbers > 1) & (numbers <= len(gaps))
    scores[known] = gaps[numbers[known] - 1] * (numbers[known] / 2.0) ** GAP_GROWTH
    if known.any():
        scores[numbers == 1] = min(
            ONE_CLUSTER_MOST, ONE_CLUSTER_LEAST + 3.0 * float(np.median(scores[known]))
        )
    else:
        scores[numbers == 1] = ONE_CLUSTER_MOST
    return int(numbers[scores.argmax()]), scores


@dataclass(frozen=True, eq=False)
class Choice:
    """What was chosen, and from what.

    Attributes
    ----------
    n_clusters : int
    bandwidth : float
    bandwidth_path : dict or None
        "bandwidth" and "score" of each that was considered.
    n_clusters_path : dict or None
        "n_clusters" and "score" of each that was considered.
    """

    n_clusters: int
    bandwidth: float
    bandwidth_path: dict[str, NDArray[Any]] | None = None
    n_clusters_path: dict[str, NDArray[Any]] | None = None

    @property
    def confidence(self) -> float | None:
        """How far the best number of clusters is ahead of the next, from 0 (a tie) to 1."""
        if self.n_clusters_path is None:
            return None
        second, best = np.sort(self.n_clusters_path["score"])[-2:]
        return float(1.0 - max(second, 0.0) / best)


def choices(
    counts: NDArray[np.integer[Any]],
    n_trees: int,
    n_clusters: tuple[int, int],
    bandwidth: float | None,
    weights: NDArray[np.float64],
    row_counts: NDArray[np.float64],
    n_jobs: int | None,
    factor: NDArray[np.floating[Any]] | None = None,
) -> Iterator[Choice]:
    """Yield choices of a number of clusters between two bounds, and of a bandwidth if none is given; the best first.

    The number regards how many rows each point stands for (`row_counts`), so that stray signatures in the background
    count for little; the bandwidth regards `weights`, as the clustering will. Whoever takes a later choice had a reason
    to pass over those before: their numbers score 0 in its path.
    """
    low, high = n_clusters
    n_eigenvalues = min(high + 1, len(counts))
    for_bandwidth = None
    if bandwidth is None:
        for_bandwidth = spectra(counts, n_trees, n_eigenvalues, weights, n_jobs, factor)

    def choice(number: int, numbers_considered: dict[str, NDArray[Any]] | None) -> Choice:
        if for_bandwidth is None:
            assert bandwidth is not None
            return Choice(number, bandwidth, None, numbers_considered)
        chosen, scores = choose_bandwidth(for_bandwidth, number)
        considered = {"bandwidth": for_bandwidth.bandwidths, "score": scores}
        return Choice(number, chosen, considered, numbers_considered)

    if low == high:
        yield choice(low, None)
        return
    numbers = np.arange(low, high + 1)
    for_number = spectra(counts, n_trees, n_eigenvalues, row_counts, n_jobs, factor)
    best, scores = choose_n_clusters(for_number, low, high)
    while scores.max() > 0:
        yield choice(best, {"n_clusters": numbers, "score": scores.copy()})
        scores[numbers == best] = 0.0
        best = int(numbers[scores.argmax()])
