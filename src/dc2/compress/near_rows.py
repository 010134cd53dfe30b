"""The signatures nearest to each row of a sample."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dc2.compress.sample import Sample
from dc2.engines.threads import ThreadEngine
from dc2.kernels.nodes import NearRows
from dc2.sources import Block, as_source

__all__ = ["near_rows", "tie_weights"]

FARTHEST = 1e300  # squared; a row whose squares overflow is tied to all of them equally instead of to none


def near_rows(router: Any, sample: Sample, few: int, n_threads: int) -> NearRows:
    """Return the few nearest signatures of each sampled row.

    Parameters
    ----------
    router : Router
        With shortlists.
    sample : Sample
        Scaled already.
    few : int
        How many signatures.
    n_threads : int
    """
    router = replace(router, scaling=None)
    if sample.on_card is not None:
        return NearRows(router.nearest_few(sample.on_card, few)[0], sample.weights)

    def nearest(block: Block) -> NDArray[np.int32]:
        ids: NDArray[np.int32] = router.nearest_few(block.X, few)[0]
        return ids

    blocks = ThreadEngine(n_threads).map(nearest, as_source(sample.X), stage="conquer")
    return NearRows(np.concatenate(list(blocks)), sample.weights)


def tie_weights(squared: NDArray[Any]) -> NDArray[np.float64]:
    """Return the weights of each row's ties to its nearest signatures: exp(-d^2 / mean d^2).

    The mean is over the row's own ties, so dense and sparse regions count equally.

    Parameters
    ----------
    squared : ndarray of shape (n_rows, n_ties)
        Squared distances.
    """
    distances = np.minimum(squared.astype(np.float64), FARTHEST)
    scale = distances.mean(axis=1, keepdims=True)
    ties: NDArray[np.float64] = np.exp(-distances / np.where(scale > 0, scale, 1.0))
    return ties
