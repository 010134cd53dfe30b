"""Sums per signature that do not depend on the order in which rows are added."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from dc2.errors import InputError

MANTISSA_BITS = 52
SMALLEST = float(np.finfo(np.float64).smallest_subnormal)
SMALLEST_EXPONENT, LARGEST_EXPONENT = -1074, 900  # of grids; beyond 900 their magic numbers overflow
MOST_WEIGHT = 2.0**33  # beyond this total the last bits may depend on the order of rows
TILE_ROWS = 4096
# Rows may lie 2**10 times farther out than sampled ones; beyond that, sums are right but no longer exact.
HEADROOM = 10


@dataclass(frozen=True, eq=False)
class Sums:
    """For each signature: the number of rows; sums of their offsets from its centre, squared distances and weights.

    Attributes
    ----------
    counts : ndarray of shape (n_signatures,), int64
    totals : ndarray of shape (2, n_signatures, n_features + 2), float64
        A coarse and a fine part of each sum; see `grids`.
    """

    counts: NDArray[np.int64]
    totals: NDArray[np.float64]

    @classmethod
    def zeros(cls, n_signatures: int, n_features: int) -> Sums:
        """Return sums of no rows."""
        return cls(np.zeros(n_signatures, np.int64), np.zeros((2, n_signatures, n_features + 2)))

    def copy(self) -> Sums:
        """Return sums that can be added to without changing these."""
        return Sums(self.counts.copy(), self.totals.copy())

    @property
    def shape(self) -> tuple[int, int]:
        """Number of signatures and of columns."""
        return self.totals.shape[1], self.totals.shape[2] - 2

    def clear(self) -> None:
        """Make these the sums of no rows again."""
        self.counts.fill(0)
        self.totals.fill(0.0)

    def add(self, other: Sums) -> None:
        """Add other sums to these, in place."""
        np.add(self.counts, other.counts, out=self.counts)
        np.add(self.totals, other.totals, out=self.totals)

    @property
    def weights(self) -> NDArray[np.float64]:
        """Total weight of each signature's rows."""
        return self._joined()[:, -1]

    def means_and_spread(self, centres: NDArray[Any]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the mean of each signature's rows and their mean squared distance to it.

        A signature without rows keeps its centre.
        """
        joined = self._joined()
        if not np.isfinite(joined).all():
            raise_too_large(float(np.abs(centres).max()))
        weights = np.where(joined[:, -1] > 0, joined[:, -1], 1.0)
        offsets = joined[:, :-2] / weights[:, None]
        squares = joined[:, -2] / weights
        spread = np.maximum(squares - np.einsum("ij,ij->i", offsets, offsets), 0.0)
        return centres + offsets, spread

    def _joined(self) -> NDArray[np.float64]:
        joined: NDArray[np.float64] = self.totals[0] + self.totals[1]
        return joined


class SpareSums:
    """A pool of sums for reuse: for wide rows they are large, and fresh memory costs more than adding.

    Any thread may take some and give them back.
    """

    def __init__(self, n_signatures: int, n_features: int) -> None:
        self._shape = (n_signatures, n_features)
        self._spare: list[Sums] = []

    @property
    def nbytes(self) -> int:
        """Bytes of one of them."""
        n_signatures, n_features = self._shape
        return 16 * n_signatures * (n_features + 2)

    def take(self) -> Sums:
        """Return sums of no rows."""
        try:
            return self._spare.pop()
        except IndexError:
            return Sums.zeros(*self._shape)

    def give_back(self, sums: Sums) -> None:
        """Take back sums that are no longer needed."""
        sums.clear()
        self._spare.append(sums)


def grids(reach: NDArray[np.float64], total_weight: float) -> NDArray[np.float64]:
    """Return the magic numbers that round each kind of term to its coarse and its fine grid.

    Adding and subtracting 1.5 * 2**52 * g rounds a float64 to a multiple of g. The coarse g is so large that
    `total_weight` terms stay below 2**52 g in sum, each as far from its centre as `reach` says for its column, and
    some more; so no addition rounds. The remainders, at most g/2, are treated the same way on a finer grid. Both grids
    together keep about 2 * (52 - log2(total_weight)) bits of every term.
    """
    # Other rows may vary in columns where the sample does not; a grid too fine for them costs only exactness.
    reach = np.where(reach > 0, reach, reach.max() or SMALLEST)
    with np.errstate(over="ignore"):
        square = max(float((reach * reach).sum()), SMALLEST)
    if square == np.inf:
        raise_too_large(float(reach.max()))
    budget = _budget(total_weight)
    coarse = np.frexp(np.append(reach, square))[1] + HEADROOM - budget
    coarse = np.append(coarse, 0)  # the grid of weights: whole numbers lie on it
    return _magic(coarse, budget)


def exact_means(
    X: NDArray[np.float64], weights: NDArray[np.float64] | None, around: NDArray[np.float64] | None = None
) -> NDArray[np.float64]:
    """Return the mean of each column, or of its squared distances to ``around``; the order of rows does not matter.

    Terms are rounded to two grids, as in `grids`, so no addition rounds, and a whole weight equals repeated rows.
    """
    total = float(len(X)) if weights is None else float(weights.sum())
    middle = 0.0 if around is None else around
    reach = np.maximum(X.max(axis=0) - middle, middle - X.min(axis=0))
    largest = reach if around is None else reach**2
    magic = _magic(np.frexp(largest)[1] - _budget(total), _budget(total))
    sums = np.zeros((2, X.shape[1]))
    for first in range(0, len(X), TILE_ROWS):  # a sample may be large: no more copies of all of it
        terms = X[first : first + TILE_ROWS]
        rest = terms if around is None else (terms - around) ** 2
        for step, number in enumerate(magic):
            rounded = (rest + number) - number
            rest = rest - rounded
            if weights is not None:
                rounded *= weights[first : first + TILE_ROWS, None]
            sums[step] += rounded.sum(axis=0)
    means: NDArray[np.float64] = (sums[0] + sums[1]) / total
    return means


def _budget(total_weight: float) -> int:
    """Return how many bits a term may have if terms of this total weight are to be added without rounding."""
    return MANTISSA_BITS - 1 - int(np.ceil(np.log2(np.clip(total_weight, 2.0, MOST_WEIGHT))))


def _magic(coarse: NDArray[Any], budget: int) -> NDArray[np.float64]:
    """Return the numbers that round to grids of these exponents, and to grids finer by the budget."""
    steps = np.clip(np.stack([coarse, coarse - 1 - budget]), SMALLEST_EXPONENT, LARGEST_EXPONENT)
    magic: NDArray[np.float64] = 1.5 * 2.0**MANTISSA_BITS * np.ldexp(1.0, steps)
    return magic


def raise_too_large(largest: float) -> NoReturn:
    """Say that values are too large to be squared."""
    raise InputError(
        f"Input X has values too large: squared distances overflow (values reach {largest:.3g}). Scale the columns, "
        "for instance with sklearn.preprocessing.StandardScaler."
    )
