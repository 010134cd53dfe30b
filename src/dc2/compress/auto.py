"""The number of signatures if none is given; few rows are kept as they are."""

from __future__ import annotations

from collections.abc import Callable

from numpy.random import SeedSequence

from dc2.communities import signatures_for
from dc2.communities.sizes import rows_as_nodes
from dc2.compress.compress import Compression, CompressSeeds, ScaledSample, compress_sampled
from dc2.compress.distinct import distinct_rows
from dc2.compress.keep import keep_rows
from dc2.compress.plan import Plan
from dc2.compress.sample import take_sample
from dc2.engines.base import Engine
from dc2.sources import Source

__all__ = ["compress_automatically"]

UNKNOWN_ROWS = 10**9
LOOKED_AT = 1 << 14  # rows that tell which share of all is distinct


def compress_automatically(plan: Plan, n_clusters: int) -> Callable[[Source, Engine, SeedSequence, int], Compression]:
    """Return a function that compresses rows to a suitable number of signatures."""

    def compress(source: Source, engine: Engine, seeds: SeedSequence, n_threads: int) -> Compression:
        own, width = CompressSeeds.of(seeds), source.n_features
        few = rows_as_nodes(width)
        most = UNKNOWN_ROWS if source.n_rows is None else source.n_rows
        largest = plan.with_signatures(signatures_for(max(most, few + 1), width, n_clusters) or few)
        size = max(largest.sample_rows_wanted(width, source.dtype, source.n_rows), few + 1)
        scaled = ScaledSample.of(take_sample(source, engine, size, own.sample), plan)
        sample = scaled.sample
        is_all = len(sample.rows) < size or sample.n_rows == size
        looked_at = sample.X if is_all else sample.X[:LOOKED_AT]
        distinct = distinct_rows(looked_at)
        if is_all and len(distinct) <= few:
            return keep_rows(source, engine, sample, distinct, scaled.scaling, own.trees, n_threads)
        n_distinct = round(sample.n_rows * len(distinct) / len(looked_at))
        chosen = signatures_for(max(n_distinct, few + 1), width, n_clusters)
        assert chosen is not None
        return compress_sampled(source, engine, scaled, plan.with_signatures(chosen), own, n_threads)

    return compress
