"""What sets a cluster apart: its mean of each column against that of all rows, in standard deviations, and in words."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dc2.facts.fitted import FittedClusters

__all__ = ["LEVELS", "Profile", "cluster_profile", "level_word"]

COLUMNS_AT_A_TIME = 64  # copies of all columns of many signatures could be far larger than the rows
# A difference of at least so many standard deviations gets this word.
LEVELS = ((1.5, "very high", "very low"), (0.75, "high", "low"), (0.4, "rather high", "rather low"))


@dataclass(frozen=True, eq=False)
class Profile:
    """Means of clusters, and how far they are from the mean of all rows that are in a cluster.

    Attributes
    ----------
    names : tuple of str
        Columns.
    difference : ndarray of shape (n_clusters, n_features)
        (Mean of the cluster - mean of all) / standard deviation, the last taken over signatures by weight; 0 for a
        column that does not vary.
    means : ndarray of shape (n_clusters, n_features)
        Means in the units of the data.
    overall : ndarray of shape (n_features,)
        Mean of all rows in the units of the data.
    """

    names: tuple[str, ...]
    difference: NDArray[np.float64]
    means: NDArray[np.float64]
    overall: NDArray[np.float64]

    def telling_columns(self, most: int) -> NDArray[np.intp]:
        """Return the columns in which clusters differ most, the most telling first.

        The most telling column of every cluster comes before the second of any, so that each is represented.
        """
        size = np.abs(self.difference)
        rank = np.argsort(np.argsort(-size, axis=1, kind="stable"), axis=1, kind="stable")
        order = np.lexsort((-size.max(axis=0), rank.min(axis=0)))[:most]
        return order[np.argsort(-size.max(axis=0)[order], kind="stable")]

    def words(self, cluster: int, most: int = 4) -> list[tuple[str, int]]:
        """Return the word and the column of what is special about a cluster, the most telling first.

        Examples
        --------
        >>> profile = Profile(("a", "b"), np.array([[0.1, -2.0]]), np.zeros((1, 2)), np.zeros(2))
        >>> profile.words(0)
        [('very low', 1)]
        """
        order = np.argsort(-np.abs(self.difference[cluster]), kind="stable")[:most]
        levels = [(level_word(self.difference[cluster, column]), int(column)) for column in order]
        return [(word, column) for word, column in levels if word]

    def sentence(self, cluster: int) -> str:
        """Return the words as a phrase, such as "high temperature, low humidity".

        Examples
        --------
        >>> Profile(("t", "h"), np.array([[1.0, -0.8]]), np.zeros((1, 2)), np.zeros(2)).sentence(0)
        'high t, low h'
        """
        phrase = ", ".join(f"{word} {self.names[column]}" for word, column in self.words(cluster))
        return phrase or "near the average in every column"


def cluster_profile(clusters: FittedClusters) -> Profile:
    """Compare the means of clusters with the mean of all rows.

    Examples
    --------
    >>> X, ones = np.array([[0.0, 5.0], [1.0, 5.0]]), np.ones(2)
    >>> clusters = FittedClusters(X, X, ones, ones, np.array([0, 1], np.int32), ("a", "b"), 2)
    >>> cluster_profile(clusters).difference.tolist()
    [[-1.0, 0.0], [1.0, 0.0]]
    """
    if len(clusters.in_clusters) < len(clusters.labels):
        clusters = clusters.take(clusters.in_clusters)
    share = clusters.weights / clusters.weights.sum()
    starts = range(0, clusters.points.shape[1], COLUMNS_AT_A_TIME)
    some = [_difference(clusters, share, clusters.points[:, start : start + COLUMNS_AT_A_TIME]) for start in starts]
    difference = np.concatenate(some, axis=1)
    return Profile(clusters.names, difference, clusters.means(clusters.values), share @ clusters.values)


def _difference(
    clusters: FittedClusters, share: NDArray[np.float64], points: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return how far the means of clusters lie from the mean of all, in standard deviations, for some columns."""
    # Each column is brought to about 1 by a power of two: squares of very large and small values would be lost.
    points = np.ldexp(points, -np.frexp(np.abs(points).max(axis=0))[1])
    centre = share @ points
    deviation = np.sqrt(share @ (points - centre) ** 2)
    means = clusters.means(points)
    # What is left of a constant column is rounding.
    varies = deviation > 1e-6 * np.maximum(np.abs(centre), np.finfo(float).tiny)
    return np.divide(means - centre, deviation, out=np.zeros_like(means), where=varies)


def level_word(difference: float) -> str:
    """Return the word for a standardised difference; an empty one for a small difference.

    Examples
    --------
    >>> level_word(2.0), level_word(-0.5), level_word(0.1)
    ('very high', 'rather low', '')
    """
    for least, high, low in LEVELS:
        if abs(difference) >= least:
            return high if difference > 0 else low
    return ""
