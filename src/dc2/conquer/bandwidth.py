"""Choosing a bandwidth and a number of clusters, by the eigenvalues that each bandwidth gives.

The score of a number of clusters k at one bandwidth is the relative gap
log((1 - l_{k+1}) / (1 - l_k)) of the eigenvalues l of the normalized similarity. It is 0 where k has no meaning, and
large where k clusters stand apart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from dc2.conquer.conquest import Path
from dc2.engines.threads import usable_threads
from dc2.kernels.similarity import DenseSimilarity
from dc2.spectral.affinity import NEGLIGIBLE, normalized_affinity

__all__ = ["Choice", "Chooser", "Spectra", "choose_bandwidth", "choose_n_clusters", "spectra"]

FALLBACK = 0.04
WEAK = 0.1  # a relative gap below this says nothing
GOOD_ENOUGH = 0.5  # of the largest relative gap
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
    similarity: DenseSimilarity,
    bandwidths: Sequence[float],
    n_eigenvalues: int,
    weights: NDArray[np.float64],
    n_jobs: int | None,
) -> Spectra:
    """Compute the leading eigenvalues of a similarity at several bandwidths, in threads."""

    def leading(bandwidth: float) -> NDArray[np.float64]:
        affinity = normalized_affinity(similarity.matrix(bandwidth), weights)
        # All of them: LAPACK's driver for a few fails on spectra as clustered as these, and is no faster. By NumPy,
        # since SciPy holds the interpreter's lock and lets only one thread work.
        return np.asarray(np.linalg.eigvalsh(affinity)[::-1][:n_eigenvalues], np.float64)

    with threadpool_limits(limits=1), ThreadPoolExecutor(usable_threads(n_jobs)) as pool:
        return Spectra(np.array(bandwidths), np.stack(list(pool.map(leading, bandwidths))))


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


def choose_n_clusters(found: Spectra, low: int, high: int) -> tuple[int, NDArray[np.float64]]:
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
    bandwidth_path: Path | None = None
    n_clusters_path: Path | None = None


@dataclass(frozen=True, eq=False)
class Chooser:
    """Chooses a number of clusters between two bounds, and a bandwidth where none is in use.

    Attributes
    ----------
    similarity : DenseSimilarity
    weights : ndarray of shape (n_nodes,)
        As the clustering will use them; the bandwidth is chosen with them.
    masses : ndarray of shape (n_nodes,)
        How many rows each node stands for. The number of clusters is chosen with these, so that stray signatures in the
        background count for little.
    n_jobs : int or None
    """

    similarity: DenseSimilarity
    weights: NDArray[np.float64]
    masses: NDArray[np.float64]
    n_jobs: int | None

    def choices(self, low: int, high: int) -> Iterator[Choice]:
        """Yield choices, the best first; at least one.

        A caller that takes a later choice has rejected the earlier ones: their numbers score 0 in its path.
        """
        n_eigenvalues = min(high + 1, len(self.similarity))
        settle = self._bandwidth_for(n_eigenvalues)
        if low == high:
            yield settle(low, None)
            return
        numbers = np.arange(low, high + 1)
        counting = spectra(
            self.similarity,
            self.similarity.bandwidths_for_counting,
            n_eigenvalues,
            self.masses,
            self.n_jobs,
        )
        best, scores = choose_n_clusters(counting, low, high)
        while True:
            yield settle(best, {"n_clusters": numbers, "score": scores.copy()})
            scores[numbers == best] = 0.0
            if not scores.max() > 0:
                return
            best = int(numbers[scores.argmax()])

    def _bandwidth_for(self, n_eigenvalues: int) -> Callable[[int, Path | None], Choice]:
        """Return a function that turns a number of clusters into a choice, with the bandwidth that suits it."""
        in_use = self.similarity.bandwidth
        if in_use is not None:
            return lambda number, considered: Choice(number, in_use, None, considered)
        found = spectra(self.similarity, self.similarity.bandwidths, n_eigenvalues, self.weights, self.n_jobs)

        def settle(number: int, considered: Path | None) -> Choice:
            chosen, scores = choose_bandwidth(found, number)
            return Choice(number, chosen, {"bandwidth": found.bandwidths, "score": scores}, considered)

        return settle
