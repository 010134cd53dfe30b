"""Representatives: the row of each cluster that lies nearest to its middle."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dc2.facts.fitted import FittedClusters

__all__ = ["representatives"]


def representatives(
    clusters: FittedClusters,
    members: NDArray[Any],
    in_units: Callable[[NDArray[np.float64]], NDArray[np.float64]],
) -> NDArray[np.float64]:
    """Return one of the members of each cluster, in the units of the data, of shape (n_clusters, n_features).

    Parameters
    ----------
    clusters : FittedClusters
    members : ndarray of shape (n_signatures, n_features)
        A row for each signature, or the signature itself where there is none, as it was clustered.
    in_units : callable
        Undoes what was done to rows before they were clustered.
    """
    inside = clusters.in_clusters
    labels = clusters.labels[inside]
    off = members[inside].astype(np.float64) - clusters.means(clusters.points)[labels]
    squared = np.einsum("ij,ij->i", off, off)
    squared[clusters.weights[inside] <= 0] = np.inf  # a signature without rows represents none
    order = np.lexsort((squared, labels))
    found, first = np.unique(labels[order], return_index=True)
    rows = members[inside[order[first]]].astype(np.float64)
    chosen = np.full((clusters.n_clusters, members.shape[1]), np.nan)
    chosen[found] = in_units(rows)
    return chosen
