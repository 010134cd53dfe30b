"""The leading eigenvectors of a normalized affinity, in float64, checked before they are believed."""

import numpy as np
import numpy.typing as npt
from scipy.linalg import LinAlgError, eigh
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from dc2.errors import InputError

FloatArray = npt.NDArray[np.float64]
Labels = npt.NDArray[np.intp]

# What rounding (about 1e-15 per entry) can never be distinguished from: eigenvalues closer than this are one
# eigenvalue, similarities smaller than this are none, rows of the similarity closer than this are one point.
NEGLIGIBLE = 1e-12


def normalized_affinity(similarity: FloatArray, weights: FloatArray) -> FloatArray:
    """Return the similarity divided by the degrees of both ends.

    Parameters
    ----------
    similarity : ndarray of shape (n, n)
        Symmetric and not negative; no row is all zeros.
    weights : ndarray of shape (n,)
        How many points each row represents.

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


def distinct_points(similarity: FloatArray, weights: FloatArray) -> tuple[FloatArray, FloatArray, Labels]:
    """Merge points whose rows of the similarity agree to rounding; return similarity, weights, and each point's number.

    Rows are sorted by a sum over each with fixed random factors, which brings equal ones together; neighbours
    whose sums agree are then compared entry by entry. So it costs little compared with the eigenproblem.
    """
    n = len(similarity)
    same = NEGLIGIBLE * similarity.max()
    sums = similarity @ np.random.default_rng(0).random(n)
    order = np.argsort(sums, kind="stable")
    starts_new = np.ones(n, dtype=bool)
    for position in np.flatnonzero(np.diff(sums[order]) <= same * n) + 1:
        here, before = order[position], order[position - 1]
        starts_new[position] = np.abs(similarity[here] - similarity[before]).max() > same
    run = np.empty(n, dtype=np.intp)
    run[order] = np.cumsum(starts_new) - 1
    of_point = numbered_by_appearance(run)
    first = np.unique(of_point, return_index=True)[1]
    summed = np.bincount(of_point, weights).astype(np.float64)
    return similarity[np.ix_(first, first)], summed, of_point


def numbered_by_appearance(labels: Labels) -> Labels:
    """Return the same partition with labels 0, 1, ... in the order in which they first appear."""
    _, first, codes = np.unique(labels, return_index=True, return_inverse=True)
    number = np.empty(len(first), dtype=np.intp)
    number[np.argsort(first)] = np.arange(len(first))
    return number[codes]


def components(similarity: FloatArray) -> Labels:
    """Return the connected components without similarities that are negligible beside the largest of both ends."""
    strength = np.sqrt(similarity.max(axis=1))
    kept = similarity > NEGLIGIBLE * strength * strength[:, np.newaxis]
    _, labels = connected_components(csr_array(kept), directed=False)
    return labels.astype(np.intp)


def keep_heaviest(labels: Labels, weights: FloatArray, k: int) -> Labels:
    """Return k clusters: the k - 1 heaviest, and all others, mostly isolated nodes, together as the last."""
    heaviest_first = np.argsort(-np.bincount(labels, weights), kind="stable")
    rank = np.empty_like(heaviest_first)
    rank[heaviest_first] = np.arange(len(rank))
    return np.minimum(rank, k - 1)[labels]


def split_to_k(labels: Labels, similarity: FloatArray, weights: FloatArray, k: int) -> Labels:
    """Split clusters, the heaviest first, until there are k or each holds one distinct row of the similarity only."""
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
    """Return, per column, the sign of its entry of largest magnitude (of the first, where several are nearly equal)."""
    magnitude = np.abs(eigenvectors)
    peak = (magnitude >= magnitude.max(axis=0) * (1 - 1e-3)).argmax(axis=0)
    return np.where(np.take_along_axis(eigenvectors, peak[np.newaxis], axis=0)[0] < 0, -1.0, 1.0)


def eigengap(eigenvalues: FloatArray, k: int) -> float:
    """Return how far the k-th of descending eigenvalues stands above the next (infinity if there is none)."""
    return float(eigenvalues[k - 1] - eigenvalues[k]) if k < len(eigenvalues) else np.inf


def rounding(gap: float) -> float:
    """Return how far rounding may move unit rows of eigenvectors that an eigengap sets apart; more for a small gap."""
    return float(np.clip(1e-13 / gap, 1e-9, 1e-3))


def whole_eigenspace(affinity: FloatArray, k: int) -> tuple[FloatArray, float]:
    """Return the top k eigenvectors and all that share the k-th one's eigenvalue, and the gap below them.

    The space that these span is no accident of rounding. Times their eigenvalues, their rows keep the distances between
    the rows of the affinity, even if the space is everything.
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


def squared_distances(rows: FloatArray, centres: FloatArray) -> FloatArray:
    """Return ||a - b||^2 for all pairs."""
    squares = np.einsum("ij,ij->i", rows, rows)[:, np.newaxis] + np.einsum("ij,ij->i", centres, centres)
    distances: FloatArray = np.maximum(squares - 2.0 * rows @ centres.T, 0.0)
    return distances
