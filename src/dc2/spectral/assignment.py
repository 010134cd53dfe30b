"""From eigenvectors to clusters: weighted K-means, or the recursive normalized cuts of Shi and Malik."""

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import numpy.typing as npt

from dc2.errors import ParameterError
from dc2.parameters import check_choice, check_integer, one_blas_thread
from dc2.random import RandomStateLike, seed_sequence
from dc2.spectral.eigenvectors import (
    NEGLIGIBLE,
    FloatArray,
    Labels,
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
    squared_distances,
    top_eigenvectors,
    unit_rows,
    whole_eigenspace,
)

_MAX_ITERATIONS = 300
_RESTARTS = 10  # the first of the best is taken
_EIGENVALUES_SHOWN = 20

Assign = Literal["kmeans", "ncut"]
Side = npt.NDArray[np.bool_]


def assign_kmeans(
    rows: FloatArray, n_clusters: int, weights: FloatArray, rng: np.random.Generator, *, tolerance: float = 1e-9
) -> Labels:
    """Return the cluster of each row: the best of several runs of weighted K-means.

    scikit-learn's KMeans has no tolerance for equal distances: labels would change with the last bit.

    Parameters
    ----------
    rows : ndarray of shape (n, d)
        Points of about unit length.
    n_clusters : int
        How many clusters. Where fewer distinct rows exist, fewer are found.
    weights : ndarray of shape (n,)
        How many points each row represents.
    rng : numpy.random.Generator
        Where the starting centres are drawn from.
    tolerance : float, default=1e-9
        Squared distances that differ by less are equal.

    Returns
    -------
    ndarray of shape (n,)
        Labels from 0 to n_clusters - 1.
    """
    best_labels, best_cost = np.zeros(len(rows), dtype=np.intp), np.inf
    for _ in range(_RESTARTS):
        centres = _spread_centres(rows, n_clusters, weights, rng, tolerance)
        labels, cost = _lloyd(rows, weights, centres, tolerance)
        if cost < best_cost - tolerance * weights.sum():
            best_labels, best_cost = labels, cost
    return best_labels


def _spread_centres(
    rows: FloatArray, n_clusters: int, weights: FloatArray, rng: np.random.Generator, tolerance: float
) -> FloatArray:
    """Draw starting centres by k-means++, at each step the best of a few candidates."""
    n_candidates = 2 + int(np.log(n_clusters))
    chosen = [int(_draw(weights, rng.random(1))[0])]
    distances = squared_distances(rows, rows[chosen])[:, 0]
    while len(chosen) < n_clusters:
        mass = np.where(distances > tolerance, weights * distances, 0.0)
        if not mass.any():
            break  # every row coincides with a centre
        candidates = _draw(mass, rng.random(n_candidates))
        shrunk = np.minimum(distances[:, np.newaxis], squared_distances(rows, rows[candidates]))
        best = int(_first_smallest((weights @ shrunk)[np.newaxis], tolerance * weights.sum())[0])
        chosen.append(int(candidates[best]))
        distances = shrunk[:, best]
    return rows[chosen]


def _lloyd(rows: FloatArray, weights: FloatArray, centres: FloatArray, tolerance: float) -> tuple[Labels, float]:
    """Move centres to the means of their rows until no row changes its centre; return labels and cost."""
    labels = np.full(len(rows), -1, dtype=np.intp)
    for _ in range(_MAX_ITERATIONS):
        distances = squared_distances(rows, centres)
        nearest = _first_smallest(distances, tolerance)
        if np.array_equal(nearest, labels):
            break
        labels = nearest
        members = np.zeros((len(rows), len(centres)))
        members[np.arange(len(rows)), labels] = weights
        mass = members.sum(axis=0)[:, np.newaxis]
        centres = np.divide(members.T @ rows, mass, out=centres.copy(), where=mass > 0)
    cost = weights @ np.take_along_axis(distances, labels[:, np.newaxis], axis=1)[:, 0]
    return labels, float(cost)


def _draw(mass: FloatArray, uniforms: FloatArray) -> Labels:
    """Draw indices in proportion to weight; adjacent repeats draw exactly as one row of their summed weight."""
    cumulative = np.cumsum(mass)
    drawn = np.searchsorted(cumulative, uniforms * cumulative[-1], side="right")
    indices: Labels = np.minimum(drawn, np.flatnonzero(mass)[-1])
    return indices


def _first_smallest(values: FloatArray, tolerance: float) -> Labels:
    """Return, per row, the first index whose value is the smallest within the tolerance."""
    first: Labels = (values <= values.min(axis=1, keepdims=True) + tolerance).argmax(axis=1)
    return first


def assign_ncut(similarity: FloatArray, n_clusters: int, weights: FloatArray, rng: np.random.Generator) -> Labels:
    """Return the cluster of each point by repeated cuts in two.

    The rest, at first all points, is cut by the sign of the second eigenvector of its normalized affinity;
    the lighter side becomes a cluster, the heavier is the new rest, until there are enough clusters.

    Parameters
    ----------
    similarity : ndarray of shape (n, n)
        Symmetric and not negative.
    n_clusters : int
        How many clusters. Fewer are found if a single point is all that is left to be cut.
    weights : ndarray of shape (n,)
        How many points each row represents.
    rng : numpy.random.Generator
        Used only where the second eigenvector is not determined.

    Returns
    -------
    ndarray of shape (n,)
        Labels from 0 to n_clusters - 1; the last is what was left.
    """
    labels = np.full(len(similarity), n_clusters - 1, dtype=np.intp)
    rest = np.arange(len(similarity))
    for cluster in range(n_clusters - 1):
        if len(rest) < 2:
            break
        side = _lighter_side(similarity[np.ix_(rest, rest)], weights[rest], rng)
        labels[rest[side]] = cluster
        rest = rest[~side]
    return labels


def _lighter_side(similarity: FloatArray, weights: FloatArray, rng: np.random.Generator) -> Side:
    """Mark the lighter side of the cut in two by the second eigenvector."""
    affinity = normalized_affinity(similarity, weights)
    root_volume = np.sqrt(weights * (similarity @ weights))
    eigenvalues, eigenvectors = _nontrivial_eigenvectors(affinity, root_volume)
    gap = eigengap(eigenvalues, 1)
    if gap < NEGLIGIBLE:
        return _undetermined_side(similarity, affinity, weights, rng)
    potential = eigenvectors[:, 0] / root_volume
    side: Side = potential > rounding(gap) * np.abs(potential).max()
    return side if _is_lighter(side, weights, root_volume**2) else ~side


def _is_lighter(side: Side, weights: FloatArray, volumes: FloatArray) -> bool:
    """Return whether a side weighs less than the other; of equal ones that of less volume is the lighter."""
    for node_weights in (weights, volumes):
        excess = node_weights[side].sum() - node_weights[~side].sum()
        if abs(excess) > 1e-9 * node_weights.sum():
            return bool(excess < 0)
    return not side[0]


def _nontrivial_eigenvectors(affinity: FloatArray, root_volume: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the second and third eigenpairs; the first, sqrt(w_i d_i), is moved below all others."""
    trivial = root_volume / np.linalg.norm(root_volume)
    return top_eigenvectors(affinity - 3.0 * np.outer(trivial, trivial), min(2, len(affinity)))


def _undetermined_side(
    similarity: FloatArray, affinity: FloatArray, weights: FloatArray, rng: np.random.Generator
) -> Side:
    """Mark what to cut off where the second eigenvalue is repeated: the lightest component, if several."""
    parts = components(similarity)
    if not parts.any():
        rows, gap = whole_eigenspace(affinity, 2)
        parts = assign_kmeans(unit_rows(rows), 2, weights, rng, tolerance=rounding(gap))
    side: Side = parts == np.bincount(parts, weights).argmin()
    return side


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
    with one_blas_thread():
        distinct, summed, of_point = distinct_points(similarity, weights)
        result = _cluster_distinct(distinct, n_clusters, assign, summed, rng)
    return replace(result, labels=result.labels[of_point], embedding=result.embedding[of_point])


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
