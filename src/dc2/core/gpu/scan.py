"""One pass over rows that lie on a card: route, walk, add up."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dc2.core.gpu.rough import MOST_COLUMNS, RoughCentres, rough_centres
from dc2.core.records import Centres, FlatTree, FoundOut, SumsOut

__all__ = ["LANES", "hash_rows", "means", "sample_rows", "scan", "strided"]

# Points are stored in groups of four chunks of eight columns: see `place_in_point` in `device.hpp`.
LANES, CHUNKS = 8, 4
PIECE_ROWS = 2**26  # rows at a time
ROW_BYTES = 24  # kept for each row
COPIED_BYTES = 2**30  # of rows at a time, if they are scaled first
RUN_ROWS = 256  # rows of which a thread adds up one column
SQUARE_ROWS = 64  # rows of which a thread adds up the squared distances
MANY_HELD_BYTES, MOST_HELD_BYTES = 256, 384  # of a wide row, held by each of eight threads
TILE_THREADS = 1024
MOST_TILE_ROWS = 2**16
ROWS_PER_BIN = 16  # wanted in a tile, if it is large enough
HELD_BYTES = 256  # of a row, held by one thread, at most; the headers repeat this number and the next
HELD_BY_MANY_BYTES = 80  # held by each of the 1024 threads of a block
_NO_SUMS = (np.empty(0, np.int64), np.empty(0))  # for the host: the sums stay on the card
MOST_MULTIPLIED = 2048  # signatures up to which rough products with all of them pay off
FEWEST_MULTIPLIED = 2**12  # rows from which they do
PRODUCT_BYTES = 2**30  # of products at a time
NARROW = 32  # columns: one group holds them, and the fast memory their centres


def scan(
    card: Any,
    X: Any,
    weights: NDArray[np.float64] | None,
    tree: FlatTree,
    centres: Centres,
    sums: SumsOut | None,
    found: FoundOut,
    *,
    taken: Callable[[Any, int], Any] | None = None,
) -> int:
    """Do what `dc2.core.scan` does with rows on a card.

    Parameters
    ----------
    card : Card
    X : array on the card, of shape (n_rows, n_features)
    weights : ndarray or None
        On the host.
    tree, centres, sums
        On the host.
    found : FoundOut
        Its arrays are on the card.
    taken : callable, optional
        Takes some rows and the number of the first; returns them ready to be routed.
    """
    job = _Scan(card, tree, centres, sums)
    bad = job.all_pieces(X, weights, found, taken)
    job.bring_sums()
    return bad


def means(
    card: Any,
    X: Any,
    weights: NDArray[np.float64] | None,
    tree: FlatTree,
    centres: Centres,
    magic: NDArray[np.float64],
    taken: Callable[[Any, int], Any] | None = None,
) -> tuple[NDArray[Any], int, int]:
    """Return the mean of each signature's rows, on the host, and how many rows and sums are not finite.

    The parameters are those of `scan`.
    """
    job = _Scan(card, tree, centres, SumsOut(magic, *_NO_SUMS))
    bad_rows = job.all_pieces(X, weights, FoundOut(), taken)
    found, bad_sums = job.means()
    return found, bad_rows, bad_sums


@dataclass(frozen=True, eq=False)
class _Points:
    """Directions or centres as the kernels read them."""

    data: Any
    step: int


class _Scan:
    """What stays the same for all rows: tree, centres and sums, on the card."""

    def __init__(self, card: Any, tree: FlatTree, centres: Centres, sums: SumsOut | None) -> None:
        self.card, self.sums = card, sums
        self.dtype, self.width = tree.directions.dtype, tree.directions.shape[1]
        self.nodes, self.signatures = len(tree.thresholds), len(centres.points)
        self.directions = self._points(tree.directions)
        self.thresholds, self.children = self._kept(tree.thresholds), self._kept(tree.children)
        self.centres, self.host_centres = self._points(centres.points), centres.points
        self.held_by_one = self.width * self.dtype.itemsize <= HELD_BYTES
        if self.held_by_one:
            self.plain_directions = self._plain_points(tree.directions)
            self.plain_centres = self._plain_points(centres.points)
        self.shortlist = self.gaps = None
        self.candidates = 0
        if centres.shortlist is not None:
            assert centres.gaps is not None
            self.candidates = centres.shortlist.shape[1]
            self.shortlist = card.kept(centres.shortlist, "fours", self._fours)
            self.gaps = card.kept(centres.gaps, "fours", self._fours)
        if sums is not None:
            self.magic = card.array(sums.magic)
            self.counts = card.xp.zeros(self.signatures, np.uint64)
            self.totals = card.xp.zeros((2, self.signatures, self.width + 2), np.float64)
            self.sum_centres = self._kept(centres.points)

    def all_pieces(
        self,
        X: Any,
        weights: NDArray[np.float64] | None,
        found: FoundOut,
        taken: Callable[[Any, int], Any] | None,
    ) -> int:
        """Work on all rows, many at a time; return how many are not finite."""
        bad = self.card.xp.zeros(1, np.uint64)
        each = ROW_BYTES + (0 if taken is None else self.width * self.dtype.itemsize)
        most = min(len(X), PIECE_ROWS if taken is None else COPIED_BYTES // each)
        step = max(1, self.card.room_for(most * each) // each)
        for start in range(0, len(X), step):
            piece = slice(start, start + step)
            rows = X[piece] if taken is None else taken(X[piece], start)
            parts: list[Any] = [None if array is None else array[piece] for array in found]
            self.piece(rows, None if weights is None else weights[piece], FoundOut(*parts), bad)
        return int(self.card.asnumpy(bad)[0])

    def piece(self, X: Any, weights: NDArray[np.float64] | None, found: FoundOut, bad: Any) -> None:
        """Work on some rows."""
        xp, rows = self.card.xp, len(X)
        if not rows:
            return
        ids = xp.empty(rows, np.int32) if found.ids is None else found.ids
        squares = None if self.sums is None else xp.empty(rows, np.float64)
        if self.shortlist is None:
            self._route(X, bad, ids, squares)
        else:
            leaves = xp.empty(rows, np.int32)
            self._route(X, bad, leaves)
            if self._can_multiply(X):
                self._find_by_products(X, bad, ids, squares, found, leaves)
            else:
                # Rows that start at the same centre read the same candidates: if sorted, from fast memory.
                order = self._sorted(leaves) if self.width > NARROW and self._can_sort else None
                self._find(X, bad, ids, squares, found, order=order, leaves=leaves)
        if self.sums is not None:
            self._add_up(X, weights, ids, squares)

    def bring_sums(self) -> None:
        """Add the sums on the card to those of the host."""
        if self.sums is not None:
            np.add(self.sums.counts, self.card.asnumpy(self.counts).astype(np.int64), out=self.sums.counts)
            np.add(self.sums.totals, self.card.fetched(self.totals), out=self.sums.totals)

    def means(self) -> tuple[NDArray[Any], int]:
        """Return the mean of each signature's rows, on the host, and how many sums are not finite."""
        card, xp = self.card, self.card.xp
        means, bad = xp.empty((self.signatures, self.width), self.dtype), xp.zeros(1, np.uint64)
        job = [self.totals, self.sum_centres, self.signatures, self.width, means, bad]
        self._launch("find_means", job, self.signatures * (self.width + 2))
        return card.fetched(means).copy(), int(card.asnumpy(bad)[0])

    def _route(self, X: Any, bad: Any, ids: Any, squares: Any = None) -> None:
        """Find the leaf of each row."""
        if not self.held_by_one:
            self._find(X, bad, ids, squares, walking=False)
            return
        step, size = self.plain_directions.step, self.dtype.itemsize
        threads = 1024 if self.width * size <= HELD_BY_MANY_BYTES else 256
        for_rows, for_node = threads * (self.width | 1) * size, (step + 1) * size + 8
        near_nodes = min(max(self.nodes, 1), (self.card.shared_bytes - for_rows) // for_node)
        job = [
            *strided(X), len(X), self.plain_directions.data, self.thresholds, self.children, self.nodes, step,
            near_nodes, self.plain_centres.data, ids, squares, bad,
        ]  # fmt: skip
        blocks = self.card.blocks_for(len(X), threads, most_each=2)
        shared = near_nodes * for_node + for_rows
        self.card.launch("route_rows", self.dtype, self.width, job, blocks, threads, shared)

    def _find(
        self,
        X: Any,
        bad: Any,
        ids: Any,
        squares: Any = None,
        found: FoundOut | None = None,
        *,
        order: Any = None,
        leaves: Any = None,
        walking: bool = True,
        products: Any = None,
    ) -> None:
        """Find the signature of each row."""
        shortlist = self.shortlist if walking else None
        near_ids, near_squared = (None, None) if found is None else found[1:]
        few = 1 if near_ids is None else near_ids.shape[1]
        job = [
            *strided(X), len(X),
            self.directions.data, self.thresholds, self.children, self.nodes, self.directions.step,
            self.centres.data, shortlist, self.gaps, self.candidates, -(-self.candidates // 4) * 4, self.centres.step,
            order, leaves, ids, squares, near_ids, near_squared, few, bad,
            *([None] * 4 if products is None else [products, *self._rough_fields]),
        ]  # fmt: skip
        held = -(-self.width // LANES) * self.dtype.itemsize  # by each thread
        threads = 384 if MANY_HELD_BYTES < held <= MOST_HELD_BYTES else 256
        self._launch("scan_rows" if products is None else "scan_by_bounds", job, len(X) * LANES, threads)

    @property
    def _rough(self) -> RoughCentres:
        """The centres in the form that rough products need."""
        rough: RoughCentres = self.card.kept(self.host_centres, "rough", self._make_rough)
        return rough

    def _make_rough(self, centres: NDArray[Any]) -> RoughCentres:
        return rough_centres(self.card, centres)

    @property
    def _rough_fields(self) -> list[Any]:
        return [self._points(self._rough.middle).data, self._rough.facts, self.signatures]

    def _can_multiply(self, X: Any) -> bool:
        """Whether rough products with all centres save more than they cost."""
        return (
            NARROW < self.width <= MOST_COLUMNS
            and self.dtype == np.float32
            and self.signatures <= MOST_MULTIPLIED
            and len(X) >= FEWEST_MULTIPLIED
            and X.strides[1] == X.itemsize
            and X.strides[0] >= self.width * X.itemsize
            and bool(self.card.multiplies)
            and self._rough.tells_apart
        )

    def _find_by_products(self, X: Any, bad: Any, ids: Any, squares: Any, found: FoundOut, leaves: Any) -> None:
        """Find the signature of each row, computing distances only where rough products leave a doubt."""
        each = self.signatures * self.dtype.itemsize
        step = max(1, self.card.room_for(min(PRODUCT_BYTES, len(X) * each)) // each)
        products = self.card.xp.empty((min(step, len(X)), self.signatures), self.dtype)
        for start in range(0, len(X), step):
            part = slice(start, start + step)
            rows = X[part]
            self.card.multiply(rows, self._rough.shifted, products[: len(rows)])
            near: list[Any] = [None if array is None else array[part] for array in found]
            self._find(
                rows, bad, ids[part], None if squares is None else squares[part], FoundOut(*near),
                leaves=leaves[part], products=products,
            )  # fmt: skip

    def _add_up(self, X: Any, weights: NDArray[np.float64] | None, ids: Any, squares: Any) -> None:
        # Rows that weigh 1 each are counted while they are sorted, and their squares are one more column.
        alike = weights is None and self._can_sort
        order = self._sorted(ids, count=alike) if self._can_sort else self._unsorted(ids)
        columns = self.width + alike
        job = [
            *strided(X), len(X), RUN_ROWS, self.sum_centres, order, squares,
            None if weights is None else self.card.array(weights),
            self.magic, self.counts, self.totals, self.signatures, columns,
        ]  # fmt: skip
        runs = -(-len(X) // RUN_ROWS)
        self._launch("add_up", job, runs * columns)
        if not alike:
            self._launch("add_squares", job, -(-len(X) // SQUARE_ROWS))

    def _sorted(self, ids: Any, count: bool = False) -> Any:
        """Return rows and their ids, tile by tile in the order of the ids; count them, if asked to."""
        rows, several = len(ids), 2 * self.card.processors
        tile = min(max(rows // (4 * several), ROWS_PER_BIN * self.signatures), -(-rows // several))
        tile = min(max(tile, TILE_THREADS), self._most_tile_rows)
        order = self.card.xp.empty((rows, 2), np.int32)
        job = [ids, rows, tile, self.signatures, order, None, None, None, 0]
        if count:
            weights, magic = self.totals[0, 0, self.width + 1 :], self.magic[0, self.width + 1 :]
            job[5:] = [self.counts, weights, magic, self.width + 2]
        shared = 4 * (self.signatures + 2 * TILE_THREADS) + 2 * tile
        self.card.launch("sort_tile", self.dtype, self.width, job, -(-rows // tile), TILE_THREADS, shared)
        return order

    def _unsorted(self, ids: Any) -> Any:
        """Return rows and their ids as they come."""
        order = self.card.xp.empty((len(ids), 2), np.int32)
        order[:, 0] = self.card.xp.arange(len(ids), dtype=np.int32)
        order[:, 1] = ids
        return order

    @property
    def _most_tile_rows(self) -> int:
        return min(MOST_TILE_ROWS, (int(self.card.shared_bytes) - 4 * (self.signatures + 2 * TILE_THREADS)) // 2)

    @property
    def _can_sort(self) -> bool:
        return self._most_tile_rows >= TILE_THREADS

    def _launch(self, kernel: str, job: list[Any], threads_wanted: int, threads: int = 256) -> None:
        blocks = self.card.blocks_for(threads_wanted, threads)
        self.card.launch(kernel, self.dtype, self.width, job, blocks, threads)

    def _plain_points(self, points: NDArray[Any]) -> _Points:
        """Return points with their columns in order; the step between points is an odd multiple of sixteen bytes."""
        parts = 16 // points.itemsize
        step = (-(-self.width // parts) | 1) * parts
        data = self.card.kept(points, "plain", lambda host: self._padded(host, step))
        return _Points(data, step)

    def _points(self, points: NDArray[Any]) -> _Points:
        """Return points in groups of four chunks of eight columns, each group lane by lane."""
        groups = -(-self.width // (LANES * CHUNKS))
        step = groups * LANES * CHUNKS

        def laid(host: NDArray[Any]) -> Any:
            padded = self._padded(host, step)
            chunks = padded.reshape(len(padded), groups, CHUNKS, LANES).swapaxes(2, 3)
            return self.card.xp.ascontiguousarray(chunks).reshape(padded.shape)

        return _Points(self.card.kept(points, "lanes", laid), step)

    def _padded(self, points: NDArray[Any], step: int) -> Any:
        """Return points on the card with zeros behind their columns; at least one point, for a tree without nodes."""
        bits = f"u{points.itemsize}"  # only moved, never computed with: tiny numbers stay as they are
        padded = self.card.xp.zeros((max(len(points), 1), step), bits)
        padded[: len(points), : self.width] = self.card.array(points).view(bits)
        return padded

    def _fours(self, lists: NDArray[Any]) -> Any:
        return self.card.array(_in_fours(lists))

    def _kept(self, array: NDArray[Any]) -> Any:
        return self.card.kept(array, "as it is", self.card.array)


def strided(X: Any) -> tuple[Any, int, int, int]:
    """Return a matrix as the kernels take it: its address, its steps in elements, its width."""
    row_step, column_step = (step // X.itemsize for step in X.strides)
    return X, row_step, column_step, X.shape[1]


def _in_fours(lists: NDArray[Any]) -> NDArray[Any]:
    """Return lists whose length is a multiple of four, filled up with each list's first entry."""
    missing = -lists.shape[1] % CHUNKS
    return np.concatenate([lists, np.repeat(lists[:, :1], missing, axis=1)], axis=1)


def hash_rows(card: Any, seed: int, start: int, stop: int) -> Any:
    """Return the hash of (seed, i) for i in start..stop-1, on the card."""
    hashes = card.xp.empty(max(stop - start, 0), np.uint64)
    _hash(card, [seed, start, len(hashes), 0, None, hashes], len(hashes))
    return hashes


def sample_rows(card: Any, seed: int, start: int, stop: int, limit: int) -> NDArray[np.int64]:
    """Return the rows of start..stop-1 whose hash is at most `limit`, ascending, on the host."""
    is_sampled = card.xp.empty(max(stop - start, 0), np.uint8)
    _hash(card, [seed, start, len(is_sampled), limit, is_sampled, None], len(is_sampled))
    places: NDArray[np.int64] = card.asnumpy(card.xp.flatnonzero(is_sampled)).astype(np.int64)
    return start + places


def _hash(card: Any, job: list[Any], count: int) -> None:
    if count:
        card.launch("hash_rows", np.dtype(np.float32), 1, job, card.blocks_for(count, 256))
