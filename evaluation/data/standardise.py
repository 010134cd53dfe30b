"""Columns of mean 0 and variance 1."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dc2.datasets import row_blocks

__all__ = ["standardise"]


def standardise(X: NDArray[Any]) -> None:
    """Give every column of `X` mean 0 and variance 1 (division by n), in place; constant columns become 0.

    Sums run in float64 about the first row, so a constant column has a variance of exactly 0. Rows are taken in blocks:
    the largest set has eight million of them.
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
