"""Kernels of the kernel machines, as functions of distance, and their gradients."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dc2.errors import InputError
from dc2.io.model_file import saved_record
from dc2.spectral.rpf import rpf_similarity
from dc2.trees.forest import RPForest

FOREST_TREES = 200
"""Trees of the rpf-kernel. A row is compared with every centre: 800 trees would take four times as long."""

Profile = Callable[[NDArray[Any]], NDArray[Any]]

# Each kernel as a function of r = distance / bandwidth, from the smoothest on.
_PROFILES: dict[str, Profile] = {
    "gaussian": lambda r: np.exp(-0.5 * r * r),
    "matern52": lambda r: (1 + 5**0.5 * r + 5 / 3 * r * r) * np.exp(-(5**0.5) * r),
    "matern32": lambda r: (1 + 3**0.5 * r) * np.exp(-(3**0.5) * r),
    "laplacian": lambda r: np.exp(-r),
}

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

    def __call__(self, X: NDArray[Any]) -> NDArray[Any]:
        """Return the kernel of shape (n_rows, n_centres), in the dtype of the rows."""


@saved_record
@dataclass(frozen=True)
class KernelShape:
    """A kernel with its bandwidth.

    Attributes
    ----------
    name : {"gaussian", "matern52", "matern32", "laplacian", "rpf"}
    bandwidth : float
        Distances are divided by it. For "rpf" it is the b of exp((s - 1) / b), s being the share of trees in which two
        rows share a leaf.
    seed : int
        Of the forest of "rpf", which is grown on the centres.

    Examples
    --------
    >>> KernelShape("gaussian", 2.0).at(np.zeros((1, 1)))(np.array([[0.0], [2.0]])).round(4)
    array([[1.    ],
           [0.6065]])
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

    def slopes(self, X: NDArray[Any], centres: NDArray[Any]) -> NDArray[Any]:
        """Return G such that the gradient of sum_j a_j k(x_i, c_j) is sum_j a_j G_ij (c_j - x_i)."""
        distances = np.sqrt(squared_distances(X, centres))
        slopes: NDArray[Any] = _SLOPES[self.name](distances / self.bandwidth) / self.bandwidth**2
        return slopes


@dataclass(frozen=True, eq=False)
class _RadialAt:
    name: str
    bandwidth: float
    centres: NDArray[Any]

    def __call__(self, X: NDArray[Any]) -> NDArray[Any]:
        scale = X.dtype.type(1 / self.bandwidth)
        r = squared_distances(X, self.centres.astype(X.dtype, copy=False))
        np.sqrt(r, out=r)
        r *= scale
        return _PROFILES[self.name](r).astype(X.dtype, copy=False)


@dataclass(frozen=True, eq=False)
class _ForestAt:
    forest: RPForest
    bandwidth: float

    def __call__(self, X: NDArray[Any]) -> NDArray[Any]:
        counts = self.forest.counts(X, n_jobs=1)
        return rpf_similarity(counts, self.forest.n_trees, self.bandwidth).astype(X.dtype, copy=False)


def squared_distances(A: NDArray[Any], B: NDArray[Any]) -> NDArray[Any]:
    """Return ||a - b||^2 for all pairs, in the dtype of the rows; never below zero."""
    squared: NDArray[Any] = A @ (-2 * B.T)
    squared += np.einsum("ij,ij->i", A, A)[:, None]
    squared += np.einsum("ij,ij->i", B, B)
    np.maximum(squared, 0, out=squared)
    return squared


def median_distance(points: NDArray[Any], most: int = 500) -> float:
    """Return the median distance between distinct points among the first `most`; 1 if all are equal.

    Examples
    --------
    >>> median_distance(np.array([[0.0], [3.0], [3.0]]))
    3.0
    """
    some = points[:most].astype(np.float64)
    squared = squared_distances(some, some)[np.triu_indices(len(some), k=1)]
    apart = squared[squared > 1e-12 * squared.max(initial=0.0)]
    return float(np.sqrt(np.median(apart))) if len(apart) else 1.0
