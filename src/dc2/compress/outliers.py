"""Outlier scores: how far a row lies from the rows around it, judged from signatures alone."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dc2.sources import Block

__all__ = ["NegativeScores", "OutlierScores", "outlier_scores_of"]

NEAREST = 8  # signatures considered for each row
NEIGHBOURHOOD = 3.0  # size of a row's neighbourhood, in rows of an average signature
HALF_OUT = 2.0  # the score is one half at this many typical distances
FARTHEST = 1e290  # squared; a limit, since infinity times a weight of 0 is no number


@dataclass(frozen=True, eq=False)
class OutlierScores:
    """Scores the rows of a block; small enough to be sent to where the rows are.

    The neighbourhood of a row consists of the rows of its nearest signatures, as many as three average signatures hold.
    The mean squared distance d^2 to them is known exactly: the squared distance to a signature plus its spread,
    averaged by weight. The score is r / (2 + r) with r = d / typical; it depends on density alone, never on clusters.
    No function is used whose last bit depends on the platform.

    Attributes
    ----------
    router : Router
        With shortlists.
    weights, spread : ndarray of shape (n_ids,), float64
        Of the signature for each number that the router gives.
    typical : float
        The distance of a typical row to its neighbourhood.
    """

    router: Any
    weights: NDArray[np.float64]
    spread: NDArray[np.float64]
    typical: float

    def __call__(self, block: Block) -> NDArray[np.float64]:
        """Return the score of each row, 0 to 1."""
        return self.of(block.where_they_lie)

    def of(self, X: Any) -> NDArray[np.float64]:
        """Return the score of each row of an array."""
        ratio = np.sqrt(_squared_distances(self.router, self.weights, self.spread, X)) / self.typical
        ratio = np.minimum(ratio, FARTHEST)
        scores: NDArray[np.float64] = ratio / (HALF_OUT + ratio)
        return scores

    @property
    def unscaled(self) -> OutlierScores:
        """The same for rows that are scaled already."""
        return replace(self, router=replace(self.router, scaling=None))


@dataclass(frozen=True, eq=False)
class NegativeScores:
    """The negative scores of the rows of a block: higher is more ordinary."""

    scores_of: OutlierScores

    def __call__(self, block: Block) -> NDArray[np.float64]:
        """Return the negative score of each row."""
        return -self.scores_of(block)


def outlier_scores_of(
    router: Any, weights: NDArray[np.float64], spread: NDArray[np.float64], typical: float | None = None
) -> OutlierScores:
    """Return a function that scores rows; the typical distance is measured at the signatures unless given.

    Parameters
    ----------
    router : Router
        With shortlists.
    weights, spread : ndarray of shape (n_ids,), float64
        Of the signature for each number that the router gives.
    typical : float, optional
    """
    if typical is None:
        typical = _typical_distance(router, weights, spread)
    return OutlierScores(router, weights, spread, typical)


def _squared_distances(
    router: Any, weights: NDArray[np.float64], spread: NDArray[np.float64], X: Any
) -> NDArray[np.float64]:
    """Return the mean squared distance of each row to the rows of its neighbourhood."""
    ids, to_centres = router.nearest_few(X, NEAREST)
    whole = NEIGHBOURHOOD * weights.mean()
    missing, total = np.full(len(ids), whole), np.zeros(len(ids))
    for k in range(ids.shape[1]):
        squared = np.minimum(to_centres[:, k].astype(np.float64), FARTHEST) + spread[ids[:, k]]
        taken = np.minimum(weights[ids[:, k]], missing)
        total += taken * squared
        missing -= taken
    # If the nearest signatures hold too few rows, the missing ones count as lying as far as the last of them.
    mean: NDArray[np.float64] = np.minimum((total + missing * squared) / whole, FARTHEST)
    return mean


def _typical_distance(router: Any, weights: NDArray[np.float64], spread: NDArray[np.float64]) -> float:
    """Return the median over rows of their distance to their neighbourhood, taken from their signatures."""
    at_centres = _squared_distances(replace(router, scaling=None), weights, spread, router.centres)
    # A row lies as far from its signature as the spread says.
    squared = at_centres + spread
    kept = (weights > 0) & (squared > 0)
    if not kept.any():
        return 1.0  # all rows are equal
    order = np.argsort(squared[kept], kind="stable")
    heavier = np.cumsum(weights[kept][order])
    middle = np.searchsorted(heavier, heavier[-1] / 2)
    return float(np.sqrt(squared[kept][order[middle]]))
