"""Stability: how much of a cluster comes back when signatures are resampled and conquered anew."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array

__all__ = ["Stability", "came_back", "stability"]


@dataclass(frozen=True, eq=False)
class Stability:
    """How much comes back.

    Attributes
    ----------
    per_cluster : ndarray of shape (n_clusters,)
        From 0 to 1.
    overall : float
        The mean over clusters, by their mass.
    """

    per_cluster: NDArray[np.float64]
    overall: float


def stability(labels: NDArray[np.int32], anew: Sequence[NDArray[np.int32]], masses: NDArray[np.float64]) -> Stability:
    """Return the mean over other partitions of how much of each cluster comes back in them.

    Examples
    --------
    >>> halves = np.array([0, 0, 1, 1], dtype=np.int32)
    >>> found = stability(halves, [1 - halves, np.array([0, 1, 1, 1])], np.ones(4))
    >>> found.per_cluster.round(3).tolist(), round(found.overall, 3)
    ([0.75, 0.833], 0.792)
    """
    weights = np.maximum(masses, 1e-9 * masses.mean()) if masses.any() else np.ones(len(masses))
    per_cluster = np.mean([came_back(labels, other, weights) for other in anew], axis=0)
    sizes = np.bincount(labels, weights)
    return Stability(per_cluster, float(sizes @ per_cluster / sizes.sum()))


def came_back(labels: NDArray[np.int32], other: NDArray[np.int32], weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return for each cluster how like it the most similar cluster of another partition is.

    It is Jaccard's index, by weight: what both share over what either has; 1 where the same cluster comes back.
    """
    shape = (int(labels.max()) + 1, int(other.max()) + 1)
    shared = coo_array((weights, (labels, other)), shape=shape).tocsr().tocoo()
    either = np.bincount(labels, weights)[shared.row] + np.bincount(other, weights)[shared.col] - shared.data
    best = np.zeros(shape[0])
    np.maximum.at(best, shared.row, shared.data / either)
    return np.minimum(best, 1.0)
