"""Scaling of rows, learned from the sample and applied to every block before routing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from dc2.compress.signatures import exact_means
from dc2.core.reference import lanes_dot
from dc2.errors import InputError
from dc2.io.model_file import saved_record

SCALES = (None, "standard", "robust")
IF_APART = "standard if apart"
"""The scale of frames and files unless another one is asked for."""
APART = 30.0
"""Largest over smallest interquartile range; on public tables those of one unit differ by at most 7."""
CENTRED = 0.1  # standard deviations
METRICS = ("euclidean", "cosine")
TILE_ROWS = 4096
# By item size: squares of such values, and of their last bits, neither overflow nor vanish.
SAFE_EXPONENT = {4: 30, 8: 300}


@saved_record
@dataclass(frozen=True, eq=False)
class Scaling:
    """A scaling of rows: columns are shifted and scaled; then, for cosine, rows are scaled to length 1."""

    kind: str | None  # "standard": by mean and standard deviation, "robust": by median and interquartile range
    shift: NDArray[np.float64]  # rows become (x - shift) * factor
    factor: NDArray[np.float64]
    unit: bool = False  # whether rows are then scaled to length 1, so only their direction matters (cosine)
    # Values are first divided by these powers of two, which is exact; None if their squares are ordinary anyway.
    exponents: NDArray[np.int64] | None = None

    def check(self) -> None:
        """Raise if a field is invalid; called when a scaling is read from a model file."""
        numbers = (self.shift, self.factor)
        if (
            self.kind not in SCALES
            or not isinstance(self.unit, bool)
            or any(array.dtype != np.float64 or array.ndim != 1 for array in numbers)
            or self.shift.shape != self.factor.shape
            or not all(np.isfinite(array).all() for array in numbers)
            or not (
                self.exponents is None
                or (self.exponents.dtype == np.int64 and self.exponents.shape == self.shift.shape)
            )
        ):
            raise InputError("the parts of a Scaling do not fit together.")

    @property
    def n_columns(self) -> int:
        """Columns of the rows before scaling."""
        return len(self.shift)

    @property
    def width(self) -> int:
        """Columns of scaled rows."""
        return len(self.shift)

    def apply(self, X: NDArray[Any], start: int = 0) -> NDArray[Any]:
        """Return scaled rows, in their own dtype; `start` is the number of the first, for messages."""
        if not isinstance(X, np.ndarray):
            return X.scaled(self._for_device(X.dtype, start))
        if self.exponents is not None:
            X = np.ldexp(X, -self.exponents)
        if self.kind is not None:
            X = (X - self.shift.astype(X.dtype)) * self.factor.astype(X.dtype)
        return unit_rows(X, start) if self.unit else X

    def _for_device(self, dtype: np.dtype[Any], start: int) -> Any:
        """Return the same scaling in the form for a GPU."""
        from dc2.core.gpu.device_rows import ColumnScaling

        stretched = self.kind is not None
        shift, factor = (array.astype(dtype) if stretched else None for array in (self.shift, self.factor))
        return ColumnScaling(self.exponents, shift, factor, self.unit, raise_rows_of_zeros, start)

    def undo(self, X: NDArray[Any]) -> NDArray[Any]:
        """Return rows in the units of the data; the length of rows scaled to length 1 is not restored."""
        restored: NDArray[Any] = X / self.factor.astype(X.dtype) + self.shift.astype(X.dtype)
        return restored if self.exponents is None else np.ldexp(restored, self.exponents)


def unit_rows(X: NDArray[Any], start: int = 0) -> NDArray[Any]:
    """Return rows scaled to length 1; raise if a row holds only zeros."""
    # Squares of very large or small values would not be finite.
    largest = np.maximum(X.max(axis=1, keepdims=True), -X.min(axis=1, keepdims=True))
    if not largest.all():
        zeros = np.flatnonzero(largest[:, 0] == 0)
        raise_rows_of_zeros(start + int(zeros[0]), len(zeros))
    units = np.empty_like(X, order="C")
    for first in range(0, len(X), TILE_ROWS):  # a sample may be large: no more copies of all of it
        tile = slice(first, first + TILE_ROWS)
        scaled = X[tile] / largest[tile]
        units[tile] = scaled / np.sqrt(lanes_dot(scaled, scaled))[:, None]
    return units


def raise_rows_of_zeros(first: int, count: int) -> NoReturn:
    """Raise for rows of zeros, which have no direction."""
    problem = f"row {first} holds only zeros ({count} such rows in this block) and has no direction."
    advice = "Drop these rows, or use metric='euclidean'."
    raise InputError(f"metric='cosine': {problem} {advice}", parameter="metric", value="euclidean", problem=problem)


def learn_scaling(
    kind: str | None, metric: str, X: NDArray[Any], weights: NDArray[np.float64] | None
) -> Scaling | None:
    """Learn a scaling from sampled rows; a column that does not vary is only shifted."""
    if kind == IF_APART:
        kind = "standard" if are_apart(X, weights) else None
    width, unit = X.shape[1], metric == "cosine"
    exponents = _exponents(X, each_column=kind is not None)
    if kind is None:
        ordinary = exponents is None and not unit
        return None if ordinary else Scaling(None, np.zeros(width), np.ones(width), unit, exponents)
    if exponents is not None:
        X = np.ldexp(X, -exponents)
    X = X.astype(np.float64, copy=False)
    if kind == "standard":
        shift = exact_means(X, weights)
        size = np.sqrt(exact_means(X, weights, around=shift))
    else:
        low, shift, high = _quantiles(X, weights, np.array([0.25, 0.5, 0.75]))
        size = high - low
        _check_reach(X, shift, size)
    return Scaling(kind, shift, 1.0 / np.where(size > 0, size, 1.0), unit, exponents)


def are_apart(X: NDArray[Any], weights: NDArray[np.float64] | None = None) -> bool:
    """Return whether interquartile ranges of columns differ more than thirtyfold; not of columns that somebody centred.

    Examples
    --------
    >>> X = np.arange(8.0)[:, None] + np.arange(8.0)
    >>> units = np.array([1, 1, 1, 1, 1, 1, 1, 99])
    >>> are_apart(X), are_apart(X * units), are_apart((X - X.mean(axis=0)) * units)
    (False, True, False)
    """
    with np.errstate(over="ignore", invalid="ignore"):
        low, high = _quantiles(X.astype(np.float64, copy=False), weights, np.array([0.25, 0.75]))
        size = (high - low)[high > low]
        if not len(size) or not size.max() > APART * size.min():
            return False
        return bool((np.abs(X.mean(axis=0)) > CENTRED * X.std(axis=0)).any())


def _check_reach(X: NDArray[np.float64], shift: NDArray[np.float64], size: NDArray[np.float64]) -> None:
    """Raise if a value is so many interquartile ranges from the median that its square overflows."""
    far = np.abs(X - shift).max(axis=0) / 2.0 ** SAFE_EXPONENT[8] > np.where(size > 0, size, 1.0)
    if far.any():
        column = int(far.argmax())
        farthest = int(np.abs(X[:, column] - shift[column]).argmax())
        times = abs(X[farthest, column] - shift[column]) / size[column]
        problem = f"a value of column {column} is {times:.3g} interquartile ranges from the median."
        advice = "Clip such values or drop their rows, or use scale='standard'."
        raise InputError(f"scale='robust': {problem} {advice}", parameter="scale", value="standard", problem=problem)


def _exponents(X: NDArray[Any], each_column: bool) -> NDArray[np.int64] | None:
    """Return powers of two near the values, if these are so large or small that squares overflow or vanish.

    Columns to be scaled get one each; others share one, which keeps their proportions.
    """
    largest = np.maximum(X.max(axis=0), -X.min(axis=0))  # a sample may be large: no copy of it
    exponents = np.where(largest > 0, np.frexp(largest)[1], 0).astype(np.int64)
    safe = SAFE_EXPONENT[X.dtype.itemsize]
    if each_column:
        return exponents if np.abs(exponents).max() > safe else None
    common = exponents[largest.argmax()]
    return np.full(len(exponents), common) if abs(common) > safe else None


def _quantiles(
    X: NDArray[np.float64], weights: NDArray[np.float64] | None, shares: NDArray[np.float64]
) -> NDArray[np.float64]:
    return np.quantile(X, shares, axis=0, weights=weights, method="inverted_cdf")
