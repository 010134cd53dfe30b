"""Divide and compress: the main road from a source of rows to signatures."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.random import SeedSequence
from numpy.typing import NDArray

from dc2.compress.divide import Division, grow_trees
from dc2.compress.router import Router, with_shortlist
from dc2.compress.sample import Sample, take_sample
from dc2.compress.signatures import Signatures
from dc2.compress.sums import Sums, grids
from dc2.core.reference import hash_at
from dc2.engines.base import Engine
from dc2.engines.threads import ThreadEngine
from dc2.errors import InputError
from dc2.random import tree_seed
from dc2.sources import Block, Source, as_source

SAMPLED_PER_SIGNATURE = 256
SAMPLE_BYTES = 256 * 2**20
SHORTLIST = 32
REFINE_ROWS = 100_000


@dataclass(frozen=True)
class Plan:
    """Everything that says how rows become signatures."""

    division: Division
    signature: str
    sample_size: int | str | None
    populate: str
    refine: int


@dataclass(frozen=True, eq=False)
class Compression:
    """What compression leaves: where rows go, what they became, and (rows in memory) who went where."""

    router: Router
    signatures: Signatures
    ids: NDArray[np.int32] | None
    n_rows: int


def compress(source: Source, engine: Engine, plan: Plan, seeds: SeedSequence, n_threads: int) -> Compression:
    """Sample, grow, route every row and add it up per leaf."""
    sample_seeds, tree_seeds, deal_seeds = seeds.spawn(3)
    sample_seed, deal_seed = tree_seed(sample_seeds), tree_seed(deal_seeds)
    sample = take_sample(source, engine, sample_rows_wanted(plan, source), sample_seed)
    router = place_cuts(sample, plan, tree_seeds, deal_seed, n_threads)
    sums, ids = add_up(source, engine, router, grids(sample.X, sample.total_weight), sample.n_rows)
    signatures = signatures_of(router, sums, sample, plan, sample_seed, n_threads)
    return Compression(router, signatures, ids, sample.n_rows)


def sample_rows_wanted(plan: Plan, source: Source) -> int:
    """Return how many rows place the cuts."""
    if plan.sample_size is None:
        return 2**62
    if plan.sample_size != "auto":
        return int(plan.sample_size)
    affordable = max(1, SAMPLE_BYTES // (source.n_features * source.dtype.itemsize))
    signatures = plan.division.n_signatures
    if signatures is None:
        assert plan.division.leaf_size is not None
        signatures = (
            affordable if source.n_rows is None else int(np.ceil(2 * source.n_rows / plan.division.leaf_size))
        )
    return min(affordable, SAMPLED_PER_SIGNATURE * signatures)


def place_cuts(sample: Sample, plan: Plan, seeds: SeedSequence, deal_seed: int, n_threads: int) -> Router:
    """Grow the trees on the sample, and find the centre of every leaf."""
    trees = grow_trees(sample, plan.division, seeds, deal_seed, n_threads)
    n_leaves = sum(tree.n_leaves for tree in trees)
    rough = Router(trees, np.zeros((n_leaves, sample.X.shape[1]), sample.X.dtype), deal_seed=deal_seed)
    rough = replace(
        rough, centres=rough.centres + sample.X.mean(axis=0, dtype=np.float64).astype(sample.X.dtype)
    )
    router = replace(rough, centres=_means(rough, sample, n_threads))
    if plan.populate == "leaf" or len(trees) > 1:
        return router
    router = with_shortlist(router, SHORTLIST)
    for _ in range(plan.refine):
        router = with_shortlist(replace(router, centres=_means(router, sample, n_threads)), SHORTLIST)
    return router


def add_up(
    source: Source, engine: Engine, router: Router, magic: NDArray[np.float64], n_rows: int
) -> tuple[Sums, NDArray[np.int32] | None]:
    """Route every row and add it up; keep where each went if the rows lie in memory."""
    ids = np.empty(n_rows, np.int32) if source.in_memory else None
    total = Sums.zeros(*router.centres.shape)
    seen = 0

    def add_block(block: Block) -> tuple[Sums, int]:
        rows = np.arange(block.start, block.stop)
        sums, block_ids = router.add_up(block.X, rows, block.weights, magic, source.feature_names)
        if ids is not None:
            ids[block.start : block.stop] = block_ids
        return sums, len(block.X)

    for sums, rows in engine.map(add_block, source, stage="compress"):
        total.add(sums)
        seen += rows
    if seen != n_rows:
        raise InputError(
            f"the source gave {n_rows} rows in its first pass and {seen} in its second; it must give the same rows "
            "each time."
        )
    return total, ids


def signatures_of(
    router: Router, sums: Sums, sample: Sample, plan: Plan, sample_seed: int, n_threads: int
) -> Signatures:
    """Turn sums into signatures: the mean of each leaf's rows, or a random one of them."""
    means, spread = sums.means_and_spread(router.centres)
    points = means.astype(router.dtype)
    if plan.signature == "member":
        points = _members(router, sample, sample_seed, n_threads)
    off = points.astype(np.float64) - means
    return Signatures(points, sums.weights, spread + np.einsum("ij,ij->i", off, off))


def _members(router: Router, sample: Sample, sample_seed: int, n_threads: int) -> NDArray[Any]:
    """Return the row with the smallest hash in each leaf: the sample, having the smallest hashes, holds it."""
    _, ids = _scan_sample(router, sample, n_threads)
    order = np.lexsort((hash_at(sample_seed, sample.rows), ids))
    leaves, first = np.unique(ids[order], return_index=True)
    points = router.centres.copy()
    points[leaves] = sample.X[order[first]]
    return points


def _means(router: Router, sample: Sample, n_threads: int) -> NDArray[Any]:
    """Return the mean of the sampled rows of each signature."""
    sums, _ = _scan_sample(router, sample, n_threads)
    means, _ = sums.means_and_spread(router.centres)
    return means.astype(router.dtype)


def _scan_sample(router: Router, sample: Sample, n_threads: int) -> tuple[Sums, NDArray[np.int32]]:
    magic = grids(sample.X, sample.weight)
    source = as_source(sample.X, sample_weight=sample.weights)

    def add_block(block: Block) -> tuple[Sums, NDArray[np.int32]]:
        return router.add_up(block.X, sample.rows[block.start : block.stop], block.weights, magic)

    total = Sums.zeros(*router.centres.shape)
    ids = []
    for sums, block_ids in ThreadEngine(n_threads).map(add_block, source, stage="divide"):
        total.add(sums)
        ids.append(block_ids)
    return total, np.concatenate(ids)
