"""All bandwidths of a kernel, each clustered by normalized cuts and scored, as the paper searches them."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

from dc2 import RPFCluster, spectral_clustering
from evaluation.fitted import Fitted
from evaluation.methods import Similarity, similarity_of
from evaluation.scores import score_signatures
from evaluation.sets import DataSet
from evaluation.settings import PAPER_TREES, Settings

__all__ = ["SweepPoint", "oracles", "sweep", "sweep_fit"]

_FEWEST_IN_PARALLEL = 500  # points; with fewer, starting processes costs more than it saves


@dataclass(frozen=True)
class SweepPoint:
    """One bandwidth: whether it was degenerate (its eigenvectors were not determined), and its scores."""

    bandwidth: float
    degenerate: bool
    scores: dict[str, float]

    @property
    def columns(self) -> dict[str, Any]:
        """What a row of results says about it."""
        return {"bandwidth": self.bandwidth, "degenerate": self.degenerate, **self.scores}


_swept: dict[tuple[tuple[float, ...], int, bytes], list[SweepPoint]] = {}


def sweep(
    similarity: Similarity,
    bandwidths: Sequence[float],
    n_clusters: int,
    class_counts: NDArray[np.float64],
    n_jobs: int | None = None,
) -> list[SweepPoint]:
    """Cluster points by every bandwidth and score by the classes that they represent.

    Parameters
    ----------
    similarity : callable
        Gives the similarity of all points from a bandwidth.
    bandwidths : sequence of float
    n_clusters : int
    class_counts : ndarray of shape (n_classes, n_points)
        Rows of each class that each point represents.
    n_jobs : int, optional
        Number of processes; None takes all cores.

    Returns
    -------
    list of SweepPoint
        In the order of the bandwidths.
    """

    def at(bandwidth: float, matrix: NDArray[np.float64]) -> SweepPoint:
        found = spectral_clustering(matrix, n_clusters, assign="ncut", random_state=0)
        return SweepPoint(bandwidth, found.degenerate, score_signatures(class_counts, found.labels))

    workers = (n_jobs or -1) if class_counts.shape[1] >= _FEWEST_IN_PARALLEL else 1
    points: list[SweepPoint] = Parallel(n_jobs=workers)(
        delayed(at)(bandwidth, similarity(bandwidth)) for bandwidth in bandwidths
    )
    return points


def sweep_fit(fitted: Fitted, data: DataSet, settings: Settings) -> list[SweepPoint]:
    """Score every bandwidth of the paper on the signatures of a fit.

    Two experiments fit some of the same models; for equal similarities and classes, the search is done once.
    """
    assert data.scored_y is not None
    betas = [beta / PAPER_TREES for beta in settings.betas]
    bandwidths = tuple(betas if isinstance(fitted.model, RPFCluster) else settings.sigmas)
    counts = fitted.class_counts(data.scored_y)
    similarity = similarity_of(fitted.model)
    seen = hashlib.sha256(counts.tobytes())
    for bandwidth in (bandwidths[0], bandwidths[-1]):
        seen.update(similarity(bandwidth).tobytes())
    key = bandwidths, data.n_clusters, seen.digest()
    if key not in _swept:
        _swept[key] = sweep(similarity, bandwidths, data.n_clusters, counts, settings.n_jobs)
    return _swept[key]


def oracles(points: Sequence[SweepPoint]) -> dict[str, SweepPoint]:
    """Return the bandwidth that true labels select, of all and, if any, of those not degenerate."""
    selected = {"oracle": points, "oracle, not degenerate": [point for point in points if not point.degenerate]}
    return {name: max(some, key=lambda point: point.scores["accuracy"]) for name, some in selected.items() if some}
