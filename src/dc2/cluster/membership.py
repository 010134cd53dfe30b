"""Soft membership: the clusters of the few signatures nearest to a row."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dc2.compress.near_rows import tie_weights
from dc2.sources import Block

__all__ = ["Membership"]

TIES = 5


@dataclass(frozen=True, eq=False)
class Membership:
    """How strongly rows are tied to each cluster: the summed weights of their ties to the nearest five signatures.

    Attributes
    ----------
    router : Router
        With shortlists.
    label_of_id : ndarray of shape (n_ids,), int32
        -1 if a signature is in no cluster.
    n_clusters : int
    shares : bool
        Whether the ties of a row are divided by their sum.
    belongs : callable or None
        Gives for the rows of a block how much each belongs to any cluster, 0 to 1; None if all do fully.
    """

    router: Any
    label_of_id: NDArray[np.int32]
    n_clusters: int
    shares: bool
    belongs: Callable[[Block], NDArray[np.float64]] | None = None

    def __call__(self, block: Block) -> NDArray[np.float64]:
        """Return the ties of each row, of shape (n_rows, n_clusters); nearer signatures count more."""
        ids, squared = self.router.nearest_few(block.where_they_lie, TIES)
        weights = tie_weights(squared)
        ties = np.zeros((len(ids), self.n_clusters + 1))  # the last column, -1, means no cluster
        for k in range(ids.shape[1]):
            ties[np.arange(len(ids)), self.label_of_id[ids[:, k]]] += weights[:, k]
        if self.shares:
            ties /= ties.sum(axis=1, keepdims=True)
        if self.belongs is not None:
            ties *= self.belongs(block)[:, None]
        return np.ascontiguousarray(ties[:, :-1])
