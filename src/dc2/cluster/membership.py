"""Soft membership: the clusters of the few signatures nearest to a row."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dc2.compress.router import Router

TIES = 5


def memberships(
    router: Router, X: NDArray[Any], label_of_id: NDArray[np.int32], n_clusters: int
) -> NDArray[np.float64]:
    """Return the share of each cluster among the nearest five signatures of each row, nearer ones counting more.

    A tie weighs exp(-d^2 / mean d^2), the mean being over the row's own five.
    """
    ids, squared = router.nearest_few(X, TIES)
    squared = squared.astype(np.float64)
    scale = squared.mean(axis=1, keepdims=True)
    ties = np.exp(-squared / np.where(scale > 0, scale, 1.0))
    shares = np.zeros((len(X), n_clusters))
    for k in range(ids.shape[1]):
        shares[np.arange(len(X)), label_of_id[ids[:, k]]] += ties[:, k]
    shares /= shares.sum(axis=1, keepdims=True)
    return shares
