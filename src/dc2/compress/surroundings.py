"""How far rows are from the bulk of the data: the distances that reach a few percent of all rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dc2.core.reference import hash_at

SEED = 0x69736F
N_ROWS = 256
REACHED = np.array([0.02, 0.03, 0.06, 0.1])
"""Shares of all rows. A group of anomalies is smaller than most of them, and a cluster is larger than most of them."""
FINEST, FARTHEST = 2.0**16, 2.0**20
"""Steps of the grid from the middle of the rows to their farthest value, and to the farthest one distinguished."""
TOGETHER = 2**11  # rows whose distances are held at a time


@dataclass(frozen=True, eq=False)
class Surroundings:
    """Rows drawn by weight, so integer weights equal repeated rows.

    All values are rounded to whole numbers so small that products of matrices are exact: the same on every machine,
    and however rows are cut into blocks.

    References
    ----------
    Sugiyama, Borgwardt: Rapid distance-based outlier detection via sampling. NIPS 2013.

    Examples
    --------
    >>> rows = np.append(np.random.default_rng(0).normal(size=(200, 2)), [[9.0, 9.0]], axis=0)
    >>> int(Surroundings.of(rows).reach(rows).argmax())
    200
    """

    middle: NDArray[np.float64]
    step: float
    rows: NDArray[np.float64]

    @classmethod
    def of(cls, rows: NDArray[Any]) -> Surroundings:
        """Take some rows for all."""
        wide = rows.astype(np.float64)
        middle = np.quantile(wide, 0.5, axis=0, method="inverted_cdf")
        step = float(np.abs(wide - middle).max()) / FINEST or 1.0
        return cls(middle, step, np.rint((wide - middle) / step).T.copy())

    def reach(self, X: NDArray[Any]) -> NDArray[np.float64]:
        """Return the geometric mean of the distances within which 2%, 3%, 6% and 10% of the rows are."""
        places = np.ceil(REACHED * self.rows.shape[1]).astype(int).clip(max=self.rows.shape[1] - 1)
        own = (self.rows**2).sum(axis=0)
        reached = np.empty(len(X))
        for start in range(0, len(X), TOGETHER):
            some = np.rint((X[start : start + TOGETHER] - self.middle) / self.step).clip(-FARTHEST, FARTHEST)
            squared = (some**2).sum(axis=1, keepdims=True) + own - 2.0 * (some @ self.rows)
            squared.partition(places, axis=1)
            near = squared[:, places]
            # One of the distances may be 0. Square roots, unlike powers, have the same last bit everywhere.
            roots: NDArray[np.float64] = np.sqrt(np.sqrt(np.sqrt(np.maximum(near, 1.0).prod(axis=1))))
            reached[start : start + len(some)] = np.where(near.any(axis=1), roots * self.step, 0.0)
        return reached


def likely_rows(
    points: NDArray[Any],
    weights: NDArray[np.float64],
    spread: NDArray[np.float64],
    nearest: Callable[[], NDArray[np.int32]],
) -> NDArray[Any]:
    """Return rows as signatures represent them, drawn by weight: signatures that are rows, or places around others.

    Means are deeper inside than their rows. So a signature stands for places around it, spread as its rows are in all,
    and among columns as the differences to the `nearest` signature of each are; this is asked for only if it is needed.
    """
    reached = np.cumsum(weights)
    share = (np.arange(N_ROWS) + _uniform(SEED, N_ROWS)) / N_ROWS
    of = np.minimum(np.searchsorted(reached, share * reached[-1], "right"), len(points) - 1)
    if not spread.any():
        drawn: NDArray[Any] = points[of]
        return drawn
    # No product of matrices: its last bits depend on where arrays are in memory.
    points = np.ascontiguousarray(points)
    squared = (weights[:, None] * (points - points[nearest()]).astype(np.float64) ** 2).sum(axis=0)
    parts = squared / squared.sum() if squared.any() else np.full(points.shape[1], 1.0 / points.shape[1])
    # Uniform between -1 and 1, of variance one third.
    uniform = 2.0 * _uniform(SEED + 1, N_ROWS * points.shape[1]).reshape(N_ROWS, -1) - 1.0
    moved: NDArray[Any] = points[of] + uniform * np.sqrt(3.0 * spread[of, None] * parts)
    return moved.astype(points.dtype)


def _uniform(seed: int, count: int) -> NDArray[np.float64]:
    """Return numbers from 0 to 1 that depend on the seed alone."""
    return (hash_at(seed, np.arange(count)) >> np.uint64(11)).astype(np.float64) * np.float64(2.0**-53)
