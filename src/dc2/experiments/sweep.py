"""All bandwidths of a kernel, each clustered by normalized cuts and scored, at little more than an eigenvector each.

What does not depend on the bandwidth (shared leaves, distances, classes per signature) is computed once. The answer
for one bandwidth is that of `dc2.spectral_clustering` with ``assign="ncut"``; it is found faster because

* the eigenvectors that mark a degenerate bandwidth also give the first cut;
* wide bandwidths leave a wide gap, where a few dozen Lanczos steps reach full accuracy. The bandwidths are gone
  through from the widest; where Lanczos keeps failing, LAPACK takes over for the narrower ones;
* narrow bandwidths that leave more isolated points than clusters need no eigenvectors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from scipy.sparse.linalg import ArpackError, LinearOperator, eigsh
from sklearn.metrics import euclidean_distances
from threadpoolctl import threadpool_limits

from dc2.engines.threads import usable_threads
from dc2.experiments.scores import score_signatures
from dc2.kernels.rpf import rpf_similarity
from dc2.spectral import normalized_affinity, spectral_clustering, top_eigenvectors
from dc2.spectral.affinity import NEGLIGIBLE
from dc2.spectral.components import components, keep_heaviest
from dc2.spectral.eigenvectors import eigengap, rounding
from dc2.trees import RPForest

__all__ = ["Cutter", "GaussianSweep", "RPFSweep", "Similarity", "SweepPoint", "sweep"]

FloatArray = NDArray[np.float64]
Similarity = Callable[[float], FloatArray]

_FEWEST_IN_PARALLEL = 500  # points: below, starting processes costs more than they save
_LANCZOS_VECTORS, _LANCZOS_RESTARTS = 20, 5  # about 90 products, a third of the time of LAPACK
_LANCZOS_BELOW = 1 - 1e-9  # nearer to 1 the graph falls apart, and eigenvalues may be repeated
_LANCZOS_FAILURES = 3  # so many in a row, and the gaps are too narrow for it


@dataclass(frozen=True, eq=False)
class RPFSweep:
    """The rpf-kernel of points for any bandwidth b."""

    counts: NDArray[np.int32]
    n_trees: int

    @classmethod
    def of(cls, points: NDArray[Any], n_trees: int, leaf_size: float, rng: Any) -> RPFSweep:
        """Grow the forest of the paper, once."""
        return cls(RPForest.grow(points, n_trees, leaf_size, cut="median", rng=rng).counts(), n_trees)

    def __call__(self, bandwidth: float) -> FloatArray:
        """Return the similarity of all points."""
        return rpf_similarity(self.counts, self.n_trees, bandwidth)


@dataclass(frozen=True, eq=False)
class GaussianSweep:
    """The Gaussian kernel exp(-||x - y||^2 / sigma) of points for any sigma."""

    squared_distances: FloatArray

    @classmethod
    def of(cls, points: NDArray[Any]) -> GaussianSweep:
        """Compute the distances, once."""
        return cls(euclidean_distances(points.astype(np.float64), squared=True))

    def __call__(self, sigma: float) -> FloatArray:
        """Return the similarity of all points."""
        similarity: FloatArray = np.exp(self.squared_distances / -sigma)
        return similarity


@dataclass(frozen=True)
class SweepPoint:
    """One bandwidth: whether it was degenerate (its eigenvectors not determined), and its scores."""

    bandwidth: float
    degenerate: bool
    scores: dict[str, float]

    @property
    def columns(self) -> dict[str, Any]:
        """What a row of results says of it."""
        return {"bandwidth": self.bandwidth, "degenerate": self.degenerate, **self.scores}


def sweep(
    similarity: Similarity,
    bandwidths: Sequence[float],
    n_clusters: int,
    class_counts: FloatArray,
    n_jobs: int | None = None,
) -> list[SweepPoint]:
    """Cluster points by every bandwidth and score by the classes that their signatures stand for.

    Parameters
    ----------
    similarity : callable
        From a bandwidth to the similarity of all points.
    bandwidths : sequence of float
    n_clusters : int
    class_counts : ndarray of shape (n_classes, n_points)
        Rows of each class that each point stands for.
    n_jobs : int, optional
        Number of processes; None takes all cores.

    Returns
    -------
    list of SweepPoint
        In the order of the bandwidths.
    """
    workers = usable_threads(n_jobs) if class_counts.shape[1] >= _FEWEST_IN_PARALLEL else 1
    widest_first = sorted(bandwidths, reverse=True)
    hands = [widest_first[worker::workers] for worker in range(workers)]
    done = Parallel(n_jobs=workers)(
        delayed(_sweep_hand)(similarity, hand, n_clusters, class_counts) for hand in hands if hand
    )
    by_bandwidth = {point.bandwidth: point for points in done for point in points}
    return [by_bandwidth[bandwidth] for bandwidth in bandwidths]


def _sweep_hand(
    similarity: Similarity, bandwidths: Sequence[float], n_clusters: int, class_counts: FloatArray
) -> list[SweepPoint]:
    cutter = Cutter()
    points = []
    with threadpool_limits(limits=1):
        for bandwidth in bandwidths:
            labels, degenerate = cutter.cluster(similarity(bandwidth), n_clusters)
            points.append(SweepPoint(bandwidth, degenerate, score_signatures(class_counts, labels)))
    return points


class Cutter:
    """Normalized cuts of one similarity after another, which remembers whether Lanczos is worth a try."""

    def __init__(self) -> None:
        self._failures = 0

    def cluster(self, similarity: FloatArray, n_clusters: int) -> tuple[NDArray[np.intp], bool]:
        """Return the clusters of points, and whether the bandwidth is degenerate.

        The rest, at first all points, is cut by the sign of the second eigenvector; the smaller side becomes a
        cluster; and so on. Where a cut is not determined, `dc2.spectral_clustering` decides.
        """
        if _isolated(similarity) > n_clusters:  # each has the eigenvalue 1 to rounding
            return keep_heaviest(components(similarity), np.ones(len(similarity)), n_clusters), True
        labels = np.full(len(similarity), n_clusters - 1, dtype=np.intp)
        rest = np.arange(len(similarity))
        for cluster in range(n_clusters - 1):
            part = similarity if cluster == 0 else similarity[np.ix_(rest, rest)]
            root_volume = np.sqrt(part.sum(axis=1))
            # For the first cut also the eigenvectors that say whether k clusters are determined at all.
            wanted = n_clusters if cluster == 0 else 2
            eigenvalues, eigenvectors = self._nontrivial(part, root_volume, min(wanted, len(part)))
            gap = eigengap(eigenvalues, 1)
            if gap < NEGLIGIBLE or (cluster == 0 and eigengap(eigenvalues, n_clusters - 1) < NEGLIGIBLE):
                result = spectral_clustering(similarity, n_clusters, assign="ncut", random_state=0)
                return result.labels.astype(np.intp), result.degenerate
            side = _smaller_side(eigenvectors[:, 0] / root_volume, rounding(gap))
            labels[rest[side]] = cluster
            rest = rest[~side]
            if len(rest) < 2:
                break
        return labels, False

    def _nontrivial(
        self, similarity: FloatArray, root_volume: FloatArray, count: int
    ) -> tuple[FloatArray, FloatArray]:
        """Return the leading eigenpairs of the normalized affinity but the first, which is known and moved away."""
        affinity = normalized_affinity(similarity, np.ones(len(similarity)))
        trivial = root_volume / np.linalg.norm(root_volume)
        if self._failures < _LANCZOS_FAILURES:
            pairs = _lanczos(affinity, trivial, count)
            if pairs is not None:
                self._failures = 0
                return pairs
            self._failures += 1
        return top_eigenvectors(affinity - 3.0 * np.outer(trivial, trivial), count)


def _lanczos(affinity: FloatArray, trivial: FloatArray, count: int) -> tuple[FloatArray, FloatArray] | None:
    """Return the eigenpairs if they are found soon and accurate, else None."""
    n = len(affinity)
    if n <= 2 * _LANCZOS_VECTORS or count >= _LANCZOS_VECTORS - 1:
        return None

    def product(vector: FloatArray) -> FloatArray:
        vector = vector.ravel()
        moved: FloatArray = affinity @ vector - (3.0 * (trivial @ vector)) * trivial
        return moved

    operator = LinearOperator((n, n), matvec=product, dtype=np.float64)
    start = np.random.default_rng(0).standard_normal(n)
    try:
        eigenvalues, eigenvectors = eigsh(
            operator, count, which="LA", v0=start, ncv=_LANCZOS_VECTORS, maxiter=_LANCZOS_RESTARTS, tol=1e-13
        )
    except ArpackError:
        return None
    eigenvalues, eigenvectors = eigenvalues[::-1], eigenvectors[:, ::-1]
    products = affinity @ eigenvectors - 3.0 * np.outer(trivial, trivial @ eigenvectors)
    accurate = np.abs(products - eigenvectors * eigenvalues).max() < NEGLIGIBLE
    return (eigenvalues, eigenvectors) if accurate and eigenvalues[0] < _LANCZOS_BELOW else None


def _isolated(similarity: FloatArray) -> int:
    """Return the number of points whose similarity to all others is negligible (to themselves it is 1)."""
    tied = (similarity > NEGLIGIBLE).sum(axis=1)
    return int((tied <= 1).sum())


def _smaller_side(potential: FloatArray, tie: float) -> NDArray[np.bool_]:
    side: NDArray[np.bool_] = potential > tie * np.abs(potential).max()
    excess = 2 * int(side.sum()) - len(side)
    return side if excess < 0 or (excess == 0 and not side[0]) else ~side
