"""The Gaussian kernel exp(-||x - y||^2 / sigma) between points."""

from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from dc2.parameters import check_positive

__all__ = ["GaussianKernel"]

_FloatArray = npt.NDArray[np.float64]


class GaussianKernel(BaseEstimator):
    """Similarity of points by a Gaussian of their distance.

    Parameters
    ----------
    sigma : float or None, default=None
        The squared distance at which the similarity falls to 1/e. None takes the median squared distance
        between two fitted points that differ.

    Attributes
    ----------
    similarity_ : ndarray of shape (n, n), float64
        Of the fitted points to each other: symmetric, with ones on the diagonal.
    sigma_ : float
        The sigma in use.
    points_ : ndarray of shape (n, n_features_in_), float64
        The fitted points.
    n_features_in_ : int
        Number of columns seen in fit.

    Notes
    -----
    ``K(x, y) = exp(-||x - y||^2 / sigma)``. Time is O(n^2 n_features), memory a few times n^2.

    Examples
    --------
    >>> import numpy as np
    >>> kernel = GaussianKernel(sigma=2.0).fit(np.array([[0.0], [1.0]]))
    >>> kernel.similarity_.round(3)
    array([[1.   , 0.607],
           [0.607, 1.   ]])
    >>> kernel.similarity(np.array([[0.0]])).round(3)
    array([[1.   , 0.607]])

    Points that are all the same have no distance to measure by; any sigma gives them similarity 1:

    >>> GaussianKernel().fit(np.ones((2, 3))).similarity_
    array([[1., 1.],
           [1., 1.]])
    """

    similarity_: _FloatArray
    points_: _FloatArray
    sigma_: float
    n_features_in_: int

    def __init__(self, sigma: float | None = None) -> None:
        self.sigma = sigma

    def fit(self, X: npt.ArrayLike, y: Any = None) -> Self:
        """Compute the similarity of the rows of X to each other; y is ignored."""
        sigma = None if self.sigma is None else check_positive("sigma", self.sigma)
        points = validate_data(self, X, dtype=np.float64)
        squared = _squared_distances(points, points)
        np.fill_diagonal(squared, 0.0)
        self.sigma_ = _median_between_distinct(squared) if sigma is None else sigma
        self.points_ = points
        self.similarity_ = np.exp(squared / -self.sigma_)
        return self

    def similarity(self, X: npt.ArrayLike) -> _FloatArray:
        """Return the similarity of each row of X to each fitted point, of shape (rows, n)."""
        check_is_fitted(self)
        points = validate_data(self, X, dtype=np.float64, reset=False)
        similarity: _FloatArray = np.exp(_squared_distances(points, self.points_) / -self.sigma_)
        return similarity


def _squared_distances(A: _FloatArray, B: _FloatArray) -> _FloatArray:
    """Return ||a - b||^2 for all pairs, about the mean of B so that little cancels."""
    centre = B.mean(axis=0)
    B_centred = B - centre
    A_centred = B_centred if A is B else A - centre
    squares = np.einsum("ij,ij->i", A_centred, A_centred)[:, np.newaxis]
    squares = squares + np.einsum("ij,ij->i", B_centred, B_centred)
    distances: _FloatArray = np.maximum(squares - 2.0 * (A_centred @ B_centred.T), 0.0)
    return distances


def _median_between_distinct(squared_distances: _FloatArray) -> float:
    """Return the median over pairs that differ by more than rounding; 1 if there is no such pair."""
    pairs = squared_distances[np.triu_indices_from(squared_distances, k=1)]
    distinct = pairs[pairs > 1e-12 * pairs.max(initial=0.0)]
    return float(np.median(distinct)) if distinct.size else 1.0
