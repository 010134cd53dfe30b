"""Eigenvalues as the price of one more cut, and the gap that speaks for a number of clusters."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["cut_costs", "gap_after"]

FREE = 1e-12  # the price between pieces without any tie; rounding by LAPACK is smaller
WIDE_JUMP = 1.5
LONELY_JUMP, LONELY_BY = 1.2, 2.5
NEARLY_WIDEST = 0.75


def cut_costs(eigenvalues: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return 1 - eigenvalue, at least 1e-12: the i-th is about the price of cutting the graph into i groups.

    Parameters
    ----------
    eigenvalues : ndarray of shape (m,)
        Of the normalized similarity, descending from 1.

    Notes
    -----
    Sharp kernels put all leading eigenvalues within 1e-4 of 1. Their ratios to each other show on a logarithmic axis
    of 1 - eigenvalue; on an axis of eigenvalues nothing would.
    """
    costs: NDArray[np.float64] = np.maximum(1.0 - eigenvalues, FREE)
    return costs


def gap_after(eigenvalues: NDArray[np.float64]) -> int | None:
    """Return the number of groups before the price of a cut jumps, or None where no jump stands out.

    It is the first jump (from the second group on) that is nearly as wide as the widest, on a logarithmic scale, if
    the widest is at least by half; or by a fifth and far wider than any other.

    Examples
    --------
    >>> gap_after(1 - np.array([0.0, 2e-6, 3e-6, 9e-5, 1e-4]))
    3
    >>> gap_after(1 - np.array([0.0, 0.5, 0.6, 0.7])) is None
    True
    """
    jumps = np.diff(np.log(cut_costs(eigenvalues)[1:]))
    if len(jumps) == 0:
        return None
    next_widest, widest = np.sort(np.append(jumps, 0.0))[-2:]
    lonely = widest >= np.log(LONELY_JUMP) and widest >= LONELY_BY * next_widest
    if widest < np.log(WIDE_JUMP) and not lonely:
        return None
    return int(np.argmax(jumps >= NEARLY_WIDEST * widest)) + 2
