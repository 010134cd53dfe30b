"""Preparation shared by the loaders: dtype, standardised columns, rows in blocks."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from dc2.errors import ParameterError

__all__ = ["check_rows", "float_dtype", "row_blocks", "standardise"]

_ROWS_PER_BLOCK = 1 << 14


def float_dtype(dtype: DTypeLike) -> np.dtype[Any]:
    """Return `dtype` as float32 or float64; anything else is an error."""
    wanted = np.dtype(dtype)
    if wanted not in (np.dtype(np.float32), np.dtype(np.float64)):
        raise ParameterError(
            f"dtype={wanted} cannot hold prepared data; choose float32 (half the memory) or float64."
        )
    return wanted


def check_rows(n: int) -> int:
    """Return `n`, a number of rows to generate, if it is one."""
    if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 1:
        raise ParameterError(f"n={n!r} rows cannot be generated; n must be a whole number of at least 1.")
    return int(n)


def row_blocks(n: int, size: int = _ROWS_PER_BLOCK) -> Iterator[slice]:
    """Yield slices that cut `n` rows into blocks small enough to stay in a processor's cache."""
    for start in range(0, n, size):
        yield slice(start, min(start + size, n))


def standardise(X: NDArray[Any]) -> None:
    """Give every column of `X` mean 0 and variance 1 (division by n), in place; constant columns become 0.

    Sums run in float64 about the first row, so a constant column has exactly no variance.
    """
    n = len(X)
    origin = X[0].astype(np.float64)
    total = np.zeros(X.shape[1])
    for rows in row_blocks(n):
        total += (X[rows] - origin).sum(axis=0)
    mean = origin + total / n

    squares = np.zeros(X.shape[1])
    for rows in row_blocks(n):
        centred = X[rows] - mean
        squares += np.einsum("ij,ij->j", centred, centred)
    deviation = np.sqrt(squares / n)
    deviation[deviation == 0] = 1.0

    for rows in row_blocks(n):
        X[rows] = (X[rows] - mean) / deviation
