"""The tie graph: two nodes are tied by the rows that lie near both."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from dc2 import core
from dc2.errors import InputError
from dc2.model_file import saved_record

# Sums of whole numbers are exact in float64, in any order, below 2^53. All ties of a graph together stay below that.
_EXACT_BITS = 53


@saved_record
@dataclass(frozen=True, eq=False)
class TieGraph:
    """A symmetric graph without loops, in compressed rows, and the rows that it was made of.

    Attributes
    ----------
    indptr : ndarray of shape (n_nodes + 1,), int64
        Where each node's ties start.
    indices : ndarray of shape (n_ties,), int32
        The other end of each tie, ascending within a node.
    weights : ndarray of shape (n_ties,), float64
        Whole numbers: the summed weight of the rows that lie near both ends.
    near : ndarray of shape (n_rows, m), int32
        Each row's nearest nodes, nearest first.
    row_weights : ndarray of shape (n_rows,), float64
        Whole numbers in proportion to the rows' weights.
    """

    indptr: NDArray[np.int64]
    indices: NDArray[np.int32]
    weights: NDArray[np.float64]
    near: NDArray[np.int32]
    row_weights: NDArray[np.float64]

    def __post_init__(self) -> None:
        """Let nobody change what the core has looked over."""
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
            or not all(_within(ids, n_nodes) for ids in (self.indices, near))
            or not all(_whole_numbers(values) for values in (self.weights, self.row_weights))
        ):
            raise InputError("the parts of a TieGraph do not fit together.")
        if not self.weights.sum() < 2.0**53 or not self._is_symmetric():
            raise InputError("the ties of a TieGraph are not the same in both directions, or too many.")

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
        """The summed ties of each node."""
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
        """The ties as the core takes them, looked over once."""
        return core.Graph(self.indptr, self.indices, self.weights)

    def __getstate__(self) -> dict[str, Any]:
        """Return what copies are made of: the fields, without what was derived from them."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def matrix(self) -> csr_array:
        """Return the ties as a sparse matrix."""
        starts = _narrow(self.indptr)
        return csr_array((self.weights, self.indices, starts), shape=(self.n_nodes, self.n_nodes))


def tie_graph(near: NDArray[np.int32], weights: NDArray[np.float64] | None, n_nodes: int) -> TieGraph:
    """Tie every two nodes by the summed weight of the rows that are near both.

    With B the 0/1 matrix of rows and their nearest nodes, this is B' diag(weights) B without its diagonal. A row
    adds its full weight to each of its ties, so all sums are of whole numbers and exact.

    Parameters
    ----------
    near : ndarray of shape (n_rows, m)
        Each row's nearest nodes, no node twice in a row. If rows are the nodes, the row itself comes first.
    weights : ndarray of shape (n_rows,) or None
        Whole numbers count as repeats, exactly. Others are scaled by a power of two and rounded.
    n_nodes : int

    Examples
    --------
    >>> import numpy as np
    >>> graph = tie_graph(np.array([[0, 1], [1, 0], [2, 1]], dtype=np.int32), None, 3)
    >>> graph.matrix().toarray()
    array([[0., 2., 0.],
           [2., 0., 1.],
           [0., 1., 0.]])
    """
    near = np.ascontiguousarray(near, dtype=np.int32)
    row_weights = _whole(weights, *near.shape)
    return TieGraph(*core.tie_nodes(near, row_weights, n_nodes), near, row_weights)


def reweighted(graph: TieGraph, factors: NDArray[np.float64]) -> TieGraph:
    """Return the graph of the same rows, with their weights multiplied by whole numbers."""
    row_weights = _whole(graph.row_weights * factors, *graph.near.shape)
    return TieGraph(*core.tie_nodes(graph.near, row_weights, graph.n_nodes), graph.near, row_weights)


def _whole(weights: NDArray[np.float64] | None, n_rows: int, m: int) -> NDArray[np.float64]:
    """Return whole numbers in proportion to the weights, small enough for all ties to add up exactly."""
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
