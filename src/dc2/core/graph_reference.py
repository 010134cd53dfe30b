"""Graphs made of rows and of other graphs: the definition of truth for `native/graph.cpp`.

A graph is symmetric and comes in rows (CSR), every edge in both directions. Weights are whole numbers, their total is
below 2**53, so that every sum of them is exact in any order.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array

from dc2.core.reference import running_sum


class Graph(NamedTuple):
    """A graph in rows; the native core looks it over once, when it is made."""

    indptr: NDArray[np.int64]
    indices: NDArray[np.int32]
    weights: NDArray[np.float64]


def tie_nodes(near: NDArray[np.int32], weights: NDArray[np.float64], n_nodes: int) -> Graph:
    """Tie any two nodes by the summed weight of the rows that are near both.

    No node may come twice in a row of `near`. There are no loops and no ties of weight 0.
    """
    n_rows, m = near.shape
    starts = np.arange(0, near.size + 1, m)
    ones = csr_array((np.ones(near.size), near.ravel(), starts), shape=(n_rows, n_nodes))
    weighed = csr_array((np.repeat(weights, m), near.ravel(), starts), shape=(n_rows, n_nodes))
    product = (ones.T @ weighed).tocoo()
    apart = product.row != product.col
    return _in_rows(product.data[apart], product.row[apart], product.col[apart], n_nodes)


def join_nodes(graph: Graph, labels: NDArray[np.int32], n_communities: int) -> Graph:
    """Make one node of every community; entries inside one add up, in both directions, on the diagonal."""
    rows = np.repeat(labels, np.diff(graph.indptr))
    return _in_rows(graph.weights, rows, labels[graph.indices], n_communities)


def modularity(graph: Graph, labels: NDArray[np.int32], resolution: float) -> float:
    """Return the modularity of a partition into communities, of numbers below that of nodes."""
    n = len(labels)
    rows = np.repeat(labels, np.diff(graph.indptr))
    volumes = np.bincount(rows, graph.weights, minlength=n)
    inner = np.bincount(rows, graph.weights * (rows == labels[graph.indices]), minlength=n)
    total = volumes.sum()
    if not total > 0:
        return 0.0
    shares = volumes / total
    return float(running_sum(inner / total - resolution * shares * shares))


def _in_rows(
    weights: NDArray[np.float64], rows: NDArray[np.integer], columns: NDArray[np.integer], n_nodes: int
) -> Graph:
    matrix = coo_array((weights, (rows, columns)), shape=(n_nodes, n_nodes)).tocsr()
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    return Graph(matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32), matrix.data)
