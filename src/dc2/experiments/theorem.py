"""Experiment 5: the theorem. How the Laplacian and a cut in two answer to perturbed data.

Data X become X + eps, either by noise that is symmetric and bounded, or by replacing each point by its signature.
Measured are sigma^2, the mean of ||eps||^2; the change ||L~ - L||_F^2 of the normalized Laplacian; and the loss, the
share of points that the sign of the second eigenvector puts on the other side.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from dc2.compress import Compressor
from dc2.experiments.experiment import Experiment, Results
from dc2.experiments.methods import FIXED_BANDWIDTH, PAPER_COMPRESSION
from dc2.experiments.sets import DataSet
from dc2.experiments.settings import Settings
from dc2.experiments.sweep import Cutter, GaussianSweep, RPFSweep
from dc2.metrics import clustering_accuracy
from dc2.random import seed_sequence
from dc2.spectral import normalized_affinity

__all__ = ["THEOREM", "VARIANTS"]

FloatArray = NDArray[np.float64]

NOISE_LEVELS = np.logspace(-3, 0, 16)
GAUSSIAN_SIGMA = 1.0  # of the kernel; the clumps have radius 1
VARIANTS = ("gaussian, noise", "gaussian, signatures", "rpf, noise", "rpf, signatures")


def _work(data: DataSet, variant: str, seed: int, settings: Settings) -> Results:
    kernel, perturbation = variant.split(", ")
    begin = {
        **data.describe(),
        "variant": variant,
        "seed": seed,
        "kernel": kernel,
        "perturbation": perturbation,
    }
    begin["variance"] = float(data.X.var(axis=0).sum())
    perturbed = _noisy(data.X, seed) if perturbation == "noise" else _compressed(data.X, seed)
    rows = []
    with threadpool_limits(limits=1):
        affinity, sides = _partition(data.X, kernel, seed, settings)
        for level, X in perturbed:
            other_affinity, other_sides = _partition(X, kernel, seed, settings)
            rows.append(
                begin
                | {
                    "level": float(level),
                    "sigma2": float(((X - data.X) ** 2).sum(axis=1).mean()),
                    "laplacian2": float(((other_affinity - affinity) ** 2).sum()),
                    "loss": 1.0 - clustering_accuracy(sides, other_sides),
                }
            )
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
        compressor = Compressor(n_signatures, **PAPER_COMPRESSION, random_state=seed).fit(X)
        yield n_signatures, compressor.signatures_.points[compressor.labels_]
        n_signatures *= 2


def _partition(
    X: FloatArray, kernel: str, seed: int, settings: Settings
) -> tuple[FloatArray, NDArray[np.intp]]:
    """Return the normalized affinity, which is 1 minus the Laplacian, and the two sides of the cut."""
    similarity = _similarity(X, kernel, seed, settings)
    sides, _ = Cutter().cluster(similarity, 2)
    return normalized_affinity(similarity, np.ones(len(X))), sides


def _similarity(X: FloatArray, kernel: str, seed: int, settings: Settings) -> FloatArray:
    if kernel == "gaussian":
        return GaussianSweep.of(X)(GAUSSIAN_SIGMA)
    rng: Any = seed_sequence(seed)
    return RPFSweep.of(X, settings.n_trees, settings.forest_leaf_size, rng)(FIXED_BANDWIDTH)


THEOREM = Experiment("theorem", ("separated", "overlapping"), VARIANTS, _work)
