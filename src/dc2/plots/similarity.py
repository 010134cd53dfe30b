"""The similarity matrix of a fitted clusterer, computed again since models do not keep it."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dc2.cluster.base import Seeds, conquered_points

__all__ = ["signature_similarity"]


def signature_similarity(model: Any) -> NDArray[np.float64]:
    """Return the similarity of a fitted model's signatures, as its kernel sees it.

    Parameters
    ----------
    model : RPFCluster, RASP or KASP
        Fitted or loaded.

    Returns
    -------
    ndarray of shape (n_signatures, n_signatures)

    Notes
    -----
    A forest is grown again from ``random_state``: the same one if that is an integer, and otherwise another one,
    whose similarities differ by the chance of the draw.

    Examples
    --------
    >>> import numpy as np
    >>> from dc2 import RPFCluster
    >>> X = np.random.default_rng(0).normal(size=(50, 2))
    >>> signature_similarity(RPFCluster(2, random_state=0).fit(X)).shape
    (50, 50)
    """
    points = conquered_points(model.signatures_)
    weights = None
    if model.weighted:
        weights = np.maximum(model.signatures_.weights, np.finfo(float).tiny)
        weights = weights * (len(weights) / weights.sum())
    # Drawing a plot must not move a generator on, nor show something else each time.
    seeds = Seeds.of(0 if model.random_state is None else copy.deepcopy(model.random_state))
    similarity: NDArray[np.float64] = model._similarity(points, weights, seeds)
    return similarity
