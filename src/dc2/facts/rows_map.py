"""Rows placed on the map of signatures."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from sklearn.neighbors import NearestNeighbors
from threadpoolctl import threadpool_limits

from dc2.facts.fitted import FittedClusters
from dc2.facts.layout import Layout

__all__ = ["placed_rows"]

NEAREST = 5


def placed_rows(
    rows: NDArray[np.float64], values: NDArray[np.float64], clusters: FittedClusters, layout: Layout
) -> NDArray[np.float64]:
    """Return a place in the plane for each row, of shape (n_rows, 2).

    Two columns are their own map. Otherwise a row lies among its nearest signatures, those of the nearest one's cluster
    only, nearer ones counting more: exp(-d^2 / mean d^2). Where the nearest one is noise it lies there: other noise may
    be anywhere.

    Parameters
    ----------
    rows : ndarray of shape (n_rows, n_features)
        As they are clustered: scaled, where the model scales.
    values : ndarray of shape (n_rows, n_features)
        The same in the units of the data.
    clusters : FittedClusters
        The signatures that are drawn.
    layout : Layout
        Where they are drawn.
    """
    if layout.name == "columns" and values.shape[1] == 2:
        return values
    with threadpool_limits(limits=1):  # the same places for any number of threads
        search = NearestNeighbors(n_neighbors=min(NEAREST, len(clusters.points)), algorithm="brute", n_jobs=1)
        distances, near = search.fit(clusters.points).kneighbors(rows)
    squared = distances**2
    scale = squared.mean(axis=1, keepdims=True)
    shares = np.exp(-squared / np.where(scale > 0, scale, 1.0))
    own, nearest = clusters.labels[near], clusters.labels[near[:, :1]]
    apart = (own != nearest) | (nearest < 0)
    apart[:, 0] = False
    shares[apart] = 0.0
    shares /= shares.sum(axis=1, keepdims=True)
    return np.stack([(shares * layout.xy[near, axis]).sum(axis=1) for axis in (0, 1)], axis=1)
