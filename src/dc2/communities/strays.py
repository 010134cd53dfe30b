"""Strays: communities too small to be clusters join larger ones."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array
from scipy.spatial import cKDTree
from scipy.spatial.distance import cdist

from dc2 import core
from dc2.communities.graph import TieGraph

FEWEST = 4.0
SHARE_OF_ALL = 0.002
SHARE_OF_TYPICAL = 0.05
_TREE_COLUMNS = 16
_AT_A_TIME = 16


def solid(sizes: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Tell which communities are large enough to be clusters.

    A cluster has at least four nodes, and at least 0.2% of all nodes or 5% of the typical size, whichever is less.
    The typical size is that of the community that the median node belongs to. The second rule matters where clusters
    are many, and each is smaller than 0.2% of all nodes; so there is no largest number of clusters.

    Parameters
    ----------
    sizes : ndarray of shape (n_communities,)
        In nodes, or in mass in units of the mean mass of a node.
    """
    ordered = np.sort(sizes)
    total = ordered.sum()
    typical = ordered[np.searchsorted(np.cumsum(ordered), total / 2)]
    least = max(FEWEST, min(SHARE_OF_ALL * total, SHARE_OF_TYPICAL * typical))
    kept: NDArray[np.bool_] = sizes >= least
    if not kept.any():
        kept[np.argmax(sizes)] = True
    return kept


def join_strays(
    graph: TieGraph, labels: NDArray[np.int32], masses: NDArray[np.float64], points: NDArray[Any]
) -> NDArray[np.int32]:
    """Join each stray to the solid community with the most ties to it, or to the nearest one if it has no ties.

    Parameters
    ----------
    labels : ndarray of shape (n_nodes,)
        Communities, counted from 0 without gaps.
    masses : ndarray of shape (n_nodes,)
    points : ndarray of shape (n_nodes, n_columns)

    Returns
    -------
    ndarray of shape (n_nodes,)
        Solid communities only, counted from 0 in the order of their old numbers.
    """
    sizes = np.bincount(labels, weights=masses) * (len(labels) / masses.sum())
    kept = solid(sizes)
    if kept.all():
        return labels
    home = np.where(kept, np.cumsum(kept) - 1, -1).astype(np.int32)
    between = _ties_of(graph, np.flatnonzero(~kept[labels]), labels, len(sizes))
    while True:
        strays = np.flatnonzero(home < 0)
        joined = _most_tied(between, strays, home)
        if not (joined >= 0).any():
            break
        home[strays] = joined
    return _join_nearest(graph, home[labels], labels, points)


def join_empty(labels: NDArray[np.int32], masses: NDArray[np.float64], points: NDArray[Any]) -> NDArray[np.int32]:
    """Join communities that stand for no rows, if there are any, to the community of the nearest node with rows."""
    empty = np.bincount(labels, weights=masses)[labels] == 0
    if not empty.any():
        return labels
    filled = np.flatnonzero(masses > 0)
    answer = labels.copy()
    answer[empty] = labels[filled[_nearest(points[filled], points[empty])[1]]]
    return np.unique(answer, return_inverse=True)[1].astype(np.int32)


def community_ties(graph: TieGraph, labels: NDArray[np.int32], n_communities: int) -> csr_array:
    """Return the summed ties between communities; the diagonal holds the ties inside each, counted twice."""
    indptr, indices, ties = core.join_nodes(graph.rows, labels, n_communities)
    return csr_array((ties, indices, indptr), shape=(n_communities, n_communities))


def _ties_of(graph: TieGraph, nodes: NDArray[np.intp], labels: NDArray[np.int32], n_communities: int) -> csr_array:
    """Return the summed ties of some nodes, from their own communities to all communities."""
    rows = graph.matrix()[nodes].tocoo()
    shape = (n_communities, n_communities)
    return coo_array((rows.data, (labels[nodes[rows.row]], labels[rows.col])), shape=shape).tocsr()


def _most_tied(between: csr_array, strays: NDArray[np.intp], home: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return for each stray the home it has the most ties to, the smaller number in a draw, or -1 without ties."""
    rows = between[strays].tocoo()
    told = home[rows.col] >= 0
    n_homes = int(home.max()) + 1
    ties = coo_array((rows.data[told], (rows.row[told], home[rows.col[told]])), shape=(len(strays), n_homes)).tocsr()
    ties.sort_indices()
    answer = np.full(len(strays), -1, dtype=np.int32)
    if ties.nnz:
        row = np.repeat(np.arange(len(strays)), np.diff(ties.indptr))
        order = np.lexsort((ties.indices, -ties.data, row))
        first = np.unique(row[order], return_index=True)[1]
        answer[row[order][first]] = ties.indices[order][first]
    return answer


def _nearest(points: NDArray[Any], wanted: NDArray[Any]) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
    """Return the distance to the nearest point and its place; in many columns by brute force, as trees do not help."""
    if points.shape[1] <= _TREE_COLUMNS:
        distances, places = cKDTree(points).query(wanted)
        return np.asarray(distances), np.asarray(places)
    points = points.astype(np.float64)  # once, not for every block
    pairs = [
        (row.min(), row.argmin())
        for start in range(0, len(wanted), _AT_A_TIME)
        for row in cdist(wanted[start : start + _AT_A_TIME], points)
    ]
    return np.array([pair[0] for pair in pairs]), np.array([pair[1] for pair in pairs], dtype=np.intp)


def _join_nearest(
    graph: TieGraph, answer: NDArray[np.int32], labels: NDArray[np.int32], points: NDArray[Any]
) -> NDArray[np.int32]:
    """Give each community without a home that of the nearest node with one."""
    lost = np.flatnonzero(answer < 0)
    if not len(lost):
        return answer
    distances, nearest = _nearest_with_home(graph, answer, lost, points)
    order = np.lexsort((lost, distances, labels[lost]))
    communities, first = np.unique(labels[lost][order], return_index=True)
    homes = answer[nearest[order[first]]]
    answer = answer.copy()
    answer[lost] = homes[np.searchsorted(communities, labels[lost])]
    return answer


def _nearest_with_home(
    graph: TieGraph, answer: NDArray[np.int32], lost: NDArray[np.intp], points: NDArray[Any]
) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
    """Return the distance of each lost node to the nearest one with a home, and the number of that one.

    If rows are the nodes, their nearest are known already, and a search is needed only where none of these has a home.
    """
    distances, nearest = np.full(len(lost), np.inf), np.full(len(lost), -1, dtype=np.intp)
    if graph.rows_are_nodes:
        near = graph.near[lost]
        told = answer[near] >= 0
        known = np.flatnonzero(told.any(axis=1))
        nearest[known] = near[known, told[known].argmax(axis=1)]
        off = points[lost[known]].astype(np.float64) - points[nearest[known]]
        distances[known] = np.linalg.norm(off, axis=1)
    unknown = np.flatnonzero(nearest < 0)
    if len(unknown):
        homes = np.flatnonzero(answer >= 0)
        distances[unknown], found = _nearest(points[homes], points[lost[unknown]])
        nearest[unknown] = homes[found]
    return distances, nearest
