"""A stream of rows that can be seen only once: hold the first, then route and add up."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.random import SeedSequence
from numpy.typing import NDArray

from dc2.compress.compress import Compression, Plan, place_cuts, sample_rows_wanted, signatures_of
from dc2.compress.router import Router
from dc2.compress.sample import Sample
from dc2.compress.sums import MOST_WEIGHT, Sums, grids
from dc2.random import tree_seed
from dc2.sources import Block, Source
from dc2.trees.tree import raise_not_finite


class Stream:
    """What `Compressor.partial_fit` has seen so far."""

    def __init__(self, plan: Plan, seeds: SeedSequence, n_threads: int) -> None:
        self.plan, self.n_threads = plan, n_threads
        sample_seeds, self.tree_seeds, deal_seeds = seeds.spawn(3)
        self.sample_seed, self.deal_seed = tree_seed(sample_seeds), tree_seed(deal_seeds)
        self.held: list[Block] = []
        self.n_rows = 0
        self.router: Router | None = None
        self.sample: Sample | None = None
        self.sums: Sums | None = None
        self.magic: NDArray[np.float64] | None = None
        self.cached: Compression | None = None

    def add(self, block: Block, source: Source) -> None:
        """Take the next rows."""
        rows = np.arange(self.n_rows, self.n_rows + len(block.X))
        self.cached = None
        if self.router is None:
            if not np.isfinite(block.X).all():
                raise_not_finite(block.X, source.feature_names, self.n_rows)
            self.held.append(Block(self.n_rows, block.X.copy(), block.weights))
            self.n_rows += len(rows)
            if self.n_rows >= sample_rows_wanted(self.plan, source):
                self._place(forget=True)
            return
        assert self.sums is not None and self.magic is not None
        sums, _ = self.router.add_up(block.X, rows, block.weights, self.magic, source.feature_names)
        self.sums.add(sums)
        self.n_rows += len(rows)

    def compression(self) -> Compression:
        """Return the signatures of all rows so far; with rows still held, as if the stream ended here."""
        if self.cached is None:
            router, sums, sample = self.router, self.sums, self.sample
            if router is None:
                router, sums, sample = self._place(forget=False)
            assert sums is not None and sample is not None
            signatures = signatures_of(router, sums, sample, self.plan, self.sample_seed, self.n_threads)
            self.cached = Compression(router, signatures, None, self.n_rows)
        return self.cached

    def _place(self, forget: bool) -> tuple[Router, Sums, Sample]:
        X = np.concatenate([block.X for block in self.held])
        weights: Any = None
        if any(block.weights is not None for block in self.held):
            weights = np.concatenate(
                [np.ones(len(block.X)) if block.weights is None else block.weights for block in self.held]
            )
        rows = np.arange(self.n_rows)
        kept = rows if weights is None else np.flatnonzero(weights > 0)
        sample = Sample(
            kept, X[kept], None if weights is None else weights[kept], self.n_rows,
            float(self.n_rows) if weights is None else float(weights.sum()),
        )  # fmt: skip
        router = place_cuts(sample, self.plan, self.tree_seeds, self.deal_seed, self.n_threads)
        magic = grids(sample.X, MOST_WEIGHT)
        sums, _ = router.add_up(X, rows, weights, magic)
        if forget:
            self.held = []
            self.router, self.sums, self.sample, self.magic = router, sums, sample, magic
        return router, sums, sample
