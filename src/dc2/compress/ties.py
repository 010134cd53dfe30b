"""Ties: signatures are alike if the same rows lie near both."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, diags_array

from dc2.compress.router import Router
from dc2.compress.sample import Sample
from dc2.engines.threads import ThreadEngine
from dc2.sources import Block, as_source

TIES = 5
ROWS_PER_SIGNATURE = 64


def tie_weights(squared: NDArray[Any]) -> NDArray[np.float64]:
    """Return how much each row's ties to its nearest signatures weigh: exp(-d^2 / mean d^2), with sum 1.

    The mean is over the row's own ties, so that dense and sparse regions count alike.

    Parameters
    ----------
    squared : ndarray of shape (n_rows, n_ties)
        Squared distances.
    """
    distances = squared.astype(np.float64)
    scale = distances.mean(axis=1, keepdims=True)
    ties = np.exp(-distances / np.where(scale > 0, scale, 1.0))
    weights: NDArray[np.float64] = ties / ties.sum(axis=1, keepdims=True)
    return weights


def shared_rows(router: Router, sample: Sample, n_threads: int) -> NDArray[np.float32]:
    """Return how much every two signatures share sampled rows, 1 on the diagonal.

    With B the weights of ties of rows to their five nearest signatures it is B'B, scaled to a diagonal of 1. Where no
    sampled row is tied to a signature, nothing is known and all its entries are 1.

    Parameters
    ----------
    router : Router
        With shortlists.
    sample : Sample
        Scaled already. About 64 rows for each signature are looked at.
    """
    router = replace(router, scaling=None)
    n_signatures = len(router.centres)
    step = max(1, len(sample.X) // (ROWS_PER_SIGNATURE * n_signatures))
    weights = None if sample.weights is None else sample.weights[::step]

    def shared(block: Block) -> NDArray[np.float64]:
        ids, squared = router.nearest_few(block.X, TIES)
        ties = tie_weights(squared)
        starts = np.arange(0, ties.size + 1, ties.shape[1])
        B = csr_array((ties.ravel(), ids.ravel(), starts), shape=(len(ties), n_signatures))
        weighed = B if block.weights is None else diags_array(block.weights) @ B
        product: NDArray[np.float64] = (B.T @ weighed).toarray()
        return product

    blocks = ThreadEngine(n_threads).map(
        shared, as_source(sample.X[::step], sample_weight=weights), stage="divide"
    )
    total = np.zeros((n_signatures, n_signatures))
    for part in blocks:
        total += part
    length = np.sqrt(np.diagonal(total))
    untied = length == 0
    length[untied] = 1.0
    total /= length[:, None]
    total /= length
    total[untied] = 1.0
    total[:, untied] = 1.0
    return total.astype(np.float32)
