"""Rows, targets and a small compressor for the tests of kernel learning."""

from typing import Any

import numpy as np
from sklearn.datasets import make_moons

from dc2 import Compressor

MOONS, CRESCENT = make_moons(3_000, noise=0.05, random_state=0)


def small(n_signatures: int = 100, **parameters: Any) -> Compressor:
    return Compressor(n_signatures, n_jobs=1, random_state=0, **parameters)


def waves(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.uniform(-3, 3, (n, 2))
    return X, np.sin(X[:, 0]) + np.cos(X[:, 1]) + 0.05 * rng.normal(size=n)
