"""Soft membership: the clusters of the few signatures nearest to a row."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dc2.compress.router import Router
from dc2.compress.ties import TIES, tie_weights


def memberships(
    router: Router, X: NDArray[Any], label_of_id: NDArray[np.int32], n_clusters: int
) -> NDArray[np.float64]:
    """Return the share of each cluster among the nearest five signatures of each row, nearer ones counting more.

    See `tie_weights`.
    """
    ids, squared = router.nearest_few(X, TIES)
    ties = tie_weights(squared)
    shares = np.zeros((len(X), n_clusters))
    for k in range(ids.shape[1]):
        shares[np.arange(len(X)), label_of_id[ids[:, k]]] += ties[:, k]
    return shares
