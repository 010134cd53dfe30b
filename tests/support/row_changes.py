"""Rows with clear clusters, and changes of rows after which the clusters should be the same."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Rows = NDArray[Any]
Change = Callable[[Rows, np.random.Generator], tuple[Rows, NDArray[np.intp]]]
APART = 14.0  # standard deviations between the centres of clear clusters


def clear_clusters(rng: np.random.Generator, k: int, width: int, rows: int) -> tuple[Rows, NDArray[np.intp]]:
    """Return Gaussian clusters of unit variance that no sensible method confuses, and the cluster of each row."""
    steps = np.zeros((k, width))
    steps[np.arange(k), rng.integers(0, width, k)] = APART * rng.uniform(1.0, 1.5, k)
    truth = np.repeat(np.arange(k), rows)
    return np.cumsum(steps, axis=0)[truth] + rng.normal(size=(k * rows, width)), truth


def rotation(width: int, rng: np.random.Generator) -> Rows:
    """Return a random rotation."""
    return np.asarray(np.linalg.qr(rng.normal(size=(width, width)))[0])


def _same_rows(change: Callable[[Rows, np.random.Generator], Rows]) -> Change:
    return lambda X, rng: (change(X, rng), np.arange(len(X)))


def _some_rows(choose: Callable[[int, np.random.Generator], NDArray[np.intp]]) -> Change:
    def change(X: Rows, rng: np.random.Generator) -> tuple[Rows, NDArray[np.intp]]:
        chosen = choose(len(X), rng)
        return X[chosen], chosen

    return change


CHANGES: dict[str, Change] = {
    "nothing": _same_rows(lambda X, rng: X),
    "rows in another order": _some_rows(lambda n, rng: rng.permutation(n)),
    "every row twice": _some_rows(lambda n, rng: np.repeat(np.arange(n), 2)),
    "every row twice, far apart": _some_rows(lambda n, rng: np.tile(np.arange(n), 2)),
    "columns in another order": _same_rows(lambda X, rng: X[:, rng.permutation(X.shape[1])]),
    "a constant column": _same_rows(lambda X, rng: np.column_stack([X, np.full(len(X), rng.choice([0, 7, -1e6]))])),
    "every column twice": _same_rows(lambda X, rng: np.column_stack([X, X])),
    "a rotation": _same_rows(lambda X, rng: X @ rotation(X.shape[1], rng)),
    "a rotation into twice the columns": _same_rows(
        lambda X, rng: np.column_stack([X, np.zeros_like(X)]) @ rotation(2 * X.shape[1], rng)
    ),
    "a mirror": _same_rows(lambda X, rng: -X),
    "another scale": _same_rows(lambda X, rng: X * 10.0 ** rng.integers(-200, 200)),
    "a shift": _same_rows(lambda X, rng: X + 10.0 ** rng.integers(1, 10)),
    "float32": _same_rows(lambda X, rng: X.astype(np.float32)),
}
