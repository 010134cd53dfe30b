"""Members: a real row for each signature, to show clusters by rows and not only by means."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dc2.compress.compress import Compression
from dc2.core.pairs import squared_distances_of_pairs

__all__ = ["member_rows"]

TRIED = 8  # sampled rows of each signature; the nearest is taken


def member_rows(compression: Compression, similarity: Any, n_threads: int = 1) -> NDArray[Any]:
    """Return a row of each signature, in the units of clustering: the nearest of a few sampled ones.

    For a signature without sampled rows, or one that is a row, return the signature itself.
    """
    points, sample = compression.signatures.points, compression.sample
    if sample is None:
        return points
    ids = _signature_of(compression, similarity)
    order = np.argsort(ids, kind="stable")
    starts = np.searchsorted(ids[order], np.arange(len(points)))
    tried = order[np.arange(len(order)) - starts[ids[order]] < TRIED]
    squared = squared_distances_of_pairs(sample.X, tried, points, ids[tried], n_threads)
    best_first = tried[np.lexsort((squared, ids[tried]))]
    found, first = np.unique(ids[best_first], return_index=True)
    members = points.copy()
    members[found] = sample.X[best_first[first]]
    return members


def _signature_of(compression: Compression, similarity: Any) -> NDArray[np.int32]:
    """Return the signature of each sampled row; if rows tied signatures, it is known already."""
    assert compression.sample is not None
    if similarity.sparse:
        nearest: NDArray[np.int32] = similarity.graph.near[:, 0]
        return nearest
    ids: NDArray[np.int32] = replace(compression.router, scaling=None).assign(compression.sample.X)
    return ids
