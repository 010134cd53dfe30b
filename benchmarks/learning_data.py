"""Data of the kernel learning benchmarks."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from public_data import load_covertype, load_mnist
from sklearn.datasets import make_friedman1
from threadpoolctl import threadpool_limits


@dataclass(frozen=True)
class Problem:
    """Training and test rows, with a Gaussian kernel and a ridge that suit them (found on 3000 to 5000 rows)."""

    name: str
    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    gamma: float
    alpha: float
    classes: int  # 0 for regression

    def targets(self) -> np.ndarray:
        """The targets of ridge regression: indicators of the classes, or centred numbers."""
        if self.classes:
            return np.eye(self.classes)[self.y] - 1 / self.classes
        return (self.y - self.y.mean())[:, None]

    def error(self, predicted: np.ndarray) -> float:
        """Share of wrong classes, or of variance left unexplained."""
        if self.classes:
            return float(np.mean(predicted.argmax(axis=1) != self.y_test))
        off = self.y_test - self.y.mean() - predicted[:, 0]
        return float(np.mean(off**2) / self.y_test.var())


def problems(most_rows: int, n_test: int) -> list[Problem]:
    """Cover Type and MNIST, if the data folder is known, and a generated regression."""
    found = []
    if os.environ.get("DC2_DATA"):
        cover, digits = load_covertype(), load_mnist()
        order = np.random.default_rng(0).permutation(len(cover.data))
        found.append(_split("Cover Type", cover.data[order], cover.target[order], most_rows, n_test, 0.3, 1.0, 5))
        order = np.random.default_rng(0).permutation(60_000)
        order = np.concatenate([np.arange(60_000, 70_000), order])  # the test images are the test rows
        found.append(_split("MNIST", digits.data[order] / 255, digits.target[order], most_rows, n_test, 0.02, 0.1, 10))
    else:
        print("DC2_DATA is not set: Cover Type and MNIST are left out.")
    X, y = make_friedman1(most_rows + n_test, noise=1.0, random_state=0)
    found.append(_split("Friedman 1", X.astype(np.float32), y, most_rows, n_test, 0.3, 0.01, 0))
    return found


def _split(name: str, X: Any, y: Any, most_rows: int, n_test: int, gamma: float, alpha: float, classes: int) -> Problem:
    train, test = slice(n_test, n_test + most_rows), slice(0, n_test)
    return Problem(name, np.ascontiguousarray(X[train]), y[train], X[test], y[test], gamma, alpha, classes)


def timed(function: Callable[[], Any]) -> tuple[Any, float]:
    """Return a result and the processor seconds it took on one thread: other work on the machine counts little."""
    with threadpool_limits(limits=1):
        start = time.process_time()
        result = function()
        return result, time.process_time() - start
