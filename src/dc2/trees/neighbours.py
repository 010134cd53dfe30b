"""Nearest neighbours among points, without comparing all pairs if points are many."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import repeat
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dc2 import core
from dc2.core.reference import EMPTY, LANES, NORMAL_TABLE, GrowRule, hash_at
from dc2.io.source import row_hashes
from dc2.parameters import check_integer
from dc2.trees.tree import NO_LIMIT, raise_unusable, values_usable

ALL_PAIRS = 2**35  # subtractions up to which comparing all pairs is about as fast
NEAR_TOGETHER = 16  # points per leaf of the tree that puts near ones side by side
TREES = 4  # grown at a time
LEAF = 64  # points, at least; more neighbours need larger leaves
LARGER_LEAF = 4  # factor, if lists are not good enough
GROWTHS = 3
ROUNDS = 6
SETTLED = 0.02  # rounds end when one changes at most this share of the lists
TRIED = 128  # points whose lists are compared with the exact ones
RECALL = 0.985  # share of exact neighbours at which lists are good enough
RANGES_PER_THREAD = 8

Lists = tuple[NDArray[np.int32], NDArray[Any]]
Least = Callable[[NDArray[Any]], NDArray[np.float32] | None]
"""From points to lower bounds of their squared distances, of shape (n_points, n_points), or None."""


def nearest_neighbours(points: NDArray[Any], k: int, *, seed: int, n_threads: int, least: Least | None = None) -> Lists:
    """Return the ids of each point and its nearest neighbours, `k` in all, nearest first, and their squared distances.

    Among equally near ones the smaller id comes first. Up to some thousand points they are exact; beyond that, about
    99 of 100 are. Points that share a leaf in one of a few random projection trees are compared, then neighbours of
    neighbours, until little changes. The lists of 128 points are compared with exact ones; as long as they are not
    good enough, trees with larger leaves follow. The result does not depend on the threads; `least` only saves time.

    Examples
    --------
    >>> import numpy as np
    >>> points = np.array([[0.0], [1.0], [3.0], [3.0]])
    >>> ids, squared = nearest_neighbours(points, 3, seed=0, n_threads=1)
    >>> ids.tolist(), squared.tolist()
    ([[0, 1, 2], [1, 0, 2], [2, 3, 1], [3, 2, 1]], [[0.0, 1.0, 9.0], [0.0, 1.0, 4.0], [0.0, 0.0, 4.0], [0.0, 0.0, 4.0]])
    """
    check_integer("k", k, low=1)
    points = np.ascontiguousarray(points)
    if not values_usable(points):
        raise_unusable(points, None, 0)
    with ThreadPoolExecutor(n_threads, thread_name_prefix="dc2") as pool:
        distinct = distinct_rows(points)
        if len(distinct) == len(points):
            return _Search(points, k, seed, pool, n_threads).run(least)
        near = _Search(points[distinct.first], k, seed, pool, n_threads).run(least)
        ids, squared = _empty_lists(len(points), k, points.dtype)
        core.offer_copies(*near, *members_of(distinct.of_row, len(distinct)), ids, squared)
        return ids, squared


def _empty_lists(n_points: int, k: int, dtype: np.dtype[Any]) -> Lists:
    """Return lists that hold only their own point."""
    ids = np.full((n_points, min(k, n_points)), EMPTY, np.int32)
    squared = np.full(ids.shape, np.inf, dtype)
    ids[:, 0], squared[:, 0] = np.arange(n_points), 0.0
    return ids, squared


# --- equal rows -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class DistinctRows:
    """The distinct rows among all.

    Attributes
    ----------
    first : ndarray of shape (n_distinct,), intp
        The first row of each, ascending.
    of_row : ndarray of shape (n_rows,), intp
        The distinct row that each row equals.
    """

    first: NDArray[np.intp]
    of_row: NDArray[np.intp]

    def __len__(self) -> int:
        return len(self.first)


def distinct_rows(X: NDArray[Any]) -> DistinctRows:
    """Find equal rows, by sorting a hash of each; 0 and -0 are the same number.

    Examples
    --------
    >>> found = distinct_rows(np.array([[1.0, 2.0], [0.0, 1.0], [1.0, 2.0]]))
    >>> found.first.tolist(), found.of_row.tolist()
    ([0, 1], [0, 1, 0])
    """
    _, first, of_row = np.unique(row_hashes(X), return_index=True, return_inverse=True)
    if len(first) < len(X) and not np.array_equal(X, X[first[of_row]]):  # a collision of hashes: hardly ever
        _, first, of_row = np.unique(X + 0.0, axis=0, return_index=True, return_inverse=True)
    order = np.argsort(first, kind="stable")
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return DistinctRows(first[order], rank[of_row.ravel()])


def members_of(part_of_row: NDArray[Any], n_parts: int) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Return where the rows of each part begin, and the rows in the order of their parts, ascending in each."""
    starts = np.append(0, np.cumsum(np.bincount(part_of_row, minlength=n_parts)))
    return starts, np.argsort(part_of_row, kind="stable").astype(np.int32)


# --- the search -----------------------------------------------------------------------------------------------------


class _Search:
    """The neighbours of distinct points; lists keep the nearest of what is offered to them."""

    def __init__(self, points: NDArray[Any], k: int, seed: int, pool: ThreadPoolExecutor, n_threads: int) -> None:
        self.points, self.k, self.seed, self.pool, self.n_threads = points, k, seed, pool, n_threads

    def run(self, least: Least | None) -> Lists:
        n = len(self.points)
        k = min(self.k, n)
        if n * n * (self.points.shape[1] + LANES) <= ALL_PAIRS or n <= 4 * LEAF + 8 * k:
            # Near points are adjacent in this order, so lists soon hold near ones and reject the others.
            order = np.argsort(self._grown(0, NEAR_TOGETHER), kind="stable").astype(np.int32)
            self.lanes, (self.ids, self.squared) = _in_lanes(self.points), _empty_lists(n, k, self.points.dtype)
            self._offer_groups(order, np.array([0, n]))
            return self.ids, self.squared
        leaf = max(LEAF, 3 * k)
        leaves = self._leaves(0, leaf)
        order = np.argsort(leaves[0], kind="stable").astype(np.int32)  # near points are near in memory
        self.points, leaves = self.points[order], [leaf_of_point[order] for leaf_of_point in leaves]
        self.lanes, (self.ids, self.squared) = _in_lanes(self.points), _empty_lists(n, k, self.points.dtype)
        self.rough = core.rough_copy(self.points)
        self.least = None if least is None else least(self.points)
        before = np.full_like(self.ids, -1)
        for growth in range(GROWTHS):
            self._offer_leaves(leaves if growth == 0 else self._leaves(growth, leaf), leaf)
            for _ in range(ROUNDS):
                before, last = self.ids.copy(), before
                self._offer_links(before, last)
                if np.mean((before != self.ids).any(axis=1)) <= SETTLED:
                    break
            if self._recall() >= RECALL:
                break
            leaf *= LARGER_LEAF
        return _renumbered(self.ids, self.squared, order)

    def _grown(self, number: int, leaf_size: int) -> NDArray[np.int32]:
        """Return the leaf of each point in the tree of a number."""
        seed = int(hash_at(self.seed, np.array([number]))[0])
        rule = GrowRule(float(leaf_size), NO_LIMIT, "median", sharpen=1)
        return core.grow_tree(self.points, None, seed, rule, NORMAL_TABLE)[3]

    def _leaves(self, growth: int, leaf_size: int) -> list[NDArray[np.int32]]:
        numbers = range(growth * TREES, (growth + 1) * TREES)
        return list(self.pool.map(self._grown, numbers, repeat(leaf_size)))

    def _offer_leaves(self, leaves: list[NDArray[np.int32]], leaf_size: int) -> None:
        """Compare points that share a leaf."""
        for leaf_of_point in leaves:
            order = np.argsort(leaf_of_point, kind="stable").astype(np.int32)
            self._offer_groups(order, _group_starts(np.bincount(leaf_of_point), self.ids.shape[1], 2 * leaf_size))

    def _offer_groups(self, order: NDArray[np.int32], starts: NDArray[np.int64]) -> None:
        def offer(begin: int, end: int) -> None:
            core.offer_groups(self.lanes, self.points.shape[1], order, starts, (begin, end), self.ids, self.squared)

        self._in_ranges(len(order), RANGES_PER_THREAD * self.n_threads, offer)

    def _offer_links(self, lists: NDArray[np.int32], before: NDArray[np.int32]) -> None:
        """Compare each point with the neighbours of its neighbours."""
        links, fresh = core.link_neighbours(lists, before, 2 * (lists.shape[1] - 1))
        every = np.arange(len(lists), dtype=np.int32)

        def offer(begin: int, end: int) -> None:
            job = (self.lanes, self.points.shape[1], links, fresh, every[begin:end], self.ids, self.squared)
            core.offer_links(*job, least=self.least, rough=self.rough)

        self._in_ranges(len(lists), RANGES_PER_THREAD * self.n_threads, offer)

    def _recall(self) -> float:
        """Return the share of neighbours that are as near as the exact ones, for a few points."""
        every = np.arange(len(self.points), dtype=np.int32)
        tried = every[:: -(-len(every) // TRIED)]
        exact = _empty_lists(len(every), self.ids.shape[1], self.squared.dtype)
        queries_first, starts = np.concatenate([tried, np.setdiff1d(every, tried)]), np.array([0, len(every)])

        def offer(begin: int, end: int) -> None:
            core.offer_groups(self.lanes, self.points.shape[1], queries_first, starts, (begin, end), *exact)

        self._in_ranges(len(tried), self.n_threads, offer)  # each range reads all points
        return float((self.squared[tried, 1:] <= exact[1][tried, -1:]).mean())

    def _in_ranges(self, count: int, n_ranges: int, work: Callable[[int, int], None]) -> None:
        ends = np.linspace(0, count, n_ranges + 1).astype(int).tolist()
        list(self.pool.map(work, ends[:-1], ends[1:]))


def _renumbered(ids: NDArray[np.int32], squared: NDArray[Any], order: NDArray[np.int32]) -> Lists:
    """Return lists of points that stood in another order: point i was number order[i]."""
    new_ids, new_squared = np.empty_like(ids), np.empty_like(squared)
    numbers = np.where(ids == EMPTY, EMPTY, order[np.minimum(ids, len(order) - 1)])
    again = np.flatnonzero((squared[:, 2:] == squared[:, 1:-1]).any(axis=1))  # equally near ones: by number
    by_distance = 1 + np.lexsort((numbers[again, 1:], squared[again, 1:]), axis=1)
    numbers[again, 1:] = np.take_along_axis(numbers[again], by_distance, axis=1)
    new_ids[order], new_squared[order] = numbers, squared
    return new_ids, new_squared


def _in_lanes(points: NDArray[Any]) -> NDArray[Any]:
    """Return the points with columns of zeros added, up to a whole number of lanes."""
    n, width = points.shape
    if width % LANES == 0:
        return points
    padded = np.zeros((n, -(-width // LANES) * LANES), points.dtype)
    padded[:, :width] = points
    return padded


def _group_starts(sizes: NDArray[np.intp], smallest: int, largest: int) -> NDArray[np.int64]:
    """Return where groups of points begin in the order of leaves and, as the last entry, where the last one ends.

    Leaves of fewer than `smallest` points are joined with the next, to fill the lists. Leaves with far more points than
    the others, which no direction could separate, are cut into pieces of up to `largest`.
    """
    starts = [0]
    size = 0
    for leaf_size in sizes.tolist():
        size += leaf_size
        if size >= smallest:
            pieces = -(-size // largest)
            starts += [starts[-1] + size * (piece + 1) // pieces for piece in range(pieces)]
            size = 0
    starts[-1] += size
    return np.array(starts, np.int64)
