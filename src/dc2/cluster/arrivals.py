"""The new rows of an update: one pass adds each to its nearest signature and keeps far ones; what signatures become."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import Any, cast

import numpy as np
from numpy.random import SeedSequence
from numpy.typing import NDArray

from dc2 import core
from dc2.cluster.fit import ClusterPlan, Compress, spawned
from dc2.cluster.record import ClusterRecord
from dc2.compress.populate import OutlierScores, on_host, outlier_scores_of
from dc2.compress.routing import Router
from dc2.compress.sampling import ALL, first_limit
from dc2.compress.signatures import SharedSums, Signatures, Sums, bytes_of_sums, grids
from dc2.core.reference import hash_at, smallest_hashes
from dc2.engines.engine import Engine
from dc2.graph.neighbor_graph import GraphSimilarity
from dc2.io.source import Block, Source
from dc2.parameters import usable_threads
from dc2.random import tree_seed
from dc2.trees.neighbours import distinct_rows, nearest_neighbours

EXPECTED_WEIGHT = 2.0**30  # of the rows of an update; beyond, the last bits of sums may depend on the blocks
FAR_BYTES = 2**27  # of far rows that are held; of more, a sample with larger weights stands for all
EDGE_ROWS_PER_SIGNATURE = 32  # rows of an update that make edges; more change little
HELD_PARTS = 16  # results of blocks that wait to be merged
SPREADS = 3.0  # mean squared distances: a row that is not farther out than this is not far


@dataclass(frozen=True, eq=False)
class NewRows:
    """Rows with the smallest hashes: numbers, weights, nearest signatures; `weight` is that of all they stand for.

    `X` are far rows in the units of clustering, or the nearest few signatures of rows that make edges.
    """

    rows: NDArray[np.int64]
    X: NDArray[Any]
    weights: NDArray[np.float64]
    ids: NDArray[np.int32]
    weight: float

    def __len__(self) -> int:
        return len(self.rows)

    @staticmethod
    def join(parts: Sequence[NewRows], seed: int, most: int) -> NewRows:
        """Return the rows with the smallest hashes, no more than `most`."""
        rows, X, weights, ids = (
            np.concatenate([getattr(part, name) for part in parts]) for name in ("rows", "X", "weights", "ids")
        )
        whole = NewRows(rows, X, weights, ids, sum(part.weight for part in parts))
        return whole.at(smallest_hashes(seed, rows, most), whole.weight)

    def at(self, places: Any, weight: float) -> NewRows:
        """Return the rows at some places, which stand for so much weight."""
        return NewRows(self.rows[places], self.X[places], self.weights[places], self.ids[places], weight)

    @property
    def scaled_weights(self) -> NDArray[np.float64]:
        """The weights, raised so that these rows stand for all of their kind."""
        held = self.weights.sum()
        return self.weights if held == self.weight or not held else self.weights * (self.weight / held)


@dataclass(frozen=True, eq=False)
class Placed:
    """What comes of some blocks: the sums of rows within reach and of far ones, rows of both kinds, noise.

    `beyond` is the weight of rows beyond the outlier threshold or, without noise, beyond every reach.
    """

    sums: Sums
    far_sums: Sums
    n_rows: int
    far: NewRows
    edges: NewRows
    noise: NDArray[np.float64]
    beyond: float

    @staticmethod
    def join(parts: Sequence[Placed], seed: int, most_far: int, most_edges: int) -> Placed:
        """Return what comes of all these blocks."""
        sums, far_sums = Sums.zeros(*parts[0].sums.shape), Sums.zeros(*parts[0].sums.shape)
        for part in parts:
            sums.add(part.sums)
            far_sums.add(part.far_sums)
        return Placed(
            sums, far_sums, sum(part.n_rows for part in parts),
            NewRows.join([part.far for part in parts], seed, most_far),
            NewRows.join([part.edges for part in parts], seed, most_edges),
            np.sum([part.noise for part in parts], axis=0), sum(part.beyond for part in parts),
        )  # fmt: skip

    @property
    def weight(self) -> float:
        """The weight of all rows."""
        return float(self.sums.weights.sum()) + self.far.weight

    def with_far(self, rows: NewRows, coarse: NDArray[np.bool_]) -> Placed:
        """Return the same with the rows of coarse signatures among the far ones; `rows` stand for them."""
        sums, edges = self.sums.copy(), self.edges
        weight = float(sums.weights[coarse].sum())
        sums.totals[:, coarse], sums.counts[coarse] = 0.0, 0
        scaled = [replace(part, weights=part.scaled_weights) for part in (self.far, replace(rows, weight=weight))]
        far = NewRows.join(scaled, 0, sum(map(len, scaled)))
        return replace(self, sums=sums, far=far, edges=edges.at(~coarse[edges.ids], edges.weight - weight))

    def joined(self) -> Placed:
        """Return the same with far rows added to their nearest signature."""
        sums = self.sums.copy()
        sums.add(self.far_sums)
        edges = replace(self.edges, weight=self.edges.weight + self.far.weight)
        return replace(self, sums=sums, far=self.far.at(slice(0), 0.0), edges=edges)


@dataclass(frozen=True, eq=False)
class Work:
    """What the steps of an update share."""

    plan: ClusterPlan
    record: ClusterRecord
    source: Source
    engine: Engine
    compress: Compress

    @property
    def n_threads(self) -> int:
        """Threads to be used."""
        return usable_threads(self.plan.options.n_jobs)

    @property
    def seeds(self) -> list[SeedSequence]:
        """The seeds of the fit."""
        return spawned(SeedSequence(**self.record.seed))

    @property
    def seed(self) -> int:
        """The seed of samples."""
        return tree_seed(self.seeds[0])

    @property
    def few(self) -> int:
        """How many signatures a row connects."""
        similarity = self.record.similarity
        return similarity.graph.near.shape[1] if isinstance(similarity, GraphSimilarity) else 0

    def reach(self, move: bool) -> NDArray[np.float64]:
        """Return the squared distance beyond which a row is far, for each signature: at least that of any row yet."""
        usual, reach = SPREADS * self.record.signatures.spread, cast(Router, self.record.router).reach
        limits: NDArray[np.float64] = usual if reach is None else np.maximum(reach, usual)
        if move or not self.record.holds_rows:
            return limits
        squared = nearest_neighbours(self.record.router.centres, 4, seed=self.seed, n_threads=self.n_threads)[1]
        return np.maximum(limits, squared[:, -1].astype(np.float64))  # a row as near as other rows fits

    def place(self, limits: NDArray[np.float64]) -> Placed:
        """Send every new row to its nearest signature; rows beyond the limits are far."""
        record: ClusterRecord = self.record
        router: Any = record.router
        whole = record.router_to_search(self.n_threads)
        centres, few, names = router.centres, self.few, self.source.feature_names
        wide = np.maximum(np.ptp(centres.astype(np.float64), axis=0), np.sqrt(limits.max()))
        magic = grids(wide, EXPECTED_WEIGHT)
        most_far = int(max(FAR_BYTES // (centres.shape[1] * centres.itemsize), len(centres)))
        most_edges = EDGE_ROWS_PER_SIGNATURE * len(centres)
        limit = first_limit(most_edges, self.source.n_rows)
        merge = partial(Placed.join, seed=self.seed, most_far=most_far, most_edges=most_edges)
        seed, scores_of, usual = self.seed, self._scores(), self.reach(move=False)
        shared = (SharedSums(*centres.shape), SharedSums(*centres.shape)) if self.engine.shares_memory else None
        nothing = Sums.zeros(0, centres.shape[1])

        def place_block(block: Block) -> Placed:
            if shared is None:
                sums, far_sums = Sums.zeros(*centres.shape), Sums.zeros(*centres.shape)
                return replace(place_into(block, sums, far_sums), sums=sums.without(far_sums), far_sums=far_sums)
            with shared[0].one() as sums, shared[1].one() as far_sums:
                return place_into(block, sums, far_sums)

        def place_into(block: Block, sums: Sums, far_sums: Sums) -> Placed:
            X, weights = block.X, np.ones(block.n_rows) if block.weights is None else block.weights
            rows = np.arange(block.start, block.stop)
            near_ids = np.empty((len(X), few), np.int32) if few and whole is router and limit == ALL else None
            squared = np.empty(len(X))
            ids = on_host(router.add_up(X, rows, block.weights, magic, sums, names, near_ids, squared))
            is_far = (squared > limits[ids]) & (weights > 0)
            far = np.flatnonzero(is_far)
            if len(far):
                router.add_up(X[far], rows[far], weights[far], magic, far_sums)
            noise, out = np.zeros(len(centres)), squared > usual[ids]
            if scores_of is not None:
                out = record.outliers.is_noise(scores_of(block))  # type: ignore[union-attr]
                noise += np.bincount(ids[out], weights[out], len(centres))
            sampled = core.sample_rows(seed, block.start, block.stop, limit) - block.start
            edge = sampled[~is_far[sampled] & (weights[sampled] > 0)]
            if near_ids is not None:
                tuples = near_ids[edge]
            else:
                tuples = (
                    whole.nearest_few(X[edge], few)[0] if few and len(edge) else np.empty((len(edge), few), np.int32)
                )
            far_weight = float(weights[far].sum())
            return Placed(
                nothing, nothing, len(X),
                NewRows(rows[far], whole.prepared(X[far]), weights[far], ids[far], far_weight),
                NewRows(rows[edge], tuples, weights[edge], ids[edge], float(weights.sum() - far_weight)),
                noise, float(weights[out].sum()),
            )  # fmt: skip

        parts: list[Placed] = []
        result_bytes = 0 if shared is not None else 2 * bytes_of_sums(*centres.shape)
        for part in self.engine.map(place_block, self.source, stage="compress", merge=merge, result_bytes=result_bytes):
            parts = [*parts, part] if len(parts) < HELD_PARTS else [merge([*parts, part])]
        if not parts:
            none = np.empty(0, np.int64)
            empty = NewRows(none, centres[:0], limits[:0], none.astype(np.int32), 0.0)
            none_placed = Sums.zeros(*centres.shape)
            return Placed(none_placed, none_placed, 0, empty, empty, 0.0 * limits, 0.0)
        placed = merge(parts)
        sums, far_sums = placed.sums, placed.far_sums
        if shared is not None:
            far_sums = shared[1].total()
            sums = shared[0].total().without(far_sums)
        # The far rows, which are in both sums, had raised the reach.
        return replace(placed, sums=replace(sums, reach=np.minimum(sums.reach, limits)), far_sums=far_sums)

    def rows_of(self, coarse: NDArray[np.bool_], edges: NewRows) -> NewRows:
        """Return the sampled rows of coarse signatures, by another pass, which routes no row."""
        known = edges.at(coarse[edges.ids], 0.0)
        known = known.at(np.argsort(known.rows), 0.0)
        whole = self.record.router_to_search(self.n_threads)

        def find(block: Block) -> list[NDArray[Any]]:
            first, last = np.searchsorted(known.rows, [block.start, block.stop])
            return [whole.prepared(block.take(known.rows[first:last] - block.start), block.start)]

        def merge(parts: Sequence[list[NDArray[Any]]]) -> list[NDArray[Any]]:
            return list(chain.from_iterable(parts))

        found = self.engine.map(find, self.source, stage="compress", merge=merge)
        return replace(known, X=np.concatenate(merge(list(found))))

    def _scores(self) -> OutlierScores | None:
        record = self.record
        if record.outliers is None or record.outliers.threshold is None:
            return None
        router, signatures = record.router_to_search(self.n_threads), record.signatures
        return outlier_scores_of(router, signatures.weights, signatures.spread, record.outliers.typical)


# --- signatures while they change -----------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class State:
    """The signatures of a model during an update, in float64; arrays but the last three have an entry for each.

    `centres` and `reach` tell where rows are sent; `names` are the clusters before, -1 for new signatures far from all;
    `was`, `arrived` and `noise` are weights, and `before` are the points before. `home` says where each signature is
    now, -1 if it was forgotten; `near` are the nearest signatures of rows that make edges, as numbered at first.
    """

    points: NDArray[np.float64]
    weights: NDArray[np.float64]
    spread: NDArray[np.float64]
    centres: NDArray[np.float64]
    reach: NDArray[np.float64]
    names: NDArray[np.int32]
    was: NDArray[np.float64]
    arrived: NDArray[np.float64]
    before: NDArray[np.float64]
    noise: NDArray[np.float64]
    home: NDArray[np.intp]
    near: NDArray[np.int32]
    near_weights: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.weights)

    @classmethod
    def of(cls, record: ClusterRecord, kept: Signatures, placed: Placed, forget: float) -> State:
        """Add the sums of new rows to the signatures of a record, which have lost some weight."""
        means, spread = placed.sums.means_and_spread(record.router.centres)
        points, arrived = kept.points.astype(np.float64), placed.sums.weights
        pair = np.stack([kept.weights, arrived])
        joint = _pooled(pair, np.stack([points, means]), np.stack([kept.spread, spread]))
        noise = 0.0 if record.noise_weights is None else (1.0 - forget) * record.noise_weights
        near, near_weights = _edge_rows(record, placed, kept.weights.sum())
        of_fit = cast(Router, record.router).reach
        before = 0.0 if of_fit is None else (1.0 - forget) * of_fit
        reach = np.maximum(before, placed.sums.reach)
        return cls(
            *joint,
            centres=record.router.centres.astype(np.float64),
            reach=reach,
            names=record.cluster_names[record.conquest.labels],
            was=record.signatures.weights,
            arrived=arrived,
            before=points,
            noise=np.minimum(noise + placed.noise, joint[1]),
            home=np.arange(len(kept)),
            near=near,
            near_weights=near_weights,
        )

    def signatures(self, dtype: Any) -> Signatures:
        """Return the signatures."""
        return Signatures(self.points.astype(dtype), self.weights, self.spread)

    def moved_to(self, home: NDArray[np.intp]) -> State:
        """Return the signatures joined in groups: each to the place that `home` gives, or forgotten where it is -1."""
        kept = np.flatnonzero(home >= 0)
        at, n = home[kept], int(home.max()) + 1
        order = np.lexsort((kept, at))
        first = kept[order][np.searchsorted(at[order], np.arange(n))]

        def added(values: NDArray[np.float64]) -> NDArray[np.float64]:
            return np.asarray(np.bincount(at, values[kept], n), np.float64)

        if len(kept) == n:
            points, weights, spread = self.points[first], self.weights[first], self.spread[first]
            before = self.before[first]
        else:
            points, weights, spread = joined(self.points[kept], self.weights[kept], self.spread[kept], at, n)
            before = joined(self.before[kept], self.was[kept], self.spread[kept], at, n)[0]
        heaviest = kept[np.lexsort((-self.weights[kept], at))]
        names = self.names[heaviest[np.searchsorted(home[heaviest], np.arange(n))]]
        centres = self.centres[first]
        off = self.centres[kept] - centres[at]
        reach = np.zeros(n)
        np.maximum.at(reach, at, (np.sqrt(self.reach[kept]) + np.sqrt((off * off).sum(axis=1))) ** 2)
        return State(
            points, weights, spread, centres, reach, names, added(self.was), added(self.arrived), before,
            added(self.noise), np.where(self.home >= 0, home[self.home], -1), self.near, self.near_weights,
        )  # fmt: skip


def _pooled(
    weights: NDArray[np.float64], points: NDArray[np.float64], spread: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Return points, weights and spread of pairs of groups, given as (2, n, ...)."""
    total = weights.sum(axis=0)
    share = weights[1] / np.where(total > 0, total, 1.0)
    off = points[1] - points[0]
    between = share * (1.0 - share) * (off * off).sum(axis=1)
    return points[0] + share[:, None] * off, total, (1.0 - share) * spread[0] + share * spread[1] + between


def joined(
    points: NDArray[np.float64], weights: NDArray[np.float64], spread: NDArray[np.float64], at: NDArray[np.intp], n: int
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Return points, weights and spread of groups of signatures."""
    total: NDArray[np.float64] = np.bincount(at, weights, n).astype(np.float64)
    count = np.bincount(at, minlength=n)
    share = np.where(total[at] > 0, weights / np.where(total[at] > 0, total[at], 1.0), 1.0 / count[at])
    means = np.stack([np.bincount(at, share * column, n) for column in points.T], axis=1).astype(np.float64)
    off = points - means[at]
    joint = np.bincount(at, share * (spread + (off * off).sum(axis=1)), n)
    return means, total, joint.astype(np.float64)


def _edge_rows(record: ClusterRecord, placed: Placed, kept: float) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
    """Return the nearest signatures of rows that make edges, old and new ones."""
    similarity = record.similarity
    if not isinstance(similarity, GraphSimilarity):
        return np.empty((0, 0), np.int32), np.empty(0)
    old, weights = similarity.graph.near, similarity.graph.row_weights
    scale = kept / (weights.sum() or 1.0)
    near = np.concatenate([old, placed.edges.X.reshape(-1, old.shape[1])])
    return near, np.concatenate([scale * weights, placed.edges.scaled_weights])


def equal_added(near: NDArray[np.int32], weights: NDArray[np.float64]) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
    """Return the distinct ones of some lists of signatures, with their weights added."""
    distinct = distinct_rows(near.astype(np.float64))
    return near[distinct.first], np.bincount(distinct.of_row, weights, len(distinct)).astype(np.float64)


def thinned(
    near: NDArray[np.int32], weights: NDArray[np.float64], most: int
) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
    """Return at most so many lists, drawn by hash in proportion to weight, with weights that stand for all."""
    if len(near) <= most:
        return near, weights
    key = np.zeros(len(near), np.uint64)
    for column in near.T:
        key = hash_at(0, key ^ column.astype(np.uint64))
    priority = weights / ((key.astype(np.float64) + 1.0) / 2.0**64)
    order = np.argsort(-priority, kind="stable")
    kept = np.sort(order[:most])
    return near[kept], np.maximum(weights[kept], priority[order[most]])
