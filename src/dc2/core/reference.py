"""The NumPy reference of the native core: slow and simple; it defines the correct results.

Every function here exists with the same name, arguments and bits in the C++ module. Sums that decide anything are
taken in an order that both can keep: eight lanes for projections and distances (`lanes_dot`), one after the other
(`running_sum`) elsewhere, and exact sums on a grid (`add_up`) where rows arrive in any order.
"""

import heapq
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from dc2.errors import InputError

Floats = NDArray[np.floating[Any]]

EMPTY = 2**31 - 1  # a free entry in a list of neighbours
LANES = 8

# No warnings, as in C++: callers check the results.
too_large_is_infinite = np.errstate(over="ignore", invalid="ignore")


@too_large_is_infinite
def lanes_dot(a: Floats, b: Floats) -> Floats:
    """Return the row-wise dot product, column j added to lane j % 8, then the lanes pairwise."""
    product = a * b
    rows, width = product.shape
    padded = np.zeros((rows, -(-width // LANES), LANES), product.dtype)
    padded.reshape(rows, padded.shape[1] * LANES)[:, :width] = product
    lane = padded[:, 0].copy()
    for chunk in range(1, padded.shape[1]):
        lane += padded[:, chunk]
    half = lane[:, :4] + lane[:, 4:]
    quarter = half[:, :2] + half[:, 2:]
    total: Floats = quarter[:, 0] + quarter[:, 1]
    return total


class FlatTree(NamedTuple):
    """A tree as arrays."""

    directions: Floats  # (n_nodes, width)
    thresholds: Floats  # (n_nodes,)
    children: NDArray[np.int32]  # (n_nodes, 2), ~leaf where the child is a leaf


class GrowRule(NamedTuple):
    """How a tree grows."""

    leaf_size: float  # a node with less weight is not split
    max_leaves: int
    cut: str  # "median", "mean", "uniform" or "quantile"
    sharpen: int = 0  # how often a direction is multiplied with the covariance of its node
    n_candidates: int = 1  # directions of which the one with the largest spread is kept


class Centres(NamedTuple):
    """A point for each leaf, and the neighbour list of each."""

    points: Floats  # (n_leaves, width)
    neighbor_lists: NDArray[np.int32] | None = None  # (n_leaves, n_near): its own centre, then nearest first
    gaps: Floats | None = None  # (n_leaves, n_near): distances to the first of each list, to save time
    beam: int = 1  # candidates that the search of a row holds


class SumsOut(NamedTuple):
    """Sums of rows about their centres, on the grids `magic`."""

    magic: NDArray[np.float64]  # IN (2, width + 2)
    counts: NDArray[np.int64]  # IN, OUT (n_leaves,); several threads may add to the same counts and totals
    totals: NDArray[np.float64]  # IN, OUT (2, n_leaves, width + 2)
    reach: NDArray[np.float64]  # IN, OUT (n_leaves,): largest squared distance of a row that searched


class NearestOut(NamedTuple):
    """The outputs for each row; None for those that are not wanted."""

    ids: NDArray[np.int32] | None = None  # OUT (n_rows,)
    near_ids: NDArray[np.int32] | None = None  # OUT (n_rows, few)
    near_squared: Floats | None = None  # OUT (n_rows, few)


def check_tree(tree: FlatTree) -> None:
    """Raise if arrays do not form a tree in which every row reaches a leaf.

    A child comes after its parent, and every leaf and every node but the root is the child of exactly one.
    """
    directions, thresholds, children = (np.asarray(part) for part in tree)
    nodes = len(thresholds) if thresholds.ndim == 1 else -1
    if directions.ndim != 2 or directions.shape[0] != nodes or children.shape != (nodes, 2):
        raise InputError(
            "directions, thresholds and children of a tree must have the shapes (n_nodes, n_features), (n_nodes,) and "
            f"(n_nodes, 2); got {directions.shape}, {thresholds.shape} and {children.shape}."
        )
    if not (_is_float(directions) and directions.dtype == thresholds.dtype and children.dtype == np.int32):
        raise InputError(
            "directions and thresholds of a tree must both be float32 or both float64, and its children int32; got "
            f"{directions.dtype}, {thresholds.dtype} and {children.dtype}."
        )
    every_one = np.concatenate([np.arange(-nodes - 1, 0), np.arange(1, nodes)]) if nodes else np.empty(0)
    backward = (children >= 0) & (children <= np.arange(nodes)[:, None])
    if backward.any() or not np.array_equal(np.sort(children, axis=None), every_one):
        raise InputError(
            f"children make no tree of {nodes} nodes and {nodes + 1} leaves: each node but the first must be the "
            "child of one node before it, and each leaf (as ~leaf) the child of one node."
        )


def _is_float(array: NDArray[Any]) -> bool:
    return array.dtype in (np.float32, np.float64)


def check_centres(centres: Centres, n_leaves: int) -> None:
    """Raise if neighbour lists and centres do not match."""
    points, neighbor_lists, gaps, beam = centres
    check_beam(beam)
    if neighbor_lists is None:
        return
    if len(points) != n_leaves or len(neighbor_lists) != n_leaves or gaps is None or gaps.shape != neighbor_lists.shape:
        raise InputError("centres, neighbor_lists and gaps must have a row for each leaf.")
    if not ((neighbor_lists >= 0) & (neighbor_lists < len(points))).all():
        raise InputError(f"neighbor_lists must hold indices of centres, 0 to {len(points) - 1}.")


def check_beam(beam: int) -> None:
    """Raise if a search cannot hold so many candidates."""
    if not 1 <= beam <= 2**20:
        raise InputError(f"beam={beam}: must be between 1 and 2^20.", parameter="beam", value=beam)


TreeArrays = tuple[Floats, Floats, NDArray[np.int32], NDArray[np.int32]]

MOST_LEAVES = 2**30
SHARPEN_ROWS = 512  # rows of a node that estimate its covariance
DIRECTION_GRID = 2.0**20  # sharpened directions are rounded, so that the order of a sum cannot show in them
CLEARLY_MORE = 1 + 2.0**-20  # a direction and its reverse spread rows alike: rounding must not choose
CUTS = ("median", "mean", "uniform", "quantile")

# Normal deviates come from a table of quantiles: no logarithm, whose last bit depends on the platform.
NORMAL_TABLE: NDArray[np.float32] = ndtri((np.arange(4096) + 0.5) / 4096).astype(np.float32)
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_CUT_STREAM = np.uint64(0xD1B54A32D192ED03)


# --- randomness: a hash of (seed, counter) -------------------------------------------------------------------------


def _mix(z: NDArray[np.uint64]) -> NDArray[np.uint64]:
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def hash_at(seed: int, rows: NDArray[np.integer[Any]]) -> NDArray[np.uint64]:
    """Return a 64-bit hash of (seed, row) for each of some rows."""
    return _mix(np.uint64(seed) + (rows.astype(np.uint64) + np.uint64(1)) * _GOLDEN)


def smallest_hashes(seed: int, rows: NDArray[np.int64], size: int) -> NDArray[np.intp]:
    """Return the indices of the `size` rows with the smallest hash, ascending."""
    if len(rows) <= size:
        return np.arange(len(rows))
    return np.sort(np.argpartition(hash_at(seed, rows), size - 1)[:size])


def hash_rows(seed: int, start: int, stop: int) -> NDArray[np.uint64]:
    """Return the hash of (seed, i) for i in start..stop-1."""
    if start < 0:
        raise ValueError("start: not negative")
    return hash_at(seed, np.arange(start, stop, dtype=np.uint64))


def sample_rows(seed: int, start: int, stop: int, limit: int) -> NDArray[np.int64]:
    """Return the rows of start..stop-1 whose hash is at most `limit`, ascending."""
    return start + np.flatnonzero(hash_rows(seed, start, stop) <= np.uint64(limit))


def hash_contents(X: NDArray[Any]) -> NDArray[np.uint64]:
    """Return a 64-bit hash of the values of each row; 0 and -0 are the same number."""
    bits = np.dtype(f"u{X.dtype.itemsize}")
    hashes = np.zeros(len(X), np.uint64)
    for column in X.T:
        hashes += np.ascontiguousarray(column + X.dtype.type(0)).view(bits)
        hashes *= _GOLDEN
        hashes ^= hashes >> np.uint64(29)
    return hashes


def _draw_direction(seed: int, draw: int, width: int, dtype: np.dtype[Any]) -> Floats:
    words = -(-width // 4)
    bits = hash_rows(seed, draw * words, (draw + 1) * words)
    nibbles = (bits[:, None] >> np.array([4, 20, 36, 52], dtype=np.uint64)) & np.uint64(4095)
    return _unit(NORMAL_TABLE[nibbles.ravel()[:width]].astype(np.float64), dtype)


def _draw_uniform(seed: int, draw: int) -> float:
    stream = int(np.uint64(seed) ^ _CUT_STREAM)
    return float(hash_rows(stream, draw, draw + 1)[0] >> np.uint64(11)) * 2.0**-53


# --- sums in a fixed order -----------------------------------------------------------------------------------------


def running_sum(terms: NDArray[np.float64]) -> Any:
    """Return the sum along the first axis, one term after the other."""
    return np.add.accumulate(terms, axis=0)[-1]


def _unit(v: NDArray[np.float64], dtype: np.dtype[Any]) -> Floats:
    unit: Floats = (v / np.sqrt(running_sum(v * v))).astype(dtype)
    return unit


# --- one split -----------------------------------------------------------------------------------------------------


def _systematic_rows(weights: NDArray[np.float64], count: int) -> NDArray[np.intp]:
    """Return `count` positions, evenly spaced in cumulative weight."""
    cumulative = np.add.accumulate(weights)
    targets = (np.arange(count) + 0.5) * (cumulative[-1] / count)
    positions: NDArray[np.intp] = np.minimum(np.searchsorted(cumulative, targets), len(weights) - 1)
    return positions


def _sharpened(v: Floats, X: Floats, weights: NDArray[np.float64], steps: int) -> Floats:
    """Return v after `steps` multiplications with the covariance of the rows, normalised each time."""
    if running_sum(weights) > SHARPEN_ROWS:
        rows = _systematic_rows(weights, SHARPEN_ROWS)
        X, weights = X[rows], np.ones(SHARPEN_ROWS)
    shifted = X.astype(np.float64) - X[0].astype(np.float64)
    for _ in range(steps):
        p = lanes_dot(X, v).astype(np.float64)
        p -= p[0]
        mean = running_sum(weights * p) / running_sum(weights)
        pull = running_sum((weights * (p - mean))[:, None] * shifted)
        norm = np.sqrt(running_sum(pull * pull))
        if not 0 < norm < np.inf:
            return v
        v = (np.rint(pull / norm * DIRECTION_GRID) / DIRECTION_GRID).astype(X.dtype)
    return v


def _grid_steps(p: Floats) -> tuple[NDArray[np.float64], float]:
    """Return projections above their minimum in whole steps of a grid, and the step: their sums are exact."""
    above = p.astype(np.float64) - np.float64(p.min())
    step = np.ldexp(1.0, max(np.frexp(above.max())[1] - 27, -1022))
    return np.rint(above / step), float(step)


def _spread(p: Floats, weights: NDArray[np.float64]) -> float:
    """Return the weighted sum of squares of the projections about their mean."""
    steps, step = _grid_steps(p)
    off = steps - running_sum(weights * steps) / running_sum(weights)
    return float(running_sum(weights * (off * off)) * step * step)


def _quantile(p: Floats, weights: NDArray[np.float64], share: float) -> float:
    """Return the smallest projection at which the cumulative weight reaches `share` of the total."""
    order = np.argsort(p, kind="stable")
    cumulative = np.add.accumulate(weights[order])
    return float(p[order[min(int(np.searchsorted(cumulative, share * cumulative[-1])), len(p) - 1)]])


def _cut_place(p: Floats, weights: NDArray[np.float64], cut: str, uniform: float) -> float:
    if cut == "median":
        return _quantile(p, weights, 0.5)
    if cut == "mean":
        steps, step = _grid_steps(p)
        return float(p.min()) + float(running_sum(weights * steps) / running_sum(weights)) * step
    if cut == "uniform":
        low, high = float(p.min()), float(p.max())
    else:
        low, high = _quantile(p, weights, 0.25), _quantile(p, weights, 0.75)
    return low + uniform * (high - low)


def _threshold(p: Floats, position: float) -> Any:
    """Return the middle of the gap between projections at the wanted position; both sides get rows."""
    below = p[p.astype(np.float64) <= position]
    low = below.max() if below.size else p.min()
    if low == p.max():
        low = p[p < low].max()
    high = p[p > low].min()
    middle = low + (high - low) * p.dtype.type(0.5)
    return middle if middle < high else low


def _widest_axis(X: Floats) -> Floats | None:
    """Return the unit vector of the column with the largest range, None where all rows are the same."""
    ranges = X.max(axis=0) - X.min(axis=0)
    if not ranges.max() > 0:
        return None
    axis = np.zeros(X.shape[1], X.dtype)
    axis[int(ranges.argmax())] = 1
    return axis


# --- growing -------------------------------------------------------------------------------------------------------


@too_large_is_infinite
def grow_tree(
    X: Floats,
    weights: NDArray[np.float64] | None,
    seed: int,
    rule: GrowRule,
    normal_table: NDArray[np.float32] = NORMAL_TABLE,
    n_threads: int = 1,
) -> TreeArrays:
    """Grow one random projection tree, largest node first; the same for any number of threads, of which this uses one.

    Returns directions (m, d), thresholds (m,), children (m, 2) where a negative entry is ~leaf, and the leaf of each
    row. Leaves are numbered from left to right.
    """
    leaf_size, max_leaves, cut, sharpen, n_candidates = rule
    n, width = X.shape
    w = np.ones(n) if weights is None else weights
    directions: list[Floats] = []
    thresholds: list[Any] = []
    children: list[list[int]] = []
    leaves: list[tuple[str, NDArray[np.intp], int, int]] = []  # path, rows, parent, side
    queue: list[tuple[float, int, str, NDArray[np.intp], int, int]] = []
    created = 0

    def enqueue(path: str, rows: NDArray[np.intp], parent: int, side: int) -> None:
        nonlocal created
        heapq.heappush(queue, (-float(running_sum(w[rows])), created, path, rows, parent, side))
        created += 1

    enqueue("", np.arange(n), -1, 0)
    while queue:
        negative_size, _, path, rows, parent, side = heapq.heappop(queue)
        full = len(queue) + len(leaves) + 1 >= max_leaves
        if full or -negative_size < leaf_size or len(rows) < 2:
            leaves.append((path, rows, parent, side))
            continue
        Xn, wn = X[rows], w[rows]
        best: tuple[float, Floats, Floats] | None = None
        # Draws are numbered by splits, so a node of equal rows uses none.
        for draw in range(len(directions) * n_candidates, (len(directions) + 1) * n_candidates):
            v = _sharpened(_draw_direction(seed, draw, width, X.dtype), Xn, wn, sharpen)
            p = lanes_dot(Xn, v)
            spread = _spread(p, wn) if n_candidates > 1 and p.min() < p.max() else 0.0
            if best is None or spread > best[0] * CLEARLY_MORE:
                best = (spread, v, p)
        assert best is not None
        _, v, p = best
        if not p.min() < p.max():
            axis = _widest_axis(Xn)
            if axis is None:
                leaves.append((path, rows, parent, side))
                continue
            v, p = axis, lanes_dot(Xn, axis)
        node = len(directions)
        threshold = _threshold(p, _cut_place(p, wn, cut, _draw_uniform(seed, node)))
        directions.append(v)
        thresholds.append(threshold)
        children.append([0, 0])
        if parent >= 0:
            children[parent][side] = node
        left = p <= threshold
        enqueue(path + "0", rows[left], node, 0)
        enqueue(path + "1", rows[~left], node, 1)

    leaf_of_row = np.empty(n, np.int32)
    for leaf, (_, rows, parent, side) in enumerate(sorted(leaves, key=lambda entry: entry[0])):
        leaf_of_row[rows] = leaf
        if parent >= 0:
            children[parent][side] = ~leaf
    return (
        np.array(directions, X.dtype).reshape(-1, width),
        np.array(thresholds, X.dtype),
        np.array(children, np.int32).reshape(-1, 2),
        leaf_of_row,
    )


# --- routing and adding up -----------------------------------------------------------------------------------------


def route(X: Floats, tree: FlatTree) -> tuple[NDArray[np.int32], int]:
    """Return the leaf of every row, and how many rows project to something that is not finite."""
    directions, thresholds, children = tree
    rows = len(X)
    if not len(directions):
        return np.zeros(rows, np.int32), int((lanes_dot(X, np.zeros_like(X[:1])) != 0).sum())
    node = np.zeros(rows, np.int32)
    first = lanes_dot(X, directions[:1])
    active = np.arange(rows)
    while active.size:
        at = node[active]
        left = lanes_dot(X[active], directions[at]) <= thresholds[at]
        node[active] = children[at, np.where(left, 0, 1)]
        active = active[node[active] >= 0]
    return ~node, int((~np.isfinite(first)).sum())


def _squared_distance(X: Floats, centres: Floats, ids: NDArray[np.int32]) -> Floats:
    off = X - centres[ids]
    return lanes_dot(off, off)


def search(X: Floats, starts: NDArray[np.int32], centres: Centres, width: int) -> tuple[NDArray[np.int32], Floats]:
    """Return the `width` nearest centres that each row finds, nearest first, and their squared distances.

    A row holds its nearest `width` of all centres tried so far, equally near ones by number; at first only its start.
    Again and again it tries all centres on the list of the nearest one held whose list was not tried yet, and ends when
    there is none. So the order in which a list is tried does not matter, nor whether a centre is tried twice. If fewer
    are found, the last fills the rest.
    """
    assert centres.neighbor_lists is not None
    rows = np.arange(len(X))
    ids = np.full((len(X), width), EMPTY, np.int32)
    squares = np.full(ids.shape, np.inf, X.dtype)
    tried = np.zeros(ids.shape, bool)
    first = _squared_distance(X, centres.points, starts)
    ids[:, 0], squares[:, 0] = starts, np.where(np.isnan(first), np.inf, first)
    while rows.size:
        index = (~tried[rows] & (ids[rows] != EMPTY)).argmax(axis=1)
        tried[rows, index] = True
        candidates = centres.neighbor_lists[ids[rows, index]]
        found = np.stack([_squared_distance(X[rows], centres.points, column) for column in candidates.T], axis=1)
        every = np.concatenate([ids[rows], candidates], axis=1)
        far = np.concatenate([squares[rows], np.where(np.isnan(found), np.inf, found)], axis=1)
        was_tried = np.concatenate([tried[rows], np.zeros(candidates.shape, bool)], axis=1)
        # Those held come before the same ones tried again, which are put behind all others.
        order = np.lexsort((~was_tried, every, far), axis=1)
        every, far, was_tried = (np.take_along_axis(part, order, axis=1) for part in (every, far, was_tried))
        again = np.zeros(every.shape, bool)
        again[:, 1:] = every[:, 1:] == every[:, :-1]
        every[again], far[again], was_tried[again] = EMPTY, np.inf, False
        order = np.argsort(again, axis=1, kind="stable")[:, :width]
        ids[rows], squares[rows], tried[rows] = (
            np.take_along_axis(part, order, axis=1) for part in (every, far, was_tried)
        )
        rows = rows[(~tried[rows] & (ids[rows] != EMPTY)).any(axis=1)]
    last = (ids != EMPTY).sum(axis=1, keepdims=True) - 1
    indices = np.minimum(np.arange(width), last)
    return np.take_along_axis(ids, indices, axis=1), np.take_along_axis(squares, indices, axis=1)


def nearest_few(
    X: Floats, leaf: NDArray[np.int32], centres: Centres, few: int
) -> tuple[NDArray[np.int32], Floats, NDArray[np.int32], Floats]:
    """Return the nearest centre of each row and its squared distance, then the same of its `few` nearest.

    The nearest does not depend on `few`: if more are asked for than rows hold in their search, a second search begins
    at the nearest.
    """
    ids, squares = search(X, leaf, centres, centres.beam)
    at, own = ids[:, 0], squares[:, 0]
    if few > centres.beam:
        ids, squares = search(X, at, centres, few)
    return at, own, ids[:, :few], squares[:, :few]


def _on_grid(values: NDArray[np.float64], magic: Any) -> NDArray[np.float64]:
    """Round to the grid of `magic`, which is 1.5 * 2**52 grid steps: the sum's last bit is one step."""
    rounded: NDArray[np.float64] = (values + magic) - magic
    return rounded


ADDING = Lock()
"""Held while NumPy adds to sums that other threads may add to as well."""


def add_up(
    X: Floats,
    weights: NDArray[np.float64] | None,
    ids: NDArray[np.int32],
    centres: Floats,
    sums: SumsOut,
    own: Floats | None,
) -> None:
    """Add rows to the sums of their signature; several threads may add to the same sums.

    `own` holds squared distances, if rows searched. `magic` (2, d + 2) holds the coarse and the fine grid of each
    column of `totals` (2, m, d + 2): the d offsets from the centre, the squared distance to the centre, the weight.
    """
    w = np.ones(len(X)) if weights is None else weights
    off = X.astype(np.float64) - centres[ids].astype(np.float64)
    terms = np.column_stack([off, lanes_dot(off, off), np.ones(len(X))])
    coarse = _on_grid(terms, sums.magic[0])
    fine = _on_grid(terms - coarse, sums.magic[1])
    with ADDING:
        np.add.at(sums.counts, ids, (w > 0).astype(np.int64))
        np.add.at(sums.totals[0], ids, w[:, None] * coarse)
        np.add.at(sums.totals[1], ids, w[:, None] * fine)
        if own is not None:
            np.fmax.at(sums.reach, ids, own.astype(np.float64))


class Searchable:
    """A tree with its centres, checked once: what rows are routed by, and search in."""

    def __init__(self, tree: FlatTree, centres: Centres) -> None:
        self.tree, self.centres = FlatTree(*tree), Centres(*centres)
        check_tree(self.tree)
        check_centres(self.centres, len(self.tree.thresholds) + 1)

    @too_large_is_infinite
    def scan(
        self,
        X: Floats,
        weights: NDArray[np.float64] | None,
        sums: SumsOut | None,
        found: NearestOut,
        beam: int | None = None,
    ) -> int:
        """Route rows, search from the leaf of each for its nearest centre, and add up, in one pass.

        Rows search if centres have neighbour lists, with the beam of the centres or another one. OUT: `sums` (see
        `add_up`) and `found`. Returns how many rows are not finite.
        """
        centres, found = self.centres if beam is None else self.centres._replace(beam=beam), NearestOut(*found)
        check_beam(centres.beam)
        ids, bad = route(X, self.tree)
        own: Floats | None = None
        if centres.neighbor_lists is not None:
            few = 1 if found.near_ids is None else found.near_ids.shape[1]
            ids, own, near_ids, near_squared = nearest_few(X, ids, centres, few)
            if found.near_ids is not None and found.near_squared is not None:
                found.near_ids[:], found.near_squared[:] = near_ids, near_squared
        if found.ids is not None:
            found.ids[:] = ids
        if sums is not None:
            add_up(X, weights, ids, centres.points, SumsOut(*sums), own)
        return bad


def searchable(tree: FlatTree, centres: Centres) -> Searchable:
    """Return a tree and its centres in the form that rows search in, made once for many calls."""
    return Searchable(tree, centres)


def scan(
    X: Floats,
    weights: NDArray[np.float64] | None,
    tree: FlatTree,
    centres: Centres,
    sums: SumsOut | None,
    found: NearestOut,
) -> int:
    """Return `searchable(tree, centres).scan(X, weights, sums, found)`, for a single call."""
    return searchable(tree, centres).scan(X, weights, sums, found)


# --- the forest's kernel -------------------------------------------------------------------------------------------


def coleaf_counts(a: NDArray[np.int32], b: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return how many trees put point i of `a` (trees, n) and point j of `b` (trees, m) into one leaf."""
    if min(a.min(initial=0), b.min(initial=0)) < 0 or max(a.max(initial=0), b.max(initial=0)) >= MOST_LEAVES:
        raise ValueError("a and b: leaves from 0 to 2^30")
    counts = np.zeros((a.shape[1], b.shape[1]), np.int32)
    for leaves_a, leaves_b in zip(a, b, strict=True):
        counts += leaves_a[:, None] == leaves_b[None, :]
    return counts
