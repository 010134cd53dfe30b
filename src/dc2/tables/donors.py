"""Donors: sampled rows without blanks, of which the most similar one gives what another row lacks."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["donors_of", "fill_blanks"]

FEWEST, MOST = 16, 1024
_TOGETHER = 4096  # rows that are compared with all donors at a time


def donors_of(columns: list[NDArray[np.float64]], blank: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return some rows without blanks, at even steps; none where they would be too few, or nothing is blank.

    Parameters
    ----------
    columns : list of ndarray of shape (n_rows,)
        Scaled.
    blank : ndarray of shape (n_rows, n_columns)
    """
    whole = np.flatnonzero(~blank.any(axis=1))
    if not blank.any() or len(whole) < FEWEST:
        return np.empty((0, len(columns)))
    chosen = whole[:: -(-len(whole) // MOST)]
    return np.stack([column[chosen] for column in columns], axis=1)


def fill_blanks(rows: NDArray[np.float64], blank: NDArray[np.bool_], donors: NDArray[np.float64]) -> None:
    """Give each blank the value of the donor that is nearest in the columns which are there.

    The first of equally near donors gives. Rows with nothing but blanks stay as they are.

    Examples
    --------
    >>> rows = np.array([[1.0, 0.0], [9.0, 0.0]])
    >>> fill_blanks(rows, np.array([[False, True], [False, True]]), np.array([[0.0, -5.0], [10.0, 5.0]]))
    >>> rows.tolist()
    [[1.0, -5.0], [9.0, 5.0]]
    """
    lacking = np.flatnonzero(blank.any(axis=1) & ~blank.all(axis=1))
    for start in range(0, len(lacking), _TOGETHER):
        some = lacking[start : start + _TOGETHER]
        squared = np.zeros((len(some), len(donors)))
        for column in range(rows.shape[1]):  # one after the other, so that sums are the same everywhere
            there = ~blank[some, column]
            squared[there] += (rows[some[there], column][:, None] - donors[:, column]) ** 2
        nearest = squared.argmin(axis=1)
        rows[some] = np.where(blank[some], donors[nearest], rows[some])
