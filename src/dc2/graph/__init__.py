"""The neighbour graph of signatures, and its communities as clusters."""

from dc2.graph.neighbor_graph import NeighborGraph

__all__ = [
    "NeighborGraph",
]
