"""One pass over rows on a GPU: route, search, add up."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dc2.core.reference import ADDING, Centres, FlatTree, NearestOut, SumsOut

PRODUCT_ERROR = 2.0**-8  # relative to both lengths: factors are rounded to 10 bits, and sums in any way
ROUNDING = 2.0**-15  # error of all other terms
UP = 1 + 2.0**-20  # keeps bounds valid when they are rounded to float32
MOST_COLUMNS = 4096  # the error of a product grows with columns
WIDE = 64  # columns; distances of narrower points are cheap
MOST_LEAST_BYTES = 2**31
SMALLEST, LARGEST = np.float32(1e-30), np.float32(1e38)  # of bounds; beyond these, digits may have been lost
CLEAR_SHARE = 0.05  # of the squared distances of centres from their middle


@dataclass(frozen=True, eq=False)
class DistanceBounds:
    """Centres relative to their middle; arrays are float32, all but the middle on the GPU."""

    middle: NDArray[np.float32]  # (1, n_features)
    shifted: Any  # (n_signatures, n_features): the centres minus the middle
    facts: Any  # (3, n_signatures): see `Bounds` of device.hpp
    distinguishes: bool  # whether products are accurate enough to distinguish most centres; it only saves time


def distance_bounds(device: Any, centres: NDArray[Any]) -> DistanceBounds:
    """Return centres on a GPU, in the form that approximate products need."""
    wide = centres.astype(np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        middle = wide.mean(axis=0).astype(np.float32)
        shifted = (wide - middle).astype(np.float32)
        own = shifted.astype(np.float64)
        squares, along = np.einsum("ij,ij->i", own, own), own @ middle.astype(np.float64)
        lengths, to_middle = np.sqrt(squares), float(np.linalg.norm(middle.astype(np.float64)))
        facts = np.stack(
            [
                squares + 2 * along,
                2 * PRODUCT_ERROR * lengths * UP,
                ROUNDING * (squares + 2 * to_middle * lengths) * UP,
            ]
        ).astype(np.float32)
        error = 2 * PRODUCT_ERROR * float(np.median(np.linalg.norm(wide, axis=1) * lengths))
        distinguishes = error < CLEAR_SHARE * float(np.median(squares))
    return DistanceBounds(middle[None], device.array(shifted), device.array(facts), distinguishes)


def least_squared_distances(device: Any, points: NDArray[Any]) -> NDArray[np.float32] | None:
    """Return lower bounds of the squared distances among points, by approximate products.

    None if there are too many points, or if they are so narrow that distances cost no more. No bound is larger than the
    distance as any core rounds it; extreme numbers give 0.
    """
    n, width = points.shape
    if not (WIDE < width <= MOST_COLUMNS and 4 * n * n <= MOST_LEAST_BYTES and device.multiplies):
        return None
    wide = points.astype(np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        shifted = (wide - wide.mean(axis=0)).astype(np.float32)
        own = shifted.astype(np.float64)
        squares = np.einsum("ij,ij->i", own, own)
        near_squares = (squares * (1 - 2 * ROUNDING)).astype(np.float32)
        errors = (np.sqrt(2 * PRODUCT_ERROR * squares) * UP).astype(np.float32)
    with device.use(), np.errstate(all="ignore"):
        xp, there = device.xp, device.array(shifted)
        least = xp.empty((n, n), np.float32)
        device.multiply(there, there, least)
        near_squares, errors = device.array(near_squares), device.array(errors)
        least *= np.float32(-2)
        least += near_squares[:, None]
        least += near_squares
        least -= errors[:, None] * errors
        least[~((least > SMALLEST) & (least < LARGEST))] = 0
        brought: NDArray[np.float32] = device.fetched(least)
        return brought


# Points are stored in groups of four chunks of eight columns: see `place_in_point` in `device.hpp`.
LANES, CHUNKS = 8, 4
PIECE_ROWS = 2**26  # rows at a time
ROW_BYTES = 24  # of working memory for each row
COPIED_BYTES = 2**30  # of rows at a time, if they are scaled first
RUN_ROWS = 256  # rows of which a thread adds up one column
SQUARE_ROWS = 64  # rows of which a thread adds up the squared distances
MANY_HELD_BYTES, MOST_HELD_BYTES = 256, 384  # of a wide row, held by each of eight threads
TILE_THREADS = 1024
MOST_TILE_ROWS = 2**16
ROWS_PER_BIN = 16  # wanted in a tile, if it is large enough
HELD_BYTES = 256  # of a row, held by one thread, at most; the headers repeat this number and the next
HELD_BY_MANY_BYTES = 80  # held by each of the 1024 threads of a block
_NO_SUMS = (np.empty(0, np.int64), np.empty(0), np.empty(0))  # for the host: the sums stay on the GPU
MOST_MULTIPLIED = 2**14  # signatures up to which approximate products with all of them pay off
FEWEST_MULTIPLIED = 2**12  # rows from which they do
PRODUCT_BYTES = 2**30  # of products at a time
NARROW = 32  # columns: one group holds them, and the fast memory their centres


def scan(
    device: Any,
    X: Any,
    weights: NDArray[np.float64] | None,
    tree: FlatTree,
    centres: Centres,
    sums: SumsOut | None,
    found: NearestOut,
    *,
    taken: Callable[[Any, int], Any] | None = None,
) -> int:
    """Do what `dc2.core.reference.scan` does with rows on a GPU, where the arrays of `found` are too.

    `taken` prepares some rows; it is called with them and the number of the first one.
    """
    job = _Scan(device, tree, centres, sums)
    bad = job.all_pieces(X, weights, found, taken)
    job.bring_sums()
    return bad


def means(
    device: Any,
    X: Any,
    weights: NDArray[np.float64] | None,
    tree: FlatTree,
    centres: Centres,
    magic: NDArray[np.float64],
    taken: Callable[[Any, int], Any] | None = None,
) -> tuple[NDArray[Any], int, int]:
    """Return the mean of each signature's rows, on the host, and how many rows and sums are not finite."""
    job = _Scan(device, tree, centres, SumsOut(magic, *_NO_SUMS))
    bad_rows = job.all_pieces(X, weights, NearestOut(), taken)
    found, bad_sums = job.means()
    return found, bad_rows, bad_sums


@dataclass(frozen=True, eq=False)
class _Points:
    """Directions or centres as the kernels read them."""

    data: Any
    step: int


class _Scan:
    """The tree, the centres and the sums on the GPU: the same for all rows."""

    def __init__(self, device: Any, tree: FlatTree, centres: Centres, sums: SumsOut | None) -> None:
        self.device, self.sums = device, sums
        self.dtype, self.width = tree.directions.dtype, tree.directions.shape[1]
        self.nodes, self.signatures = len(tree.thresholds), len(centres.points)
        self.directions = self._points(tree.directions)
        self.thresholds, self.children = self._kept(tree.thresholds), self._kept(tree.children)
        self.centres, self.host_centres = self._points(centres.points), centres.points
        self.held_by_one = self.width * self.dtype.itemsize <= HELD_BYTES
        if self.held_by_one:
            self.plain_directions = self._plain_points(tree.directions)
            self.plain_centres = self._plain_points(centres.points)
        self.neighbor_lists = self.gaps = None
        self.candidates, self.beam = 0, centres.beam
        if centres.neighbor_lists is not None:
            assert centres.gaps is not None
            self.candidates = centres.neighbor_lists.shape[1]
            self.neighbor_lists = device.kept(centres.neighbor_lists, "fours", self._fours)
            self.gaps = device.kept(centres.gaps, "fours", self._fours)
        if sums is not None:
            self.magic = device.array(sums.magic)
            self.counts = device.xp.zeros(self.signatures, np.uint64)
            self.totals = device.xp.zeros((2, self.signatures, self.width + 2), np.float64)
            self.reach = device.xp.zeros(self.signatures, np.uint64)  # the bits of numbers that are not negative
            self.sum_centres = self._kept(centres.points)

    def all_pieces(
        self,
        X: Any,
        weights: NDArray[np.float64] | None,
        found: NearestOut,
        taken: Callable[[Any, int], Any] | None,
    ) -> int:
        """Process all rows in large pieces; return the number of rows that are not finite."""
        bad = self.device.xp.zeros(1, np.uint64)
        each = ROW_BYTES + (0 if taken is None else self.width * self.dtype.itemsize)
        most = min(len(X), PIECE_ROWS if taken is None else COPIED_BYTES // each)
        step = max(1, self.device.room_for(most * each) // each)
        for start in range(0, len(X), step):
            piece = slice(start, start + step)
            rows = X[piece] if taken is None else taken(X[piece], start)
            parts: list[Any] = [None if array is None else array[piece] for array in found]
            self.piece(rows, None if weights is None else weights[piece], NearestOut(*parts), bad)
        return int(self.device.asnumpy(bad)[0])

    def piece(self, X: Any, weights: NDArray[np.float64] | None, found: NearestOut, bad: Any) -> None:
        """Process some rows."""
        xp, rows = self.device.xp, len(X)
        if not rows:
            return
        ids = xp.empty(rows, np.int32) if found.ids is None else found.ids
        squares = None if self.sums is None else xp.empty(rows, np.float64)
        if self.neighbor_lists is None:
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
        """Add the sums on the GPU to those of the host; several threads may add to the same sums."""
        if self.sums is not None:
            counts, totals = self.device.asnumpy(self.counts).astype(np.int64), self.device.fetched(self.totals)
            reach = self.device.asnumpy(self.reach).view(np.float64)
            with ADDING:
                np.add(self.sums.counts, counts, out=self.sums.counts)
                np.add(self.sums.totals, totals, out=self.sums.totals)
                np.maximum(self.sums.reach, reach, out=self.sums.reach)

    def means(self) -> tuple[NDArray[Any], int]:
        """Return the mean of each signature's rows, on the host, and how many sums are not finite."""
        device, xp = self.device, self.device.xp
        means, bad = xp.empty((self.signatures, self.width), self.dtype), xp.zeros(1, np.uint64)
        job = [self.totals, self.sum_centres, self.signatures, self.width, means, bad]
        self._launch("find_means", job, self.signatures * (self.width + 2))
        return device.fetched(means).copy(), int(device.asnumpy(bad)[0])

    def _route(self, X: Any, bad: Any, ids: Any, squares: Any = None) -> None:
        """Find the leaf of each row."""
        if not self.held_by_one:
            self._find(X, bad, ids, squares, searching=False)
            return
        step, size = self.plain_directions.step, self.dtype.itemsize
        threads = 1024 if self.width * size <= HELD_BY_MANY_BYTES else 256
        for_rows, for_node = threads * (self.width | 1) * size, (step + 1) * size + 8
        near_nodes = min(max(self.nodes, 1), (self.device.shared_bytes - for_rows) // for_node)
        job = [
            *strided(X), len(X), self.plain_directions.data, self.thresholds, self.children, self.nodes, step,
            near_nodes, self.plain_centres.data, ids, squares, bad,
        ]  # fmt: skip
        blocks = self.device.blocks_for(len(X), threads, most_each=2)
        shared = near_nodes * for_node + for_rows
        self.device.launch("route_rows", self.dtype, self.width, job, blocks, threads, shared)

    def _find(
        self,
        X: Any,
        bad: Any,
        ids: Any,
        squares: Any = None,
        found: NearestOut | None = None,
        *,
        order: Any = None,
        leaves: Any = None,
        searching: bool = True,
        products: Any = None,
    ) -> None:
        """Find the signature of each row."""
        lists = self.neighbor_lists if searching else None
        near_ids, near_squared = (None, None) if found is None else found[1:]
        few = 1 if near_ids is None else near_ids.shape[1]
        held = -(-self.width // LANES) * self.dtype.itemsize  # by each thread
        threads = 384 if MANY_HELD_BYTES < held <= MOST_HELD_BYTES else 256
        blocks = self.device.blocks_for(len(X) * LANES, threads)
        kept = (blocks * threads // LANES, max(self.beam, few) if searching else 0)
        job = [
            *strided(X), len(X),
            self.directions.data, self.thresholds, self.children, self.nodes, self.directions.step,
            self.centres.data, lists, self.gaps, self.candidates, -(-self.candidates // 4) * 4, self.centres.step,
            self.beam, order, leaves, ids, squares, None if self.sums is None else self.reach,
            near_ids, near_squared, few,
            self.device.xp.empty(kept, self.dtype), self.device.xp.empty(kept, np.int32), kept[1], bad,
            *([None] * 4 if products is None else [products, *self._bound_fields]),
        ]  # fmt: skip
        kernel = "scan_rows" if products is None else "scan_by_bounds"
        self.device.launch(kernel, self.dtype, self.width, job, blocks, threads)

    @property
    def _bounds(self) -> DistanceBounds:
        """The centres in the form for approximate products, cached."""
        bounds: DistanceBounds = self.device.kept(self.host_centres, "bounds", self._make_bounds)
        return bounds

    def _make_bounds(self, centres: NDArray[Any]) -> DistanceBounds:
        return distance_bounds(self.device, centres)

    @property
    def _bound_fields(self) -> list[Any]:
        return [self._points(self._bounds.middle).data, self._bounds.facts, self.signatures]

    def _can_multiply(self, X: Any) -> bool:
        """Whether approximate products with all centres save more time than they cost."""
        return (
            NARROW < self.width <= MOST_COLUMNS
            and self.dtype == np.float32
            and self.signatures <= MOST_MULTIPLIED
            and len(X) >= FEWEST_MULTIPLIED
            and X.strides[1] == X.itemsize
            and X.strides[0] >= self.width * X.itemsize
            and bool(self.device.multiplies)
            and self._bounds.distinguishes
        )

    def _find_by_products(self, X: Any, bad: Any, ids: Any, squares: Any, found: NearestOut, leaves: Any) -> None:
        """Find the signature of each row; compute a distance only if its bound from a product does not decide."""
        each = self.signatures * self.dtype.itemsize
        step = max(1, self.device.room_for(min(PRODUCT_BYTES, len(X) * each)) // each)
        products = self.device.xp.empty((min(step, len(X)), self.signatures), self.dtype)
        for start in range(0, len(X), step):
            part = slice(start, start + step)
            rows = X[part]
            self.device.multiply(rows, self._bounds.shifted, products[: len(rows)])
            near: list[Any] = [None if array is None else array[part] for array in found]
            self._find(
                rows, bad, ids[part], None if squares is None else squares[part], NearestOut(*near),
                leaves=leaves[part], products=products,
            )  # fmt: skip

    def _add_up(self, X: Any, weights: NDArray[np.float64] | None, ids: Any, squares: Any) -> None:
        # Rows that weigh 1 each are counted while they are sorted, and their squares are one more column.
        alike = weights is None and self._can_sort
        order = self._sorted(ids, count=alike) if self._can_sort else self._unsorted(ids)
        columns = self.width + alike
        job = [
            *strided(X), len(X), RUN_ROWS, self.sum_centres, order, squares,
            None if weights is None else self.device.array(weights),
            self.magic, self.counts, self.totals, self.signatures, columns,
        ]  # fmt: skip
        runs = -(-len(X) // RUN_ROWS)
        self._launch("add_up", job, runs * columns)
        if not alike:
            self._launch("add_squares", job, -(-len(X) // SQUARE_ROWS))

    def _sorted(self, ids: Any, count: bool = False) -> Any:
        """Return rows and their ids, sorted by id within each tile; count them with ``count=True``."""
        rows, several = len(ids), 2 * self.device.processors
        tile = min(max(rows // (4 * several), ROWS_PER_BIN * self.signatures), -(-rows // several))
        tile = min(max(tile, TILE_THREADS), self._most_tile_rows)
        order = self.device.xp.empty((rows, 2), np.int32)
        job = [ids, rows, tile, self.signatures, order, None, None, None, 0]
        if count:
            weights, magic = self.totals[0, 0, self.width + 1 :], self.magic[0, self.width + 1 :]
            job[5:] = [self.counts, weights, magic, self.width + 2]
        shared = 4 * (self.signatures + 2 * TILE_THREADS) + 2 * tile
        self.device.launch("sort_tile", self.dtype, self.width, job, -(-rows // tile), TILE_THREADS, shared)
        return order

    def _unsorted(self, ids: Any) -> Any:
        """Return rows and their ids in row order."""
        order = self.device.xp.empty((len(ids), 2), np.int32)
        order[:, 0] = self.device.xp.arange(len(ids), dtype=np.int32)
        order[:, 1] = ids
        return order

    @property
    def _most_tile_rows(self) -> int:
        return min(MOST_TILE_ROWS, (int(self.device.shared_bytes) - 4 * (self.signatures + 2 * TILE_THREADS)) // 2)

    @property
    def _can_sort(self) -> bool:
        return self._most_tile_rows >= TILE_THREADS

    def _launch(self, kernel: str, job: list[Any], threads_wanted: int, threads: int = 256) -> None:
        blocks = self.device.blocks_for(threads_wanted, threads)
        self.device.launch(kernel, self.dtype, self.width, job, blocks, threads)

    def _plain_points(self, points: NDArray[Any]) -> _Points:
        """Return points with their columns in order; the step between points is an odd multiple of sixteen bytes."""
        parts = 16 // points.itemsize
        step = (-(-self.width // parts) | 1) * parts
        data = self.device.kept(points, "plain", lambda host: self._padded(host, step))
        return _Points(data, step)

    def _points(self, points: NDArray[Any]) -> _Points:
        """Return points in groups of four chunks of eight columns, each group lane by lane."""
        groups = -(-self.width // (LANES * CHUNKS))
        step = groups * LANES * CHUNKS

        def laid(host: NDArray[Any]) -> Any:
            padded = self._padded(host, step)
            chunks = padded.reshape(len(padded), groups, CHUNKS, LANES).swapaxes(2, 3)
            return self.device.xp.ascontiguousarray(chunks).reshape(padded.shape)

        return _Points(self.device.kept(points, "lanes", laid), step)

    def _padded(self, points: NDArray[Any], step: int) -> Any:
        """Return points on the GPU with zeros behind their columns; at least one point, for a tree without nodes."""
        bits = f"u{points.itemsize}"  # only moved, never computed with: tiny numbers stay as they are
        padded = self.device.xp.zeros((max(len(points), 1), step), bits)
        padded[: len(points), : self.width] = self.device.array(points).view(bits)
        return padded

    def _fours(self, lists: NDArray[Any]) -> Any:
        return self.device.array(_in_fours(lists))

    def _kept(self, array: NDArray[Any]) -> Any:
        return self.device.kept(array, "as it is", self.device.array)


def strided(X: Any) -> tuple[Any, int, int, int]:
    """Return a matrix as the kernels take it: its address, its steps in elements, its width."""
    row_step, column_step = (step // X.itemsize for step in X.strides)
    return X, row_step, column_step, X.shape[1]


def _in_fours(lists: NDArray[Any]) -> NDArray[Any]:
    """Pad lists with their first entry to a multiple of four."""
    missing = -lists.shape[1] % CHUNKS
    return np.concatenate([lists, np.repeat(lists[:, :1], missing, axis=1)], axis=1)


def hash_rows(device: Any, seed: int, start: int, stop: int) -> Any:
    """Return the hash of (seed, i) for i in start..stop-1, on the GPU."""
    hashes = device.xp.empty(max(stop - start, 0), np.uint64)
    _hash(device, [seed, start, len(hashes), 0, None, hashes], len(hashes))
    return hashes


def sample_rows(device: Any, seed: int, start: int, stop: int, limit: int) -> NDArray[np.int64]:
    """Return the rows of start..stop-1 whose hash is at most `limit`, ascending, on the host."""
    is_sampled = device.xp.empty(max(stop - start, 0), np.uint8)
    _hash(device, [seed, start, len(is_sampled), limit, is_sampled, None], len(is_sampled))
    places: NDArray[np.int64] = device.asnumpy(device.xp.flatnonzero(is_sampled)).astype(np.int64)
    return start + places


def _hash(device: Any, job: list[Any], count: int) -> None:
    if count:
        device.launch("hash_rows", np.dtype(np.float32), 1, job, device.blocks_for(count, 256))
