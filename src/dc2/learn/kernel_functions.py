"""Kernels of the kernel machines as functions of distance, their gradients, and the scaling of columns before them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import pdist

from dc2.core.gpu.device import cupy
from dc2.errors import InputError
from dc2.io.model_file import saved_record
from dc2.spectral.rpf import rpf_similarity
from dc2.trees.forest import RPForest

FOREST_TREES = 200
"""Trees of the rpf-kernel. A row is compared with every centre: 800 trees would take four times as long."""

Profile = Callable[[Any], Any]


def _gaussian(squared: Any) -> Any:
    squared *= -0.5
    return np.exp(squared, out=squared)


def _laplacian(squared: Any) -> Any:
    r = np.sqrt(squared, out=squared)
    return np.exp(np.negative(r, out=r), out=r)


def _matern32(squared: Any) -> Any:
    squared *= 3
    r = np.sqrt(squared, out=squared)
    decay = np.exp(-r)
    r += 1
    return np.multiply(r, decay, out=r)


def _matern52(squared: Any) -> Any:
    squared *= 5
    r = np.sqrt(squared)
    squared /= 3
    squared += r
    squared += 1
    return np.multiply(squared, np.exp(np.negative(r, out=r), out=r), out=squared)


# Each kernel as a function of (distance / bandwidth)^2, computed in place, from the smoothest on.
_PROFILES: dict[str, Profile] = {
    "gaussian": _gaussian, "matern52": _matern52, "matern32": _matern32, "laplacian": _laplacian
}  # fmt: skip

# -k'(r) / r, from which gradients are made. The gradient of the Laplacian kernel is undefined where rows are equal.
_SLOPES: dict[str, Profile] = {
    "gaussian": lambda r: np.exp(-0.5 * r * r),
    "matern52": lambda r: 5 / 3 * (1 + 5**0.5 * r) * np.exp(-(5**0.5) * r),
    "matern32": lambda r: 3 * np.exp(-(3**0.5) * r),
    "laplacian": lambda r: np.divide(np.exp(-r), r, out=np.zeros_like(r), where=r > _SAME),
}
_SAME = 1e-3  # of a bandwidth: float32 distances below are rounding

RADIAL = tuple(_PROFILES)
KERNELS = (*RADIAL, "rpf")


class KernelAt(Protocol):
    """A kernel between any rows and fixed centres."""

    on_device: ClassVar[bool]  # whether the rows may be on a GPU

    def __call__(self, X: NDArray[Any]) -> NDArray[Any]:
        """Return the kernel of shape (n_rows, n_centres), in the dtype of the rows."""


@saved_record
@dataclass(frozen=True)
class KernelShape:
    """A kernel with its bandwidth, which divides distances; of "rpf", the b of exp((s - 1) / b) for a share of trees s.

    The seed is that of the forest of "rpf", which is grown on the centres.
    """

    name: str
    bandwidth: float
    seed: int = 0

    def check(self) -> None:
        """Raise if a field is invalid; called when read from a model file."""
        if self.name not in KERNELS or not 0 < self.bandwidth < np.inf or self.seed < 0:
            raise InputError("the parts of a KernelShape do not fit together.")

    def at(self, centres: NDArray[Any]) -> KernelAt:
        """Return the kernel between any rows and the given centres."""
        if self.name == "rpf":
            forest = RPForest.grow(centres, FOREST_TREES, cut="mixed", n_jobs=1, rng=self.seed)
            return _ForestAt(forest, self.bandwidth)
        return _RadialAt(self.name, self.bandwidth, centres)


@dataclass(frozen=True, eq=False)
class _RadialAt:
    on_device: ClassVar[bool] = True
    name: str
    bandwidth: float
    centres: NDArray[Any]

    def __call__(self, X: NDArray[Any]) -> NDArray[Any]:
        scale = X.dtype.type(1 / self.bandwidth)
        squared = squared_distances(X * scale, beside(X, self.centres) * scale)
        kernel: NDArray[Any] = _PROFILES[self.name](squared)
        return kernel


@dataclass(frozen=True, eq=False)
class _ForestAt:
    on_device: ClassVar[bool] = False
    forest: RPForest
    bandwidth: float

    def __call__(self, X: NDArray[Any]) -> NDArray[Any]:
        counts = self.forest.counts(X, n_jobs=1)
        return rpf_similarity(counts, self.forest.n_trees, self.bandwidth).astype(X.dtype, copy=False)


def beside(X: NDArray[Any], array: NDArray[Any]) -> NDArray[Any]:
    """Return an array of the host where rows are: on the host or on a GPU; numbers in the dtype of the rows."""
    if array.dtype.kind == "f":
        array = array.astype(X.dtype, copy=False)
    return array if isinstance(X, np.ndarray) else cupy().asarray(array)


def squared_distances(A: NDArray[Any], B: NDArray[Any]) -> NDArray[Any]:
    """Return ||a - b||^2 for all pairs, in the dtype of the rows; never below zero.

    It is one product of matrices, of [a, |a|^2, 1] and [-2 b, 1, |b|^2].
    """
    left = np.empty_like(A, shape=(len(A), A.shape[1] + 2))
    left[:, :-2], left[:, -2], left[:, -1] = A, np.einsum("ij,ij->i", A, A), 1
    right = np.empty_like(B, shape=(len(B), B.shape[1] + 2))
    right[:, :-2], right[:, -2], right[:, -1] = -2 * B, 1, np.einsum("ij,ij->i", B, B)
    squared: NDArray[Any] = left @ right.T
    np.maximum(squared, 0, out=squared)
    return squared


def median_distance(points: NDArray[Any], most: int = 500) -> float:
    """Return the median distance between distinct points among the first `most`; 1 if all are equal."""
    some = points[:most].astype(np.float64)
    size = np.abs(some).max(initial=0.0) or 1.0  # whose square may be no float64
    distances = pdist(some / size)
    apart = distances[distances > 1e-6 * distances.max(initial=0.0)]
    return float(size * np.median(apart)) if len(apart) else 1.0


def spread_of(rows: NDArray[np.float64], weights: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
    """Return the root mean square of each column, though squares may be no float64."""
    size = np.abs(rows).max(axis=0, initial=0.0)
    size = np.where(size > 0, size, 1.0)
    spread: NDArray[np.float64] = size * np.sqrt(np.average((rows / size) ** 2, axis=0, weights=weights))
    return spread


# --- columns, scaled: not at all, by standard deviation, or by the gradient of a machine ---------------------------

METRICS = ("plain", "scaled", "learned")
_TILE_ROWS = 1024


@saved_record
@dataclass(frozen=True, eq=False)
class ColumnMetric:
    """Rows become (x - shift) * factor: 1, 1 / standard deviation, or that times the size of the gradient."""

    name: str
    shift: NDArray[np.float64]
    factor: NDArray[np.float64]

    def check(self) -> None:
        """Raise if rows would not become numbers; called when read from a model file."""
        fits = self.name in METRICS and self.shift.ndim == 1 and self.shift.shape == self.factor.shape
        if not (fits and np.isfinite(self.shift).all() and np.isfinite(self.factor).all()):
            raise InputError("the parts of a ColumnMetric do not fit together.")

    def apply(self, X: NDArray[Any]) -> NDArray[Any]:
        """Return rows in the units of the metric, in their own dtype."""
        moved: NDArray[Any] = X - beside(X, self.shift)
        moved *= beside(X, self.factor)
        return moved

    @classmethod
    def measured(cls, name: str, X: NDArray[Any], weights: NDArray[np.float64] | None) -> ColumnMetric:
        """Return a metric measured on rows; a constant column has the factor 0."""
        rows = X.astype(np.float64)
        mean = np.average(rows, axis=0, weights=weights)
        if name == "plain":
            return cls(name, mean, np.ones(X.shape[1]))
        spread = spread_of(rows - mean, weights)
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
    """Return the root mean square of a machine's gradient at some rows along each column, for a radial kernel.

    This is the diagonal of the average gradient outer product. Radhakrishnan, Beaglehole, Pandit, Belkin: Mechanism for
    feature learning in neural networks and backpropagation-free machine learning models. Science 383 (2024).
    """
    squares, scale = np.zeros(X.shape[1]), X.dtype.type(1 / shape.bandwidth)
    centres = centres * scale
    for first in range(0, len(X), _TILE_ROWS):
        rows = X[first : first + _TILE_ROWS] * scale
        slopes = _SLOPES[shape.name](np.sqrt(squared_distances(rows, centres)))
        for output in coefficients.astype(slopes.dtype).T:
            weighted = slopes * output
            gradient = weighted @ centres - rows * weighted.sum(axis=1)[:, None]
            squares += np.square(gradient, dtype=np.float64).sum(axis=0)
    sizes: NDArray[np.float64] = np.sqrt(squares / len(X)) / shape.bandwidth
    return sizes
