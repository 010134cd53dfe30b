"""The leading eigenvectors of a normalized affinity, in float64, checked before they are believed."""

import numpy as np
from scipy.linalg import LinAlgError, eigh

from dc2.spectral.affinity import NEGLIGIBLE, FloatArray

__all__ = ["eigengap", "rounding", "top_eigenvectors", "unit_rows", "whole_eigenspace"]

_TRUSTED_ERROR = 1e-12  # LAPACK's own error on these matrices is near 1e-15
_NOISE_ROW = 1e-13  # a row of eigenvectors shorter than this is rounding, and has no direction


def top_eigenvectors(affinity: FloatArray, k: int) -> tuple[FloatArray, FloatArray]:
    """Return the k largest eigenvalues, in descending order, and their eigenvectors.

    Parameters
    ----------
    affinity : ndarray of shape (n, n)
        Symmetric.
    k : int
        How many eigenvectors, at most n.

    Returns
    -------
    eigenvalues : ndarray of shape (k,)
    eigenvectors : ndarray of shape (n, k)
        Orthonormal columns; in each the entry of largest magnitude is positive.

    Notes
    -----
    Solving for a subset is about three times faster than solving for all, but LAPACK's subset solver silently
    loses eigenvectors where many eigenvalues agree to rounding, as they do at small bandwidths. So its answer
    is checked, and replaced by the divide-and-conquer solver's where it does not hold. Time is O(n^3).

    Examples
    --------
    >>> import numpy as np
    >>> eigenvalues, eigenvectors = top_eigenvectors(np.array([[2.0, 1.0], [1.0, 2.0]]), 1)
    >>> eigenvalues.round(6), eigenvectors.round(6).T
    (array([3.]), array([[0.707107, 0.707107]]))
    """
    n = len(affinity)
    if n == 1:  # SciPy before 1.14 cannot
        return affinity[0].copy(), np.ones((1, 1))
    pairs = _solve_subset(affinity, k) if 2 * k < n else None
    if pairs is None:
        eigenvalues, eigenvectors = eigh(affinity, driver="evd", check_finite=False)
        pairs = eigenvalues[n - k :], eigenvectors[:, n - k :]
    eigenvalues, eigenvectors = pairs[0][::-1].copy(), pairs[1][:, ::-1].copy()
    return eigenvalues, eigenvectors * _signs(eigenvectors)


def _solve_subset(affinity: FloatArray, k: int) -> tuple[FloatArray, FloatArray] | None:
    """Return the top k eigenpairs in ascending order, or None if the solver did not find them all."""
    n = len(affinity)
    try:
        eigenvalues, eigenvectors = eigh(affinity, driver="evr", subset_by_index=[n - k, n - 1], check_finite=False)
    except LinAlgError:
        return None
    if eigenvectors.shape != (n, k) or not np.isfinite(eigenvectors).all():
        return None
    residual = np.abs(affinity @ eigenvectors - eigenvectors * eigenvalues).max()
    skewness = np.abs(eigenvectors.T @ eigenvectors - np.eye(k)).max()
    if max(residual, skewness) > _TRUSTED_ERROR * max(1.0, float(np.abs(eigenvalues).max())):
        return None
    return eigenvalues, eigenvectors


def _signs(eigenvectors: FloatArray) -> FloatArray:
    """Return, per column, the sign of its entry of largest magnitude (of the first, where several nearly tie)."""
    magnitude = np.abs(eigenvectors)
    peak = (magnitude >= magnitude.max(axis=0) * (1 - 1e-3)).argmax(axis=0)
    return np.where(np.take_along_axis(eigenvectors, peak[np.newaxis], axis=0)[0] < 0, -1.0, 1.0)


def eigengap(eigenvalues: FloatArray, k: int) -> float:
    """Return how far the k-th of descending eigenvalues stands above the next (infinity if there is none)."""
    return float(eigenvalues[k - 1] - eigenvalues[k]) if k < len(eigenvalues) else np.inf


def rounding(gap: float) -> float:
    """Return how far rounding may move unit rows of eigenvectors that an eigengap sets apart from the others.

    It grows as the gap shrinks; it is bounded so that a tie is neither the last bit nor structure.
    """
    return float(np.clip(1e-13 / gap, 1e-9, 1e-3))


def whole_eigenspace(affinity: FloatArray, k: int) -> tuple[FloatArray, float]:
    """Return the top k eigenvectors and all that share the k-th one's eigenvalue, and the gap below them.

    Where the k-th eigenvalue is repeated, the first k eigenvectors are an accident of rounding; the space
    that all of them span is not. They come multiplied by their eigenvalues: then their rows keep the
    distances between the rows of the affinity, even if the space is everything.
    """
    eigenvalues, eigenvectors = top_eigenvectors(affinity, len(affinity))
    while eigengap(eigenvalues, k) < NEGLIGIBLE:
        k += 1
    return eigenvectors[:, :k] * eigenvalues[:k], eigengap(eigenvalues, k)


def unit_rows(vectors: FloatArray) -> FloatArray:
    """Return the rows at unit length, as Ng, Jordan and Weiss do; a row of mere rounding becomes zero."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    rows: FloatArray = np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > _NOISE_ROW)
    return rows
