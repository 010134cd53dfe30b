"""The neighbour lists of signatures for graph search, and the width of the beam that the search needs."""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.random import SeedSequence
from numpy.typing import NDArray
from sklearn.metrics.pairwise import euclidean_distances

from dc2 import core
from dc2.compress.divide import sampled_rows
from dc2.compress.places import Sphere
from dc2.compress.routing import MOST_BEAM, Router
from dc2.compress.sampling import Sample, first_limit
from dc2.compress.scaling import Scaling
from dc2.core.neighbours_reference import squared_distances_of_pairs
from dc2.core.reference import lanes_dot
from dc2.graph.nodes import NearRows
from dc2.io.source import Block
from dc2.parameters import one_blas_thread
from dc2.random import tree_seed
from dc2.trees.neighbours import Least, nearest_neighbours
from dc2.trees.tree import RPTree, grow_on

ROWS_AT_ONCE = 256  # signatures that a thread compares with all others at a time
NEAR = 25  # signatures on a list, its own included, that are the nearest to it
LONG_LINKS = 8
LONG_LINK_DISTANCES = 2**22  # at most; with very many signatures, only some, at even steps, are tried as long links


def with_neighbor_lists(
    router: Router, n_near: int = NEAR, n_threads: int = 1, least: Least | None = None, rows: NDArray[Any] | None = None
) -> Router:
    """Return the router with neighbour lists and the beam that rows like `rows` need: see `with_beam`."""
    return with_beam(_with_lists(router, n_near, n_threads, least), rows, n_threads)


def _with_lists(router: Router, n_near: int, n_threads: int, least: Least | None = None) -> Router:
    """Return the router with neighbour lists.

    A list holds the `n_near` signatures nearest to its own, itself among them; those that have it among their nearest,
    since in many columns some signatures are on no other list and would never be found; and a few long links
    to farther ones. A list that is not full holds its own signature again, at an infinite distance.
    """
    n, centres = len(router.centres), router.centres
    near, _ = nearest_neighbours(centres, min(n_near, n), seed=router.deal_seed, n_threads=n_threads, least=least)
    links, _ = core.link_neighbours(near, near, max(1, min(2 * n_near, n) - 1))
    own = np.arange(n, dtype=np.int32)[:, None]
    linked = np.concatenate([own, np.where(links < 0, own, links)], axis=1)[:, : min(2 * n_near, n)]
    long_links = _long_links(centres, linked, n_threads)
    neighbor_lists, gaps = _by_distance(centres, np.concatenate([linked, long_links], axis=1), n_threads)
    is_used = np.append(True, (neighbor_lists[:, 1:] != own).any(axis=0))
    neighbor_lists, gaps = np.ascontiguousarray(neighbor_lists[:, is_used]), gaps[:, is_used]
    return replace(router, neighbor_lists=neighbor_lists, gaps=_safe_gaps(gaps, centres))


def with_moved_centres(router: Router, centres: NDArray[Any], n_threads: int = 1) -> Router:
    """Replace the centres by others near them: neighbour lists keep their members, sorted by the new distances.

    Much cheaper than new neighbour lists, and as good if centres move less than the distances between them.
    """
    before = router.neighbor_lists
    assert before is not None
    neighbor_lists, gaps = _by_distance(centres, before, n_threads)
    return replace(router, centres=centres, neighbor_lists=neighbor_lists, gaps=_safe_gaps(gaps, centres))


def _by_distance(
    centres: NDArray[Any], listed: NDArray[np.int32], n_threads: int
) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
    """Return neighbour lists sorted by the distance to their own signature, and these distances, in float64."""
    own = np.repeat(np.arange(len(listed)), listed.shape[1])
    squared = squared_distances_of_pairs(centres, listed.ravel(), centres, own, n_threads)
    distances = np.sqrt(squared).reshape(listed.shape)
    distances[:, 1:][listed[:, 1:] == listed[:, :1]] = np.inf
    order = np.argsort(distances, axis=1, kind="stable")  # its own, at distance 0, stays in front
    return np.take_along_axis(listed, order, axis=1), np.take_along_axis(distances, order, axis=1)


def _safe_gaps(gaps: NDArray[np.float64], centres: NDArray[Any]) -> NDArray[Any]:
    """Return distances minus the rounding error of coordinates, and of squares near 0."""
    eps, tiny = np.finfo(centres.dtype).eps, np.finfo(centres.dtype).tiny
    longest = np.sqrt(centres.shape[1]) * float(np.abs(centres).max())
    safe: NDArray[Any] = np.maximum(gaps - (16 * eps * longest + np.sqrt(tiny)), 0.0).astype(centres.dtype)
    return safe


def _long_links(centres: NDArray[Any], linked: NDArray[np.int32], n_threads: int) -> NDArray[np.int32]:
    """Return the long links of each signature, padded with the signature itself: see `find_long_links`."""
    n = len(centres)
    some = np.arange(0, n, -(-(n**2) // LONG_LINK_DISTANCES), dtype=np.int32)
    middle = centres.mean(axis=0, dtype=np.float64)  # squares of large coordinates would hide small distances
    columns, to_some = centres[some] - middle, np.empty((n, len(some)))

    def measure(start: int) -> None:
        own = np.arange(start, min(start + ROWS_AT_ONCE, n))
        to_some[own] = euclidean_distances(centres[own] - middle, columns)
        to_some[own] *= own[:, None] != some

    def find(start: int) -> NDArray[np.int32]:
        near = np.ascontiguousarray(linked[start : start + ROWS_AT_ONCE])
        found = core.find_long_links(to_some, some, near, start, LONG_LINKS)
        long_links = np.where(found < 0, near[:, :1], some[found])
        is_linked = (long_links[:, :, None] == near[:, None]).any(axis=2)
        return np.where(is_linked, near[:, :1], long_links)

    starts = range(0, n, ROWS_AT_ONCE)
    with one_blas_thread(), ThreadPoolExecutor(n_threads, thread_name_prefix="dc2") as pool:
        list(pool.map(measure, starts))
        return np.concatenate(list(pool.map(find, starts)))


def signature_router(
    points: NDArray[Any], seeds: SeedSequence, scaling: Scaling | Sphere | None = None, n_threads: int = 1
) -> tuple[Router, NDArray[np.int32]]:
    """Return a router whose leaves hold one distinct point each, and the number of each leaf's point."""
    router, first = point_router(points, seeds, scaling, n_threads, NEAR)
    return with_beam(router, n_threads=n_threads), first


def point_router(
    points: NDArray[Any], seeds: SeedSequence, scaling: Scaling | Sphere | None, n_threads: int, n_near: int
) -> tuple[Router, NDArray[np.int32]]:
    """Return the same with any number of neighbours on each list, and with a beam of 1."""
    rule: dict[str, Any] = {"leaf_size": 0.0, "max_leaves": len(points), "cut": "median", "sharpen": 2}
    tree, leaf = grow_on(points, None, seed=tree_seed(seeds), n_threads=n_threads, **rule)
    _, first = np.unique(leaf, return_index=True)
    router = Router((tree,), np.ascontiguousarray(points[first]), scaling=scaling)
    return _with_lists(router, n_near, n_threads), first.astype(np.int32)


def nearest_points(router: Router, few: int, n_threads: int) -> NDArray[np.int32]:
    """Return the nearest few points of each of the router's points, itself first."""
    assert router.neighbor_lists is not None
    if few <= min(NEAR, len(router.centres)):
        return router.neighbor_lists[:, :few]
    return nearest_neighbours(router.centres, few, seed=router.deal_seed, n_threads=n_threads)[0]


TRIED = 256  # rows whose search is compared with a comparison of all signatures
TRIED_AT_ONCE = 32  # by one thread
TRIED_SHARE = 8  # one signature of so many searches: the others must still lead to each other
FEW = 3  # nearest signatures of each; a row connects about as many
RECALL = 0.98  # share of the nearest, of the second and of the third that must be found
BEAM_STEP = 1.4  # factor from one beam to the next that is tried for many neighbours
SAME = 1 + 1e-5  # distances that differ by less were rounded differently
MOST_FOR_ROWS = 256  # candidates of a row that gets its signature; few rows would gain from more


def with_beam(router: Router, rows: NDArray[Any] | None = None, n_threads: int = 1) -> Router:
    """Return the router with the narrowest beam that finds nearly all of the nearest signatures.

    The width depends on the intrinsic dimension of the rows, which the number of columns does not show. So
    some rows search with a beam of 1, 2, 4 and so on, until they find what a comparison with all signatures finds.
    Without rows, which are scaled already, some signatures search as if they were absent.
    """
    if len(router.trees) > 1 or len(router.centres) <= TRIED_SHARE * FEW:
        return router
    trial = _of_rows(router, rows) if rows is not None and len(rows) else _of_signatures(router)
    nearest = _nearest(trial, n_threads)
    beam = 1
    while beam < MOST_FOR_ROWS and _recall(trial, beam, nearest) < RECALL:
        beam *= 2
    return router.with_beam(beam)


def with_beam_for(router: Router, few: int, recall: float, n_threads: int) -> tuple[Router, float]:
    """Return the router with a beam that finds the share `recall` of the few nearest points, and the share found.

    The beam is at least `few` wide. Some points search as if they were absent.
    """
    n = len(router.centres)
    assert router.neighbor_lists is not None
    if router.neighbor_lists.shape[1] >= n:
        return router.with_beam(min(few, MOST_BEAM)), 1.0  # each list holds all points
    trial = _of_signatures(router)
    nearest = _nearest(trial, n_threads, few)
    beam, found = min(few, MOST_BEAM), _share_found(trial, min(few, MOST_BEAM), nearest)
    while beam < MOST_BEAM and found < recall:
        beam = min(math.ceil(BEAM_STEP * beam), MOST_BEAM)
        found = _share_found(trial, beam, nearest)
    return router.with_beam(beam), found


def _share_found(trial: _Trial, beam: int, nearest: NDArray[np.float64]) -> float:
    """Return the share of the nearest signatures that searches with a beam find."""
    wide = min(beam + 1, MOST_BEAM)  # one place of the beam is for the point itself
    found = trial.router.nearest_few(trial.rows, nearest.shape[1] + 1, wide)[1][:, 1:].astype(np.float64)
    return float((found <= nearest[:, -1:] * SAME).mean())


@dataclass(frozen=True, eq=False)
class _Trial:
    """Rows that search, their router, and the signature that each must ignore: -1 for none."""

    router: Router
    rows: NDArray[Any]
    left_out: NDArray[np.intp]

    @property
    def is_left_out(self) -> bool:
        return bool((self.left_out >= 0).any())


def _of_rows(router: Router, rows: NDArray[Any]) -> _Trial:
    some = np.ascontiguousarray(rows[:: -(-len(rows) // TRIED)], router.dtype)
    return _Trial(replace(router, scaling=None), some, np.full(len(some), -1))


def _of_signatures(router: Router) -> _Trial:
    """Let signatures search from the leaf that they would reach if their own were absent."""
    assert router.neighbor_lists is not None and router.gaps is not None
    n = len(router.centres)
    tried = np.arange(0, n, max(-(-n // TRIED), TRIED_SHARE))
    neighbor_lists, gaps = router.neighbor_lists.copy(), router.gaps.copy()
    neighbor_lists[tried, 1:] = _leaves_beside(router.trees[0], router.centres[tried], tried)[:, None]
    gaps[tried, 1:] = 0
    blind = replace(router, neighbor_lists=neighbor_lists, gaps=gaps, scaling=None)
    return _Trial(blind, router.centres[tried], tried)


def _leaves_beside(tree: RPTree, points: NDArray[Any], leaves: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return the leaf that each point would reach if its own leaf were absent."""
    node, side = np.nonzero(tree.children < 0)
    leaf = ~tree.children[node, side]
    parent, own_side = np.empty(len(leaf), np.intp), np.empty(len(leaf), np.intp)
    parent[leaf], own_side[leaf] = node, side
    at = tree.children[parent[leaves], 1 - own_side[leaves]].astype(np.intp)
    while (active := np.flatnonzero(at >= 0)).size:
        here = at[active]
        is_left = lanes_dot(points[active], tree.directions[here]) <= tree.thresholds[here]
        at[active] = tree.children[here, np.where(is_left, 0, 1)]
    return ~at


def _nearest(trial: _Trial, n_threads: int, few: int = FEW) -> NDArray[np.float64]:
    """Return the squared distances of rows to their few nearest signatures, ascending."""
    middle = trial.router.centres.mean(axis=0, dtype=np.float64)  # squares of large coordinates hide small distances
    centres, rows = trial.router.centres - middle, trial.rows - middle

    def compare(start: int) -> NDArray[np.float64]:
        some = slice(start, start + TRIED_AT_ONCE)
        squared = euclidean_distances(rows[some], centres, squared=True)
        if trial.is_left_out:
            squared[np.arange(len(squared)), trial.left_out[some]] = np.inf
        candidates = np.argpartition(squared, few - 1, axis=1)[:, :few]
        off = rows[some][:, None] - centres[candidates]
        return np.sort(np.einsum("ijk,ijk->ij", off, off), axis=1)

    starts = range(0, len(rows), TRIED_AT_ONCE)
    with one_blas_thread(), ThreadPoolExecutor(n_threads, thread_name_prefix="dc2") as pool:
        return np.concatenate(list(pool.map(compare, starts)))


def _recall(trial: _Trial, beam: int, nearest: NDArray[np.float64]) -> float:
    """Return the recall of a beam: the smallest of the shares of first, second and third neighbours found."""
    taken = int(trial.is_left_out)  # one place of the beam, by the signature itself
    search = trial.router.nearest_few
    first = search(trial.rows, 1 + taken, beam + taken)[1][:, taken:]
    others = search(trial.rows, FEW + taken, beam + taken)[1][:, 1 + taken :]
    found = np.concatenate([first, others], axis=1).astype(np.float64)
    shares = (found <= nearest[:, : found.shape[1]] * SAME).mean(axis=0)
    return float(shares.min(initial=1.0))  # lists of one signature leave none to find


EdgesPerRow = Callable[[NDArray[Any], float], int]
"""From the signatures' points and the weight per signature to the number of signatures that a row connects."""


@dataclass(frozen=True, eq=False)
class EdgeRows:
    """Which rows make edges: those with small hashes, so that neither blocks nor threads matter."""

    few: int  # signatures that a row connects
    seed: int  # of the hash, that of the sample: sampled rows are among those that make edges
    limit: int  # the largest hash

    @classmethod
    def beyond(cls, sample: Sample, router: Router, per_row: EdgesPerRow | None, seed: int) -> EdgeRows | None:
        """Return the rows that make edges, or None if those of the sample are enough or no edges are wanted.

        With `sampled_rows` rows, 32 per signature or more, edges hardly change any more. So the nearest signatures of
        these rows take up 32 * (4 * few + 8) bytes per signature at most.
        """
        enough = sampled_rows(len(router.centres))
        if per_row is None or router.neighbor_lists is None or len(sample.rows) >= min(enough, sample.n_rows):
            return None
        few = min(per_row(router.centres, sample.total_weight / len(router.centres)), router.neighbor_lists.shape[1])
        return cls(few, seed, first_limit(enough, sample.n_rows))

    def ids_for(self, block: Block) -> NDArray[np.int32]:
        """Return an array for the nearest signatures of a block's rows."""
        return np.empty((block.n_rows, self.few), np.int32)

    def of(self, block: Block, near_ids: NDArray[np.int32]) -> NearRows:
        """Return those rows of a block that make edges; rows of weight 0 make none."""
        indices = block.sampled(self.seed, self.limit)
        if block.keys is not None:
            weights = np.ones(len(indices)) if block.weights is None else block.weights[indices]
            return joined([NearRows(near_ids[indices], weights, by_ids=True)])
        if block.weights is None:
            return NearRows(near_ids if len(indices) == block.n_rows else near_ids[indices], None)
        indices = indices[block.weights[indices] > 0]
        return NearRows(near_ids[indices], np.ascontiguousarray(block.weights[indices], np.float64))


def joined(parts: list[NearRows]) -> NearRows:
    """Return the rows of consecutive blocks as one; rows that are joined by ids have their weights added."""
    weights = None
    if parts[0].weights is not None:
        weights = np.concatenate([part.weights for part in parts if part.weights is not None])
    ids = np.concatenate([part.ids for part in parts])
    if not parts[0].by_ids or weights is None:
        return NearRows(ids, weights)
    ids, of_row = np.unique(ids[weights > 0], axis=0, return_inverse=True)
    return NearRows(ids, np.bincount(of_row.ravel(), weights[weights > 0], len(ids)).astype(np.float64), by_ids=True)
