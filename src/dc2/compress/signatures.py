"""Signatures: the points that stand for rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Lock
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from dc2.errors import InputError, InputTypeError
from dc2.io.model_file import saved_record

MANTISSA_BITS = 52
SMALLEST = float(np.finfo(np.float64).smallest_subnormal)
SMALLEST_EXPONENT, LARGEST_EXPONENT = -1074, 900  # of grids; beyond 900 their magic numbers overflow
MOST_WEIGHT = 2.0**33  # beyond this total the last bits may depend on the order of rows
TILE_ROWS = 4096
# Rows may lie 2**10 times farther out than sampled ones; beyond that, sums are right but no longer exact.
HEADROOM = 10
SUMS_BYTES = 2**29  # of all sums that threads add to, unless one alone needs more


@dataclass(frozen=True, eq=False)
class Sums:
    """For each signature: the number of rows; sums of their offsets from its centre, squared distances and weights."""

    counts: NDArray[np.int64]
    totals: NDArray[np.float64]  # (2, n_signatures, n_features + 2): coarse and fine part of each sum, see `grids`
    reach: NDArray[np.float64]  # the squared distance of the farthest row from the centre

    def __iter__(self) -> Iterator[NDArray[Any]]:
        return iter((self.counts, self.totals, self.reach))

    @classmethod
    def zeros(cls, n_signatures: int, n_features: int) -> Sums:
        """Return sums of no rows."""
        totals = np.zeros((2, n_signatures, n_features + 2))
        return cls(np.zeros(n_signatures, np.int64), totals, np.zeros(n_signatures))

    def copy(self) -> Sums:
        """Return sums that can be added to without changing these."""
        return Sums(*(part.copy() for part in self))

    @property
    def shape(self) -> tuple[int, int]:
        """Number of signatures and of columns."""
        return self.totals.shape[1], self.totals.shape[2] - 2

    def add(self, other: Sums) -> None:
        """Add other sums to these, in place."""
        for add, mine, theirs in zip((np.add, np.add, np.maximum), self, other, strict=True):
            add(mine, theirs, out=mine)

    def without(self, other: Sums) -> Sums:
        """Return these sums less those of some of their rows, exactly; the reach stays."""
        return Sums(self.counts - other.counts, self.totals - other.totals, self.reach)

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
        return np.asarray(self.totals[0] + self.totals[1])


class SharedSums:
    """Sums that several threads add rows to: as many as threads at work, but no more than fit into `SUMS_BYTES`.

    Beyond that, threads share them. Sums on grids are exact, so it makes no difference which rows are added to which.

    Examples
    --------
    >>> shared = SharedSums(n_signatures=3, n_features=2)
    >>> for _ in range(2):
    ...     with shared.one() as sums:
    ...         sums.counts[0] += 1
    >>> shared.total().counts.tolist()
    [2, 0, 0]
    """

    def __init__(self, n_signatures: int, n_features: int) -> None:
        self._shape = (n_signatures, n_features)
        self._most = max(1, SUMS_BYTES // bytes_of_sums(n_signatures, n_features))
        self._sums: list[Sums] = []
        self._users: list[int] = []
        self._lock = Lock()

    @contextmanager
    def one(self) -> Iterator[Sums]:
        """Lend sums to a thread: those with the fewest users, or new ones if all are in use and there is room."""
        with self._lock:
            if 0 not in self._users and len(self._sums) < self._most:
                self._sums.append(Sums.zeros(*self._shape))
                self._users.append(0)
            place = self._users.index(min(self._users))
            self._users[place] += 1
        try:
            yield self._sums[place]
        finally:
            with self._lock:
                self._users[place] -= 1

    def total(self) -> Sums:
        """Return the sums of all rows, once no thread adds any more."""
        total, *others = self._sums or [Sums.zeros(*self._shape)]
        for sums in others:
            total.add(sums)
        return total


def bytes_of_sums(n_signatures: int, n_features: int) -> int:
    """Return how much memory sums take up."""
    return n_signatures * (16 + 16 * (n_features + 2))


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
    coarse = np.append(coarse, 0)  # the grid of weights: whole numbers are on it
    return _magic(coarse, budget)


def weights_on_grids(weights: NDArray[np.float64], total_weight: float) -> NDArray[np.float64]:
    """Return a coarse and a fine part of each weight; sums of either are exact, in any order, up to a total weight."""
    magic = _magic(np.zeros(1, np.int64), _budget(total_weight))
    coarse = (weights + magic[0]) - magic[0]
    fine = ((weights - coarse) + magic[1]) - magic[1]
    return np.stack([coarse, fine])


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
    def merge(*parts: Signatures | Sequence[Signatures]) -> Signatures:
        """Join sets that were compressed separately, in the order given.

        Parameters
        ----------
        *parts : Signatures
            At least one, all of the same width, one by one or in a list. The dtype is the widest of theirs.
        """
        given: list[Any] = [part for some in parts for part in (some if isinstance(some, list | tuple) else [some])]
        if not given:
            raise InputError("nothing to merge: give at least one set of signatures.")
        for part in given:
            if not isinstance(part, Signatures):
                raise InputTypeError(f"only Signatures can be merged; got {type(part).__name__}. Pass signatures_.")
        widths = [part.points.shape[1] for part in given]
        if len(set(widths)) > 1:
            raise InputError(f"signatures to be merged must have the same columns; got widths {widths}.")
        return Signatures(
            np.concatenate([part.points for part in given]),
            np.concatenate([part.weights for part in given]),
            np.concatenate([part.spread for part in given]),
        )
