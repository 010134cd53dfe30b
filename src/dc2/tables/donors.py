"""Donors: sampled rows without blanks; a row with blanks takes the values of the most similar one."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import KDTree

__all__ = ["donors_of", "fill_blanks"]

FEWEST, MOST = 16, 1024
_TOGETHER = 128  # rows compared with all donors at a time: their distances stay in the cache
_WORTH_A_TREE = 64  # rows that lack the same columns
_NEARER = 1.0 + 1e-9  # a factor larger than any rounding of distances


def donors_of(columns: list[NDArray[np.float64]], blank: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return some rows without blanks, at even steps; none if there are too few, or if nothing is blank.

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
    """Fill each blank with the value of the donor that is nearest in the columns that are not blank.

    Among equally near donors, the first is taken. Rows with nothing but blanks stay as they are.

    Examples
    --------
    >>> rows = np.array([[1.0, 0.0], [9.0, 0.0]])
    >>> fill_blanks(rows, np.array([[False, True], [False, True]]), np.array([[0.0, -5.0], [10.0, 5.0]]))
    >>> rows.tolist()
    [[1.0, -5.0], [9.0, 5.0]]
    """
    for some, lacks in _alike(blank):
        nearest = _nearest(rows[np.ix_(some, np.flatnonzero(~lacks))], donors[:, ~lacks])
        rows[np.ix_(some, np.flatnonzero(lacks))] = donors[nearest][:, lacks]


def _alike(blank: NDArray[np.bool_]) -> Iterator[tuple[NDArray[np.intp], NDArray[np.bool_]]]:
    """Yield groups of rows that lack the same columns, and those columns; not rows that lack none or all."""
    columns = np.ascontiguousarray(blank.T)  # as they were made: few long lines are soon compared
    lacking = np.flatnonzero(columns.any(axis=0) & ~columns.all(axis=0))
    if not len(lacking):
        return
    packed = np.packbits(blank[lacking], axis=1)
    keys = np.ascontiguousarray(packed).view(f"V{packed.shape[1]}").ravel() if packed.shape[1] > 1 else packed[:, 0]
    order = np.argsort(keys, kind="stable")
    changes = np.flatnonzero(keys[order][1:] != keys[order][:-1]) + 1
    for some in np.split(lacking[order], changes):
        yield some, blank[some[0]]


def _nearest(rows: NDArray[np.float64], donors: NDArray[np.float64]) -> NDArray[np.intp]:
    """Return the nearest donor of each row, found by a tree; if two are almost equally near, all donors are compared.

    So the answer is that of comparing all donors, however the tree rounds.
    """
    if len(rows) < _WORTH_A_TREE:
        return _tried(rows, donors)
    distances, found = map(np.asarray, KDTree(donors).query(rows, 2))
    nearest: NDArray[np.intp] = found[:, 0].astype(np.intp)
    unsure = np.flatnonzero(~(distances[:, 0] * _NEARER < distances[:, 1]) | ~np.isfinite(distances).all(axis=1))
    nearest[unsure] = _tried(rows[unsure], donors)
    return nearest


def _tried(rows: NDArray[np.float64], donors: NDArray[np.float64]) -> NDArray[np.intp]:
    nearest = np.empty(len(rows), np.intp)
    for start in range(0, len(rows), _TOGETHER):
        some = rows[start : start + _TOGETHER]
        squared = np.zeros((len(some), len(donors)))
        for own, theirs in zip(some.T, donors.T, strict=True):  # in order: sums must be the same everywhere
            squared += (own[:, None] - theirs) ** 2
        nearest[start : start + _TOGETHER] = squared.argmin(axis=1)
    return nearest
