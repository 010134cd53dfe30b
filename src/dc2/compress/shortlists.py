"""Shortlists: the signatures that a row tries on its walk to the nearest one."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics.pairwise import euclidean_distances
from threadpoolctl import threadpool_limits

from dc2 import core
from dc2.compress.router import Router
from dc2.core.pairs import squared_distances_of_pairs
from dc2.core.reference import hash_at
from dc2.trees.neighbours import Least, nearest_neighbours

SHORTLIST_ROWS = 256  # signatures that a thread compares with all others at a time
EXITS = 8
EXIT_DISTANCES = 2**22  # at most; with very many signatures, only some, at even steps, are tried as exits


def with_shortlist(router: Router, n_near: int, n_threads: int = 1, least: Least | None = None) -> Router:
    """Give every leaf the `n_near` signatures nearest to its own, and a few that lead farther out.

    `least` saves `nearest_neighbours` time.
    """
    n_near = min(n_near, len(router.centres))
    n_all = min(n_near + EXITS, len(router.centres))
    shortlist, _ = nearest_neighbours(router.centres, n_all, seed=router.deal_seed, n_threads=n_threads, least=least)
    shortlist, gaps = _by_distance(router.centres, shortlist, n_threads)
    if n_near < n_all:
        _put_exits(router.centres.astype(np.float64), n_near, shortlist, gaps, n_threads)
    return replace(router, shortlist=shortlist, gaps=_safe_gaps(gaps, router.centres))


def with_links(router: Router, n_near: int, n_links: int, n_threads: int = 1) -> Router:
    """Give every leaf, which holds a single point, the `n_near` nearest points and links to others, `n_links` in all.

    In many columns some points are on no other's list, and no walk would ever reach them. So a point is linked to those
    that list it, and, if there is room left, to some at random.
    """
    n = len(router.centres)
    near, _ = nearest_neighbours(router.centres, min(n_near, n), seed=router.deal_seed, n_threads=n_threads)
    links = _linked(near, min(n_links, n))
    shortlist, gaps = _by_distance(router.centres, links, n_threads)
    return replace(router, shortlist=shortlist, gaps=_safe_gaps(gaps, router.centres))


def _linked(near: NDArray[np.int32], n_links: int) -> NDArray[np.int32]:
    """Return each point, its neighbours, points that have it as a neighbour, then others, each once."""
    n, n_near = near.shape
    if n_links == n_near:
        return near
    links, _ = core.link_neighbours(near, near, n_links - 1)
    own = np.arange(n, dtype=np.int32)[:, None]
    # Steps that all differ lead to points that all differ, so there are always enough.
    steps = 1 + np.argsort(hash_at(0, np.arange(n - 1)), kind="stable")[: n_links - 1].astype(np.int32)
    every = np.concatenate([own, links, (own + steps) % np.int32(n)], axis=1)
    left_out = (every < 0) | _seen_before(every)
    kept = np.argsort(left_out, axis=1, kind="stable")[:, :n_links]
    return np.take_along_axis(every, kept, axis=1)


def _seen_before(ids: NDArray[np.int32]) -> NDArray[np.bool_]:
    """Tell which entries of each row stand farther to the left as well."""
    order = np.argsort(ids, axis=1, kind="stable")
    ordered = np.take_along_axis(ids, order, axis=1)
    again = np.zeros(ids.shape, bool)
    again[:, 1:] = ordered[:, 1:] == ordered[:, :-1]
    seen = np.empty_like(again)
    np.put_along_axis(seen, order, again, axis=1)
    return seen


def with_moved_centres(router: Router, centres: NDArray[Any], n_threads: int = 1) -> Router:
    """Replace the centres by others near them: shortlists keep their members, sorted by the new distances.

    Much cheaper than new shortlists, and as good if centres move less than the distances between them.
    """
    before = router.shortlist
    assert before is not None
    shortlist, gaps = _by_distance(centres, before, n_threads)
    return replace(router, centres=centres, shortlist=shortlist, gaps=_safe_gaps(gaps, centres))


def _by_distance(
    centres: NDArray[Any], listed: NDArray[np.int32], n_threads: int
) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
    """Return shortlists sorted by the distance to their own signature, and these distances, in float64."""
    own = np.repeat(np.arange(len(listed)), listed.shape[1])
    squared = squared_distances_of_pairs(centres, listed.ravel(), centres, own, n_threads)
    distances = np.sqrt(squared).reshape(listed.shape)
    order = np.argsort(distances, axis=1, kind="stable")  # its own, at distance 0, stays in front
    return np.take_along_axis(listed, order, axis=1), np.take_along_axis(distances, order, axis=1)


def _safe_gaps(gaps: NDArray[np.float64], centres: NDArray[Any]) -> NDArray[Any]:
    """Return distances, less what rounding of coordinates, and of squares near 0, may have added."""
    eps, tiny = np.finfo(centres.dtype).eps, np.finfo(centres.dtype).tiny
    longest = np.sqrt(centres.shape[1]) * float(np.abs(centres).max())
    safe: NDArray[Any] = np.maximum(gaps - (16 * eps * longest + np.sqrt(tiny)), 0.0).astype(centres.dtype)
    return safe


def _put_exits(
    centres: NDArray[np.float64],
    n_near: int,
    shortlist: NDArray[np.int32],
    gaps: NDArray[np.float64],
    n_threads: int,
) -> None:
    """Replace the farthest neighbours of each shortlist by exits, unless these are in it already."""
    n_all = shortlist.shape[1]
    some = np.arange(0, len(centres), -(-(len(centres) ** 2) // EXIT_DISTANCES), dtype=np.int32)
    centred = centres - centres.mean(axis=0)  # squares of large coordinates would hide small distances
    to_some = np.empty((len(centres), len(some)))

    def measure(start: int) -> None:
        own = np.arange(start, min(start + SHORTLIST_ROWS, len(centres)))
        to_some[own] = euclidean_distances(centred[own], centred[some])
        to_some[own] *= own[:, None] != some

    def put(start: int) -> None:
        near = np.ascontiguousarray(shortlist[start : start + SHORTLIST_ROWS, :n_near])
        exits = core.find_exits(to_some, some, near, start, EXITS)
        own = start + np.flatnonzero(exits[:, 0] >= 0)
        exits = exits[own - start]
        is_exit = exits >= 0
        ids, to_exits = some[exits], np.full(exits.shape, np.inf)
        of_row, place = np.nonzero(is_exit)
        to_exits[of_row, place] = np.linalg.norm(centres[ids[of_row, place]] - centres[own[of_row]], axis=1)
        near, tail = np.split(shortlist[own], [n_near], axis=1)
        to_near, to_tail = np.split(gaps[own], [n_near], axis=1)
        twice = ((tail[:, :, None] == ids[:, None]) & is_exit[:, None]).any(axis=2)
        left_out = np.concatenate([np.zeros(near.shape, bool), ~is_exit, twice], axis=1)
        # Those that stay come first, in their order.
        kept = np.argsort(left_out, axis=1, kind="stable")[:, :n_all]
        distances = np.take_along_axis(np.concatenate([to_near, to_exits, to_tail], axis=1), kept, axis=1)
        by_distance = np.argsort(distances, axis=1, kind="stable")
        listed = np.take_along_axis(np.concatenate([near, ids, tail], axis=1), kept, axis=1)
        shortlist[own] = np.take_along_axis(listed, by_distance, axis=1)
        gaps[own] = np.take_along_axis(distances, by_distance, axis=1)

    starts = range(0, len(centres), SHORTLIST_ROWS)
    with threadpool_limits(limits=1), ThreadPoolExecutor(n_threads, thread_name_prefix="dc2") as pool:
        list(pool.map(measure, starts))
        list(pool.map(put, starts))
