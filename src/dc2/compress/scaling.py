"""Scaling of columns, learned from the sample and applied to every block on its way to the tree."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dc2.core.reference import lanes_dot
from dc2.errors import InputError
from dc2.model_file import saved_record

SCALES = (None, "standard", "robust", "unit")


@saved_record
@dataclass(frozen=True, eq=False)
class Scaling:
    """How rows are scaled.

    Attributes
    ----------
    kind : {"standard", "robust", "unit"}
        By mean and standard deviation; by median and quartile distance; each row to length 1 (cosine geometry).
    shift, factor : ndarray of shape (n_features,), float64
        Rows become (x - shift) * factor; 0 and 1 for "unit".
    """

    kind: str
    shift: NDArray[np.float64]
    factor: NDArray[np.float64]

    def check(self) -> None:
        """Raise if rows would not be scaled to numbers; called when a scaling was read from a model file."""
        numbers = (self.shift, self.factor)
        if (
            self.kind not in SCALES[1:]
            or any(array.dtype != np.float64 or array.ndim != 1 for array in numbers)
            or self.shift.shape != self.factor.shape
            or not all(np.isfinite(array).all() for array in numbers)
        ):
            raise InputError("the parts of a Scaling do not fit together.")

    def apply(self, X: NDArray[Any]) -> NDArray[Any]:
        """Return scaled rows, in their own dtype."""
        if self.kind == "unit":
            lengths = np.sqrt(lanes_dot(X, X))[:, None]
            return X / np.where(lengths > 0, lengths, X.dtype.type(1))
        scaled: NDArray[Any] = (X - self.shift.astype(X.dtype)) * self.factor.astype(X.dtype)
        return scaled

    def undo(self, X: NDArray[Any]) -> NDArray[Any]:
        """Return rows in the units of the data; those of "unit" keep length 1."""
        restored: NDArray[Any] = X / self.factor.astype(X.dtype) + self.shift.astype(X.dtype)
        return restored


def learn_scaling(kind: str | None, X: NDArray[Any], weights: NDArray[np.float64] | None) -> Scaling | None:
    """Learn a scaling from sampled rows; a column that does not vary is only shifted."""
    width = X.shape[1]
    if kind is None:
        return None
    if kind == "unit":
        return Scaling(kind, np.zeros(width), np.ones(width))
    X = np.ascontiguousarray(X, np.float64)  # the order of a sum follows the layout of memory
    if kind == "standard":
        shift = np.average(X, axis=0, weights=weights)
        size = np.sqrt(np.average((X - shift) ** 2, axis=0, weights=weights))
    else:
        low, shift, high = _quantiles(X, weights, np.array([0.25, 0.5, 0.75]))
        size = high - low
    return Scaling(kind, shift, 1.0 / np.where(size > 0, size, 1.0))


def _quantiles(
    X: NDArray[np.float64], weights: NDArray[np.float64] | None, shares: NDArray[np.float64]
) -> NDArray[np.float64]:
    if weights is None:
        return np.quantile(X, shares, axis=0, method="inverted_cdf")
    return np.quantile(X, shares, axis=0, weights=weights, method="inverted_cdf")
