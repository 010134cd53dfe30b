"""A stream of rows that can be read only once: hold the first, then route and add up the others."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.random import SeedSequence
from numpy.typing import NDArray

from dc2.compress.compress import Compression, CompressSeeds, ScaledSample, place_cuts, signatures_of
from dc2.compress.plan import Plan
from dc2.compress.router import Router
from dc2.compress.sample import Sample
from dc2.compress.sums import Sums, grids
from dc2.sources import Block, Source
from dc2.trees.tree import raise_unusable

# Beyond this weight the sums of a stream are still right, but may depend on its blocks.
EXPECTED_WEIGHT = 2.0**27


@dataclass(frozen=True, eq=False)
class _Rows:
    """Rows with a weight above 0, and their numbers in the stream."""

    rows: NDArray[np.int64]
    X: NDArray[Any]
    weights: NDArray[np.float64] | None

    def __len__(self) -> int:
        return len(self.rows)

    def part(self, which: Any) -> _Rows:
        weights = None if self.weights is None else self.weights[which]
        return _Rows(self.rows[which], self.X[which], weights)


class Stream:
    """What `Compressor.partial_fit` has seen so far."""

    def __init__(self, plan: Plan, seeds: SeedSequence, n_threads: int) -> None:
        self.plan, self.n_threads = plan, n_threads
        self.seeds = CompressSeeds.of(seeds)
        self.wanted: int | None = None
        self.held: list[_Rows] = []
        self.n_rows = 0
        self.router: Router | None = None
        self.sample: Sample | None = None
        self.sums: Sums | None = None
        self.magic: NDArray[np.float64] | None = None
        self.cached: Compression | None = None

    def copy(self) -> Stream:
        """Return a stream that can go on without changing this one."""
        other = copy(self)
        other.held = list(self.held)
        other.sums = None if self.sums is None else self.sums.copy()
        return other

    def add(self, block: Block, source: Source) -> None:
        """Take the next rows."""
        if not np.isfinite(block.X).all():
            raise_unusable(block.X, source.feature_names, self.n_rows)
        if self.wanted is None:
            self.wanted = self.plan.sample_rows_wanted(source.n_features, source.dtype, n_rows=None)
        new = _Rows(np.arange(self.n_rows, self.n_rows + len(block.X)), block.X, block.weights)
        if new.weights is not None:
            new = new.part(new.weights > 0)
        if self.router is None:
            # Exactly this many rows place the cuts, however the stream is cut up.
            missing = self.wanted - sum(map(len, self.held))
            first = new.part(slice(missing))
            self.held.append(replace(first, X=first.X.copy(), weights=copy(first.weights)))
            if len(first) == missing:
                self._place(forget=True)
            new = new.part(slice(missing, None))
        if len(new):
            assert self.router is not None
            assert self.sums is not None
            assert self.magic is not None
            added = Sums.zeros(*self.sums.shape)  # separately: rows that are refused must leave no trace
            self.router.add_up(new.X, new.rows, new.weights, self.magic, added)
            self.sums.add(added)
        self.n_rows += len(block.X)
        self.cached = None

    def compression(self) -> Compression:
        """Return the signatures of all rows so far; with rows still held, as if the stream ended here."""
        if self.cached is None:
            router, sums, sample = self.router, self.sums, self.sample
            if router is None:
                router, sums, sample = self._place(forget=False)
            assert sums is not None
            assert sample is not None
            signatures = signatures_of(router, sums, sample, self.plan, self.seeds.sample, self.n_threads)
            self.cached = Compression(router, signatures, self.n_rows)
        return self.cached

    def _place(self, forget: bool) -> tuple[Router, Sums, Sample]:
        rows = np.concatenate([part.rows for part in self.held])
        X = np.concatenate([part.X for part in self.held])
        weights: NDArray[np.float64] | None = None
        if any(part.weights is not None for part in self.held):
            weights = np.concatenate(
                [np.ones(len(part)) if part.weights is None else part.weights for part in self.held]
            )
        weight = float(len(rows)) if weights is None else float(weights.sum())
        sample = Sample(rows, X, weights, len(rows), weight)
        scaled = ScaledSample.of(sample, self.plan)
        router, reach = place_cuts(scaled, self.plan, self.seeds, self.n_threads)
        magic = grids(reach, EXPECTED_WEIGHT)
        sums = Sums.zeros(*router.centres.shape)
        router.add_up(X, rows, weights, magic, sums)
        if forget:
            self.held = []
            self.router, self.sums, self.sample, self.magic = router, sums, scaled.sample, magic
        return router, sums, scaled.sample
