"""Communities of one graph at many resolutions, for less than the cost of one full search for each.

One search at a high resolution finds small parts. Resolutions well below that one are searched on the graph of parts,
which is many times smaller; at the end the nodes themselves move to better communities. No resolution depends on
another, so the result does not depend on which thread searches which.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array

from dc2 import core
from dc2.communities.graph import TieGraph

__all__ = ["Search", "small_parts"]

ITERATIONS = 3
NODES_PER_PART = 20  # roughly, in graphs of few nodes
FINEST = 128.0
BELOW = 4.0  # resolutions lower than that of the parts by this factor are searched on the graph of parts

Rows = tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float64]]


@dataclass(frozen=True, eq=False)
class Parts:
    """Small parts of a graph.

    Attributes
    ----------
    part : ndarray of shape (n_nodes,), int32
        The part of each node.
    resolution : float
        The resolution at which they were found.
    """

    part: NDArray[np.int32]
    resolution: float


def small_parts(graph: TieGraph, seed: int) -> Parts:
    """Return parts of about a dozen nodes."""
    resolution = min(graph.n_nodes / NODES_PER_PART, FINEST)
    return Parts(core.leiden(*_rows(graph), resolution, seed, None, 1), resolution)


@dataclass(frozen=True, eq=False)
class Search:
    """A graph, and the graph of its parts.

    Attributes
    ----------
    graph : TieGraph
    parts : Parts
        Of this graph or of one much like it.
    small : tuple of three arrays
        The graph of parts, in compressed rows.
    seed : int
    """

    graph: TieGraph
    parts: Parts
    small: Rows
    seed: int

    @classmethod
    def of(cls, graph: TieGraph, parts: Parts, seed: int) -> Search:
        """Make every part one node; the ties inside it add up on the diagonal."""
        count = int(parts.part.max()) + 1
        ends = np.repeat(parts.part, np.diff(graph.indptr))
        ties = coo_array((graph.weights, (ends, parts.part[graph.indices])), shape=(count, count)).tocsr()
        small = (ties.indptr.astype(np.int64), ties.indices.astype(np.int32), ties.data)
        return cls(graph, parts, small, seed)

    def communities(self, resolution: float) -> NDArray[np.int32]:
        """Return the communities at a resolution, each connected; strays are still among them."""
        if resolution * BELOW > self.parts.resolution:
            return core.leiden(*_rows(self.graph), resolution, self.seed, None, ITERATIONS)
        start = core.leiden(*self.small, resolution, self.seed, None, ITERATIONS)[self.parts.part]
        return core.leiden(*_rows(self.graph), resolution, self.seed, start, 0)


def _rows(graph: TieGraph) -> Rows:
    return graph.indptr, graph.indices, graph.weights
