"""Points that are one point: equal rows of the similarity, merged with their weights added up."""

from dataclasses import dataclass

import numpy as np

from dc2.spectral.affinity import NEGLIGIBLE, FloatArray, Labels

__all__ = ["DistinctPoints", "distinct_points", "numbered_by_appearance"]


@dataclass(frozen=True)
class DistinctPoints:
    """The distinct points among all.

    Attributes
    ----------
    similarity : ndarray of shape (m, m)
        Of the distinct points, in order of first appearance.
    weights : ndarray of shape (m,)
        The weights of equal points added up.
    of_point : ndarray of shape (n,)
        Which distinct point each point is.
    """

    similarity: FloatArray
    weights: FloatArray
    of_point: Labels


def distinct_points(similarity: FloatArray, weights: FloatArray) -> DistinctPoints:
    """Merge points whose rows of the similarity agree to rounding.

    Rows are sorted by a sum over each with fixed random factors, which brings equal ones together; neighbours
    whose sums agree are then compared entry by entry. So it costs little beside the eigenproblem.
    """
    n = len(similarity)
    same = NEGLIGIBLE * similarity.max()
    sums = similarity @ np.random.default_rng(0).random(n)
    order = np.argsort(sums, kind="stable")
    starts_new = np.ones(n, dtype=bool)
    for position in np.flatnonzero(np.diff(sums[order]) <= same * n) + 1:
        here, before = order[position], order[position - 1]
        starts_new[position] = np.abs(similarity[here] - similarity[before]).max() > same
    run = np.empty(n, dtype=np.intp)
    run[order] = np.cumsum(starts_new) - 1
    of_point = numbered_by_appearance(run)
    first = np.unique(of_point, return_index=True)[1]
    summed = np.bincount(of_point, weights).astype(np.float64)
    return DistinctPoints(similarity[np.ix_(first, first)], summed, of_point)


def numbered_by_appearance(labels: Labels) -> Labels:
    """Return the same partition with labels 0, 1, ... in the order in which they first appear."""
    _, first, codes = np.unique(labels, return_index=True, return_inverse=True)
    number = np.empty(len(first), dtype=np.intp)
    number[np.argsort(first)] = np.arange(len(first))
    return number[codes]
