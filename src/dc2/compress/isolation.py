"""How soon random hyperplanes isolate a row: the depth that shows anomalies, also those that form groups."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dc2.core.reference import hash_at
from dc2.trees.tree import NO_LIMIT, RPTree, grow_on

N_TREES = 64
N_COLUMNS = 3
N_POINTS = 256
SEED = 0x69736F
LIKELY_ROWS = 4096


@dataclass(frozen=True, eq=False)
class IsolationForest:
    """Trees that cut a few rows by random hyperplanes in three columns each, until every one is alone.

    Rows are drawn by weight, so integer weights equal repeated rows. Three columns are few enough to see an anomaly
    that most columns do not show, and enough to see one in their combination.

    Attributes
    ----------
    trees : tuple of (columns, RPTree, depths)
        The columns that a tree cuts, and for each leaf the cuts that isolate its rows.

    References
    ----------
    Liu, Ting, Zhou: Isolation Forest. ICDM 2008. Hariri, Kind, Brunner: Extended Isolation Forest. TKDE 2021.

    Examples
    --------
    >>> rows = np.append(np.random.default_rng(0).normal(size=(200, 2)), [[9.0, 9.0]], axis=0)
    >>> shortness = IsolationForest.grow(rows, np.ones(201)).shortness(rows)
    >>> int(shortness.argmax())
    200
    """

    trees: tuple[tuple[NDArray[np.intp], RPTree, NDArray[np.float64]], ...]

    @classmethod
    def grow(cls, points: NDArray[Any], weights: NDArray[np.float64]) -> IsolationForest:
        """Grow the trees on rows; columns that do not vary are never cut."""
        points = points[weights > 0]
        varying = np.flatnonzero(points.max(axis=0) > points.min(axis=0))
        if not len(varying):
            return cls(())
        reached = np.cumsum(weights[weights > 0])
        trees = []
        for seed, columns in enumerate(_few_of(varying)):
            drawn = (hash_at(SEED + seed, np.arange(N_POINTS)) >> np.uint64(11)).astype(np.float64) * 2.0**-53
            share = (np.arange(N_POINTS) + drawn) / N_POINTS
            rows = np.minimum(np.searchsorted(reached, share * reached[-1], "right"), len(points) - 1)
            trees.append((columns, *_grown(np.ascontiguousarray(points[np.ix_(rows, columns)]), seed)))
        return cls(tuple(trees))

    def shortness(self, X: NDArray[Any]) -> NDArray[np.float64]:
        """Return minus the cuts that isolate each row, added over trees: higher is farther out."""
        total = np.zeros(len(X))
        for columns, tree, depths in self.trees:
            some = np.ascontiguousarray(X[:, columns], dtype=tree.directions.dtype)
            total -= depths[tree.route(some)]
        return total


def likely_rows(
    points: NDArray[Any], weights: NDArray[np.float64], spread: NDArray[np.float64], nearest: NDArray[Any]
) -> tuple[NDArray[Any], NDArray[np.float64]]:
    """Return rows as signatures represent them, and their weights: signatures that are rows, or places around others.

    Means are deeper inside than their rows. So each signature gets places around it, spread as its rows are in all, and
    among columns as the differences between neighbouring signatures are.

    Parameters
    ----------
    points : ndarray of shape (n_signatures, n_features)
    weights, spread : ndarray of shape (n_signatures,)
    nearest : ndarray of shape (n_signatures,), int
        Another signature near each.
    """
    if not spread.any():
        return points, weights
    # No product of matrices: its last bits depend on where arrays are in memory.
    points = np.ascontiguousarray(points)
    squared = (weights[:, None] * (points - points[nearest]).astype(np.float64) ** 2).sum(axis=0)
    share = squared / squared.sum() if squared.any() else np.full(points.shape[1], 1.0 / points.shape[1])
    of = np.tile(np.arange(len(points)), -(-LIKELY_ROWS // len(points)))
    drawn = hash_at(SEED, np.arange(len(of) * points.shape[1])).reshape(len(of), -1) >> np.uint64(11)
    # Uniform between -1 and 1, of variance one third.
    uniform = drawn.astype(np.float64) * 2.0**-52 - 1.0
    moved = points[of] + uniform * np.sqrt(3.0 * spread[of, None] * share)
    return moved.astype(points.dtype), weights[of]


def _few_of(columns: NDArray[np.intp]) -> list[NDArray[np.intp]]:
    """Return the columns of each tree; every column is in equally many trees, or in one more."""
    n_rounds = -(-N_TREES * N_COLUMNS // len(columns))
    rounds = [np.argsort(hash_at(SEED, np.arange(len(columns)) + len(columns) * i)) for i in range(n_rounds)]
    order = columns[np.concatenate(rounds)]
    return [np.unique(order[N_COLUMNS * i : N_COLUMNS * (i + 1)]) for i in range(N_TREES)]


def _grown(points: NDArray[Any], seed: int) -> tuple[RPTree, NDArray[np.float64]]:
    tree, leaf = grow_on(points, None, seed=SEED + seed, leaf_size=2.0, max_leaves=NO_LIMIT, cut="uniform", sharpen=0)
    return tree, tree.leaf_depths + _further_cuts(np.bincount(leaf, minlength=tree.n_leaves))


def _further_cuts(n_rows: NDArray[np.intp]) -> NDArray[np.float64]:
    """Return how many more cuts would isolate one of so many rows on average: the depth of a random search tree."""
    harmonic = np.append(0.0, np.cumsum(1.0 / np.arange(1, max(n_rows.max(), 2) + 1)))
    n = np.maximum(n_rows, 1)
    cuts: NDArray[np.float64] = 2.0 * harmonic[n - 1] - 2.0 * (n - 1) / n
    return cuts
