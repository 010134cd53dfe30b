"""The rows that make edges, if the sample is too small: all rows, or as many as change nothing when more are added.

Every row connects the signatures nearest to it, so a graph of many signatures needs many rows. In many columns the
sample holds only a few rows per signature. Then rows make their edges in the pass that adds all of them up, which
searches for their nearest signatures anyway.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dc2.compress.divide import sampled_rows
from dc2.compress.routing import Router
from dc2.compress.sampling import Sample, first_limit
from dc2.graph.nodes import NearRows
from dc2.io.source import Block

EdgesPerRow = Callable[[NDArray[Any], float], int]
"""From the signatures' points and the weight per signature to the number of signatures that a row connects."""


@dataclass(frozen=True, eq=False)
class EdgeRows:
    """Which rows make edges: those with small hashes, so that neither blocks nor threads matter.

    Attributes
    ----------
    few : int
        How many signatures a row connects.
    seed : int
        Seed of the hash, that of the sample: sampled rows are among those that make edges.
    limit : int
        The largest hash.
    """

    few: int
    seed: int
    limit: int

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
