"""Kernel ridge regression on centres: sums over rows, solutions for any ridge, and the machines of parts.

The machine f(x) = sum_j a_j k(x, c_j) minimises sum_i w_i (y_i - f(x_i))^2 + ridge ||f||^2, where ||f||^2 = a' K a.
It needs two sums over rows, K_nm' W K_nm and K_nm' W Y, which are computed block by block. Where rows are many more
than a sample of them, the sums of the sample make a preconditioner instead, and a few passes of conjugate gradients,
which take time in proportion to the centres and not to their square, give the machine of all rows.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

from dc2.core.gpu.device import cupy
from dc2.errors import InputError
from dc2.io.model_file import saved_record
from dc2.learn.kernel_functions import ColumnMetric, KernelAt, KernelShape, beside
from dc2.trees.tree import RPTree

Floats = NDArray[np.float64]

TILE_ROWS = 2048
"""Rows whose kernel is in memory at a time. Tiles end at multiples of it, so most are the same for any block size."""
SHORT_TILE_ROWS, DEVICE_TILE_BYTES = 512, 2**30
"""Where the kernel is multiplied by vectors only, it should stay in the cache; on a GPU, it should keep it busy."""
ROUNDING = 10 * float(np.finfo(np.float64).eps)
"""Rounding error of sums over rows, as a share of their trace: added to the diagonal to keep it positive definite."""


def total(parts: Iterable[Floats]) -> Floats:
    """Add sums in their order, into the first one."""
    parts = iter(parts)
    added = next(parts)
    for part in parts:
        added += part
    return added


def normal_sums(
    kernel: KernelAt, n_centres: int, X: NDArray[Any], targets: NDArray[Any], weights: Floats | None = None,
    start: int = 0,
) -> Floats:  # fmt: skip
    """Return K' W [K, Y] over some rows, of shape (n_centres, n_centres + n_outputs); `start` numbers the first row.

    A tile at a time, in float64: sums of squares double the digits that a small ridge needs.
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
    kernel: KernelAt, coefficients: Floats, X: NDArray[Any], targets: Floats | None, weights: Floats | None = None,
    start: int = 0,
) -> Floats:  # fmt: skip
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


def kernel_matrix(shape: KernelShape, centres: NDArray[Any]) -> Floats:
    """Return the kernel of centres to each other in float64, with a diagonal of one."""
    points = centres.astype(np.float64)
    K: Floats = shape.at(points if shape.name != "rpf" else centres)(points).astype(np.float64)
    K[np.diag_indices(len(K))] = 1.0
    return (K + K.T) / 2


class ProjectedRidge:
    """Machines on fewer centres than rows, for any ridge: from sums as of `normal_sums`, and the centres' kernel K."""

    def __init__(self, sums: Floats, K: Floats) -> None:
        self._gram, self._against, self._K = sums[:, : len(K)], sums[:, len(K) :], K
        self._rounding = ROUNDING * float(np.trace(self._gram)) + ROUNDING

    def solver(self, ridge: float, times: float = 1.0) -> Callable[[Floats], Floats]:
        """Return the function that solves (times * gram + ridge * K) a = b for a."""
        system = ridge / times * self._K
        system += self._gram
        system[np.diag_indices(len(system))] += self._rounding
        factor = cho_factor(system.T, overwrite_a=True, check_finite=False)  # LAPACK's order: no copy
        return lambda against: np.asarray(cho_solve(factor, against / times, check_finite=False))

    def coefficients(self, ridge: float) -> Floats:
        """Return the coefficients of the centres, of shape (n_centres, n_outputs)."""
        return self.solver(ridge)(self._against)


class ExactRidge:
    """Machines whose centres are the rows themselves, with the kernel K, for any ridge."""

    def __init__(self, K: Floats, targets: Floats, weights: Floats | None) -> None:
        self._K, self._targets = K, targets
        self._noise = 1.0 if weights is None else 1.0 / weights

    def coefficients(self, ridge: float) -> Floats:
        """Return the coefficients of the rows, of shape (n_rows, n_outputs)."""
        system = self._K.copy()
        system[np.diag_indices(len(system))] += ridge * self._noise + ROUNDING * len(system)
        factor = cho_factor(system.T, overwrite_a=True, check_finite=False)
        return np.asarray(cho_solve(factor, self._targets, check_finite=False))


def predicted(kernel: KernelAt, coefficients: NDArray[Any], X: NDArray[Any]) -> Floats:
    """Return the outputs of a machine for rows, computed in tiles."""
    outputs = np.empty((len(X), coefficients.shape[1]))
    coefficients = coefficients.astype(X.dtype, copy=False)
    for first in range(0, len(X), TILE_ROWS):
        outputs[first : first + TILE_ROWS] = kernel(X[first : first + TILE_ROWS]) @ coefficients
    return outputs


def conjugate_gradients(
    coefficients: Floats,
    gradient: Floats,
    solved: Callable[[Floats], Floats],
    multiplied: Callable[[Floats], Floats],
    enough: float,
    most_steps: int,
) -> tuple[Floats, Floats, Floats]:
    """Return improved coefficients, what is left of the right-hand side, and the length of the last step.

    `gradient` is what is left of the right-hand side at the start, `solved` the inverse of the preconditioner and
    `multiplied` the matrix. Steps end when the squared error in the norm of the preconditioner is not above `enough`.
    One more step of the same length along the preconditioned rest needs no product.
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


def _ratio(a: Floats, b: Floats) -> Floats:
    return np.divide(a, b, out=np.zeros_like(a), where=b > 0)


# --- points, and machines of parts -------------------------------------------------------------------------------

PART_CENTRES = 1024
"""Centres of a part. A row costs its square in time; fewer make more parts, and more rows near the border of one."""
EXACT_ROWS = 1536
"""Most rows of a part if all are centres: solving for them costs no more than 1024 centres do."""
MOST_EXACT = 2 * EXACT_ROWS  # of a part that many equal projections kept whole


@dataclass(frozen=True, eq=False)
class Points:
    """Rows with targets, or shares of classes, from which the base, which is known already, is subtracted."""

    X: NDArray[Any]
    Y: Floats
    weights: Floats
    base: Floats

    def __len__(self) -> int:
        return len(self.X)

    def take(self, some: Any) -> Points:
        """Return a subset."""
        return Points(self.X[some], self.Y[some], self.weights[some], self.base[some])

    def measured_by(self, metric: ColumnMetric) -> Points:
        """Return the points in the units of a metric."""
        return replace(self, X=metric.apply(self.X))


@dataclass(frozen=True, eq=False)
class Fold:
    """Training points and held-out points; without centres, all training points are centres."""

    train: Points
    held: Points
    centres: NDArray[Any] | None = None

    def solver(self, shape: KernelShape) -> tuple[NDArray[Any], ExactRidge | ProjectedRidge]:
        """Return the centres and a solver, which gives their coefficients for any ridge."""
        train, centres = self.train, self.centres
        if centres is None:
            return train.X, ExactRidge(kernel_matrix(shape, train.X), train.Y, train.weights)
        sums = normal_sums(shape.at(centres), len(centres), train.X, train.Y, train.weights)
        return centres, ProjectedRidge(sums, kernel_matrix(shape, centres))


@saved_record
@dataclass(frozen=True, eq=False)
class MachinesOfParts:
    """A machine for each leaf of a tree; `starts` has the number of the first centre of each, and of all centres."""

    tree: RPTree
    shape: KernelShape
    centres: NDArray[Any]
    coefficients: NDArray[Any]
    starts: NDArray[np.int64]

    def check(self) -> None:
        """Raise if the parts do not fit together; called when read from a model file."""
        if (
            self.starts.shape != (self.tree.n_leaves + 1,)
            or self.starts[0] != 0
            or (np.diff(self.starts) < 0).any()
            or not self.starts[-1] == len(self.centres) == len(self.coefficients)
            or self.centres.ndim != 2
            or self.coefficients.ndim != 2
            or self.centres.shape[1] != self.tree.n_features
            or not (np.isfinite(self.centres).all() and np.isfinite(self.coefficients).all())
        ):
            raise InputError("the parts of MachinesOfParts do not fit together.")

    def outputs(self, X: NDArray[Any]) -> Floats:
        """Return the outputs for rows in the units of the metric, shape (n_rows, n_outputs)."""
        outputs = np.zeros((len(X), self.coefficients.shape[1]))
        for part, rows in by_leaf(self.tree.route(X)):
            own = slice(self.starts[part], self.starts[part + 1])
            if own.start < own.stop:
                outputs[rows] = predicted(self.shape.at(self.centres[own]), self.coefficients[own], X[rows])
        return outputs


@dataclass(frozen=True, eq=False)
class PartMachine:
    """A part's machine, and the outputs for its held-out rows of a machine fitted on the other rows."""

    centres: NDArray[Any]
    coefficients: NDArray[Any]
    outputs: Floats


def part_fold(points: Points, held: NDArray[np.bool_], exact: bool, seed: tuple[int, int]) -> Fold:
    """Return the training rows, the held-out rows and the centres of a part: all rows, or a random subset."""
    fold = Fold(points.take(~held), points.take(held))
    if len(points) <= (MOST_EXACT if exact else PART_CENTRES):
        return fold
    drawn = np.random.default_rng(seed).choice(len(points), PART_CENTRES, replace=False)
    return replace(fold, centres=points.X[np.sort(drawn)])


def fit_part(
    points: Points, held: NDArray[np.bool_], exact: bool, shape: KernelShape, ridge: float, own: NDArray[np.intp],
    seed: tuple[int, int],
) -> PartMachine:  # fmt: skip
    """Fit the machine of one part, whose rows have the indices `own` among the points."""
    points, held = points.take(own), held[own]
    fold = part_fold(points, held, exact, seed)
    train, scored, centres = fold.train, fold.held, fold.centres
    outputs = np.zeros(scored.Y.shape)
    if centres is None:
        if len(train) and len(scored):
            known, solver = fold.solver(shape)
            outputs = predicted(shape.at(known), solver.coefficients(ridge), scored.X)
        centres, solver = Fold(points, scored).solver(shape)
        return PartMachine(centres, solver.coefficients(ridge).astype(points.X.dtype), outputs)
    at, K = shape.at(centres), kernel_matrix(shape, centres)
    sums = normal_sums(at, len(centres), train.X, train.Y, train.weights)
    outputs = predicted(at, ProjectedRidge(sums, K).coefficients(ridge), scored.X)
    sums += normal_sums(at, len(centres), scored.X, scored.Y, scored.weights)
    return PartMachine(centres, ProjectedRidge(sums, K).coefficients(ridge).astype(points.X.dtype), outputs)


def by_leaf(leaves: NDArray[np.int32]) -> Iterator[tuple[int, NDArray[np.intp]]]:
    """Yield each leaf that has rows, and the indices of its rows, ascending."""
    order = np.argsort(leaves, kind="stable")
    found, first = np.unique(leaves[order], return_index=True)
    yield from zip(found.tolist(), np.split(order, first[1:]), strict=False)  # no rows are split into one part
