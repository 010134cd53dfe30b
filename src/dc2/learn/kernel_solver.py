"""Kernel ridge regression on centres: sums over rows, and solutions for any ridge.

The machine f(x) = sum_j a_j k(x, c_j) minimises sum_i w_i (y_i - f(x_i))^2 + ridge ||f||^2, where ||f||^2 = a' K a.
It needs two sums over rows, K_nm' W K_nm and K_nm' W Y, which are computed block by block. Where rows are many more
than a sample of them, the sums of the sample make a preconditioner instead, and a few passes of conjugate gradients,
which take time in proportion to the centres and not to their square, give the machine of all rows.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

from dc2.core.gpu.device import cupy
from dc2.learn.kernel_functions import KernelAt, KernelShape, beside

TILE_ROWS = 2048
"""Rows whose kernel is in memory at a time. Tiles end at multiples of it, so most are the same for any block size."""
SHORT_TILE_ROWS, DEVICE_TILE_BYTES = 512, 2**30
"""Where the kernel is multiplied by vectors only, it should stay in the cache; on a GPU, it should keep it busy."""

ROUNDING = 10 * float(np.finfo(np.float64).eps)
"""Rounding error of sums over rows, as a share of their trace: added to the diagonal to keep it positive definite."""


def total(parts: Iterable[NDArray[np.float64]]) -> NDArray[np.float64]:
    """Add sums in their order, into the first one."""
    parts = iter(parts)
    added = next(parts)
    for part in parts:
        added += part
    return added


def normal_sums(
    kernel: KernelAt,
    n_centres: int,
    X: NDArray[Any],
    targets: NDArray[Any],
    weights: NDArray[np.float64] | None = None,
    start: int = 0,
) -> NDArray[np.float64]:
    """Return K' W [K, Y] over some rows, of shape (n_centres, n_centres + n_outputs).

    A tile at a time, in float64: sums of squares double the digits that a small ridge needs. `start` is the number of
    the first row.
    """
    sums = np.zeros((n_centres, n_centres + targets.shape[1]))
    for tile in _tiles(start, len(X), TILE_ROWS):
        K, Y = kernel(X[tile]).astype(np.float64, copy=False), targets[tile]
        if weights is not None:
            roots = np.sqrt(weights[tile])[:, None]
            K, Y = K * roots, Y * roots
        sums[:, :n_centres] += K.T @ K
        sums[:, n_centres:] += K.T @ Y
    return sums


def residual_sums(
    kernel: KernelAt,
    coefficients: NDArray[np.float64],
    X: NDArray[Any],
    targets: NDArray[np.float64] | None,
    weights: NDArray[np.float64] | None = None,
    start: int = 0,
) -> NDArray[np.float64]:
    """Return K' W (Y - K a) over some rows, or K' W K a without targets; products are in the dtype of the rows.

    The rows may be on a GPU; the sums are on the host.
    """
    A = beside(X, coefficients)
    Y, w = (None if array is None else beside(X, array) for array in (targets, weights))
    sums = np.zeros_like(A, dtype=np.float64)
    size = SHORT_TILE_ROWS if isinstance(X, np.ndarray) else max(1, DEVICE_TILE_BYTES // (len(A) * X.itemsize))
    for tile in _tiles(start, len(X), size):
        K = kernel(X[tile])
        rest = K @ A if Y is None else Y[tile] - K @ A
        if w is not None:
            rest *= w[tile, None]
        sums += K.T @ rest
    return sums if isinstance(sums, np.ndarray) else cupy().asnumpy(sums)


def _tiles(start: int, n_rows: int, size: int) -> list[slice]:
    """Cut rows, the first of which has the number `start`, at multiples of a size."""
    cuts = [0, *range(size - start % size, n_rows, size), n_rows]
    return [slice(first, last) for first, last in itertools.pairwise(cuts)]


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
    sums : ndarray of shape (n_centres, n_centres + n_outputs)
        As `normal_sums` returns them.
    K : ndarray of shape (n_centres, n_centres)
        The kernel of the centres.
    """

    def __init__(self, sums: NDArray[np.float64], K: NDArray[np.float64]) -> None:
        self._gram, self._against, self._K = sums[:, : len(K)], sums[:, len(K) :], K
        self._rounding = ROUNDING * float(np.trace(self._gram)) + ROUNDING

    def solver(self, ridge: float, times: float = 1.0) -> Callable[[NDArray[np.float64]], NDArray[np.float64]]:
        """Return the function that solves (times * gram + ridge * K) a = b for a."""
        system = ridge / times * self._K
        system += self._gram
        system[np.diag_indices(len(system))] += self._rounding
        factor = cho_factor(system, overwrite_a=True, check_finite=False)
        return lambda against: np.asarray(cho_solve(factor, against / times, check_finite=False))

    def coefficients(self, ridge: float) -> NDArray[np.float64]:
        """Return the coefficients of the centres, of shape (n_centres, n_outputs)."""
        return self.solver(ridge)(self._against)


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


def conjugate_gradients(
    coefficients: NDArray[np.float64],
    gradient: NDArray[np.float64],
    solved: Callable[[NDArray[np.float64]], NDArray[np.float64]],
    multiplied: Callable[[NDArray[np.float64]], NDArray[np.float64]],
    enough: float,
    most_steps: int,
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Return improved coefficients, what is left of the right-hand side, and the length of the last step.

    One more step of this length along the preconditioned rest needs no product.

    Parameters
    ----------
    coefficients, gradient : ndarray of shape (n_centres, n_outputs)
        Where to start, and what is left there of the right-hand side.
    solved, multiplied : callable
        The preconditioner's inverse, and the matrix.
    enough : float
        Stop when the squared error in the norm of the preconditioner falls below it.
    most_steps : int
    """
    a, rest, step = coefficients.copy(), gradient.copy(), np.ones(gradient.shape[1])
    direction = z = solved(rest)
    gain = (rest * z).sum(axis=0)
    for _ in range(most_steps):
        if gain.sum() <= enough:
            break
        product = multiplied(direction)
        step = _ratio(gain, (direction * product).sum(axis=0))
        a += step * direction
        rest -= step * product
        z, before = solved(rest), gain
        gain = (rest * z).sum(axis=0)
        direction = z + _ratio(gain, before) * direction
    return a, rest, step


def _ratio(a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.divide(a, b, out=np.zeros_like(a), where=b > 0)
