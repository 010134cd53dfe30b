"""Recursive normalized cut: the assignment of Shi and Malik, one cluster at a time."""

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from dc2.spectral.affinity import NEGLIGIBLE, FloatArray, Labels, normalized_affinity
from dc2.spectral.components import components
from dc2.spectral.eigenvectors import eigengap, rounding, top_eigenvectors, unit_rows, whole_eigenspace
from dc2.spectral.kmeans_assign import assign_kmeans

__all__ = ["assign_ncut"]

Side: TypeAlias = npt.NDArray[np.bool_]


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
        How many points each row stands for.
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
    for masses in (weights, volumes):
        excess = masses[side].sum() - masses[~side].sum()
        if abs(excess) > 1e-9 * masses.sum():
            return bool(excess < 0)
    return not side[0]


def _nontrivial_eigenvectors(affinity: FloatArray, root_volume: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the second and third eigenpairs of an affinity.

    The first is known, ``sqrt(w_i d_i)``, and says nothing. It is moved below all others, since a solver may
    mix it into the second where both have the eigenvalue 1.
    """
    trivial = root_volume / np.linalg.norm(root_volume)
    return top_eigenvectors(affinity - 3.0 * np.outer(trivial, trivial), min(2, len(affinity)))


def _undetermined_side(
    similarity: FloatArray, affinity: FloatArray, weights: FloatArray, rng: np.random.Generator
) -> Side:
    """Mark what to cut off where the second eigenvalue is repeated: the lightest component, if several."""
    parts = components(similarity)
    if not parts.any():
        rows, gap = whole_eigenspace(affinity, 2)
        parts = assign_kmeans(unit_rows(rows), 2, weights, rng, tie=rounding(gap))
    side: Side = parts == np.bincount(parts, weights).argmin()
    return side
