"""K-means on the rows of a spectral embedding: the assignment of Ng, Jordan and Weiss.

The rows are few (about a thousand) but delicate: where clusters part cleanly many rows coincide to rounding,
and ties must not be decided by the last bit. So every comparison here has a tolerance, and every tie goes to
the first.
"""

import numpy as np

from dc2.spectral.affinity import FloatArray, Labels

__all__ = ["assign_kmeans"]

_MAX_ITERATIONS = 300
_RESTARTS = 10  # the first of the best is taken


def assign_kmeans(
    rows: FloatArray,
    n_clusters: int,
    weights: FloatArray,
    rng: np.random.Generator,
    *,
    tie: float = 1e-9,
) -> Labels:
    """Return the cluster of each row: the best of several runs of weighted K-means.

    Parameters
    ----------
    rows : ndarray of shape (n, d)
        Points of about unit length.
    n_clusters : int
        How many clusters. Where fewer distinct rows exist, fewer are found.
    weights : ndarray of shape (n,)
        How many points each row stands for.
    rng : numpy.random.Generator
        Where the starting centres are drawn from.
    tie : float, default=1e-9
        Squared distances that differ by less are equal.

    Returns
    -------
    ndarray of shape (n,)
        Labels from 0 to n_clusters - 1.
    """
    best_labels, best_cost = np.zeros(len(rows), dtype=np.intp), np.inf
    for _ in range(_RESTARTS):
        centres = _spread_centres(rows, n_clusters, weights, rng, tie)
        labels, cost = _lloyd(rows, weights, centres, tie)
        if cost < best_cost - tie * weights.sum():
            best_labels, best_cost = labels, cost
    return best_labels


def _spread_centres(
    rows: FloatArray, n_clusters: int, weights: FloatArray, rng: np.random.Generator, tie: float
) -> FloatArray:
    """Draw starting centres by k-means++, at each step the best of a few candidates."""
    n_candidates = 2 + int(np.log(n_clusters))
    chosen = [int(_draw(weights, rng.random(1))[0])]
    distances = _squared_distances(rows, rows[chosen])[:, 0]
    while len(chosen) < n_clusters:
        mass = np.where(distances > tie, weights * distances, 0.0)
        if not mass.any():
            break  # every row coincides with a centre
        candidates = _draw(mass, rng.random(n_candidates))
        shrunk = np.minimum(distances[:, np.newaxis], _squared_distances(rows, rows[candidates]))
        best = int(_first_smallest((weights @ shrunk)[np.newaxis], tie * weights.sum())[0])
        chosen.append(int(candidates[best]))
        distances = shrunk[:, best]
    return rows[chosen]


def _lloyd(rows: FloatArray, weights: FloatArray, centres: FloatArray, tie: float) -> tuple[Labels, float]:
    """Move centres to the means of their rows until no row changes its centre; return labels and cost."""
    labels = np.full(len(rows), -1, dtype=np.intp)
    for _ in range(_MAX_ITERATIONS):
        distances = _squared_distances(rows, centres)
        nearest = _first_smallest(distances, tie)
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
    """Draw indices in proportion to mass; adjacent repeats draw exactly as one row of their summed mass."""
    cumulative = np.cumsum(mass)
    drawn = np.searchsorted(cumulative, uniforms * cumulative[-1], side="right")
    indices: Labels = np.minimum(drawn, np.flatnonzero(mass)[-1])
    return indices


def _squared_distances(rows: FloatArray, centres: FloatArray) -> FloatArray:
    squares = np.einsum("ij,ij->i", rows, rows)[:, np.newaxis] + np.einsum("ij,ij->i", centres, centres)
    distances: FloatArray = np.maximum(squares - 2.0 * rows @ centres.T, 0.0)
    return distances


def _first_smallest(values: FloatArray, tie: float) -> Labels:
    """Return, per row, the first index whose value is the smallest within the tie."""
    first: Labels = (values <= values.min(axis=1, keepdims=True) + tie).argmax(axis=1)
    return first
