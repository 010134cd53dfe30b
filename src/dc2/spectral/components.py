"""What to do where eigenvectors do not decide: connected components, and points told apart one by one."""

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from dc2.spectral.affinity import NEGLIGIBLE, FloatArray, Labels

__all__ = ["components", "keep_heaviest", "split_to_k"]


def components(similarity: FloatArray) -> Labels:
    """Return the connected component of each point once negligible similarities are dropped.

    A similarity is negligible beside the largest ones of its two ends, so neither the scale of the kernel nor
    repeated points matter.
    """
    strength = np.sqrt(similarity.max(axis=1))
    kept = similarity > NEGLIGIBLE * strength * strength[:, np.newaxis]
    _, labels = connected_components(csr_array(kept), directed=False)
    return labels.astype(np.intp)


def keep_heaviest(labels: Labels, weights: FloatArray, k: int) -> Labels:
    """Return k clusters: the k - 1 heaviest as they are, and all others together as the last.

    Nothing says which of the others belong together. Most often they are strays, and then only the lightest of the true
    clusters suffers.
    """
    heaviest_first = np.argsort(-np.bincount(labels, weights), kind="stable")
    rank = np.empty_like(heaviest_first)
    rank[heaviest_first] = np.arange(len(rank))
    return np.minimum(rank, k - 1)[labels]


def split_to_k(labels: Labels, similarity: FloatArray, weights: FloatArray, k: int) -> Labels:
    """Split clusters, the heaviest first, until there are k or until each holds one distinct point only.

    Points are distinct if their rows of the similarity are.
    """
    labels = np.unique(labels, return_inverse=True)[1]
    while (count := int(labels.max()) + 1) < k:
        for cluster in np.argsort(-np.bincount(labels, weights), kind="stable"):
            members = np.flatnonzero(labels == cluster)
            far_side = _far_side(similarity[members])
            if far_side.any():
                labels[members[far_side]] = count
                break
        else:
            break
    return labels


def _far_side(rows: FloatArray) -> npt.NDArray[np.bool_]:
    """Mark the rows that are nearer to the one farthest from the first than to the first; none if all are the same."""
    from_first = np.abs(rows - rows[0]).max(axis=1)
    farthest = int((from_first >= from_first.max() * (1 - 1e-9)).argmax())
    from_farthest = np.abs(rows - rows[farthest]).max(axis=1)
    far: npt.NDArray[np.bool_] = from_first - from_farthest > NEGLIGIBLE * rows.max()
    return far
