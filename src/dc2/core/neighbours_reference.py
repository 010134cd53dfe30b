"""The NumPy twin of the native loops that find nearest neighbours.

Neighbours stand in lists, rows of two arrays: `ids` (n, k), int32, and `distances` (n, k), squared. A list holds its
point first, then the nearest found so far, by distance and then by id, each id once. Places still empty hold `EMPTY`,
infinitely far. What a list holds in the end depends on what was offered to it, never on the order.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dc2 import core
from dc2.core.reference import EMPTY, Floats, lanes_dot

PAIRS_AT_ONCE = 1 << 13  # by one thread


def squared_distances_of_pairs(
    A: NDArray[Any], in_a: NDArray[np.integer[Any]], B: NDArray[Any], in_b: NDArray[np.integer[Any]], n_threads: int = 1
) -> NDArray[np.float64]:
    """Return the squared distance of row in_a[i] of A to row in_b[i] of B for each i, in float64.

    A and B are of one dtype, float32 or float64. The answer is the same for any number of threads.

    Examples
    --------
    >>> rows = np.array([[0.0, 0.0], [3.0, 4.0]])
    >>> squared_distances_of_pairs(rows, np.array([0, 1]), rows, np.array([1, 1])).tolist()
    [25.0, 0.0]
    """
    A, B = np.ascontiguousarray(A), np.ascontiguousarray(B)
    from_a, from_b = in_a.astype(np.int32), in_b.astype(np.int32)
    squared = np.empty(len(from_a))

    def measure(start: int) -> None:
        some = slice(start, start + PAIRS_AT_ONCE)
        core.pair_squares(A, from_a[some], B, from_b[some], squared[some])

    starts = range(0, len(squared), PAIRS_AT_ONCE)
    if n_threads == 1 or len(starts) <= 1:
        for start in starts:
            measure(start)
    else:
        with ThreadPoolExecutor(n_threads, thread_name_prefix="dc2") as pool:
            list(pool.map(measure, starts))
    return squared


NUMBERS = 1 << 16  # subtracted at a time, in the cache

Ids = NDArray[np.int32]


def _offer(own: int, candidates: NDArray[np.integer[Any]], found: Floats, ids: Ids, distances: Floats) -> None:
    """Put different candidates at the distances `found` on the list of point `own`, as far as they are near enough."""
    k = ids.shape[1]
    if len(found) > k:  # sorting all of them would take long
        near = found <= np.partition(found, k - 1)[k - 1]
        candidates, found = candidates[near], found[near]
    every = np.concatenate([ids[own, 1:], candidates])
    far = np.concatenate([distances[own, 1:], found])
    every, once = np.unique(every, return_index=True)
    far = far[once]
    kept = np.lexsort((every, far))
    kept = kept[(every[kept] != own) & (every[kept] != EMPTY)][: k - 1]
    ids[own, 1:], distances[own, 1:] = EMPTY, np.inf
    ids[own, 1 : 1 + len(kept)], distances[own, 1 : 1 + len(kept)] = every[kept], far[kept]


def _offer_points(points: Floats, own: int, candidates: NDArray[Any], ids: Ids, distances: Floats) -> None:
    off = points[candidates] - points[own]
    _offer(own, candidates, lanes_dot(off, off), ids, distances)


def offer_groups(
    points: Floats,
    width: int,
    order: Ids,
    starts: NDArray[np.int64],
    span: tuple[int, int],
    ids: Ids,
    distances: Floats,
) -> None:
    """Offer the points order[begin..end) all members of their group, which is order[starts[g]..starts[g + 1]).

    `points` has its `width` columns padded with zeros to whole lanes. OUT: `ids`, `distances`.
    """
    _require(points.shape[1] == -(-width // 8) * 8, "points: rows of whole lanes")
    _require(_all_within(order, 0, len(points)), "order: points")
    ascending = len(starts) > 1 and starts[0] == 0 and starts[-1] == len(order) and (np.diff(starts) >= 0).all()
    _require(bool(ascending), "starts: from 0 to the number of points, ascending")
    begin, end = span
    _require(0 <= begin <= end <= len(order), "span: indices of order")
    for at in np.arange(begin, end):
        group = int(np.searchsorted(starts, at, side="right")) - 1
        _offer_points(points, int(order[at]), order[starts[group] : starts[group + 1]], ids, distances)


class RoughCopy:
    """Points rounded to eight bits, by which the native core sees that two are far from each other."""


def rough_copy(points: Floats) -> RoughCopy:
    """Return a rough copy of points; here it holds nothing."""
    return RoughCopy()


def offer_links(
    points: Floats,
    width: int,
    links: Ids,
    fresh: NDArray[np.uint8],
    queries: Ids,
    ids: Ids,
    distances: Floats,
    *,
    least: NDArray[np.float32] | None = None,
    rough: RoughCopy | None = None,
) -> None:
    """Offer some points their links and the links of their links, as far as one of the two steps is fresh.

    `least` (n, n): what the squared distances of points are at least; it and `rough` only save time. OUT: `ids`,
    `distances`.
    """
    _require(least is None or least.shape == (len(points), len(points)), "least: shape")
    _require(points.shape[1] == -(-width // 8) * 8, "points: rows of whole lanes")
    _require(_all_within(links, -1, len(points)), "links: points")
    _require(_all_within(queries, 0, len(points)), "queries: points")
    for own in queries:
        candidates: set[int] = set()
        for near, near_is_fresh in _linked(links, fresh, own):
            if near_is_fresh:
                candidates.add(near)
            candidates |= {far for far, is_fresh in _linked(links, fresh, near) if near_is_fresh or is_fresh}
        if candidates:
            _offer_points(points, int(own), np.array(sorted(candidates), np.int32), ids, distances)


def _linked(links: Ids, fresh: NDArray[np.uint8], own: int) -> list[tuple[int, bool]]:
    """Return the links of a point, and whether each is fresh."""
    row = links[own].tolist()
    count = row.index(-1) if -1 in row else len(row)
    return [(link, bool(new)) for link, new in zip(row[:count], fresh[own, :count], strict=True)]


def link_neighbours(ids: Ids, before: Ids, width: int) -> tuple[Ids, NDArray[np.uint8]]:
    """Return the links of each point: its neighbours, then points that have it for a neighbour, `width` at most.

    If there are too many, those whose lists have the point first take the room. Returns links (n, width),
    -1 behind the last, and which of them are fresh: from a neighbour who was not on the list `before`.
    """
    _require(before.shape == ids.shape, "before: shape of ids")
    _require(width > 0, "width: positive")
    _require(_all_within(ids, 0, 2**31), "ids: not negative")
    n, k = ids.shape
    linked: list[list[tuple[int, bool]]] = [[] for _ in ids]
    lists = [[neighbour for neighbour in row[1:] if neighbour < n] for row in ids.tolist()]
    old = [set(row[1:]) for row in before.tolist()]
    for own, neighbours in enumerate(lists):
        linked[own] += [(neighbour, neighbour not in old[own]) for neighbour in neighbours[:width]]
    for index in np.arange(k - 1):
        for own, neighbours in enumerate(lists):
            if index >= len(neighbours):
                continue
            near = neighbours[index]
            if len(linked[near]) < width and own not in lists[near]:
                linked[near].append((own, near not in old[own]))
    links, fresh = np.full((n, width), -1, np.int32), np.zeros((n, width), np.uint8)
    for own, entries in enumerate(linked):
        for index, (link, is_fresh) in enumerate(entries):
            links[own, index], fresh[own, index] = link, is_fresh
    return links, fresh


def offer_copies(
    near: Ids, near_distances: Floats, starts: NDArray[np.int64], rows: Ids, ids: Ids, distances: Floats
) -> None:
    """Offer each row the rows equal to it, and the rows equal to its neighbours.

    `near` and `near_distances` are lists of distinct points. The rows equal to point p are
    rows[starts[p]..starts[p + 1]), ascending. OUT: `ids`, `distances`.
    """
    n = len(rows)
    ascending = starts[0] == 0 and starts[-1] == n and (np.diff(starts) >= 0).all()
    _require(bool(len(starts) == len(near) + 1 and ascending), "starts: from 0 to the number of rows, ascending")
    _require(_all_within(rows, 0, n), "rows: numbers of rows")
    _require(_all_within(near, 0, len(near)), "near: numbers of points")
    for index, (indices, far) in enumerate(zip(near, near_distances, strict=True)):
        copies = [rows[starts[p] : starts[p + 1]] for p in indices]
        found = np.repeat(far, [len(members) for members in copies])
        for own in rows[starts[index] : starts[index + 1]]:
            _offer(int(own), np.concatenate(copies), found, ids, distances)


def pair_squares(A: Floats, in_a: Ids, B: Floats, in_b: Ids, out: NDArray[np.float64]) -> None:
    """Take the squared distance of row in_a[i] of A and row in_b[i] of B for each i, in float64. OUT: `out`."""
    _require(A.shape[1] == B.shape[1], "A and B: as many columns")
    _require(in_a.shape == in_b.shape == out.shape, "in_a, in_b and out: length")
    _require(_all_within(in_a, 0, len(A)), "in_a: rows of A")
    _require(_all_within(in_b, 0, len(B)), "in_b: rows of B")
    step = max(1, NUMBERS // A.shape[1])
    for start in range(0, len(out), step):
        some = slice(start, start + step)
        off = A[in_a[some]].astype(np.float64) - B[in_b[some]]
        out[some] = lanes_dot(off, off)


def _all_within(values: NDArray[np.integer[Any]], low: int, stop: int) -> bool:
    return bool(((values >= low) & (values < stop)).all())


def _require(holds: bool, what: str) -> None:
    if not holds:
        raise ValueError(what)


def find_long_links(to_some: NDArray[np.float64], some: Ids, near: Ids, first: int, most: int) -> NDArray[np.int32]:
    """Return the long links of signatures, nearest first, then -1: columns of `to_some` that no neighbour leads to.

    A search for signature c goes on from here at a neighbour that is nearer to c than this signature is. Where there
    is none it would be trapped here, however far from c: then c itself becomes a neighbour.

    `to_some` (n_signatures, n_some): distances of all signatures to `some`. `near` (n_rows, n_near): the neighbours of
    the signatures from `first` on, each its own first. `most`: long links of a signature.
    """
    here = to_some[first : first + len(near)]
    left = here > 0
    for neighbour in near.T[1:]:
        left &= to_some[neighbour] >= here
    long_links = np.full((len(near), most), -1, np.int32)
    rows = np.flatnonzero(left.any(axis=1))
    for index in range(most):
        own = here[rows]
        long_links[rows, index] = np.where(left[rows], own, np.inf).argmin(axis=1)
        left[rows] &= to_some[some[long_links[rows, index]]] >= own
        rows = rows[left[rows].any(axis=1)]
    return long_links
