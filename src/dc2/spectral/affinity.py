"""The normalized affinity of a similarity matrix: the graph that spectral clustering looks at."""

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from dc2.errors import InputError

__all__ = ["NEGLIGIBLE", "FloatArray", "Labels", "check_similarity", "check_weights", "normalized_affinity"]

FloatArray: TypeAlias = npt.NDArray[np.float64]
Labels: TypeAlias = npt.NDArray[np.intp]

# What rounding (about 1e-15 per entry) can never be told apart from: eigenvalues closer than this are one
# eigenvalue, similarities smaller than this are none, rows of the similarity closer than this are one point.
NEGLIGIBLE = 1e-12


def normalized_affinity(similarity: FloatArray, weights: FloatArray) -> FloatArray:
    """Return the similarity divided by the degrees of both ends.

    Parameters
    ----------
    similarity : ndarray of shape (n, n)
        Symmetric and not negative; no row is all zeros.
    weights : ndarray of shape (n,)
        How many points each row stands for.

    Returns
    -------
    ndarray of shape (n, n)
        ``sqrt(w_i w_j) K_ij / sqrt(d_i d_j)`` with the degree ``d_i = sum_j w_j K_ij``. Its eigenvalues lie
        in [-1, 1], the largest is 1, and zeros apart they are those of the affinity in which row i is really
        repeated ``w_i`` times.

    Examples
    --------
    >>> import numpy as np
    >>> normalized_affinity(np.array([[1.0, 0.5], [0.5, 1.0]]), np.ones(2)).round(3)
    array([[0.667, 0.333],
           [0.333, 0.667]])
    """
    scale = np.sqrt(weights / (similarity @ weights))
    affinity: FloatArray = similarity * scale
    affinity *= scale[:, np.newaxis]
    return affinity


def check_similarity(similarity: npt.ArrayLike) -> FloatArray:
    """Return a similarity as float64 with rounding below zero removed, or say what is wrong with it."""
    matrix = np.asarray(similarity, dtype=np.float64)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise InputError(
            f"The similarity has shape {matrix.shape}, but it must be square: a row and a column per point."
        )
    if not np.isfinite(matrix).all():
        raise InputError(
            f"The similarity holds {np.count_nonzero(~np.isfinite(matrix))} values that are NaN or infinite; "
            "look for missing values in the points or a kernel that overflows."
        )
    largest = np.abs(matrix).max(initial=0.0)
    if (matrix < -NEGLIGIBLE * largest).any():
        raise InputError(
            f"The smallest similarity is {matrix.min():.3g}, but none may be negative; "
            "use a kernel such as exp(-distance) that has no negative values."
        )
    asymmetry = np.abs(matrix - matrix.T).max(initial=0.0)
    if asymmetry > 1e-8 * largest:
        raise InputError(
            f"The similarity is not symmetric: two opposite entries differ by {asymmetry:.3g}; "
            "pass (K + K.T) / 2 if that is what you mean."
        )
    matrix = np.maximum(matrix, 0.0)
    isolated = np.flatnonzero(~matrix.any(axis=1))
    if isolated.size:
        raise InputError(
            f"Row {isolated[0]} of the similarity is all zeros ({isolated.size} such rows), so its point has "
            "no place in the graph; give every point a similarity to itself, such as 1."
        )
    return matrix


def check_weights(weights: npt.ArrayLike | None, n_points: int) -> FloatArray:
    """Return one positive weight per point (all 1 for None), or say what is wrong with them."""
    if weights is None:
        return np.ones(n_points)
    checked = np.asarray(weights, dtype=np.float64)
    if checked.shape != (n_points,):
        raise InputError(f"The weights have shape {checked.shape}, but there are {n_points} points to weigh.")
    if not (np.isfinite(checked).all() and (checked > 0).all()):
        raise InputError(
            f"The weights lie between {checked.min():.3g} and {checked.max():.3g}, but each must be positive "
            "and finite; drop the points that weigh nothing."
        )
    return checked
