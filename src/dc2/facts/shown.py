"""Which signatures are drawn where there are too many to draw all."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["heaviest_of_clusters"]


def heaviest_of_clusters(labels: NDArray[np.int32], weights: NDArray[np.float64], most: int) -> NDArray[np.intp]:
    """Return signatures, heaviest first: of each cluster as many as its share of the weight, and at least one.

    Parameters
    ----------
    labels : ndarray of shape (n_signatures,)
        Any whole numbers.
    weights : ndarray of shape (n_signatures,)
    most : int
        How many to take, unless there are more clusters.

    Examples
    --------
    >>> labels = np.array([0, 0, 0, 1, 1, 1])
    >>> heaviest_of_clusters(labels, np.array([9.0, 8.0, 7.0, 1.0, 2.0, 1.0]), 4).tolist()
    [0, 1, 2, 4]
    """
    heaviest_first = np.argsort(-weights, kind="stable")
    if len(labels) <= most:
        return heaviest_first
    clusters, code = np.unique(labels[heaviest_first], return_inverse=True)
    size = np.bincount(code, weights[heaviest_first])
    by_cluster = np.argsort(code, kind="stable")
    rank = np.empty(len(code), np.intp)
    rank[by_cluster] = (
        np.arange(len(code)) - np.searchsorted(code[by_cluster], np.arange(len(clusters)))[code[by_cluster]]
    )
    # The signature of rank r stands for the r-th part of its cluster's share: the largest parts are drawn.
    part = (size[code] + np.finfo(float).tiny) / (rank + 0.5)
    part[rank == 0] = np.inf
    chosen = np.argsort(-part, kind="stable")[: max(most, len(clusters))]
    kept: NDArray[np.intp] = heaviest_first[np.sort(chosen)]
    return kept
