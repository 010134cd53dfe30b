"""How many signatures rows are compressed to where nobody says: rows that are few are kept as they are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from numpy.random import SeedSequence

from dc2.compress.compress import Compression, CompressSeeds, compress_sampled
from dc2.compress.distinct import distinct_rows
from dc2.compress.keep import keep_rows
from dc2.compress.plan import Plan
from dc2.compress.sample import take_sample
from dc2.compress.scaling import learn_scaling
from dc2.engines.base import Engine
from dc2.sources import Source

__all__ = ["automatic_signatures", "compress_automatically", "rows_kept"]

MOST_ROWS_KEPT = 10_000
MOST_NUMBERS_KEPT = 2_000_000
FEWEST_SIGNATURES = 1000
PER_CLUSTER = 10
UNKNOWN_ROWS = 10**9


def rows_kept(n_features: int) -> int:
    """Return up to how many distinct rows are nodes themselves."""
    return min(MOST_ROWS_KEPT, max(FEWEST_SIGNATURES, MOST_NUMBERS_KEPT // n_features))


def automatic_signatures(n_distinct: int, n_features: int, n_clusters: int) -> int:
    """Return how many signatures stand for more rows than are kept.

    Parameters
    ----------
    n_distinct : int
        Distinct rows.
    n_features : int
        Columns.
    n_clusters : int
        The fewest clusters that are asked for.
    """
    return max(FEWEST_SIGNATURES, PER_CLUSTER * n_clusters)


def compress_automatically(
    plan: Plan, n_clusters: int
) -> Callable[[Source, Engine, SeedSequence, int], Compression]:
    """Return what compresses rows to as many signatures as suits them."""

    def compress(source: Source, engine: Engine, seeds: SeedSequence, n_threads: int) -> Compression:
        own, width = CompressSeeds.of(seeds), source.n_features
        most = UNKNOWN_ROWS if source.n_rows is None else source.n_rows
        largest = plan.with_signatures(automatic_signatures(most, width, n_clusters))
        size = max(largest.sample_rows_wanted(width, source.dtype, source.n_rows), rows_kept(width) + 1)
        sample = take_sample(source, engine, size, own.sample)
        scaling = learn_scaling(plan.scale, plan.metric, sample.X, sample.weights)
        scaled = sample if scaling is None else replace(sample, X=scaling.apply(sample.X))
        is_all = len(sample.rows) < size or sample.n_rows == size
        looked_at = scaled.X if is_all else scaled.X[: rows_kept(width)]
        distinct = distinct_rows(looked_at)
        if is_all and len(distinct) <= rows_kept(width):
            return keep_rows(source, scaled, distinct, scaling, own.trees, n_threads)
        n_distinct = round(sample.n_rows * len(distinct) / len(looked_at))
        chosen = plan.with_signatures(automatic_signatures(n_distinct, width, n_clusters))
        return compress_sampled(source, engine, sample, chosen, own, n_threads)

    return compress
