"""One random projection tree, as flat arrays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dc2 import core
from dc2.core.reference import CUTS, NORMAL_TABLE, Centres, FlatTree, GrowRule, NearestOut, check_tree
from dc2.errors import InputError, ParameterError
from dc2.io.model_file import saved_record
from dc2.io.resolve import as_source
from dc2.io.source import Block, raise_if_not_finite
from dc2.parameters import check_integer, check_positive, check_random_directions
from dc2.random import RandomStateLike, seed_sequence, tree_seed

Cut = Literal["median", "mean", "uniform", "quantile"]
NO_LIMIT = 2**62  # more leaves than rows there can be


@saved_record
@dataclass(frozen=True, eq=False)
class RPTree:
    """A random projection tree: each node sends a row left if its projection is at most the node's threshold.

    Attributes
    ----------
    directions : ndarray of shape (n_nodes, n_features)
        The direction of each inner node, float32 or float64. Node 0 is the root.
    thresholds : ndarray of shape (n_nodes,)
        Where each node cuts.
    children : ndarray of shape (n_nodes, 2), int32
        Left and right child; ``~leaf`` (negative) where the child is a leaf. Leaves count from left to right.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(1000, 3))
    >>> tree = RPTree.grow(X, max_leaves=8, rng=0)
    >>> tree.n_leaves, np.bincount(tree.apply(X)).tolist()
    (8, [125, 125, 125, 125, 125, 125, 125, 125])

    Equal rows share one leaf:

    >>> RPTree.grow(np.ones((10, 2)), leaf_size=2, rng=0).n_leaves
    1
    """

    directions: NDArray[Any]
    thresholds: NDArray[Any]
    children: NDArray[np.int32]

    def __post_init__(self) -> None:
        check_tree(self.arrays)

    @classmethod
    def grow(
        cls,
        X: ArrayLike,
        *,
        leaf_size: float | None = None,
        max_leaves: int | None = None,
        cut: Cut = "median",
        sharpen: int = 0,
        n_candidates: int = 1,
        sample_weight: ArrayLike | None = None,
        rng: RandomStateLike = None,
    ) -> RPTree:
        """Grow a tree on rows.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            The rows. float32 stays float32.
        leaf_size : float, optional
            A node with less weight than this is not split (the paper's n_s). Give this or `max_leaves`.
        max_leaves : int, optional
            Split the largest node until there are so many leaves.
        cut : {"median", "mean", "uniform", "quantile"}, default="median"
            Where a node is cut: at the median or the mean of its projections, uniformly between the smallest and
            the largest, or uniformly between the 25% and 75% quantiles.
        sharpen : int, default=0
            How often a direction is multiplied by the covariance of (up to 512 of) the node's rows, which turns it
            towards the directions in which they spread. 0 is the paper.
        n_candidates : int, default=1
            Directions drawn per node; the one along which the rows spread most is kept.
        sample_weight : array-like of shape (n_rows,), optional
            Weights; integer weights equal repeated rows. Rows of weight 0 are left out.
        rng : int, Generator, RandomState, SeedSequence or None
            Seed of the directions.

        Returns
        -------
        RPTree

        Notes
        -----
        Takes O(n d log(leaves)) time and, beyond X, 20 bytes per row.
        """
        if (leaf_size is None) == (max_leaves is None):
            raise ParameterError(
                f"give either leaf_size or max_leaves; got leaf_size={leaf_size!r} and max_leaves={max_leaves!r}."
            )
        if leaf_size is not None:
            check_positive("leaf_size", leaf_size)
        if max_leaves is not None:
            check_integer("max_leaves", max_leaves, low=1)
        check_random_directions(cut, CUTS, sharpen, n_candidates)
        rows = checked_rows(X, sample_weight)
        size, most = float(leaf_size or 0), NO_LIMIT if max_leaves is None else int(max_leaves)
        options: dict[str, Any] = {"cut": cut, "sharpen": sharpen, "n_candidates": n_candidates}
        seed = tree_seed(seed_sequence(rng))
        return grow_on(rows.X, rows.weights, seed=seed, leaf_size=size, max_leaves=most, **options)[0]

    @property
    def arrays(self) -> FlatTree:
        """The arrays of the tree, for the core."""
        return FlatTree(self.directions, self.thresholds, self.children)

    @property
    def n_leaves(self) -> int:
        """Number of leaves."""
        return len(self.thresholds) + 1

    @property
    def n_features(self) -> int:
        """Number of columns of the rows it routes."""
        return int(self.directions.shape[1])

    @property
    def depth(self) -> int:
        """Number of cuts on the longest path from the root to a leaf."""
        return int(self.leaf_depths.max())

    @property
    def leaf_depths(self) -> NDArray[np.int32]:
        """Number of cuts above each leaf."""
        depths = np.zeros(self.n_leaves, np.int32)
        node_depths = np.zeros(len(self.thresholds), np.int32)
        for node, pair in enumerate(self.children):  # a child comes after its parent
            for child in pair:
                (node_depths if child >= 0 else depths)[child if child >= 0 else ~child] = node_depths[node] + 1
        return depths

    def apply(self, X: ArrayLike) -> NDArray[np.int32]:
        """Return the leaf of every row, taken as the tree's dtype."""
        rows = checked_rows(X).X
        if rows.shape[1] != self.n_features:
            raise InputError(f"X has {rows.shape[1]} columns, but the tree was grown on {self.n_features}.")
        return self.route(rows.astype(self.directions.dtype, copy=False))

    def route(self, X: NDArray[Any], feature_names: tuple[str, ...] | None = None, start: int = 0) -> NDArray[np.int32]:
        """Return the leaf of every row of a checked array; raise if a row is not finite."""
        leaf = np.empty(len(X), np.int32)
        bad = core.scan(X, None, self.arrays, Centres(X[:0].copy()), None, NearestOut(leaf))
        if bad:
            raise_unusable(X, feature_names, start)
        return leaf

    def cut_at(self, depth: int) -> NDArray[np.int32]:
        """Return, for each leaf, the number of the node above it (or of itself) at a depth."""
        ancestors = np.zeros(self.n_leaves, np.int32)
        next_number = 0
        stack = [(0 if len(self.thresholds) else ~0, 0, -1)]
        while stack:
            child, level, number = stack.pop()
            if number < 0 and (level == depth or child < 0):
                number, next_number = next_number, next_number + 1
            if child < 0:
                ancestors[~child] = number
            else:
                stack += [(int(below), level + 1, number) for below in self.children[child][::-1]]
        return ancestors

    def radius_by_depth(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return the mean distance of rows to the centroid of their node, for depth 0, 1, ... to the deepest leaf.

        It shrinks towards 0 as depth grows; the paper's argument that the error vanishes rests on this.
        """
        rows = checked_rows(X).X.astype(np.float64)
        leaf = self.apply(X)
        radius = []
        for depth in range(self.depth + 1):
            node = self.cut_at(depth)[leaf]
            counts = np.maximum(np.bincount(node), 1)
            centroids = np.stack([np.bincount(node, column) for column in rows.T], axis=1) / counts[:, None]
            radius.append(np.linalg.norm(rows - centroids[node], axis=1).mean())
        return np.array(radius)


def checked_rows(X: Any, sample_weight: ArrayLike | None = None) -> Block:
    """Return data in memory as one block without rows of weight 0; raise if a value is not finite."""
    source = as_source(X, sample_weight=sample_weight)
    if not source.in_memory:
        raise InputError("X is not in memory, but a tree needs rows in memory. Use dc2.Compressor.", parameter="X")
    block = next(source.blocks(NO_LIMIT))
    if not values_usable(block.X):
        raise_unusable(block.X, source.feature_names, 0)
    if block.weights is not None and not block.weights.all():
        kept = block.weights > 0
        return Block(0, block.X[kept], np.ascontiguousarray(block.weights[kept]))
    return block


def values_usable(X: NDArray[Any]) -> bool:
    """Return whether all values are finite, and small enough that no projection overflows."""
    largest = max(X.max(initial=0.0), -X.min(initial=0.0))  # NaN where there is one
    return bool(largest < np.finfo(X.dtype).max / (4 * np.sqrt(X.shape[1])))


def raise_unusable(X: NDArray[Any], feature_names: tuple[str, ...] | None, start: int) -> NoReturn:
    """Raise the error for rows that cannot be routed."""
    X = np.asarray(X)  # copied from the device, if they are on one
    raise_if_not_finite(X, feature_names, start)
    largest = float(np.abs(X).max())
    raise InputError(
        f"Input X has values too large to be projected as {X.dtype.name} (largest {largest:.3g} in rows {start} to "
        f"{start + len(X) - 1}). Scale the columns, for instance with sklearn.preprocessing.StandardScaler."
    )


def grow_on(
    X: NDArray[Any],
    weights: NDArray[np.float64] | None,
    *,
    seed: int,
    leaf_size: float,
    max_leaves: int,
    cut: str,
    sharpen: int,
    n_candidates: int = 1,
    n_threads: int = 1,
) -> tuple[RPTree, NDArray[np.int32]]:
    """Grow a tree on checked rows; return it and the leaf of each row."""
    rule = GrowRule(leaf_size, max_leaves, cut, sharpen, n_candidates)
    directions, thresholds, children, leaf = core.grow_tree(X, weights, seed, rule, NORMAL_TABLE, n_threads)
    return RPTree(directions, thresholds, children), leaf


def graft(top: RPTree, branches: list[RPTree]) -> RPTree:
    """Put one tree in the place of each leaf of another; leaves are numbered branch after branch."""
    node_starts = np.cumsum([len(top.thresholds), *(len(branch.thresholds) for branch in branches)]).tolist()
    leaf_starts = np.cumsum([0, *(branch.n_leaves for branch in branches)]).tolist()
    roots, children = [], []
    for branch, node, leaf in zip(branches, node_starts, leaf_starts, strict=False):
        roots.append(node if len(branch.thresholds) else ~leaf)
        children.append(np.where(branch.children >= 0, branch.children + node, branch.children - leaf))
    is_leaf = top.children < 0
    top_children = np.where(is_leaf, np.array(roots)[np.where(is_leaf, ~top.children, 0)], top.children)
    return RPTree(
        np.concatenate([part.directions for part in (top, *branches)]),
        np.concatenate([part.thresholds for part in (top, *branches)]),
        np.concatenate([top_children, *children]).astype(np.int32),
    )
