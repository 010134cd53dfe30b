"""Scaling of columns for a kernel: none, by standard deviation, or learned from the gradient of a machine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dc2.errors import InputError
from dc2.io.model_file import saved_record
from dc2.learn.kernel_functions import KernelShape

METRICS = ("plain", "scaled", "learned")
TILE_ROWS = 1024


@saved_record
@dataclass(frozen=True, eq=False)
class ColumnMetric:
    """Rows become (x - shift) * factor.

    Attributes
    ----------
    name : {"plain", "scaled", "learned"}
        The factors: all one; one over the standard deviation; that times the size of the gradient.
    shift, factor : ndarray of shape (n_features,), float64
    """

    name: str
    shift: NDArray[np.float64]
    factor: NDArray[np.float64]

    def check(self) -> None:
        """Raise if rows would not become numbers; called when read from a model file."""
        if (
            self.name not in METRICS
            or self.shift.ndim != 1
            or self.shift.shape != self.factor.shape
            or not (np.isfinite(self.shift).all() and np.isfinite(self.factor).all())
        ):
            raise InputError("the parts of a ColumnMetric do not fit together.")

    def apply(self, X: NDArray[Any]) -> NDArray[Any]:
        """Return rows in the units of the metric, in their own dtype."""
        moved: NDArray[Any] = X - self.shift.astype(X.dtype)
        moved *= self.factor.astype(X.dtype)
        return moved

    @classmethod
    def measured(cls, name: str, X: NDArray[Any], weights: NDArray[np.float64] | None) -> ColumnMetric:
        """Return a metric measured on rows; a constant column has the factor 0."""
        rows = X.astype(np.float64)
        mean = np.average(rows, axis=0, weights=weights)
        if name == "plain":
            return cls(name, mean, np.ones(X.shape[1]))
        rows -= mean
        spread = np.sqrt(np.average(np.square(rows, out=rows), axis=0, weights=weights))
        rounding = np.finfo(X.dtype).eps * np.maximum(np.abs(mean), np.finfo(np.float64).tiny)
        return cls(name, mean, np.divide(1.0, spread, out=np.zeros_like(spread), where=spread > rounding))

    def sharpened(self, sizes: NDArray[np.float64]) -> ColumnMetric:
        """Return the metric with each column multiplied by the size of the gradient along it, relative to the mean."""
        norm = np.sqrt(np.mean(sizes**2))
        relative = sizes / norm if norm > 0 else np.ones(len(sizes))
        return ColumnMetric("learned", self.shift, self.factor * relative)


def gradient_sizes(
    shape: KernelShape, centres: NDArray[Any], coefficients: NDArray[np.float64], X: NDArray[Any]
) -> NDArray[np.float64]:
    """Return the root mean square of a machine's gradient along each column: the diagonal of the average outer product.

    Parameters
    ----------
    shape : KernelShape
        A radial kernel.
    centres : ndarray of shape (n_centres, n_features)
    coefficients : ndarray of shape (n_centres, n_outputs)
    X : ndarray of shape (n_rows, n_features)
        Rows at which gradients are computed.

    References
    ----------
    Radhakrishnan, Beaglehole, Pandit, Belkin: Mechanism for feature learning in neural networks and
    backpropagation-free machine learning models. Science 383 (2024).
    """
    squares = np.zeros(X.shape[1])
    for first in range(0, len(X), TILE_ROWS):
        rows = X[first : first + TILE_ROWS]
        slopes = shape.slopes(rows, centres)
        for output in coefficients.astype(slopes.dtype).T:
            weighted = slopes * output
            gradient = weighted @ centres - rows * weighted.sum(axis=1)[:, None]
            squares += np.square(gradient, dtype=np.float64).sum(axis=0)
    sizes: NDArray[np.float64] = np.sqrt(squares / len(X))
    return sizes
