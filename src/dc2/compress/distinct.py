"""Distinct rows: equal rows become one, with their weights added."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["DistinctRows", "distinct_rows"]

_STEP = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True, eq=False)
class DistinctRows:
    """The distinct rows among all.

    Attributes
    ----------
    first : ndarray of shape (n_distinct,), intp
        The first row of each, ascending.
    of_row : ndarray of shape (n_rows,), intp
        The distinct row that each row equals.
    """

    first: NDArray[np.intp]
    of_row: NDArray[np.intp]

    def __len__(self) -> int:
        return len(self.first)


def distinct_rows(X: NDArray[Any]) -> DistinctRows:
    """Find equal rows, by sorting a hash of each; 0 and -0 are the same number.

    Examples
    --------
    >>> found = distinct_rows(np.array([[1.0, 2.0], [0.0, 1.0], [1.0, 2.0]]))
    >>> found.first.tolist(), found.of_row.tolist()
    ([0, 1], [0, 1, 0])
    """
    _, first, of_row = np.unique(_hashes(X), return_index=True, return_inverse=True)
    if not np.array_equal(X, X[first[of_row]]):  # a collision of hashes, which hardly ever happens
        _, first, of_row = np.unique(X + 0.0, axis=0, return_index=True, return_inverse=True)
    order = np.argsort(first, kind="stable")
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return DistinctRows(first[order], rank[of_row.ravel()])


def _hashes(X: NDArray[Any]) -> NDArray[np.uint64]:
    """Return a 64-bit hash of each row."""
    bits = np.dtype(f"u{X.dtype.itemsize}")
    hashes = np.zeros(len(X), np.uint64)
    for column in X.T:
        hashes += np.ascontiguousarray(column + 0.0).view(bits)
        hashes *= _STEP
        hashes ^= hashes >> np.uint64(29)
    return hashes
