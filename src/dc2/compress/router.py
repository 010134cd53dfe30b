"""The router: from a row to the number of its signature."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import pairwise_distances
from threadpoolctl import threadpool_limits

from dc2 import core
from dc2.compress.sums import Sums
from dc2.core.reference import hash_at, lanes_dot
from dc2.trees.tree import RPTree, raise_not_finite


@dataclass(frozen=True, eq=False)
class Router:
    """Sends rows to signatures; small, whatever the number of rows it was made from.

    Attributes
    ----------
    trees : tuple of RPTree
        One tree, or one per part where rows were dealt at random.
    centres : ndarray of shape (n_signatures, n_features)
        A point per signature, near the mean of its rows: leaves of the first tree first, then of the second.
    shortlist : ndarray of shape (n_leaves, n_near), int32, or None
        Signatures near each leaf, its own first. With it, a row goes to the nearest of its leaf's shortlist.
    gaps : ndarray of shape (n_leaves, n_near) or None
        Distances from the first of a shortlist to each, less what rounding may add; they only save time.
    deal_seed : int
        Deals training rows to the trees, where there are several.
    """

    trees: tuple[RPTree, ...]
    centres: NDArray[Any]
    shortlist: NDArray[np.int32] | None = None
    gaps: NDArray[Any] | None = None
    deal_seed: int = 0

    @property
    def n_features(self) -> int:
        """Number of columns of the rows it routes."""
        return int(self.centres.shape[1])

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype in which rows are routed."""
        return self.centres.dtype

    def assign(
        self, X: NDArray[Any], names: tuple[str, ...] | None = None, start: int = 0
    ) -> NDArray[np.int32]:
        """Return the signature of each row; with several trees, the nearest of the leaves it falls into."""
        X = X.astype(self.dtype, copy=False)
        if len(self.trees) == 1:
            ids = np.empty(len(X), np.int32)
            self._scan(0, X, ids_out=ids, names=names, start=start)
            return ids
        candidates = np.stack(
            [
                tree.route(X, names, start) + first
                for tree, first in zip(self.trees, self._starts(), strict=False)
            ],
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
        ids = np.empty((len(X), min(few, self.shortlist.shape[1])), np.int32)
        distances = np.empty(ids.shape, self.dtype)
        self._scan(0, X.astype(self.dtype, copy=False), near_ids=ids, near_distances=distances)
        return ids, distances

    def add_up(
        self,
        X: NDArray[Any],
        rows: NDArray[np.int64],
        weights: NDArray[np.float64] | None,
        magic: NDArray[np.float64],
        names: tuple[str, ...] | None = None,
    ) -> tuple[Sums, NDArray[np.int32]]:
        """Return the sums of training rows, whose global numbers are `rows`, and the signature of each."""
        sums = Sums.zeros(*self.centres.shape)
        ids = np.empty(len(X), np.int32)
        X = X.astype(self.dtype, copy=False)
        weights = None if weights is None else np.ascontiguousarray(weights)
        if len(self.trees) == 1:
            self._scan(
                0, X, weights=weights, magic=magic, sums=sums, ids_out=ids, names=names, start=int(rows[0])
            )
            return sums, ids
        dealt = deal(self.deal_seed, rows, len(self.trees))
        for number, first in enumerate(self._starts()[:-1]):
            part = np.flatnonzero(dealt == number)
            part_ids = np.empty(len(part), np.int32)
            part_sums = Sums.zeros(self.trees[number].n_leaves, self.n_features)
            self._scan(
                number, X[part], weights=None if weights is None else weights[part], magic=magic, sums=part_sums,
                ids_out=part_ids, names=names, start=int(rows[0]),
            )  # fmt: skip
            ids[part] = part_ids + first
            leaves = slice(first, first + self.trees[number].n_leaves)
            sums.counts[leaves], sums.totals[:, leaves] = part_sums.counts, part_sums.totals
        return sums, ids

    def _starts(self) -> NDArray[np.int64]:
        return np.cumsum([0, *(tree.n_leaves for tree in self.trees)])

    def _scan(
        self,
        number: int,
        X: NDArray[Any],
        *,
        weights: NDArray[np.float64] | None = None,
        magic: NDArray[np.float64] | None = None,
        sums: Sums | None = None,
        ids_out: NDArray[np.int32] | None = None,
        near_ids: NDArray[np.int32] | None = None,
        near_distances: NDArray[Any] | None = None,
        names: tuple[str, ...] | None = None,
        start: int = 0,
    ) -> None:
        tree = self.trees[number]
        first = int(self._starts()[number])
        centres = self.centres if len(self.trees) == 1 else self.centres[first : first + tree.n_leaves]
        bad = core.scan(
            X, weights, tree.directions, tree.thresholds, tree.children, centres, self.shortlist, self.gaps,
            magic, None if sums is None else sums.counts, None if sums is None else sums.totals,
            ids_out, near_ids, near_distances,
        )  # fmt: skip
        if bad:
            raise_not_finite(X, names, start)


def deal(seed: int, rows: NDArray[np.int64], parts: int) -> NDArray[np.intp]:
    """Deal rows to parts at random: the part of each row, by its number alone."""
    return (hash_at(seed, rows) % np.uint64(parts)).astype(np.intp)


def with_shortlist(router: Router, n_near: int) -> Router:
    """Give every leaf the `n_near` signatures nearest to its own."""
    centres = router.centres.astype(np.float64)
    n_near = min(n_near, len(centres))
    with threadpool_limits(limits=1):
        distances = pairwise_distances(centres)
    np.fill_diagonal(distances, -1.0)  # a leaf's own signature comes first, also among duplicates
    order = np.argsort(distances, axis=1, kind="stable")[:, :n_near]
    # Rounding of coordinates may make a row look nearer than it is, by so much:
    slack = 16 * np.finfo(router.dtype).eps * np.abs(centres).max() * np.sqrt(centres.shape[1])
    gaps = np.maximum(np.take_along_axis(distances, order, axis=1) - slack, 0.0)
    return Router(
        router.trees,
        router.centres,
        np.ascontiguousarray(order, np.int32),
        np.ascontiguousarray(gaps, router.dtype),
        router.deal_seed,
    )
