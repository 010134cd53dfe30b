"""Signatures: the points that stand for rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dc2.errors import InputError
from dc2.model_file import saved_record


@saved_record
@dataclass(frozen=True, eq=False)
class Signatures:
    """Points that stand for rows.

    Attributes
    ----------
    points : ndarray of shape (n_signatures, n_features)
        One point per leaf, in the dtype of the rows.
    weights : ndarray of shape (n_signatures,), float64
        How many rows (or what total weight) the point stands for.
    spread : ndarray of shape (n_signatures,), float64
        Mean squared distance of those rows to the point.

    Examples
    --------
    >>> import numpy as np
    >>> left = Signatures(np.zeros((1, 2)), np.array([3.0]), np.array([0.5]))
    >>> right = Signatures(np.ones((1, 2)), np.array([1.0]), np.array([0.1]))
    >>> both = Signatures.merge(left, right)
    >>> len(both), round(both.distortion, 3)
    (2, 0.4)
    """

    points: NDArray[Any]
    weights: NDArray[np.float64]
    spread: NDArray[np.float64]

    def check(self) -> None:
        """Raise unless there are finite points with weights and spreads; called when read from a model file."""
        n_points = len(self.points)
        numbers = (self.points, self.weights, self.spread)
        if (
            n_points == 0
            or self.points.ndim != 2
            or self.points.dtype not in (np.float32, np.float64)
            or any(array.shape != (n_points,) or array.dtype != np.float64 for array in numbers[1:])
            or not all(np.isfinite(array).all() for array in numbers)
            or not ((self.weights >= 0).all() and self.weights.any() and (self.spread >= 0).all())
        ):
            raise InputError("the points, weights and spreads of Signatures do not fit together.")

    def __len__(self) -> int:
        return len(self.points)

    def __repr__(self) -> str:
        rows, width = self.weights.sum(), self.points.shape[1]
        return (
            f"Signatures: {len(self):,} points of {width} columns, {self.points.dtype}\n"
            f"  weights: {self.weights.min():.4g} to {self.weights.max():.4g}, {rows:,.10g} in all\n"
            f"  spread: {self.distortion:.4g} on average"
        )

    @property
    def distortion(self) -> float:
        """Mean squared distance of all rows to their signature."""
        return float((self.weights * self.spread).sum() / self.weights.sum())

    @staticmethod
    def merge(*parts: Signatures) -> Signatures:
        """Join sets that were compressed separately, in the order given.

        Parameters
        ----------
        *parts : Signatures
            At least one, all of the same width. The dtype is the widest of theirs.
        """
        if not parts:
            raise InputError("nothing to merge: give at least one set of signatures.")
        widths = [part.points.shape[1] for part in parts]
        if len(set(widths)) > 1:
            raise InputError(f"signatures to be merged must have the same columns; got widths {widths}.")
        return Signatures(
            np.concatenate([part.points for part in parts]),
            np.concatenate([part.weights for part in parts]),
            np.concatenate([part.spread for part in parts]),
        )
