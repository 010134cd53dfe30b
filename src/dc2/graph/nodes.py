"""What a similarity is: a recipe that a user passes, and what it builds from nodes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np
from numpy.random import SeedSequence
from numpy.typing import NDArray
from sklearn.metrics import pairwise_distances_argmin

BLOCK_ROWS = 1024
SAFE_EXPONENT = 100  # float32 holds such values, and 26 bits below them


@dataclass(frozen=True, eq=False)
class NearRows:
    """Rows, and the nodes that each lies nearest to."""

    ids: NDArray[np.int32]  # nearest first; in a given graph -1 where a row has no more
    weights: NDArray[np.float64] | None  # how often each row counts; once for None
    lengths: NDArray[np.float64] | None = None  # given distances; None if they follow from the points
    # whether rows of the same ids are one, in the order of ids: rows with keys have no other order
    by_ids: bool = False


@dataclass(frozen=True, eq=False)
class Nodes:
    """Points to be compared with each other."""

    # About their mean, and divided by a power of two where float32 could not hold them. A node without rows is
    # where the nearest one with rows is.
    points: NDArray[np.float32]
    node_weights: NDArray[np.float64]  # the rows, or their weight, that each represents
    are_rows: bool = False  # whether each node is a distinct row, and represents no others
    # rows with their nearest nodes, as many as the similarity needs; None if it needs none
    near: NearRows | None = None

    def __len__(self) -> int:
        return len(self.points)

    @property
    def rows_per_node(self) -> float:
        """The mean number of rows, or their weight, of a node; 1 if the nodes are rows."""
        return 1.0 if self.are_rows else float(self.node_weights.sum()) / len(self)

    @property
    def relative_weights(self) -> NDArray[np.float64]:
        """Weights with mean 1; a node without rows stays, but carries next to no weight."""
        if not self.node_weights.any():
            return np.ones(len(self.node_weights))
        relative: NDArray[np.float64] = np.maximum(self.node_weights, 1e-9 * self.node_weights.mean())
        relative *= len(relative) / relative.sum()
        return relative


def nodes_at(points: NDArray[Any], node_weights: NDArray[np.float64], are_rows: bool = False) -> Nodes:
    """Return nodes at given points.

    They are float32 about their mean, so that clusters do not depend on the last bits of sums. A node that lost all its
    rows to nearer ones may lie between clusters and would become a cluster of its own; so it moves to the nearest node
    that has rows.
    """
    filled, empty = np.flatnonzero(node_weights > 0), np.flatnonzero(node_weights <= 0)
    standing = np.arange(len(points))
    if len(filled) and len(empty):
        standing[empty] = filled[pairwise_distances_argmin(points[empty], points[filled])]
    return Nodes(_centred(points, standing), node_weights, are_rows)


def _centred(points: NDArray[Any], standing: NDArray[np.intp]) -> NDArray[np.float32]:
    """Return points about their mean, divided by a power of two if float32 could not hold them: only proportions count.

    Block by block, since a copy in float64 could be far larger than the rows.
    """
    blocks = [slice(start, start + BLOCK_ROWS) for start in range(0, len(standing), BLOCK_ROWS)]
    mean = np.sum([points[standing[block]].sum(axis=0, dtype=np.float64) for block in blocks], axis=0) / len(standing)

    def off(block: slice) -> NDArray[np.float64]:
        return np.asarray(points[standing[block]].astype(np.float64) - mean)

    largest = max(float(np.abs(off(block)).max(initial=0.0)) for block in blocks)
    exponent = int(np.frexp(largest)[1])
    centred = np.empty(points.shape, np.float32)
    for block in blocks:
        centred[block] = np.ldexp(off(block), -exponent) if abs(exponent) > SAFE_EXPONENT else off(block)
    return centred


@dataclass(frozen=True)
class Description:
    """A similarity explained to people who do not know it."""

    # half a sentence on how neighbours are found, such as "Distances show which signatures are neighbours"
    neighbours: str
    meaning: str  # what it means that two signatures are alike
    unit: str  # what its numbers count
    whole: str = ""  # what a number of 1 means, such as "all trees"; empty where the numbers are not shares


class Similarity(Protocol):
    """How alike nodes are, built once and saved with the model."""

    # decides the conqueror: a sparse similarity is a neighbour graph, conquered by communities; a dense one is a
    # kernel matrix, conquered by its eigenvectors
    sparse: ClassVar[bool]

    def __len__(self) -> int: ...

    def describe(self) -> Description:
        """Say what it is."""

    def strength(self, some: NDArray[np.intp]) -> NDArray[np.float64]:
        """Return how alike some nodes are, as a matrix of numbers from 0 to 1 that a picture can show."""

    def apart(self, some: NDArray[np.intp], points: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return how far apart some nodes at these points are to be drawn on a map."""


class DenseSimilarity(Similarity, Protocol):
    """A kernel matrix, for every bandwidth that may be chosen."""

    bandwidth: float | None  # the bandwidth in use; None until one is chosen
    bandwidths: tuple[float, ...]  # those to choose from, ascending
    bandwidths_for_counting: tuple[float, ...]  # those of them that show how many clusters there are

    def matrix(self, bandwidth: float | None = None) -> NDArray[np.float64]:
        """Return the similarity of all pairs of nodes, by default at the bandwidth in use."""

    def at(self, bandwidth: float | None) -> Any:
        """Return the same similarity with another bandwidth in use; None leaves it to be chosen."""


@runtime_checkable
class SimilarityRecipe(Protocol):
    """What a user passes as ``similarity=``: parameters, and how to build from them."""

    uses_rows: ClassVar[bool]  # whether `build` needs rows with their nearest nodes

    def edges_per_row(self, points: NDArray[Any], rows_per_node: float) -> int:
        """Return how many of its nearest nodes each row connects, if a node represents so many rows."""

    def check(self) -> None:
        """Raise if a parameter is impossible."""

    def build(self, nodes: Nodes, seeds: SeedSequence, *, weighted: bool = False, n_jobs: int | None = None) -> Any:
        """Return the similarity of nodes; with `weighted` it regards how many rows each represents."""
