"""Distances of many pairs of rows, taken a few at a time: what is in hand stays in the cache."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["squared_distances_of_pairs"]

NUMBERS = 1 << 16  # subtracted at a time
PAIRS_PER_TASK = 1 << 14  # of a thread


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
    in_a, in_b : ndarray of shape (n_pairs,)
    n_threads : int, default=1
        The answer is the same for any number.

    Examples
    --------
    >>> rows = np.array([[0.0, 0.0], [3.0, 4.0]])
    >>> squared_distances_of_pairs(rows, np.array([0, 1]), rows, np.array([1, 1])).tolist()
    [25.0, 0.0]
    """
    squared = np.empty(len(in_a))
    step = max(1, NUMBERS // max(1, A.shape[1]))

    def measure(first: int) -> None:
        for start in range(first, min(first + PAIRS_PER_TASK, len(in_a)), step):
            part = slice(start, min(start + step, first + PAIRS_PER_TASK))
            gap = A[in_a[part]].astype(np.float64) - B[in_b[part]]
            squared[part] = np.einsum("ij,ij->i", gap, gap)

    starts = range(0, len(in_a), PAIRS_PER_TASK)
    if n_threads == 1 or len(starts) == 1:
        for start in starts:
            measure(start)
    else:
        with ThreadPoolExecutor(n_threads, thread_name_prefix="dc2") as pool:
            list(pool.map(measure, starts))
    return squared
