"""The router: from a row to the number of its signature."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dc2 import core
from dc2.compress.scaling import Scaling
from dc2.compress.sums import Sums, raise_too_large
from dc2.core.records import Centres, FoundOut, SumsOut
from dc2.core.reference import hash_at, lanes_dot
from dc2.errors import InputError
from dc2.model_file import saved_record
from dc2.trees.tree import RPTree, raise_unusable


@saved_record
@dataclass(frozen=True, eq=False)
class Router:
    """Sends rows to signatures; small, however many rows it was made from.

    Attributes
    ----------
    trees : tuple of RPTree
        One tree, or one per partition if rows were dealt at random.
    centres : ndarray of shape (n_signatures, n_features)
        One point per signature, near the mean of its rows: the leaves of the first tree, then those of the second.
    shortlist : ndarray of shape (n_leaves, n_near), int32, or None
        Signatures near each leaf: its own, then the others, nearest first. With it, a row walks from its leaf's
        signature to nearer and nearer ones.
    gaps : ndarray of shape (n_leaves, n_near) or None
        Distances from the first signature of a shortlist to each of the list, less possible rounding errors; they only
        save time.
    deal_seed : int
        Deals training rows to the trees if there are several.
    scaling : Scaling or None
        Applied to rows before anything else: trees and centres are in scaled units.
    """

    trees: tuple[RPTree, ...]
    centres: NDArray[Any]
    shortlist: NDArray[np.int32] | None = None
    gaps: NDArray[Any] | None = None
    deal_seed: int = 0
    scaling: Scaling | None = None

    takes_rows_on_a_card: ClassVar[bool] = True

    def check(self) -> None:
        """Raise if a row could be sent outside the arrays; called when a router was read from a model file."""
        leaves = sum(tree.n_leaves for tree in self.trees)
        shortlist, gaps = self.shortlist, self.gaps
        is_sound = (
            len(self.trees) > 0
            and self.centres.ndim == 2
            and len(self.centres) == leaves
            and bool(np.isfinite(self.centres).all())
            and all(tree.directions.dtype == self.dtype for tree in self.trees)
            and all(tree.directions.shape[1] == self.n_features for tree in self.trees)
            and type(self.deal_seed) is int
            and 0 <= self.deal_seed < 2**64
            and (self.scaling is None or len(self.scaling.shift) == self.n_features)
            and (shortlist is None) == (gaps is None)
        )
        if shortlist is not None and gaps is not None:
            is_sound &= (
                shortlist.dtype == np.int32
                and shortlist.ndim == 2
                and len(shortlist) == leaves
                and shortlist.shape == gaps.shape
                and gaps.dtype == self.dtype
                and bool(((shortlist >= 0) & (shortlist < leaves)).all())
            )
        if not is_sound:
            raise InputError("the parts of a Router do not fit together.")

    @property
    def n_features(self) -> int:
        """Number of columns of the rows it routes."""
        return int(self.centres.shape[1])

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype in which rows are routed."""
        return self.centres.dtype

    def in_words(self) -> str:
        """Say what divides the rows."""
        return "Random cuts"

    def assign(self, X: NDArray[Any], names: tuple[str, ...] | None = None, start: int = 0) -> NDArray[np.int32]:
        """Return the signature of each row; with several trees, the nearest of those it falls into."""
        X = self._where_it_can_be_routed(X)
        given, X = X, self._taken(X, start)
        if len(self.trees) == 1:
            ids: NDArray[np.int32] = _empty(X, len(X), np.int32)
            if self._scan(0, X, FoundOut(ids)):
                raise_unusable(given, names, start)
            return _answer(X, ids)
        candidates = np.stack(
            [tree.route(X, names, start) + first for tree, first in zip(self.trees, self._starts(), strict=False)],
            axis=1,
        )
        distances = np.empty(candidates.shape, self.dtype)
        for tree in range(len(self.trees)):
            off = X - self.centres[candidates[:, tree]]
            distances[:, tree] = lanes_dot(off, off)
        nearest = distances.argmin(axis=1)[:, None]
        return np.take_along_axis(candidates, nearest, axis=1)[:, 0].astype(np.int32)

    def nearest_few(self, X: NDArray[Any], few: int) -> tuple[NDArray[np.int32], NDArray[Any]]:
        """Return the nearest few signatures of each row's shortlist and their squared distances, nearest first."""
        assert self.shortlist is not None
        ids = _empty(X, (len(X), min(few, self.shortlist.shape[1])), np.int32)
        distances = _empty(X, ids.shape, self.dtype)
        if self._scan(0, self._taken(X), FoundOut(None, ids, distances)):
            raise_unusable(X, None, 0)
        return (ids, distances) if isinstance(X, np.ndarray) else (X.asnumpy(ids), X.asnumpy(distances))

    def add_up(
        self,
        X: NDArray[Any],
        rows: NDArray[np.int64] | range,
        weights: NDArray[np.float64] | None,
        magic: NDArray[np.float64],
        sums: Sums,
        names: tuple[str, ...] | None = None,
    ) -> NDArray[np.int32]:
        """Return the signature of each training row, and put their sums into `sums`, which must be empty.

        Parameters
        ----------
        X : ndarray of shape (n_rows, n_features), or rows on a graphics card
        rows : ndarray of shape (n_rows,) or range
            Global numbers of the rows.
        magic : ndarray of shape (2, n_features + 2)
            See `dc2.compress.sums.grids`.
        """
        X = self._where_it_can_be_routed(X)
        ids: NDArray[np.int32] = _empty(X, len(X), np.int32)
        given, X = X, self._taken(X, int(rows[0]) if len(rows) else 0)
        weights = None if weights is None else np.ascontiguousarray(weights)
        if len(self.trees) == 1:
            if self._scan(0, X, FoundOut(ids), weights, SumsOut(magic, sums.counts, sums.totals)):
                raise_unusable(given, names, int(rows[0]))
            return _answer(X, ids)
        dealt = deal(self.deal_seed, np.asarray(rows), len(self.trees))
        for number, first in enumerate(self._starts()[:-1]):
            part = np.flatnonzero(dealt == number)
            part_ids = np.empty(len(part), np.int32)
            part_sums = Sums.zeros(self.trees[number].n_leaves, self.n_features)
            part_weights = None if weights is None else weights[part]
            part_out = SumsOut(magic, part_sums.counts, part_sums.totals)
            if self._scan(number, X[part], FoundOut(part_ids), part_weights, part_out):
                raise_unusable(given, names, int(rows[0]))
            ids[part] = part_ids + first
            leaves = slice(first, first + self.trees[number].n_leaves)
            sums.counts[leaves], sums.totals[:, leaves] = part_sums.counts, part_sums.totals
        return ids

    def means_on_card(self, X: Any, weights: NDArray[np.float64] | None, magic: NDArray[np.float64]) -> NDArray[Any]:
        """Return the mean of each signature's rows, which lie on a graphics card and are scaled already.

        Gives the same bits as `add_up` and `Sums.means_and_spread`; the sums stay on the card.
        """
        (tree,) = self.trees
        centres = Centres(self.centres, self.shortlist, self.gaps)
        means: NDArray[Any]
        means, bad_rows, bad_sums = X.means(weights, tree.arrays, centres, magic)
        if bad_rows:
            raise_unusable(X, None, 0)
        if bad_sums:
            raise_too_large(float(np.abs(self.centres).max()))
        return means

    def _taken(self, X: NDArray[Any], start: int = 0) -> NDArray[Any]:
        X = X.astype(self.dtype, copy=False)
        return X if self.scaling is None else self.scaling.apply(X, start)

    def _where_it_can_be_routed(self, X: Any) -> Any:
        """Return rows ready to be routed: where they lie or, for several trees, on the host."""
        return X if len(self.trees) == 1 else np.asarray(X)

    def _starts(self) -> NDArray[np.int64]:
        return np.cumsum([0, *(tree.n_leaves for tree in self.trees)])

    def _scan(
        self,
        number: int,
        X: NDArray[Any],
        found: FoundOut,
        weights: NDArray[np.float64] | None = None,
        sums: SumsOut | None = None,
    ) -> int:
        """Route rows through one tree; return how many are not finite."""
        tree = self.trees[number]
        first = int(self._starts()[number])
        points = self.centres if len(self.trees) == 1 else self.centres[first : first + tree.n_leaves]
        centres = Centres(points, self.shortlist, self.gaps)
        if not isinstance(X, np.ndarray):
            return int(X.scan(weights, tree.arrays, centres, sums, found))
        return core.scan(X, weights, tree.arrays, centres, sums, found)


def _empty(X: Any, shape: Any, dtype: Any) -> Any:
    """Return an array where the rows are."""
    return np.empty(shape, dtype) if isinstance(X, np.ndarray) else X.empty(shape, dtype)


def _answer(X: Any, ids: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return signature numbers as the kind of array that the rows came in."""
    answer: NDArray[np.int32] = ids if isinstance(X, np.ndarray) else X.form(ids)
    return answer


def deal(seed: int, rows: NDArray[np.int64], parts: int) -> NDArray[np.intp]:
    """Deal rows to parts at random: the part of each row, by its number alone."""
    return (hash_at(seed, rows) % np.uint64(parts)).astype(np.intp)
