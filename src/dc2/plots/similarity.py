"""The similarity matrix of a fitted clusterer, computed from what the model keeps."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dc2.cluster import KASP, RASP, RPFCluster
from dc2.cluster.base import conquered_points
from dc2.kernels import GaussianKernel

__all__ = ["signature_similarity"]


def signature_similarity(model: RPFCluster | RASP | KASP) -> NDArray[np.float64]:
    """Return the similarity of a fitted model's signatures, as its kernel sees it.

    Parameters
    ----------
    model : RPFCluster, RASP or KASP
        Fitted or loaded.

    Returns
    -------
    ndarray of shape (n_signatures, n_signatures)

    Examples
    --------
    >>> import numpy as np
    >>> from dc2 import RPFCluster
    >>> X = np.random.default_rng(0).normal(size=(50, 2))
    >>> signature_similarity(RPFCluster(2, random_state=0).fit(X)).shape
    (50, 50)
    """
    if isinstance(model, RPFCluster):
        return model._signature_similarity(model.bandwidth_)
    similarity: NDArray[np.float64] = (
        GaussianKernel(model.sigma).fit(conquered_points(model.signatures_)).similarity_
    )
    return similarity
