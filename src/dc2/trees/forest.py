"""Many random projection trees on the same points, and how often two points share a leaf."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dc2 import core
from dc2.core.reference import CUTS
from dc2.errors import InputError
from dc2.parameters import MOST_DIRECTIONS, check_integer, check_positive, check_random_directions, usable_threads
from dc2.random import RandomStateLike, seed_sequence, tree_seed
from dc2.trees.tree import NO_LIMIT, Cut, RPTree, checked_rows, grow_on

ForestCut = Cut | Literal["mixed"]
FOREST_CUTS = (*CUTS, "mixed")
SMALLEST_LEAF, LARGEST_LEAF, POINTS_PER_LEAF_SIZE = 5, 30, 20


@dataclass(frozen=True, eq=False)
class RPForest:
    """Random projection trees grown independently on the same points.

    Attributes
    ----------
    trees : tuple of RPTree
    leaves : ndarray of shape (n_trees, n_points), int32
        The leaf of each point in each tree.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(100, 2))
    >>> forest = RPForest.grow(X, n_trees=50, rng=0)
    >>> share = forest.share()
    >>> share.shape, bool(np.all(share == share.T)), share[0, 0]
    ((100, 100), True, np.float64(1.0))
    """

    trees: tuple[RPTree, ...]
    leaves: NDArray[np.int32]

    def __post_init__(self) -> None:
        leaves = np.asarray(self.leaves)
        if leaves.dtype != np.int32 or leaves.ndim != 2 or not 0 < len(leaves) == len(self.trees):
            raise InputError(
                f"leaves of a forest of {len(self.trees)} trees must be int32 of shape ({len(self.trees)}, n_points), "
                f"with at least one tree; got {leaves.dtype} of shape {leaves.shape}."
            )
        n_leaves = np.array([tree.n_leaves for tree in self.trees])[:, None]
        if not ((leaves >= 0) & (leaves < n_leaves)).all():
            raise InputError("leaves of a forest must be between 0 and the number of leaves of each tree.")
        if len({(tree.n_features, tree.directions.dtype) for tree in self.trees}) > 1:
            raise InputError("the trees of a forest must route the same columns in the same dtype.")

    @classmethod
    def grow(
        cls,
        X: ArrayLike,
        n_trees: int = 800,
        leaf_size: float | Literal["auto"] = "auto",
        *,
        cut: ForestCut = "median",
        sharpen: int = 0,
        n_candidates: int = 1,
        sample_weight: ArrayLike | None = None,
        n_jobs: int | None = None,
        rng: RandomStateLike = None,
    ) -> RPForest:
        """Grow trees in threads; the result is the same for any number of threads.

        Parameters
        ----------
        X : array-like of shape (n_points, n_features)
            The points.
        n_trees : int, default=800
            Number of trees.
        leaf_size : float or "auto", default="auto"
            A node with less weight than this is not split. "auto" is n_points / 20 within 5 and 30; the paper has 30.
        cut : {"median", "mean", "uniform", "quantile", "mixed"}, default="median"
            As in `RPTree.grow`; with "mixed" every other tree cuts by "quantile", the others by "uniform".
        sharpen, n_candidates, sample_weight
            As in `RPTree.grow`.
        n_jobs : int, optional
            Number of threads; None takes all cores.
        rng : int, Generator, RandomState, SeedSequence or None
            Seed of the directions.
        """
        check_integer("n_trees", n_trees, low=1, high=MOST_DIRECTIONS)
        check_random_directions(cut, FOREST_CUTS, sharpen, n_candidates)
        cuts = ("quantile", "uniform") if cut == "mixed" else (cut,)
        rows = checked_rows(X, sample_weight)
        size = forest_leaf_size(leaf_size, len(rows.X) if rows.weights is None else float(rows.weights.sum()))
        seeds = [tree_seed(child) for child in seed_sequence(rng).spawn(n_trees)]

        def grow_one(number: int) -> tuple[RPTree, NDArray[np.int32]]:
            return grow_on(
                rows.X, rows.weights, seed=seeds[number], leaf_size=size, max_leaves=NO_LIMIT,
                cut=cuts[number % len(cuts)], sharpen=sharpen, n_candidates=n_candidates,
            )  # fmt: skip

        grown = _in_threads(grow_one, range(n_trees), n_jobs)
        forest = cls(tuple(tree for tree, _ in grown), np.stack([leaf for _, leaf in grown]))
        # Points of weight 0 do not shape the tree, but are routed through it.
        return forest if sample_weight is None else replace(forest, leaves=forest.apply(X))

    @property
    def n_trees(self) -> int:
        """Number of trees."""
        return len(self.trees)

    def apply(self, X: ArrayLike) -> NDArray[np.int32]:
        """Return the leaf of each of new points in each tree, of shape (n_trees, n_points)."""
        rows = checked_rows(X).X
        if rows.shape[1] != self.trees[0].n_features:
            raise InputError(f"X has {rows.shape[1]} columns, but the forest was grown on {self.trees[0].n_features}.")
        rows = rows.astype(self.trees[0].directions.dtype, copy=False)
        return np.stack([tree.route(rows) for tree in self.trees])

    def counts(self, X: ArrayLike | None = None, n_jobs: int | None = None) -> NDArray[np.int32]:
        """Return in how many trees two of the fitted points, or a new and a fitted point, share a leaf.

        Parameters
        ----------
        X : array-like of shape (n_new, n_features), optional
            New points; without them the fitted points are compared with each other.
        n_jobs : int, optional
            Number of threads; None takes all cores.

        Returns
        -------
        ndarray of shape (n_new or n_points, n_points), int32
        """
        leaves = self.leaves if X is None else self.apply(X)
        parts = np.array_split(np.arange(self.n_trees), min(usable_threads(n_jobs), self.n_trees))
        counts = _in_threads(lambda part: core.coleaf_counts(leaves[part], self.leaves[part]), parts, n_jobs)
        total: NDArray[np.int32] = counts[0]
        for more in counts[1:]:
            total += more
        return total

    def share(self, X: ArrayLike | None = None, n_jobs: int | None = None) -> NDArray[np.float64]:
        """Return the share of trees in which two points share a leaf: `counts` / n_trees."""
        return self.counts(X, n_jobs) / self.n_trees


def forest_leaf_size(leaf_size: Any, n_points: float) -> float:
    """Return the leaf size of a forest over so many points."""
    if isinstance(leaf_size, str) and leaf_size == "auto":
        # With very few points some must share a leaf, but no two in every tree.
        smallest = min(SMALLEST_LEAF, max(n_points / 2, min(3, n_points - 1)))
        return float(min(max(n_points / POINTS_PER_LEAF_SIZE, smallest), LARGEST_LEAF))
    return check_positive("leaf_size", leaf_size)


def _in_threads(function: Any, items: Any, n_jobs: int | None) -> list[Any]:
    with ThreadPoolExecutor(usable_threads(n_jobs), thread_name_prefix="dc2") as pool:
        return list(pool.map(function, items))
