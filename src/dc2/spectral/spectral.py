"""Spectral clustering of a similarity matrix, beside Ng, Jordan and Weiss, and Shi and Malik."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
from threadpoolctl import threadpool_limits

from dc2.errors import ParameterError
from dc2.random import RandomStateLike, seed_sequence
from dc2.spectral.affinity import (
    NEGLIGIBLE,
    FloatArray,
    check_similarity,
    check_weights,
    normalized_affinity,
)
from dc2.spectral.components import components, keep_heaviest, split_to_k
from dc2.spectral.eigenvectors import eigengap, top_eigenvectors, unit_rows, whole_eigenspace
from dc2.spectral.kmeans_assign import Labels, assign_kmeans
from dc2.spectral.ncut import assign_ncut

__all__ = ["Assign", "SpectralResult", "spectral_clustering"]

Assign = Literal["kmeans", "ncut"]

_EIGENVALUES_SHOWN = 20


@dataclass(frozen=True)
class SpectralResult:
    """What spectral clustering found.

    Attributes
    ----------
    labels : ndarray of shape (n,), int32
        The cluster of each point, 0 to k - 1, numbered as they first appear.
    eigenvalues : ndarray of shape (m,), float64
        The largest eigenvalues of the normalized affinity in descending order: 20, or k + 1 if that is more,
        as far as there are so many. A wide gap after the k-th speaks for k clusters.
    embedding : ndarray of shape (n, k), float64
        The first k eigenvectors with rows at unit length.
    degenerate : bool
        True if the k-th and the next eigenvalue agree to 1e-12: k eigenvectors are then not determined, and
        the labels come from connected components where there are enough (the k - 1 heaviest, and the others
        together), or from all eigenvectors that share the eigenvalue. Another bandwidth or k is better.
    """

    labels: npt.NDArray[np.int32]
    eigenvalues: FloatArray
    embedding: FloatArray
    degenerate: bool


def spectral_clustering(
    similarity: npt.ArrayLike,
    n_clusters: int,
    *,
    assign: Assign = "kmeans",
    weights: npt.ArrayLike | None = None,
    random_state: RandomStateLike = None,
) -> SpectralResult:
    """Cluster points by the leading eigenvectors of their normalized similarity.

    Parameters
    ----------
    similarity : array-like of shape (n, n)
        Symmetric and not negative, such as a kernel matrix.
    n_clusters : int
        How many clusters, from 1 to n.
    assign : {"kmeans", "ncut"}, default="kmeans"
        How eigenvectors become clusters: K-means on the rows of k eigenvectors, or repeated cuts in two by
        the sign of the second.
    weights : array-like of shape (n,), default=None
        How many points each row stands for. A weight of 3 is the same as the point given three times.
    random_state : int, RandomState, Generator, SeedSequence or None, default=None
        Decides where K-means starts.

    Returns
    -------
    SpectralResult
        With exactly ``n_clusters`` clusters if so many points are distinct, that is, have distinct rows of
        the similarity; otherwise with one cluster for each distinct point.

    Notes
    -----
    Labels do not change when every similarity is shaken by 1e-15: no decision hangs on a tie or on
    eigenvectors that rounding chose. Time is O(n^3), memory a few times n^2; BLAS runs on one thread.

    References
    ----------
    A. Ng, M. Jordan, Y. Weiss, "On spectral clustering: analysis and an algorithm", NIPS 2001.
    J. Shi, J. Malik, "Normalized cuts and image segmentation", IEEE TPAMI 22(8), 2000.

    Examples
    --------
    >>> import numpy as np
    >>> points = np.array([0.0, 0.1, 0.2, 5.0, 5.1])
    >>> similarity = np.exp(-np.subtract.outer(points, points) ** 2)
    >>> spectral_clustering(similarity, 2, random_state=0).labels
    array([0, 0, 0, 1, 1], dtype=int32)

    Three groups without any tie between them are not two; the lighter ones are put together:

    >>> result = spectral_clustering(np.kron(np.diag([1, 1, 1]), np.ones((2, 2))), 2, random_state=0)
    >>> result.labels, result.degenerate
    (array([0, 0, 1, 1, 1, 1], dtype=int32), True)
    """
    similarity = check_similarity(similarity)
    n = len(similarity)
    weights = check_weights(weights, n)
    _check_parameters(n_clusters, n, assign)
    rng = np.random.default_rng(seed_sequence(random_state))

    with threadpool_limits(limits=1):
        affinity = normalized_affinity(similarity, weights)
        eigenvalues, eigenvectors = top_eigenvectors(
            affinity, min(n, max(n_clusters + 1, _EIGENVALUES_SHOWN))
        )
        embedding = unit_rows(eigenvectors[:, :n_clusters])
        degenerate = eigengap(eigenvalues, n_clusters) < NEGLIGIBLE
        if degenerate and len(np.unique(parts := components(similarity))) >= n_clusters:
            labels = keep_heaviest(parts, weights, n_clusters)
        elif assign == "ncut":
            labels = assign_ncut(similarity, n_clusters, weights, rng)
        else:
            rows = unit_rows(whole_eigenspace(affinity, n_clusters)) if degenerate else embedding
            labels = assign_kmeans(rows, n_clusters, weights, rng)
        labels = split_to_k(labels, similarity, weights, n_clusters)
    return SpectralResult(_numbered_by_appearance(labels), eigenvalues, embedding, degenerate)


def _numbered_by_appearance(labels: Labels) -> npt.NDArray[np.int32]:
    _, first, codes = np.unique(labels, return_index=True, return_inverse=True)
    number = np.empty(len(first), dtype=np.int32)
    number[np.argsort(first)] = np.arange(len(first))
    return number[codes]


def _check_parameters(n_clusters: int, n_points: int, assign: str) -> None:
    if not isinstance(n_clusters, int | np.integer) or n_clusters < 1:
        raise ParameterError(f"n_clusters is {n_clusters!r}, but it must be a whole number, 1 or larger.")
    if n_clusters > n_points:
        raise ParameterError(
            f"n_clusters is {n_clusters}, but there are only {n_points} points; ask for at most {n_points}."
        )
    if assign not in ("kmeans", "ncut"):
        raise ParameterError(f"assign is {assign!r}, but it must be 'kmeans' or 'ncut'.")
