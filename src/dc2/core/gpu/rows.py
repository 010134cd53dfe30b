"""Rows that lie on a card."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from dc2.core.gpu import scan
from dc2.core.gpu.card import Card
from dc2.core.gpu.rough import least_squared_distances
from dc2.core.records import Centres, FlatTree, FoundOut, SumsOut

__all__ = ["ColumnScaling", "DeviceRows"]


@dataclass(frozen=True, eq=False)
class ColumnScaling:
    """How rows are scaled before they are routed: see `dc2.compress.scaling.Scaling`.

    Attributes
    ----------
    exponents : ndarray of shape (n_features,), int64, or None
    shift, factor : ndarray of shape (n_features,), or None
    unit : bool
    refuse_zeros : callable
        Called with the number of the first row of zeros and their count, if rows are scaled to length 1.
    start : int
        Number of the first row.
    """

    exponents: NDArray[np.int64] | None
    shift: NDArray[Any] | None
    factor: NDArray[Any] | None
    unit: bool
    refuse_zeros: Callable[[int, int], NoReturn]
    start: int = 0


@dataclass(frozen=True, eq=False)
class DeviceRows:
    """A matrix on a card, as a source gives it to the router.

    Attributes
    ----------
    card : Card
    X : array on the card, of shape (n_rows, n_features)
        Numbers of any type.
    dtype : dtype
        The type in which they are worked on.
    form : callable
        Turns an array on the card into the kind of array that the caller gets.
    scaling : ColumnScaling or None
        Applied to the rows first.
    """

    card: Card
    X: Any
    dtype: np.dtype[Any]
    form: Callable[[Any], Any]
    scaling: ColumnScaling | None = None

    def __len__(self) -> int:
        return len(self.X)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return self.matrix() if dtype is None else self.matrix().astype(dtype)

    def matrix(self) -> NDArray[Any]:
        """All rows, copied to the host."""
        with self.card.use():
            return self.card.asnumpy(self.X).astype(self.dtype, copy=False)

    def take(self, places: NDArray[np.integer[Any]]) -> NDArray[Any]:
        """Return the rows at some places, copied to the host."""
        with self.card.use():
            taken = self.X[self.card.array(places)]
            return self.card.fetched(taken).astype(self.dtype, copy=False)

    def sample_rows(self, seed: int, start: int, limit: int) -> NDArray[np.int64]:
        """Return the numbers of the rows whose hash is at most `limit`; the first row has the number `start`."""
        with self.card.use():
            return scan.sample_rows(self.card, seed, start, start + len(self), limit)

    def part(self, start: int, stop: int) -> DeviceRows:
        """Return consecutive rows."""
        return replace(self, X=self.X[start:stop])

    def astype(self, dtype: np.dtype[Any], copy: bool = False) -> DeviceRows:
        """Return the same rows, to be worked on in another dtype."""
        return replace(self, dtype=np.dtype(dtype))

    def scaled(self, scaling: ColumnScaling) -> DeviceRows:
        """Return the same rows, to be scaled when they are worked on."""
        return replace(self, scaling=scaling)

    def empty(self, shape: Any, dtype: Any) -> Any:
        """Return an array on the card."""
        with self.card.use():
            return self.card.xp.empty(shape, dtype)

    def asnumpy(self, array: Any) -> NDArray[Any]:
        """Copy an array from the card to the host."""
        with self.card.use():
            return self.card.asnumpy(array)

    def scan(
        self,
        weights: NDArray[np.float64] | None,
        tree: FlatTree,
        centres: Centres,
        sums: SumsOut | None,
        found: FoundOut,
    ) -> int:
        """Do what `dc2.core.scan` does; the arrays of `found` are on the card."""
        with self.card.use():
            return scan.scan(self.card, self.X, weights, tree, centres, sums, found, taken=self._taker)

    def means(
        self,
        weights: NDArray[np.float64] | None,
        tree: FlatTree,
        centres: Centres,
        magic: NDArray[np.float64],
    ) -> tuple[NDArray[Any], int, int]:
        """Return the mean of each signature's rows, and how many rows and sums are not finite.

        Only means leave the card: with wide rows and many signatures, the sums are larger than the rows.
        """
        with self.card.use():
            return scan.means(self.card, self.X, weights, tree, centres, magic, self._taker)

    def least_squared_distances(self, points: NDArray[Any]) -> NDArray[np.float32] | None:
        """Return lower bounds of the squared distances among points of the host, computed on the card of these rows."""
        return least_squared_distances(self.card, points)

    @property
    def _taker(self) -> Callable[[Any, int], Any] | None:
        """The function applied to rows before they are routed, if any."""
        return None if self.scaling is None and self.X.dtype == self.dtype else self._taken

    def _taken(self, X: Any, start: int) -> Any:
        """Return some rows, scaled."""
        X = X.astype(self.dtype, copy=False)
        if self.scaling is None:
            return X
        card, how = self.card, self.scaling
        out = card.xp.empty(X.shape, self.dtype)
        zeros = card.array(np.array([0, 2**63], np.uint64))
        exponents, shift, factor = (
            None if array is None else card.array(array) for array in (how.exponents, how.shift, how.factor)
        )
        job = [*scan.strided(X), len(X), exponents, shift, factor, int(how.unit), out, zeros]
        card.launch("scale_rows", self.dtype, X.shape[1], job, card.blocks_for(len(X) * scan.LANES, 256))
        count, first = card.asnumpy(zeros).tolist()
        if count:
            how.refuse_zeros(how.start + start + first, count)
        return out
