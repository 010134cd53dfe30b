"""Experiment 5: the theorem. How the Laplacian and a cut in two change if the data are perturbed.

Data X become X + eps, either by symmetric and bounded noise, or by replacing each point by its signature. The
experiment measures sigma^2, the mean of ||eps||^2; the change ||L~ - L||_F^2 of the normalized Laplacian; and the loss,
the share of points that the sign of the second eigenvector moves to the other side.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

from dc2 import clustering_accuracy, spectral_clustering
from dc2.spectral import normalized_affinity
from evaluation.experiment import Experiment, Results
from evaluation.methods import compressor, gaussian_similarity, rpf_similarity
from evaluation.sets import DataSet
from evaluation.settings import Settings

__all__ = ["THEOREM", "VARIANTS"]

FloatArray = NDArray[np.float64]

NOISE_LEVELS = np.logspace(-3, 0, 16)
GAUSSIAN_SIGMA = 1.0  # of the kernel; the clumps have radius 1
VARIANTS = ("gaussian, noise", "gaussian, signatures", "rpf, noise", "rpf, signatures")


def _work(data: DataSet, variant: str, seed: int, settings: Settings) -> Results:
    kernel, perturbation = variant.split(", ")
    begin = {**data.describe(), "variant": variant, "seed": seed}
    begin |= {"kernel": kernel, "perturbation": perturbation, "variance": float(data.X.var(axis=0).sum())}
    perturbed = list(_noisy(data.X, seed) if perturbation == "noise" else _compressed(data.X, seed))
    (affinity, sides), *others = Parallel(n_jobs=settings.n_jobs or -1)(
        delayed(_partition)(X, kernel, seed, settings) for X in (data.X, *(X for _, X in perturbed))
    )
    rows = []
    for (level, X), (other_affinity, other_sides) in zip(perturbed, others, strict=True):
        measured = {
            "level": float(level),
            "sigma2": float(((X - data.X) ** 2).sum(axis=1).mean()),
            "laplacian2": float(((other_affinity - affinity) ** 2).sum()),
            "loss": 1.0 - clustering_accuracy(sides, other_sides),
        }
        rows.append(begin | measured)
    return {"theorem": rows}


def _noisy(X: FloatArray, seed: int) -> Iterator[tuple[float, FloatArray]]:
    """Add uniform noise, which is symmetric and bounded, of growing standard deviation per column."""
    direction = np.random.default_rng(seed).uniform(-np.sqrt(3), np.sqrt(3), X.shape)
    for sigma in NOISE_LEVELS:
        yield sigma, X + sigma * direction


def _compressed(X: FloatArray, seed: int) -> Iterator[tuple[int, FloatArray]]:
    """Replace each point by its signature, for growing numbers of signatures."""
    n_signatures = 4
    while n_signatures <= len(X) // 2:
        model = compressor(n_signatures, seed).fit(X)
        yield n_signatures, model.signatures_.points[model.labels_]
        n_signatures *= 2


def _partition(X: FloatArray, kernel: str, seed: int, settings: Settings) -> tuple[FloatArray, NDArray[np.int32]]:
    """Return the normalized affinity, which is 1 minus the Laplacian, and the two sides of the cut."""
    similarity = gaussian_similarity(X, GAUSSIAN_SIGMA) if kernel == "gaussian" else rpf_similarity(X, seed, settings)
    sides = spectral_clustering(similarity, 2, assign="ncut", random_state=0).labels
    return normalized_affinity(similarity, np.ones(len(X))), sides


THEOREM = Experiment("theorem", ("separated", "overlapping"), VARIANTS, _work)
