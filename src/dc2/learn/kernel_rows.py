"""All rows of a fit of a kernel machine: their targets, which of them are held out, and what is summed over blocks."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dc2.core.gpu.device_rows import DeviceRows
from dc2.engines.engine import Engine
from dc2.io.source import Block, Source
from dc2.learn.kernel_functions import ColumnMetric, KernelAt, beside
from dc2.learn.kernel_solver import Floats, Points, normal_sums, predicted, residual_sums
from dc2.trees.tree import RPTree, raise_unusable, values_usable

SEARCHED = 2500
"""Most training rows and most held-out rows of the search. A fit of at most so many rows has no parts."""


def usable(block: Block, names: tuple[str, ...] | None) -> NDArray[Any]:
    """Return the rows of a block; raise if a value is not finite."""
    X = block.X
    if not values_usable(X):
        raise_unusable(X, names, block.start)
    return X


@dataclass(frozen=True, eq=False)
class Targets:
    """The targets of all rows: class codes, or numbers in one column for each output."""

    values: NDArray[Any]
    n_classes: int = 0

    @property
    def n_outputs(self) -> int:
        """Number of outputs of a machine."""
        return self.n_classes or int(self.values.shape[1])

    def of(self, some: Any) -> Floats:
        """Return the targets of some rows; for classes, their indicators."""
        values = self.values[some]
        targets: Floats = np.eye(self.n_classes)[values] if self.n_classes else values.astype(np.float64)
        return targets


@dataclass(frozen=True, eq=False)
class RowInfo:
    """Targets and row numbers for the rows of any block; small enough to be sent to workers."""

    names: tuple[str, ...] | None
    targets: Targets
    offset: Floats
    scale: Floats
    held_numbers: NDArray[np.int64]  # ascending

    def of(self, numbers: NDArray[np.int64]) -> Floats:
        """Return the targets of some rows, minus the offset, in units of the scale."""
        return np.asarray((self.targets.of(numbers) - self.offset) / self.scale)

    def held(self, numbers: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return which rows are held out."""
        return np.isin(numbers, self.held_numbers, assume_unique=True)

    def taught(self, block: Block, X: Any, metric: ColumnMetric) -> tuple[Any, Any, Floats | None]:
        """Return the rows of a block that are not held out, in the units of a metric, their targets and weights."""
        numbers = np.arange(block.start, block.stop)
        kept = np.flatnonzero(~self.held(numbers))
        weights = None if block.weights is None else block.weights[kept]
        X = metric.apply(X)
        return X if len(kept) == len(X) else X[beside(X, kept)], self.of(numbers[kept]), weights


@dataclass(frozen=True, eq=False)
class RowsOfFit:
    """All rows, the training rows of the sample in random order, and its held-out rows in the order of rows."""

    source: Source
    engine: Engine
    known: RowInfo
    n_rows: int
    total_weight: float
    pool: Points
    held: Points

    def searched(self) -> Points:
        """Return a random subset of the held-out rows; the first ones may be all alike."""
        if len(self.held) <= SEARCHED:
            return self.held
        return self.held.take(np.random.default_rng(len(self.held)).permutation(len(self.held))[:SEARCHED])


# --- what is done with a block; small enough to be sent to workers ----------------------------------------------


def add_points(at: KernelAt, n_centres: int, targets: Floats, block: Block) -> Floats:
    """Return the sums over a block of points whose targets are given."""
    return normal_sums(at, n_centres, block.X, targets[block.start : block.stop], block.weights, block.start)


def add_rows(known: RowInfo, metric: ColumnMetric, kernel: KernelAt, n_centres: int, block: Block) -> Floats:
    """Return `normal_sums` over the rows of a block that are not held out."""
    X, targets, weights = known.taught(block, usable(block, known.names), metric)
    return normal_sums(kernel, n_centres, X, targets, weights, block.start)


def add_residuals(
    known: RowInfo, metric: ColumnMetric, kernel: KernelAt, coefficients: Floats, against_targets: bool, block: Block
) -> Floats:
    """Return `residual_sums` over the rows of a block that are not held out, computed on the GPU if they are there."""
    rows = block.rows
    with rows.device.use() if isinstance(rows, DeviceRows) else nullcontext():
        X = usable_on_device(rows) if isinstance(rows, DeviceRows) and kernel.on_device else None
        X, targets, weights = known.taught(block, usable(block, known.names) if X is None else X, metric)
        return residual_sums(kernel, coefficients, X, targets if against_targets else None, weights, block.start)


def usable_on_device(rows: DeviceRows) -> Any:
    """Return rows as an array on the GPU, or None if a value is not finite."""
    X = rows.X.astype(rows.dtype, copy=False)
    return X if bool(abs(X).max() < np.finfo(X.dtype).max / (4 * np.sqrt(X.shape[1]))) else None


def rows_of_parts(
    known: RowInfo,
    metric: ColumnMetric,
    kernel: KernelAt,
    coefficients: Floats,
    tree: RPTree,
    parts: range,
    block: Block,
) -> tuple[NDArray[np.int64], NDArray[np.int32], Points]:
    """Return the rows of a block in some parts: their numbers, parts, and points with the residuals of a machine."""
    X = metric.apply(usable(block, known.names))
    leaves = tree.route(X)
    weights = np.ones(len(X)) if block.weights is None else block.weights
    taken = np.flatnonzero((leaves >= parts.start) & (leaves < parts.stop) & (weights > 0))
    X, numbers = X[taken], block.start + taken
    base = predicted(kernel, coefficients, X)
    rest = known.of(numbers) - base
    return numbers, leaves[taken], Points(X, rest, weights[taken], base + known.offset / known.scale)


def joined(parts: list[Any]) -> tuple[NDArray[np.int64], NDArray[np.int32], Points]:
    """Put what `rows_of_parts` returned for each block together."""
    numbers, leaves, points = zip(*parts, strict=True)
    arrays = zip(*((p.X, p.Y, p.weights, p.base) for p in points), strict=True)
    return np.concatenate(numbers), np.concatenate(leaves), Points(*map(np.concatenate, arrays))
