"""The neighbour graph: nodes are alike if the same rows are near both."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.random import SeedSequence
from numpy.typing import NDArray
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator
from sklearn.metrics import euclidean_distances

from dc2 import core
from dc2.errors import InputError
from dc2.graph.density import dimension_near_rows
from dc2.graph.nodes import Description, Nodes
from dc2.io.model_file import saved_model, saved_record
from dc2.parameters import check_integer, usable_threads

FEWEST_ROWS_AS_NODES, MOST_ROWS_AS_NODES = 16_384, 100_000
ROWS_AS_NODES_PER_COLUMN = 1 << 12
NUMBERS_AS_NODES = 1 << 26
SIGNATURES_PER_CLUSTER = 10
FEWEST_SIGNATURES = 1000
SIGNATURES_PER_DIMENSION = 256
NUMBERS_IN_SIGNATURES = 1 << 24
FEWEST_ROWS_PER_SIGNATURE = 4
COMPRESSED_EDGES, ROWS_BETWEEN_NODES = 5, 3


def neighbors_per_row(n_nodes: int, rows_per_node: float, n_columns: int) -> int:
    """Return how many nodes each row connects, including itself if rows are the nodes.

    If nodes represent three rows or more, five edges a row are enough: rows between two nodes connect them. If fewer,
    a row has more edges, so that a node has as many in all. If rows are the nodes, edges must bridge gaps that are
    there by chance, and no others. With more rows such gaps become more, but not wider, so the number of edges grows
    slowly, with the fourth root, from 8 to 15 (spirals of 300 rows fuse from 12 on; thousands of rows in two columns
    need 12 or more). In three columns or more there are more directions in which neighbours can lie, and at least 12.
    In one column a single gap separates all rows, whereas a cut through a plane crosses many; there it is twice the
    square root, at most 60.

    Examples
    --------
    >>> neighbors_per_row(300, 1, 2), neighbors_per_row(10_000, 1, 2)
    (8, 15)
    >>> neighbors_per_row(1000, 1, 1), neighbors_per_row(1000, 100, 2)
    (60, 5)
    >>> neighbors_per_row(300, 1, 4), neighbors_per_row(10_000, 1.5, 4), neighbors_per_row(10_000, 2, 4)
    (12, 10, 8)
    """
    if rows_per_node >= ROWS_BETWEEN_NODES:
        return min(COMPRESSED_EDGES, n_nodes)
    edges = min(max(round(1.5 * math.sqrt(math.sqrt(n_nodes))), 8 if n_columns <= 2 else 12), 15)
    if n_columns == 1:
        edges = max(edges, min(round(2 * math.sqrt(n_nodes)), 60))
    edges = max(round(edges / max(rows_per_node, 1.0)), COMPRESSED_EDGES)
    # With only tens of rows, edges must still be fewer than the rows of a cluster.
    return max(1, min(edges, max(4, n_nodes // 4), n_nodes))


def rows_as_nodes(n_columns: int, dimension: int | None = None) -> int:
    """Return the largest number of distinct rows that are nodes themselves.

    In a few columns signatures are nearly as good, and far fewer. In many, rows are near curved surfaces, but their
    means lie off them, so that clusters blur. Therefore the number grows with the columns, from 16,384 to 100,000 rows,
    with at most 64 million numbers in memory. `dimension` counts the columns without constant and dependent ones, if
    that is known.

    Examples
    --------
    >>> rows_as_nodes(2), rows_as_nodes(10), rows_as_nodes(50), rows_as_nodes(784)
    (16384, 40960, 100000, 85598)
    """
    by_columns = max(FEWEST_ROWS_AS_NODES, ROWS_AS_NODES_PER_COLUMN * (n_columns if dimension is None else dimension))
    return min(by_columns, MOST_ROWS_AS_NODES, max(FEWEST_SIGNATURES, NUMBERS_AS_NODES // n_columns))


def signatures_for(
    n_distinct: int,
    n_columns: int,
    n_clusters: int | None,
    dimension: int | None = None,
    spanned: int | None = None,
) -> int | None:
    """Return how many signatures to make, or None if the distinct rows are the nodes.

    Rows themselves are the best nodes, if they are few enough (see `rows_as_nodes`). Beyond that, the number of
    signatures grows with the logarithm of rows and, slowly, with columns, and is at least ten for each cluster asked
    for. This separates hundreds of clusters, in at most one and a half times the time of 1000 signatures.

    If rows need many dimensions, the mean of many rows is off the surfaces that the rows are near, and clusters
    blur. So there are at least 256 signatures for each dimension, as long as each represents four rows or more and all
    hold no more than 16 million numbers. This makes no difference for narrow rows. `dimension` counts the columns that
    matter, `spanned` those that are not constant or dependent.

    Examples
    --------
    >>> signatures_for(10_000, 16, None) is None
    True
    >>> signatures_for(300_000, 16, None), signatures_for(300_000, 16, 1000)
    (4096, 10000)
    >>> signatures_for(300_000, 128, None, dimension=50), signatures_for(1_000_000, 784, None, dimension=150)
    (12800, 21399)
    """
    if n_distinct <= rows_as_nodes(n_columns, spanned):
        return None
    dimension = n_columns if dimension is None else min(dimension, n_columns)
    grown = round(550 * math.log10(n_distinct) * math.pow(dimension, 1 / 16))
    fine = min(
        SIGNATURES_PER_DIMENSION * dimension,
        NUMBERS_IN_SIGNATURES // n_columns,
        n_distinct // FEWEST_ROWS_PER_SIGNATURE,
    )
    return min(max(grown, fine, SIGNATURES_PER_CLUSTER * (n_clusters or 1)), n_distinct)


# Sums of whole numbers are exact in float64, in any order, below 2^53. All edges of a graph together stay below that.
_EXACT_BITS = 53


@saved_record
@dataclass(frozen=True, eq=False)
class SharedRowsGraph:
    """A symmetric graph without loops, in compressed rows, and the rows that it was made of."""

    indptr: NDArray[np.int64]  # where each node's edges start
    indices: NDArray[np.int32]  # the other end of each tie, ascending within a node
    weights: NDArray[np.float64]  # whole numbers: the summed weight of the rows near both ends
    near: NDArray[np.int32]  # each row's nearest nodes, nearest first
    row_weights: NDArray[np.float64]  # whole numbers in proportion to the rows' weights
    # given distances of each row to its nearest nodes; then a row with fewer of them has -1 in `near`
    lengths: NDArray[np.float64] | None = None

    def __post_init__(self) -> None:
        """Make the arrays that the core has checked read-only."""
        for array in (self.indptr, self.indices, self.weights):
            array.setflags(write=False)

    def check(self) -> None:
        """Raise if the parts do not fit together; called when a graph was read from a model file."""
        indptr, near = self.indptr, self.near
        n_nodes = len(indptr) - 1
        if (
            indptr.dtype != np.int64
            or indptr.ndim != 1
            or n_nodes < 1
            or indptr[0] != 0
            or (np.diff(indptr) < 0).any()
            or self.indices.shape != (indptr[-1],)
            or self.weights.shape != (indptr[-1],)
            or self.indices.dtype != np.int32
            or self.weights.dtype != np.float64
            or near.dtype != np.int32
            or near.ndim != 2
            or self.row_weights.shape != (len(near),)
            or not _within(self.indices, n_nodes)
            or not (_within(near, n_nodes) if self.lengths is None else _within(near + 1, n_nodes + 1))
            or not (self.lengths is None or (self.lengths.shape == near.shape and self.lengths.dtype == np.float64))
            or not all(_whole_numbers(values) for values in (self.weights, self.row_weights))
        ):
            raise InputError("the parts of a SharedRowsGraph do not fit together.")
        if not self.weights.sum() < 2.0**53 or not self._is_symmetric():
            raise InputError("the edges of a SharedRowsGraph are not the same in both directions, or too many.")

    def _is_symmetric(self) -> bool:
        # The difference of both directions would be a third copy, and its absolute values a fourth.
        other = self.matrix().T.tocsr()
        return (
            np.array_equal(other.indptr, self.indptr)
            and np.array_equal(other.indices, self.indices)
            and np.array_equal(other.data, self.weights)
        )

    @property
    def n_nodes(self) -> int:
        """Number of nodes."""
        return len(self.indptr) - 1

    @cached_property
    def volumes(self) -> NDArray[np.float64]:
        """The summed edges of each node."""
        totals = np.concatenate([[0.0], np.cumsum(self.weights)])
        volumes: NDArray[np.float64] = totals[self.indptr[1:]] - totals[self.indptr[:-1]]
        return volumes

    @cached_property
    def rows_are_nodes(self) -> bool:
        """Whether each node is a row, and the nearest of its row are those of the node."""
        near = self.near
        own = np.arange(self.n_nodes)
        return near.shape[1] > 1 and len(near) == len(own) and bool((near[:, 0] == own).all())

    @cached_property
    def rows(self) -> core.Graph:
        """The edges as the core takes them, checked once."""
        return core.Graph(self.indptr, self.indices, self.weights)

    def __getstate__(self) -> dict[str, Any]:
        """Return what copies are made of: the fields, without what was derived from them."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def matrix(self) -> csr_array:
        """Return the edges as a sparse matrix."""
        starts = _narrow(self.indptr)
        return csr_array((self.weights, self.indices, starts), shape=(self.n_nodes, self.n_nodes))


def shared_rows_graph(
    near: NDArray[np.int32],
    weights: NDArray[np.float64] | None,
    n_nodes: int,
    lengths: NDArray[np.float64] | None = None,
    n_threads: int = 1,
) -> SharedRowsGraph:
    """Connect every two nodes by the summed weight of the rows that are near both.

    With B the 0/1 matrix of rows and their nearest nodes, this is B' diag(weights) B without its diagonal. A row
    adds its full weight to each of its edges, so all sums are of whole numbers and exact. Whole weights count as
    repeats; others are scaled by a power of two and rounded. No node comes twice in a row of `near`. If rows are the
    nodes, the row itself comes first. With given distances (`lengths`), -1 stands for neighbours that are not there.

    Examples
    --------
    >>> import numpy as np
    >>> graph = shared_rows_graph(np.array([[0, 1], [1, 0], [2, 1]], dtype=np.int32), None, 3)
    >>> graph.matrix().toarray()
    array([[0., 2., 0.],
           [2., 0., 1.],
           [0., 1., 0.]])
    """
    near = np.ascontiguousarray(near, dtype=np.int32)
    row_weights = _whole(weights, *near.shape)
    return SharedRowsGraph(*_counted(near, row_weights, n_nodes, n_threads), near, row_weights, lengths)


def reweighted_graph(graph: SharedRowsGraph, factors: NDArray[np.float64]) -> SharedRowsGraph:
    """Return the graph of the same rows, with their weights multiplied by whole numbers."""
    row_weights = _whole(graph.row_weights * factors, *graph.near.shape)
    return SharedRowsGraph(*_counted(graph.near, row_weights, graph.n_nodes), graph.near, row_weights, graph.lengths)


def reweighted(
    graph: SharedRowsGraph, factors: NDArray[np.float64], part: NDArray[np.int32]
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float64]]:
    """Return the edges between parts of the graph of the same rows, with their weights multiplied by whole numbers."""
    near = part[graph.near]
    near[graph.near < 0] = -1
    return _counted(near, _whole(graph.row_weights * factors, *near.shape), int(part.max()) + 1)


def _counted(
    near: NDArray[np.int32], row_weights: NDArray[np.float64], n_nodes: int, n_threads: int = 1
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float64]]:
    """Count shared rows; where a row has no more neighbours, nodes beyond the last are put and taken away again."""
    missing = near < 0
    if not missing.any():
        return core.count_shared_rows(near, row_weights, n_nodes, n_threads)
    width = near.shape[1]
    filled = np.where(missing, n_nodes + np.arange(width, dtype=np.int32), near)
    indptr, indices, weights = core.count_shared_rows(filled, row_weights, n_nodes + width, n_threads)
    kept = indices[: indptr[n_nodes]] < n_nodes
    starts = np.concatenate([[0], np.cumsum(kept)])[indptr[: n_nodes + 1]]
    return starts, indices[: len(kept)][kept], weights[: len(kept)][kept]


def _whole(weights: NDArray[np.float64] | None, n_rows: int, m: int) -> NDArray[np.float64]:
    """Return whole numbers in proportion to the weights, small enough for all edges to add up exactly."""
    if weights is None:
        return np.ones(n_rows)
    weights = np.asarray(weights, dtype=np.float64)
    total = float(weights.sum())
    if total == 0:
        return weights
    room = _EXACT_BITS - 1 - int(np.frexp(total * m * m)[1])
    if room >= 0 and np.array_equal(weights, np.rint(weights)):
        return weights
    scaled: NDArray[np.float64] = np.rint(np.ldexp(weights, room))
    return scaled


def _narrow(starts: NDArray[np.int64]) -> NDArray[Any]:
    """Return where rows start, in 32 bits if these suffice: SciPy would otherwise widen all indices to 64 bits."""
    return starts.astype(np.int32) if starts[-1] < 2**31 else starts


def _within(ids: NDArray[np.int32], n_nodes: int) -> bool:
    return not ids.size or bool(ids.min() >= 0 and ids.max() < n_nodes)


def _whole_numbers(values: NDArray[np.float64]) -> bool:
    return bool((values >= 0).all() and (values == np.rint(values)).all() and values.sum() < 2.0**_EXACT_BITS)


@saved_model
class NeighborGraph(BaseEstimator):
    """The neighbour graph: every row connects the signatures that are nearest to it with each other.

    The rows between two signatures connect them, so that the graph sees density where a kernel sees only
    distance. It is sparse at any size and has no bandwidth.

    Parameters
    ----------
    n_neighbors : int or "auto", default="auto"
        How many signatures a row connects, at least 2. "auto" depends on the number of signatures and of rows for
        each.

    Examples
    --------
    >>> from dc2 import DC2Clustering
    >>> from dc2.graph import NeighborGraph
    >>> DC2Clustering(similarity=NeighborGraph(n_neighbors=8)).get_params()["similarity__n_neighbors"]
    8
    """

    uses_rows: ClassVar[bool] = True

    def __init__(self, n_neighbors: int | Literal["auto"] = "auto") -> None:
        self.n_neighbors = n_neighbors

    def check(self) -> None:
        """Raise if a parameter is impossible."""
        if not (isinstance(self.n_neighbors, str) and self.n_neighbors == "auto"):
            check_integer("n_neighbors", self.n_neighbors, low=2)

    def edges_per_row(self, points: NDArray[Any], rows_per_node: float) -> int:
        """Return how many of the nodes at some points each row connects, if a node represents so many rows."""
        if self.n_neighbors != "auto":
            return min(int(self.n_neighbors), len(points))
        return neighbors_per_row(len(points), rows_per_node, dimension_near_rows(points))

    def edges_in_graph(self, n_rows: int) -> int:
        """Return how many rows each row of a given graph connects at most, as if rows had four columns."""
        return neighbors_per_row(n_rows, 1.0, 4) if self.n_neighbors == "auto" else int(self.n_neighbors)

    def build(
        self, nodes: Nodes, seeds: SeedSequence, *, weighted: bool = False, n_jobs: int | None = None
    ) -> GraphSimilarity:
        """Connect the nearest nodes of each row with each other; nothing in it is random."""
        assert nodes.near is not None
        ids, weights = nodes.near.ids, nodes.near.weights
        graph = shared_rows_graph(ids, weights, len(nodes), nodes.near.lengths, usable_threads(n_jobs))
        return GraphSimilarity(graph, ids.shape[1])


@saved_record
@dataclass(frozen=True, eq=False)
class GraphSimilarity:
    """The neighbour graph of nodes."""

    graph: SharedRowsGraph
    n_neighbors: int  # how many nodes each row connects

    sparse: ClassVar[bool] = True

    def __len__(self) -> int:
        return self.graph.n_nodes

    def matrix(self) -> csr_array:
        """Return the weight of the rows near both of two nodes."""
        return self.graph.matrix()

    def strength(self, some: NDArray[np.intp]) -> NDArray[np.float64]:
        """Return the share of the rows near one node that are near the other too, 1 for a node and itself."""
        # A row near a node gives it n_neighbors - 1 edges.
        rows_near = np.maximum(self.graph.volumes[some], 1.0) / max(self.n_neighbors - 1, 1)
        shared = self.matrix()[some][:, some].toarray()
        strength: NDArray[np.float64] = shared / np.sqrt(np.outer(rows_near, rows_near))
        np.fill_diagonal(strength, 1.0)
        return np.minimum(strength, 1.0)

    def apart(self, some: NDArray[np.intp], points: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return distances: a few nodes out of very many hardly share edges."""
        return np.asarray(euclidean_distances(points))

    def describe(self) -> Description:
        """Say what it is."""
        return Description(
            neighbours=f"Every row connects the {self.n_neighbors} signatures nearest to it",
            meaning="Alike means: of the rows near one of the two signatures, the share near both.",
            unit="shared rows",
            whole="of rows",
        )
