"""Communities of one graph at many resolutions, for less than the cost of one full search for each.

One search at a high resolution finds small parts. Resolutions well below that one are searched on the graph of parts,
which is many times smaller; at the end the nodes themselves move to better communities. No resolution depends on
another, so the result does not depend on which thread searches which.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dc2 import core
from dc2.communities.graph import TieGraph
from dc2.errors import InputError
from dc2.model_file import saved_record

__all__ = ["Parts", "Search", "small_parts"]

ITERATIONS = 3
ITERATIONS_OF_PARTS = 1  # their communities are only a start
NODES_PER_PART = 20  # roughly, in graphs of few nodes
FINE = 64.0  # as fine as parts need to be, but in large graphs there are more clusters to tell apart
NODES_PER_RESOLUTION = 128
BELOW = 4.0  # resolutions lower than that of the parts by this factor are searched on the graph of parts


@saved_record
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

    def check(self) -> None:
        """Raise if these are no parts; called when they were read from a model file."""
        part = self.part
        if (
            part.ndim != 1
            or part.dtype != np.int32
            or not len(part)
            or not 0 <= int(part.min()) <= int(part.max()) < len(part)
            or not 0 < self.resolution < np.inf
        ):
            raise InputError("the numbers of Parts do not fit together.")


def small_parts(graph: TieGraph, seed: int) -> Parts:
    """Return parts of about a dozen nodes."""
    n_nodes = graph.n_nodes
    resolution = min(n_nodes / NODES_PER_PART, max(FINE, n_nodes / NODES_PER_RESOLUTION))
    return Parts(core.leiden(graph.rows, resolution, seed, None, 1), resolution)


@dataclass(frozen=True, eq=False)
class Search:
    """A graph, and the graph of its parts.

    Attributes
    ----------
    graph : TieGraph
    parts : Parts
        Of this graph or of one much like it.
    small : Graph
        That of parts.
    seed : int
    """

    graph: TieGraph
    parts: Parts
    small: core.Graph
    seed: int

    @classmethod
    def of(cls, graph: TieGraph, parts: Parts, seed: int) -> Search:
        """Make every part one node; the ties inside it add up on the diagonal."""
        small = core.join_nodes(graph.rows, parts.part, int(parts.part.max()) + 1)
        return cls(graph, parts, core.Graph(*small), seed)

    def communities(self, resolution: float) -> NDArray[np.int32]:
        """Return the communities at a resolution, each connected; strays are still among them."""
        if resolution * BELOW > self.parts.resolution:
            return core.leiden(self.graph.rows, resolution, self.seed, None, ITERATIONS)
        start = core.leiden(self.small, resolution, self.seed, None, ITERATIONS_OF_PARTS)[self.parts.part]
        return core.leiden(self.graph.rows, resolution, self.seed, start, 0)
