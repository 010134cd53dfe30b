"""Spectral clustering of a similarity matrix, after Ng, Jordan and Weiss, or Shi and Malik."""

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import numpy.typing as npt
from threadpoolctl import threadpool_limits

from dc2.errors import ParameterError
from dc2.parameters import check_choice, check_integer
from dc2.random import RandomStateLike, seed_sequence
from dc2.spectral.assignment import assign_kmeans, assign_ncut
from dc2.spectral.eigenvectors import (
    NEGLIGIBLE,
    FloatArray,
    check_similarity,
    check_weights,
    components,
    distinct_points,
    eigengap,
    keep_heaviest,
    normalized_affinity,
    numbered_by_appearance,
    rounding,
    split_to_k,
    top_eigenvectors,
    unit_rows,
    whole_eigenspace,
)

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
        as far as there are so many distinct points. A wide gap after the k-th suggests k clusters.
    embedding : ndarray of shape (n, k), float64
        The first k eigenvectors with rows at unit length.
    degenerate : bool
        True if the k-th and the next eigenvalue agree to 1e-12: k eigenvectors are then not determined, and
        the labels come from connected components where there are enough (the k - 1 heaviest, and the others
        together), or from all eigenvectors that share the eigenvalue. Also true if fewer than k points are
        distinct. Another bandwidth or k is better.
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
        How many points each row represents. A weight of 3 is the same as the point given three times.
    random_state : int, RandomState, Generator, SeedSequence or None, default=None
        Decides where K-means starts.

    Returns
    -------
    SpectralResult
        With exactly ``n_clusters`` clusters if so many points are distinct, that is, have distinct rows of
        the similarity; otherwise with one cluster for each distinct point.

    Notes
    -----
    Labels do not change when every similarity is shaken by 1e-15: no decision depends on equal values or on
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

    Three groups without any edge between them are not two; the lighter ones are put together:

    >>> result = spectral_clustering(np.kron(np.diag([1, 1, 1]), np.ones((2, 2))), 2, random_state=0)
    >>> result.labels, result.degenerate
    (array([0, 0, 1, 1, 1, 1], dtype=int32), True)
    """
    similarity = check_similarity(similarity)
    weights = check_weights(weights, len(similarity))
    check_choice("assign", assign, ["kmeans", "ncut"])
    if check_integer("n_clusters", n_clusters, low=1) > len(similarity):
        raise ParameterError(f"n_clusters is {n_clusters}, but there are only {len(similarity)} points; ask for fewer.")
    rng = np.random.default_rng(seed_sequence(random_state))
    with threadpool_limits(limits=1):
        points = distinct_points(similarity, weights)
        result = _cluster_distinct(points.similarity, n_clusters, assign, points.weights, rng)
    return replace(result, labels=result.labels[points.of_point], embedding=result.embedding[points.of_point])


def _cluster_distinct(
    similarity: FloatArray, k: int, assign: Assign, weights: FloatArray, rng: np.random.Generator
) -> SpectralResult:
    """Cluster points no two of which are the same."""
    n = len(similarity)
    affinity = normalized_affinity(similarity, weights)
    eigenvalues, eigenvectors = top_eigenvectors(affinity, min(n, max(k + 1, _EIGENVALUES_SHOWN)))
    embedding = np.zeros((n, k))
    embedding[:, : min(n, k)] = unit_rows(eigenvectors[:, :k])
    gap = eigengap(eigenvalues, k)
    degenerate = gap < NEGLIGIBLE or k > n

    if degenerate and len(np.unique(parts := components(similarity))) >= k:
        labels = keep_heaviest(parts, weights, k)
    elif assign == "ncut":
        labels = assign_ncut(similarity, k, weights, rng)
    elif degenerate:
        rows, gap = whole_eigenspace(affinity, k)
        labels = assign_kmeans(unit_rows(rows), k, weights, rng, tolerance=rounding(gap))
    else:
        labels = assign_kmeans(embedding, k, weights, rng, tolerance=rounding(gap))
    labels = split_to_k(labels, similarity, weights, k)
    return SpectralResult(numbered_by_appearance(labels).astype(np.int32), eigenvalues, embedding, degenerate)
