"""Kernel ridge regression on centres: sums over rows, and solutions for any ridge.

The machine f(x) = sum_j a_j k(x, c_j) minimises sum_i w_i (y_i - f(x_i))^2 + ridge ||f||^2, where ||f||^2 = a' K a.
It needs two sums over rows, K_nm' W K_nm and K_nm' W Y, which are computed block by block.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

from dc2.learn.kernel_functions import KernelAt, KernelShape

TILE_ROWS = 2048
"""Rows whose kernel is in memory at a time. Tiles end at multiples of it, so most are the same for any block size."""

ROUNDING = 10 * float(np.finfo(np.float64).eps)
"""Rounding error of sums over rows, as a share of their trace: added to the diagonal to keep it positive definite."""


@dataclass(frozen=True, eq=False)
class NormalSums:
    """Sums over rows, of shape (n_centres, n_centres) and (n_centres, n_outputs)."""

    gram: NDArray[np.float64]
    against: NDArray[np.float64]

    def __add__(self, other: NormalSums) -> NormalSums:
        return NormalSums(self.gram + other.gram, self.against + other.against)

    @classmethod
    def total(cls, parts: Sequence[NormalSums]) -> NormalSums:
        """Add sums in their order; the first one is changed in place."""
        total = parts[0]
        for part in parts[1:]:
            np.add(total.gram, part.gram, out=total.gram)
            np.add(total.against, part.against, out=total.against)
        return total


def normal_sums(
    kernel: KernelAt,
    n_centres: int,
    X: NDArray[Any],
    targets: NDArray[Any],
    weights: NDArray[np.float64] | None = None,
    start: int = 0,
) -> NormalSums:
    """Return the sums over some rows; `start` is the number of the first one.

    A tile at a time, in float64: sums of squares double the digits that a small ridge needs.
    """
    gram, against = np.zeros((n_centres, n_centres)), np.zeros((n_centres, targets.shape[1]))
    cuts = [0, *range(TILE_ROWS - start % TILE_ROWS, len(X), TILE_ROWS), len(X)]
    for first, last in itertools.pairwise(cuts):
        K, Y = kernel(X[first:last].astype(np.float64)), targets[first:last]
        if weights is not None:
            roots = np.sqrt(weights[first:last])[:, None]
            K, Y = K * roots, Y * roots
        gram += K.T @ K
        against += K.T @ Y
    return NormalSums(gram, against)


def kernel_matrix(shape: KernelShape, centres: NDArray[Any]) -> NDArray[np.float64]:
    """Return the kernel of centres to each other in float64, with a diagonal of one."""
    points = centres.astype(np.float64)
    K: NDArray[np.float64] = shape.at(points if shape.name != "rpf" else centres)(points).astype(np.float64)
    K[np.diag_indices(len(K))] = 1.0
    return (K + K.T) / 2


class ProjectedRidge:
    """Machines on fewer centres than rows, for any ridge.

    Parameters
    ----------
    sums : NormalSums
    K : ndarray of shape (n_centres, n_centres)
        The kernel of the centres.
    """

    def __init__(self, sums: NormalSums, K: NDArray[np.float64]) -> None:
        self._sums, self._K = sums, K
        self._rounding = ROUNDING * float(np.trace(sums.gram)) + ROUNDING

    def coefficients(self, ridge: float) -> NDArray[np.float64]:
        """Return the coefficients of the centres, of shape (n_centres, n_outputs)."""
        system = ridge * self._K
        system += self._sums.gram
        system[np.diag_indices(len(system))] += self._rounding
        factor = cho_factor(system, overwrite_a=True, check_finite=False)
        return np.asarray(cho_solve(factor, self._sums.against, check_finite=False))


class ExactRidge:
    """Machines whose centres are the rows themselves, for any ridge.

    Parameters
    ----------
    K : ndarray of shape (n_rows, n_rows)
        Their kernel.
    targets : ndarray of shape (n_rows, n_outputs)
    weights : ndarray of shape (n_rows,) or None
    """

    def __init__(
        self, K: NDArray[np.float64], targets: NDArray[np.float64], weights: NDArray[np.float64] | None
    ) -> None:
        self._K, self._targets = K, targets
        self._noise = 1.0 if weights is None else 1.0 / weights

    def coefficients(self, ridge: float) -> NDArray[np.float64]:
        """Return the coefficients of the rows, of shape (n_rows, n_outputs)."""
        system = self._K.copy()
        system[np.diag_indices(len(system))] += ridge * self._noise + ROUNDING * len(system)
        factor = cho_factor(system, overwrite_a=True, check_finite=False)
        return np.asarray(cho_solve(factor, self._targets, check_finite=False))


def predicted(kernel: KernelAt, coefficients: NDArray[Any], X: NDArray[Any]) -> NDArray[np.float64]:
    """Return the outputs of a machine for rows, computed in tiles."""
    outputs = np.empty((len(X), coefficients.shape[1]))
    coefficients = coefficients.astype(X.dtype, copy=False)
    for first in range(0, len(X), TILE_ROWS):
        outputs[first : first + TILE_ROWS] = kernel(X[first : first + TILE_ROWS]) @ coefficients
    return outputs
