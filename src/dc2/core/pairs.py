"""Distances of many pairs of rows, by several threads."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dc2 import core

__all__ = ["squared_distances_of_pairs"]

PAIRS_AT_ONCE = 1 << 13  # by one thread


def squared_distances_of_pairs(
    A: NDArray[Any],
    in_a: NDArray[np.integer[Any]],
    B: NDArray[Any],
    in_b: NDArray[np.integer[Any]],
    n_threads: int = 1,
) -> NDArray[np.float64]:
    """Return the squared distance of row in_a[i] of A to row in_b[i] of B for each i, in float64.

    Parameters
    ----------
    A, B : ndarray of shape (n_rows, n_columns)
        Of one dtype, float32 or float64.
    in_a, in_b : ndarray of shape (n_pairs,)
    n_threads : int, default=1
        The answer is the same for any number.

    Examples
    --------
    >>> rows = np.array([[0.0, 0.0], [3.0, 4.0]])
    >>> squared_distances_of_pairs(rows, np.array([0, 1]), rows, np.array([1, 1])).tolist()
    [25.0, 0.0]
    """
    A, B = np.ascontiguousarray(A), np.ascontiguousarray(B)
    from_a, from_b = in_a.astype(np.int32), in_b.astype(np.int32)
    squared = np.empty(len(from_a))

    def measure(start: int) -> None:
        some = slice(start, start + PAIRS_AT_ONCE)
        core.pair_squares(A, from_a[some], B, from_b[some], squared[some])

    starts = range(0, len(squared), PAIRS_AT_ONCE)
    if n_threads == 1 or len(starts) <= 1:
        for start in starts:
            measure(start)
    else:
        with ThreadPoolExecutor(n_threads, thread_name_prefix="dc2") as pool:
            list(pool.map(measure, starts))
    return squared
