"""Groups of rows with empty space between them: single linkage by mutual reachability, cut where gaps are widest.

Communities are found by counts of edges. Counts are blind in two cases: a curve has few edges at any place, so that
chance gaps along it look like borders, and a dense and a sparse cluster share edges although space between them is
empty. Distances show both. The mutual reachability of two rows is their distance, or that of either row to the last of
its nearest rows, if that is more; so single rows between clusters are no bridges. The minimum spanning tree by it joins
rows into groups. Where two groups of some size join across a distance that is wider than nearly all edges inside each
of them, there is a gap. In clouds, cubes, curves and heavy tails groups join across distances like those inside them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components, minimum_spanning_tree
from scipy.spatial import cKDTree

from dc2.core.neighbours_reference import squared_distances_of_pairs
from dc2.graph.fixed_k import distances_of_parts
from dc2.graph.resolutions import GraphNodes

INSIDE = 0.05  # so many of a group's edges may be as long as the gap beside it: noise has long edges
NEAR, MOST_COLUMNS = 10, 16  # nearest signatures, and columns in which a tree finds them
LEAST_GROUP = 0.01  # of all nodes; or as many as a row has neighbours
# The least depth of a gap, the logarithm of the density inside over that of the gap. Clouds, cubes, heavy tails and
# rings of 1 to 30 columns reach 0.2 by chance.
LEAST_DEPTH = 0.5


@dataclass(frozen=True, eq=False)
class GapTree:
    """The minimum spanning tree of the nodes by mutual reachability, and where two groups of some size join.

    Attributes
    ----------
    ends, others : ndarray of shape (n_nodes - 1,), intp
        The edges of the tree, the shortest first.
    splits : ndarray of shape (n_splits,), intp
        The edges across gaps, the deepest gap first.
    depths : ndarray of shape (n_splits,)
        How deep the gaps are: how much longer the edge is than nearly all edges inside both groups, as the logarithm of
        the density that follows from it, at most 1.
    """

    ends: NDArray[np.intp]
    others: NDArray[np.intp]
    splits: NDArray[np.intp]
    depths: NDArray[np.float64]

    @classmethod
    def of(cls, nodes: GraphNodes, dimension: float) -> GapTree:
        """Link the nodes, whose volumes grow with this power of distance; nodes of a given graph have no gaps."""
        near = _nearest(nodes)
        if near is None:
            nothing = np.zeros(0, dtype=np.intp)
            return cls(nothing, nothing, nothing, np.zeros(0))
        ends, others, lengths = _spanning_tree(nodes, near)
        splits, widths = _splits(ends, others, lengths, max(near.shape[1], round(LEAST_GROUP * len(near))))
        depths = dimension * np.log(widths)
        order = np.lexsort((splits, -depths))[: int((depths >= LEAST_DEPTH).sum())]
        return cls(ends, others, splits[order], np.minimum(depths[order], 1.0))

    @property
    def n_groups(self) -> int:
        """The number of groups with gaps between them."""
        return len(self.splits) + 1

    def groups(self, n_groups: int) -> NDArray[np.int32]:
        """Return so many groups: the tree is cut at the deepest gaps."""
        kept = np.ones(len(self.ends), dtype=bool)
        kept[self.splits[: n_groups - 1]] = False
        n_nodes = len(self.ends) + 1
        left = coo_array((np.ones(int(kept.sum())), (self.ends[kept], self.others[kept])), shape=(n_nodes, n_nodes))
        groups: NDArray[np.int32] = connected_components(left, directed=False)[1].astype(np.int32)
        return groups


def _nearest(nodes: GraphNodes) -> NDArray[np.int32] | None:
    """Return the nearest nodes of each, itself first; None if they have no coordinates, or too many columns."""
    graph, points = nodes.graph, nodes.points
    if graph.lengths is not None:
        return None
    if graph.rows_are_nodes:
        return graph.near
    if points.shape[1] > MOST_COLUMNS or graph.n_nodes < 2 * NEAR:
        return None
    near = np.asarray(cKDTree(points).query(points, k=NEAR)[1], dtype=np.int32)
    near[:, 0] = np.arange(len(points))
    return near


def _spanning_tree(
    nodes: GraphNodes, near: NDArray[np.int32]
) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.float64]]:
    """Return the edges of the minimum spanning tree and their lengths, the shortest first."""
    points = nodes.points
    n_nodes, n_near = near.shape
    row = np.repeat(np.arange(n_nodes, dtype=np.int32), n_near - 1)
    col = near[:, 1:].ravel()
    lengths = np.sqrt(squared_distances_of_pairs(points, row, points, col, nodes.n_threads))
    reach = np.maximum(lengths.reshape(n_nodes, -1).max(axis=1), np.finfo(np.float64).tiny)
    lengths = np.maximum(lengths, np.maximum(reach[row], reach[col]))
    tree = minimum_spanning_tree(coo_array((lengths, (row, col)), shape=(n_nodes, n_nodes)).tocsr()).tocoo()
    part = connected_components(tree, directed=False)[1].astype(np.intp)
    ends, others, found = tree.row.astype(np.intp), tree.col.astype(np.intp), tree.data
    if part.any():
        first = np.unique(part, return_index=True)[1]
        bridges = distances_of_parts(points, part)[0]
        ends = np.concatenate([ends, first[[a for _, a, _ in bridges]]])
        others = np.concatenate([others, first[[b for _, _, b in bridges]]])
        found = np.concatenate([found, np.maximum([distance for distance, _, _ in bridges], found.max(initial=0.0))])
    order = np.argsort(found, kind="stable")
    return ends[order], others[order], found[order]


def _splits(
    ends: NDArray[np.intp], others: NDArray[np.intp], lengths: NDArray[np.float64], least: int
) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """Return the edges that join two groups of at least so many nodes across a gap, and how wide it is."""
    n_nodes, n_edges = len(lengths) + 1, len(lengths)
    home, made_by = list(range(n_nodes)), [-1] * n_nodes
    sides: list[tuple[int, int]] = []  # for each edge the two edges that made what it joins; -1 for a single node
    sizes = [1] * n_edges
    splits = []
    for edge, (a, b) in enumerate(zip(ends.tolist(), others.tolist(), strict=True)):
        while home[a] != a:
            home[a] = home[home[a]]
            a = home[a]
        while home[b] != b:
            home[b] = home[home[b]]
            b = home[b]
        one, other = made_by[a], made_by[b]
        n_one, n_other = sizes[one] if one >= 0 else 1, sizes[other] if other >= 0 else 1
        sides.append((one, other))
        sizes[edge] = n_one + n_other
        if n_one >= least and n_other >= least:
            splits.append(edge)
        if n_one < n_other:
            a, b = b, a
        home[b], made_by[a] = a, edge
    # In this order the edges of each group are consecutive.
    place, stack = [0] * n_edges, [n_edges - 1]
    order: list[int] = []
    while stack:
        edge = stack.pop()
        place[edge] = len(order)
        order.append(edge)
        stack += [side for side in sides[edge] if side >= 0]
    inside = lengths[order]
    widths = []
    for edge in splits:
        spans = [inside[place[side] : place[side] + sizes[side] - 1] for side in sides[edge]]
        widths.append(min(lengths[edge] / np.quantile(span, 1 - INSIDE) for span in spans))
    return np.array(splits, dtype=np.intp), np.array(widths, dtype=np.float64)
