"""Whether a column tells anything about another one, and which columns tell the same thing."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["ranks_of", "share_of_levels", "share_of_numbers", "tells"]

LEAST_SHARE = 0.01
"""The share of another column's variation that must be explained, beyond chance."""
DEVIATIONS = 4.0


def ranks_of(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return ranks with mean 0 and standard deviation 1; equal values share a rank, and a constant column is 0.

    Examples
    --------
    >>> ranks_of(np.array([10.0, 30.0, 10.0, 1e9])).round(2).tolist()
    [-0.94, 0.47, -0.94, 1.41]
    """
    _, codes, counts = np.unique(values, return_inverse=True, return_counts=True)
    middle = np.cumsum(counts) - (counts + 1) / 2
    ranks: NDArray[np.float64] = middle[codes] - (len(values) - 1) / 2
    deviation = np.sqrt(np.mean(ranks**2))
    return ranks / deviation if deviation > 0 else ranks


def share_of_numbers(codes: NDArray[np.int64], ranks: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return how much of the variation of each column of ranks the levels explain, beyond chance.

    A share not beyond chance is 0.
    """
    n_rows = len(codes)
    present, codes, counts = np.unique(codes, return_inverse=True, return_counts=True)
    freedom = len(present) - 1
    shares = []
    for column in ranks.T:
        means = np.bincount(codes, column) / counts
        shares.append(float((counts * means**2).sum() / n_rows))
    beyond = np.array(shares) - freedom / n_rows
    return np.where(beyond > DEVIATIONS * np.sqrt(2 * max(freedom, 1)) / n_rows, beyond, 0.0)


def share_of_levels(one: NDArray[np.int64], other: NDArray[np.int64]) -> float:
    """Return Cramér's V squared of two columns of levels, less what chance would give; 0 if not beyond chance."""
    n_rows = len(one)
    rows, one, n_one = np.unique(one, return_inverse=True, return_counts=True)
    columns, other, n_other = np.unique(other, return_inverse=True, return_counts=True)
    fewest = min(len(rows), len(columns)) - 1
    if fewest == 0:
        return 0.0
    table = np.bincount(one * len(columns) + other, minlength=len(rows) * len(columns))
    expected = np.outer(n_one, n_other) / n_rows
    square = float(((table.reshape(expected.shape) - expected) ** 2 / expected).sum() / n_rows)
    freedom = (len(rows) - 1) * (len(columns) - 1)
    beyond = square - freedom / n_rows
    return beyond / fewest if beyond > DEVIATIONS * np.sqrt(2 * freedom) / n_rows else 0.0


def tells(shares: NDArray[np.float64]) -> bool:
    """Return whether any share is large enough to keep a column."""
    return bool((shares >= LEAST_SHARE).any())
