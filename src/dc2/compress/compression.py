"""The signatures nearest to each row of a sample."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import Any, cast

import numpy as np
from numpy.random import SeedSequence
from numpy.typing import NDArray

from dc2.compress.divide import Plan, grow_trees
from dc2.compress.neighbor_lists import (
    EdgeRows,
    EdgesPerRow,
    joined,
    signature_router,
    with_moved_centres,
    with_neighbor_lists,
)
from dc2.compress.places import Sphere
from dc2.compress.populate import Lookup
from dc2.compress.routing import Router, RowRouter
from dc2.compress.sampling import (
    Sample,
    count_repeated_rows,
    has_distinct_rows,
    take_sample,
)
from dc2.compress.scaling import Scaling, learn_scaling
from dc2.compress.signatures import SharedSums, Signatures, Sums, bytes_of_sums, grids
from dc2.core.reference import hash_at
from dc2.engines.engine import Engine
from dc2.engines.map_rows import in_form_of
from dc2.engines.threads import ThreadEngine
from dc2.errors import InputError
from dc2.graph.density import linear_dimension, spanned_dimension
from dc2.graph.neighbor_graph import rows_as_nodes, signatures_for
from dc2.graph.nodes import NearRows
from dc2.io.model_file import saved_record
from dc2.io.resolve import as_source
from dc2.io.source import Block, Source
from dc2.random import tree_seed
from dc2.trees.neighbours import DistinctRows, distinct_rows
from dc2.trees.tree import NO_LIMIT

REACH_BYTES = 2**20  # bytes of rows compared with their centres at a time; they fit in the cache
# With fewer sampled rows per signature, their mean is far from them all, and from the mean of the other rows.
ROWS_OF_A_MEAN = 8


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
    """The result of a compression; ids, sample and near are not saved with models."""

    router: RowRouter
    signatures: Signatures
    n_rows: int
    ids: NDArray[np.int32] | None = None  # the signature of each row, for rows in memory
    sample: Sample | None = None  # the rows that placed the cuts, scaled; a similarity may use them
    near: NearRows | None = None  # nearest signatures of the rows that make edges, if those of the sample are too few

    @property
    def tree_router(self) -> Router:
        """The router where it has trees; KASP has none."""
        return cast(Router, self.router)

    def check(self) -> None:
        """Raise if rows could be sent to signatures that do not exist; called when read from a model file."""
        if not hasattr(self.router, "assign") or self.router.centres.shape != self.signatures.points.shape:
            raise InputError("the router and the signatures of a Compression do not fit together.")


def compress(
    source: Source, engine: Engine, plan: Plan, seeds: SeedSequence, n_threads: int, per_row: EdgesPerRow | None = None
) -> Compression:
    """Sample rows, grow the trees, then route every row and add it to the sums of its leaf."""
    own = CompressSeeds.of(seeds)
    size = plan.sample_rows_wanted(source.n_features, source.dtype, source.n_rows)
    sample = ScaledSample.drawn(source, engine, plan, size, own.sample)
    return compress_sampled(source, engine, sample, plan, own, n_threads, per_row)


@dataclass(frozen=True, eq=False)
class ScaledSample:
    """A scaled sample and its scaling; it replaces the sample as read, so only one is in memory."""

    sample: Sample
    scaling: Scaling | Sphere | None

    @classmethod
    def drawn(cls, source: Source, engine: Engine, plan: Plan, size: int, seed: int) -> ScaledSample:
        """Draw a sample of rows, and scale it."""
        if plan.metric == "haversine":  # other columns are refused before any pass
            Sphere.of(source.n_features, source.feature_names)
        return cls.of(take_sample(source, engine, size, seed), plan, source.feature_names)

    @classmethod
    def of(cls, sample: Sample, plan: Plan, names: tuple[str, ...] | None) -> ScaledSample:
        """Learn the scaling from a sample of columns with these names, and apply it."""
        if plan.metric == "haversine":
            sphere = Sphere.of(sample.X.shape[1], names)
            return cls(replace(sample, X=sphere.apply(sample.X, sample.rows)), sphere)
        scaling = learn_scaling(plan.scale, plan.metric, sample.X, sample.weights)
        return cls(sample if scaling is None else replace(sample, X=scaling.apply(sample.X)), scaling)


def compress_sampled(
    source: Source,
    engine: Engine,
    scaled: ScaledSample,
    plan: Plan,
    seeds: CompressSeeds,
    n_threads: int,
    per_row: EdgesPerRow | None = None,
) -> Compression:
    """Grow the trees on a sample, then route every row and add it to the sums of its leaf.

    `per_row` tells how many signatures a row connects, if a graph of them is wanted.
    """
    scaled = replace(scaled, sample=scaled.sample.sent_to(engine))
    router, reach, from_rows = place_cuts(scaled, plan, seeds, n_threads)
    sample = scaled.sample
    magic = grids(reach, sample.total_weight)
    if from_rows:
        # One more step of K-means, over all rows.
        sums, *_ = add_up(source, engine, router, magic, sample.n_rows)
        means, _ = sums.means_and_spread(router.centres)
        router = _with_centres(router, means.astype(router.dtype), sample, n_threads)
    edge_rows = EdgeRows.beyond(sample, router, per_row, seeds.sample)
    if edge_rows is not None:  # one search finds the nearest and the few nearest
        router = router.with_beam(max(router.beam, edge_rows.few))
    sums, ids, near = add_up(source, engine, router, magic, sample.n_rows, edge_rows)
    signatures = signatures_of(router, sums, sample, plan, seeds.sample, n_threads)
    if len(router.trees) == 1:
        router = replace(router, reach=sums.reach)
    return Compression(router, signatures, sample.n_rows, ids, sample, near)


def _too_few_for_means(sample: Sample, router: Router) -> bool:
    """Tell whether a signature has so few distinct sampled rows that their mean says little of the other rows."""
    if math.isclose(sample.weight, sample.total_weight):
        return False  # the sample holds all rows
    return not has_distinct_rows(sample.X, ROWS_OF_A_MEAN * len(router.centres))


def near(router: Router, n_threads: int) -> Router:
    """Return the router with neighbour lists, making them if it has none."""
    return router if router.neighbor_lists is not None else with_neighbor_lists(router, n_threads=n_threads)


def place_cuts(
    scaled: ScaledSample, plan: Plan, seeds: CompressSeeds, n_threads: int
) -> tuple[Router, NDArray[np.float64], bool]:
    """Grow the trees on the sample and find the centre of every leaf.

    Returns the router; for `grids`, how far rows lie from their centres in each column; and whether K-means started
    from rows, because a mean of few rows says little of others.
    """
    sample = scaled.sample
    trees, leaf = grow_trees(sample, plan.division, seeds.trees, seeds.deal, n_threads)
    centres = _first_rows(sample.X, leaf)
    reach = _reach(sample.X, centres, leaf, n_threads)
    router = Router(trees, centres, deal_seed=seeds.deal, scaling=scaled.scaling)
    searches = plan.populate == "nearest" and len(trees) == 1
    from_rows = bool(searches and plan.refine and _too_few_for_means(sample, router))
    if not from_rows:
        router = replace(router, centres=_means(router, sample, reach, n_threads))
    if searches:
        router = _with_centres(router, router.centres, sample, n_threads)
        for _ in range(plan.refine):
            router = with_moved_centres(router, _means(router, sample, reach, n_threads), n_threads)
        if plan.refine:
            router = _with_centres(router, router.centres, sample, n_threads)
    return router, reach, from_rows


def _with_centres(router: Router, centres: NDArray[Any], sample: Sample, n_threads: int) -> Router:
    """Return the router with other centres, and with neighbour lists of them."""
    least = None if sample.on_device is None else sample.on_device.least_squared_distances
    router = replace(router, centres=centres)
    return with_neighbor_lists(router, n_threads=n_threads, least=least, rows=sample.X)


def _first_rows(X: NDArray[Any], leaf: NDArray[np.int32]) -> NDArray[Any]:
    """Return the first row of each leaf."""
    first = np.empty(int(leaf.max()) + 1, np.intp)
    # If a place is written several times, the last value stays.
    first[leaf[::-1]] = np.arange(len(leaf))[::-1]
    return np.asarray(X[first])


def _reach(X: NDArray[Any], centres: NDArray[Any], leaf: NDArray[np.int32], n_threads: int) -> NDArray[np.float64]:
    """Return the largest distance of a row from the centre of its leaf, in each column.

    If the sample is so small that every row is its own centre, return how far rows lie from each other.
    """

    def farthest(block: Block) -> NDArray[Any]:
        return np.asarray(np.abs(block.X - centres[leaf[block.start : block.stop]]).max(axis=0))

    blocks = ThreadEngine(n_threads, REACH_BYTES).map(farthest, as_source(X), stage="divide")
    reach: NDArray[np.float64] = np.max(list(blocks), axis=0).astype(np.float64)
    return reach if reach.any() else np.ptp(X, axis=0).astype(np.float64)


@dataclass(frozen=True, eq=False)
class _Added:
    """What comes of some blocks: their sums, the number of their rows, and those of them that make edges."""

    sums: Sums
    n_rows: int
    near: NearRows | None

    @staticmethod
    def join(parts: Sequence[_Added]) -> _Added:
        total = Sums.zeros(*parts[0].sums.shape)
        for part in parts:
            total.add(part.sums)
        return _Added(total, sum(part.n_rows for part in parts), _joined(part.near for part in parts))


def _joined(parts: Iterable[NearRows | None]) -> NearRows | None:
    found = [part for part in parts if part is not None]
    return joined(found) if found else None


def add_up(
    source: Source,
    engine: Engine,
    router: Router,
    magic: NDArray[np.float64],
    n_rows: int,
    edge_rows: EdgeRows | None = None,
) -> tuple[Sums, NDArray[np.int32] | None, NearRows | None]:
    """Route every row and add it up; keep the signature of each if the rows are in memory.

    Returns the sums, the signatures of rows, and the nearest signatures of the rows that make edges.
    """
    ids = np.empty(n_rows, np.int32) if source.in_memory else None
    ids_on_card: list[Any] = []  # at most one: rows on a GPU are a single block
    shape = router.centres.shape
    shared = SharedSums(*shape)
    nothing = Sums.zeros(0, shape[1])
    at_hand = shared if engine.shares_memory else None  # the locks of shared sums cannot travel to other machines

    def add_to(sums: Sums, block: Block) -> NearRows | None:
        rows = range(block.start, block.stop) if len(router.trees) == 1 else block.identities(np.arange(block.n_rows))
        X = block.native_rows
        near_ids = None if edge_rows is None else edge_rows.ids_for(block)
        block_ids = router.add_up(X, rows, block.weights, magic, sums, source.feature_names, near_ids)
        if not isinstance(block_ids, np.ndarray):
            ids_on_card.append(block_ids)
        elif ids is not None:
            ids[block.start : block.stop] = block_ids
        return None if edge_rows is None or near_ids is None else edge_rows.of(block, near_ids)

    def add_block(block: Block) -> _Added:
        if at_hand is None:
            sums = Sums.zeros(*shape)
            return _Added(sums, block.n_rows, add_to(sums, block))
        with at_hand.one() as sums:
            return _Added(nothing, block.n_rows, add_to(sums, block))

    result_bytes = bytes_of_sums(*shape) if at_hand is None else 0
    seen = 0
    near_parts: list[NearRows | None] = []
    for part in engine.map(add_block, source, stage="compress", merge=_Added.join, result_bytes=result_bytes):
        seen += part.n_rows
        near_parts.append(part.near)
        if at_hand is None:
            with shared.one() as sums:
                sums.add(part.sums)
    check_same_rows(n_rows, seen)
    return shared.total(), ids_on_card[0] if ids_on_card else in_form_of(source, ids), _joined(near_parts)


def check_same_rows(before: int, now: int) -> None:
    """Raise if another pass gave another number of rows."""
    if now != before:
        raise InputError(
            f"the source gave {before} rows in its first pass and {now} in its second; it must give the same rows "
            "each time."
        )


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
    if sample.on_device is not None and len(router.trees) == 1:
        return router.means_on_device(sample.on_device, sample.weights, grids(reach, sample.weight))
    sums, _ = _scan_sample(router, sample, reach, n_threads)
    means, _ = sums.means_and_spread(router.centres)
    return means.astype(router.dtype)


def _scan_sample(
    router: Router, sample: Sample, reach: NDArray[np.float64], n_threads: int
) -> tuple[Sums, NDArray[np.int32]]:
    router = replace(router, scaling=None)  # the sample is scaled already
    magic = grids(reach, sample.weight)
    source = as_source(sample.X, sample_weight=sample.weights)

    shared = SharedSums(*router.centres.shape)

    def add_block(block: Block) -> NDArray[np.int32]:
        with shared.one() as sums:
            return router.add_up(block.X, sample.rows[block.start : block.stop], block.weights, magic, sums)

    ids = list(ThreadEngine(n_threads).map(add_block, source, stage="divide"))
    return shared.total(), np.concatenate(ids)


def keep_rows(
    source: Source,
    engine: Engine,
    sample: Sample,
    distinct: DistinctRows,
    scaling: Scaling | Sphere | None,
    seeds: SeedSequence,
    n_threads: int,
    *,
    all_checked: bool = False,
) -> Compression:
    """Return each distinct row as a signature of its own.

    `sample` holds all rows with a weight above 0, scaled. Rows of weight 0 become no signatures, but bad values in them
    are refused, unless `all_checked`: then the values of all rows are known to be numbers.
    """
    router, point_of_leaf = signature_router(sample.X[distinct.first], seeds, scaling, n_threads)
    leaf_of_point = np.empty_like(point_of_leaf)
    leaf_of_point[point_of_leaf] = np.arange(len(point_of_leaf), dtype=np.int32)
    of_row = leaf_of_point[distinct.of_row]
    weights = np.bincount(of_row, sample.weights, minlength=len(distinct)).astype(np.float64)
    signatures = Signatures(router.centres, weights, np.zeros(len(distinct)))
    router = replace(router, reach=np.zeros(len(distinct)))
    if sample.n_sampled < sample.n_rows:
        if all_checked and not source.in_memory:
            return Compression(router, signatures, sample.n_rows)
        of_row = _of_all_rows(source, engine, router)
    return Compression(router, signatures, sample.n_rows, of_row if source.in_memory else None)


def _of_all_rows(source: Source, engine: Engine, router: Router) -> NDArray[np.int32]:
    """Return the signature of every row, including rows of weight 0; of rows that are not in memory, none."""
    if source.in_memory:
        return router.assign(next(source.blocks(NO_LIMIT)).X, source.feature_names)
    lookup = Lookup(router, None, source.feature_names)
    for _ in engine.map(lookup, source, stage="compress", merge=itemgetter(0)):
        pass  # only to refuse bad values
    return np.empty(0, np.int32)


def _keep_repeated(
    source: Source, engine: Engine, plan: Plan, sample: Sample, seeds: SeedSequence, n_threads: int
) -> Compression | None:
    """Return what `keep_rows` makes of all rows, if few of them are distinct, and None otherwise.

    Only a sample that holds few distinct rows is a reason to look at all rows.
    """
    few = rows_as_nodes(source.n_features)
    if has_distinct_rows(sample.X, few + 1):
        return None
    counted = count_repeated_rows(source, engine, sample, few)
    if counted is None:
        return None
    check_same_rows(sample.n_rows, counted.n_rows)
    scaled = ScaledSample.of(counted, plan, source.feature_names)
    distinct = distinct_rows(scaled.sample.X)
    if len(distinct) > rows_as_nodes(source.n_features, spanned_dimension(scaled.sample.X)):
        return None
    return keep_rows(source, engine, scaled.sample, distinct, scaled.scaling, seeds, n_threads, all_checked=True)


UNKNOWN_ROWS = 10**9
LOOKED_AT = 1 << 14  # rows that tell which share of all is distinct


def compress_automatically(
    plan: Plan, n_clusters: int
) -> Callable[[Source, Engine, SeedSequence, int, EdgesPerRow | None], Compression]:
    """Return a function that compresses rows to a suitable number of signatures."""

    def compress(
        source: Source, engine: Engine, seeds: SeedSequence, n_threads: int, per_row: EdgesPerRow | None
    ) -> Compression:
        own, width = CompressSeeds.of(seeds), source.n_features
        few = rows_as_nodes(width)
        most = UNKNOWN_ROWS if source.n_rows is None else source.n_rows
        largest = plan.with_signatures(signatures_for(max(most, few + 1), width, n_clusters) or few)
        size = max(largest.sample_rows_wanted(width, source.dtype, source.n_rows), few + 1)
        scaled = ScaledSample.drawn(source, engine, plan, size, own.sample)
        sample = scaled.sample
        is_all = len(sample.rows) < size or sample.n_rows == size
        spanned = spanned_dimension(sample.X)
        few = rows_as_nodes(width, spanned)
        evaluated = sample.X if is_all else sample.X[:LOOKED_AT]
        distinct = distinct_rows(evaluated)
        if is_all and len(distinct) <= few:
            return keep_rows(source, engine, sample, distinct, scaled.scaling, own.trees, n_threads)
        if not is_all:
            kept = _keep_repeated(source, engine, plan, sample, own.trees, n_threads)
            if kept is not None:
                return kept
        n_distinct = round(sample.n_rows * len(distinct) / len(evaluated) * len(sample.rows) / sample.n_sampled)
        chosen = signatures_for(max(n_distinct, few + 1), width, n_clusters, linear_dimension(sample.X), spanned)
        assert chosen is not None
        return compress_sampled(source, engine, scaled, plan.with_signatures(chosen), own, n_threads, per_row)

    return compress


FARTHEST = 1e300  # squared; a row whose squares overflow gets equal weights instead of none


def near_rows(router: Any, sample: Sample, few: int, n_threads: int) -> NearRows:
    """Return the few nearest signatures of each sampled row, which is scaled already."""
    router = replace(router, scaling=None)
    if sample.on_device is not None:
        return NearRows(router.nearest_few(sample.on_device, few)[0], sample.weights)

    def nearest(block: Block) -> NDArray[np.int32]:
        return np.asarray(router.nearest_few(block.X, few)[0])

    blocks = ThreadEngine(n_threads).map(nearest, as_source(sample.X), stage="conquer")
    return NearRows(np.concatenate(list(blocks)), sample.weights)


def edge_weights(squared: NDArray[Any]) -> NDArray[np.float64]:
    """Return the weights of each row's edges to its nearest signatures: exp(-d^2 / mean d^2).

    The mean is over the row's own ties, so dense and sparse regions count equally. `squared` has a row for each.
    """
    distances = np.minimum(squared.astype(np.float64), FARTHEST)
    scale = distances.mean(axis=1, keepdims=True)
    return np.asarray(np.exp(-distances / np.where(scale > 0, scale, 1.0)))
