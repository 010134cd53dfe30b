"""Divide and compress: from a source of rows to signatures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.random import SeedSequence
from numpy.typing import NDArray

from dc2.compress.divide import grow_trees
from dc2.compress.plan import Plan
from dc2.compress.router import Router
from dc2.compress.sample import Sample, take_sample
from dc2.compress.scaling import Scaling, learn_scaling
from dc2.compress.shortlists import with_moved_centres, with_shortlist
from dc2.compress.signatures import Signatures
from dc2.compress.sums import SpareSums, Sums, grids
from dc2.core.reference import hash_at
from dc2.engines.answers import in_form_of
from dc2.engines.base import Engine
from dc2.engines.threads import ThreadEngine
from dc2.errors import InputError
from dc2.model_file import saved_record
from dc2.random import tree_seed
from dc2.sources import Block, Source, as_source

REACH_BYTES = 2**20  # bytes of rows compared with their centres at a time; they fit in the cache
# With many columns, more signatures are about equally near.
SHORTLIST, SHORTLIST_OF_WIDE_ROWS, WIDE = 24, 48, 64


@dataclass(frozen=True, eq=False)
class CompressSeeds:
    """The seeds of a compression: for its sample, its trees, and dealing rows to partitions."""

    sample: int
    trees: SeedSequence
    deal: int

    @classmethod
    def of(cls, seeds: SeedSequence) -> CompressSeeds:
        """Spawn them."""
        sample, trees, deal = seeds.spawn(3)
        return cls(tree_seed(sample), trees, tree_seed(deal))


@saved_record
@dataclass(frozen=True, eq=False)
class Compression:
    """The result of a compression.

    Attributes
    ----------
    router : Router or the like
        Sends rows to signatures.
    signatures : Signatures
    n_rows : int
        Number of rows.
    ids : ndarray of shape (n_rows,), int32, or None
        The signature of each row, for rows in memory.
    sample : Sample or None
        The rows that placed the cuts, scaled; a similarity may use them. Not saved with models.
    """

    router: Any
    signatures: Signatures
    n_rows: int
    ids: NDArray[np.int32] | None = None
    sample: Sample | None = None

    def check(self) -> None:
        """Raise if rows could be sent to signatures that do not exist; called when read from a model file."""
        if not hasattr(self.router, "assign") or self.router.centres.shape != self.signatures.points.shape:
            raise InputError("the router and the signatures of a Compression do not fit together.")


def compress(source: Source, engine: Engine, plan: Plan, seeds: SeedSequence, n_threads: int) -> Compression:
    """Sample rows, grow the trees, then route every row and add it to the sums of its leaf."""
    own = CompressSeeds.of(seeds)
    size = plan.sample_rows_wanted(source.n_features, source.dtype, source.n_rows)
    sample = ScaledSample.of(take_sample(source, engine, size, own.sample), plan)
    return compress_sampled(source, engine, sample, plan, own, n_threads)


@dataclass(frozen=True, eq=False)
class ScaledSample:
    """A scaled sample and its scaling; it replaces the sample as read, so only one is in memory."""

    sample: Sample
    scaling: Scaling | None

    @classmethod
    def of(cls, sample: Sample, plan: Plan) -> ScaledSample:
        """Learn the scaling from a sample, and apply it."""
        scaling = learn_scaling(plan.scale, plan.metric, sample.X, sample.weights)
        return cls(sample if scaling is None else replace(sample, X=scaling.apply(sample.X)), scaling)


def compress_sampled(
    source: Source, engine: Engine, scaled: ScaledSample, plan: Plan, seeds: CompressSeeds, n_threads: int
) -> Compression:
    """Grow the trees on a sample, then route every row and add it to the sums of its leaf."""
    scaled = replace(scaled, sample=scaled.sample.sent_to(engine))
    router, reach = place_cuts(scaled, plan, seeds, n_threads)
    sample = scaled.sample
    sums, ids = add_up(source, engine, router, grids(reach, sample.total_weight), sample.n_rows)
    signatures = signatures_of(router, sums, sample, plan, seeds.sample, n_threads)
    return Compression(router, signatures, sample.n_rows, ids, sample)


def list_length(n_features: int) -> int:
    """Return how many near signatures are listed for each signature."""
    return SHORTLIST if n_features <= WIDE else SHORTLIST_OF_WIDE_ROWS


def near(router: Router, n_threads: int) -> Router:
    """Return the router with shortlists, making them if it has none."""
    return router if router.shortlist is not None else with_shortlist(router, list_length(router.n_features), n_threads)


def place_cuts(
    scaled: ScaledSample, plan: Plan, seeds: CompressSeeds, n_threads: int
) -> tuple[Router, NDArray[np.float64]]:
    """Grow the trees on the sample and find the centre of every leaf.

    Returns the router and, for `grids`, how far rows lie from their centres in each column.
    """
    sample = scaled.sample
    trees, leaf = grow_trees(sample, plan.division, seeds.trees, seeds.deal, n_threads)
    centres = _first_rows(sample.X, leaf)
    reach = _reach(sample.X, centres, leaf, n_threads)
    router = Router(trees, centres, deal_seed=seeds.deal, scaling=scaled.scaling)
    router = replace(router, centres=_means(router, sample, reach, n_threads))
    if plan.populate == "nearest" and len(trees) == 1:
        least = None if sample.on_card is None else sample.on_card.least_squared_distances
        router = with_shortlist(router, list_length(router.n_features), n_threads, least=least)
        for _ in range(plan.refine):
            router = with_moved_centres(router, _means(router, sample, reach, n_threads), n_threads)
        if plan.refine:
            router = with_shortlist(router, list_length(router.n_features), n_threads, least=least)
    return router, reach


def _first_rows(X: NDArray[Any], leaf: NDArray[np.int32]) -> NDArray[Any]:
    """Return the first row of each leaf."""
    first = np.empty(int(leaf.max()) + 1, np.intp)
    # If a place is written several times, the last value stays.
    first[leaf[::-1]] = np.arange(len(leaf))[::-1]
    rows: NDArray[Any] = X[first]
    return rows


def _reach(X: NDArray[Any], centres: NDArray[Any], leaf: NDArray[np.int32], n_threads: int) -> NDArray[np.float64]:
    """Return the largest distance of a row from the centre of its leaf, in each column.

    If the sample is so small that every row is its own centre, return how far rows lie from each other.
    """

    def farthest(block: Block) -> NDArray[Any]:
        off: NDArray[Any] = np.abs(block.X - centres[leaf[block.start : block.stop]]).max(axis=0)
        return off

    blocks = ThreadEngine(n_threads, REACH_BYTES).map(farthest, as_source(X), stage="divide")
    reach: NDArray[np.float64] = np.max(list(blocks), axis=0).astype(np.float64)
    return reach if reach.any() else np.ptp(X, axis=0).astype(np.float64)


def add_up(
    source: Source, engine: Engine, router: Router, magic: NDArray[np.float64], n_rows: int
) -> tuple[Sums, NDArray[np.int32] | None]:
    """Route every row and add it up; keep the signature of each if the rows lie in memory."""
    ids = np.empty(n_rows, np.int32) if source.in_memory else None
    ids_on_card: list[Any] = []  # at most one: rows on a card are a single block
    total: Sums | None = None
    spare = SpareSums(*router.centres.shape)
    seen = 0

    def add_block(block: Block) -> tuple[Sums, int]:
        rows = range(block.start, block.stop)
        sums = spare.take()
        X = block.where_they_lie
        block_ids = router.add_up(X, rows, block.weights, magic, sums, source.feature_names)
        if not isinstance(block_ids, np.ndarray):
            ids_on_card.append(block_ids)
        elif ids is not None:
            ids[block.start : block.stop] = block_ids
        return sums, block.n_rows

    for sums, rows in engine.map(add_block, source, stage="compress", merge=_added, result_bytes=spare.nbytes):
        seen += rows
        if total is None:
            total = sums
        else:
            total.add(sums)
            spare.give_back(sums)
    if total is None or seen != n_rows:
        raise InputError(
            f"the source gave {n_rows} rows in its first pass and {seen} in its second; it must give the same rows "
            "each time."
        )
    return total, ids_on_card[0] if ids_on_card else in_form_of(source, ids)


def _added(parts: Sequence[tuple[Sums, int]]) -> tuple[Sums, int]:
    """Add up the sums and the row counts of several blocks."""
    total = Sums.zeros(*parts[0][0].shape)
    for sums, _ in parts:
        total.add(sums)
    return total, sum(rows for _, rows in parts)


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
    """Return the row with the smallest hash in each leaf; it is in the sample, which has the smallest hashes."""
    _, ids = _scan_sample(router, sample, np.ones(router.n_features), n_threads)
    order = np.lexsort((hash_at(sample_seed, sample.rows), ids))
    leaves, first = np.unique(ids[order], return_index=True)
    points = router.centres.copy()
    points[leaves] = sample.X[order[first]]
    return points


def _means(router: Router, sample: Sample, reach: NDArray[np.float64], n_threads: int) -> NDArray[Any]:
    """Return the mean of the sampled rows of each signature."""
    if sample.on_card is not None and len(router.trees) == 1:
        return router.means_on_card(sample.on_card, sample.weights, grids(reach, sample.weight))
    sums, _ = _scan_sample(router, sample, reach, n_threads)
    means, _ = sums.means_and_spread(router.centres)
    return means.astype(router.dtype)


def _scan_sample(
    router: Router, sample: Sample, reach: NDArray[np.float64], n_threads: int
) -> tuple[Sums, NDArray[np.int32]]:
    router = replace(router, scaling=None)  # the sample is scaled already
    magic = grids(reach, sample.weight)
    source = as_source(sample.X, sample_weight=sample.weights)

    total = Sums.zeros(*router.centres.shape)
    spare = SpareSums(*router.centres.shape)

    def add_block(block: Block) -> tuple[Sums, NDArray[np.int32]]:
        sums = spare.take()
        rows = sample.rows[block.start : block.stop]
        return sums, router.add_up(block.X, rows, block.weights, magic, sums)

    ids = []
    for sums, block_ids in ThreadEngine(n_threads).map(add_block, source, stage="divide", result_bytes=spare.nbytes):
        total.add(sums)
        spare.give_back(sums)
        ids.append(block_ids)
    return total, np.concatenate(ids)
