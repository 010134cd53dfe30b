"""The small records that the core takes, and the check that keeps a row inside its tree."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dc2.core.lanes import Floats
from dc2.errors import InputError


class FlatTree(NamedTuple):
    """A tree as arrays."""

    directions: Floats  # (n_nodes, width)
    thresholds: Floats  # (n_nodes,)
    children: NDArray[np.int32]  # (n_nodes, 2), ~leaf where the child is a leaf


class GrowRule(NamedTuple):
    """How a tree grows."""

    leaf_size: float  # a node with less weight is not split
    max_leaves: int
    cut: str  # "median", "mean", "uniform" or "quantile"
    sharpen: int = 0  # how often a direction is multiplied with the covariance of its node
    n_candidates: int = 1  # directions of which the one with the largest spread is kept


class Centres(NamedTuple):
    """A point for each leaf, and where a row may walk from each."""

    points: Floats  # (n_leaves, width)
    shortlist: NDArray[np.int32] | None = None  # (n_leaves, n_near): its own centre, then nearest first
    gaps: Floats | None = None  # (n_leaves, n_near): distances to the first of each list, to save time


class SumsOut(NamedTuple):
    """Sums of rows about their centres, on the grids `magic`."""

    magic: NDArray[np.float64]  # IN (2, width + 2)
    counts: NDArray[np.int64]  # OUT (n_leaves,)
    totals: NDArray[np.float64]  # OUT (2, n_leaves, width + 2)


class FoundOut(NamedTuple):
    """What is written for each row; None for what is not wanted."""

    ids: NDArray[np.int32] | None = None  # OUT (n_rows,)
    near_ids: NDArray[np.int32] | None = None  # OUT (n_rows, few)
    near_squared: Floats | None = None  # OUT (n_rows, few)


def check_tree(tree: FlatTree) -> None:
    """Refuse arrays that do not form a tree, in which every row reaches a leaf.

    A child comes after its parent, and every leaf and every node but the root is the child of exactly one.
    """
    directions, thresholds, children = (np.asarray(part) for part in tree)
    nodes = len(thresholds) if thresholds.ndim == 1 else -1
    if directions.ndim != 2 or directions.shape[0] != nodes or children.shape != (nodes, 2):
        raise InputError(
            "directions, thresholds and children of a tree must have the shapes (n_nodes, n_features), (n_nodes,) and "
            f"(n_nodes, 2); got {directions.shape}, {thresholds.shape} and {children.shape}."
        )
    if not (_is_float(directions) and directions.dtype == thresholds.dtype and children.dtype == np.int32):
        raise InputError(
            "directions and thresholds of a tree must both be float32 or both float64, and its children int32; got "
            f"{directions.dtype}, {thresholds.dtype} and {children.dtype}."
        )
    every_one = np.concatenate([np.arange(-nodes - 1, 0), np.arange(1, nodes)]) if nodes else np.empty(0)
    backward = (children >= 0) & (children <= np.arange(nodes)[:, None])
    if backward.any() or not np.array_equal(np.sort(children, axis=None), every_one):
        raise InputError(
            f"children make no tree of {nodes} nodes and {nodes + 1} leaves: each node but the first must be the "
            "child of one node before it, and each leaf (as ~leaf) the child of one node."
        )


def _is_float(array: NDArray[Any]) -> bool:
    return array.dtype in (np.float32, np.float64)


def check_centres(centres: Centres, n_leaves: int) -> None:
    """Refuse lists that lead outside the centres."""
    points, shortlist, gaps = centres
    if shortlist is None:
        return
    if len(points) != n_leaves or len(shortlist) != n_leaves or gaps is None or gaps.shape != shortlist.shape:
        raise InputError("centres, shortlist and gaps must have a row for each leaf.")
    if not ((shortlist >= 0) & (shortlist < len(points))).all():
        raise InputError(f"a shortlist names centres from 0 to {len(points) - 1} only.")
