"""The Gaussian kernel exp(-||x - y||^2 / sigma) between points."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from numpy.random import SeedSequence
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from dc2.errors import InputError
from dc2.graph.nodes import Description, Nodes
from dc2.io.model_file import saved_model, saved_record
from dc2.parameters import check_positive
from dc2.spectral.eigenvectors import FloatArray, squared_distances


@saved_model
class Gaussian(BaseEstimator):
    """The Gaussian kernel exp(-||x - y||^2 / sigma).

    Parameters
    ----------
    sigma : float or None, default=None
        The squared distance at which the similarity falls to 1/e. None takes the median squared distance between two
        points that differ.

    Examples
    --------
    >>> from dc2 import RASP
    >>> from dc2.spectral import Gaussian
    >>> RASP(3, similarity=Gaussian(sigma=0.5)).get_params()["similarity__sigma"]
    0.5
    """

    uses_rows: ClassVar[bool] = False

    def __init__(self, sigma: float | None = None) -> None:
        self.sigma = sigma

    def check(self) -> None:
        """Raise if a parameter is impossible."""
        if self.sigma is not None:
            check_positive("sigma", self.sigma)

    def edges_per_row(self, points: npt.NDArray[Any], rows_per_node: float) -> int:
        """Return 0: rows are not needed."""
        return 0

    def build(
        self, nodes: Nodes, seeds: SeedSequence, *, weighted: bool = False, n_jobs: int | None = None
    ) -> GaussianSimilarity:
        """Build the kernel of nodes; nothing in it is random."""
        points = nodes.points.astype(np.float64)
        squared = _squared_distances(points, points)
        sigma = _median_between_distinct(squared) if self.sigma is None else float(self.sigma)
        return GaussianSimilarity(points.astype(np.float32), sigma)


@saved_record
@dataclass(frozen=True, eq=False)
class GaussianSimilarity:
    """The Gaussian kernel of nodes, computed on demand; the bandwidth is sigma."""

    points: npt.NDArray[np.float32]
    bandwidth: float

    sparse: ClassVar[bool] = False

    def check(self) -> None:
        """Raise if the parts do not fit together; called when a similarity was read from a model file."""
        if (
            self.points.ndim != 2
            or self.points.dtype != np.float32
            or not np.isfinite(self.points).all()
            or not (isinstance(self.bandwidth, float) and 0 < self.bandwidth < np.inf)
        ):
            raise InputError("the parts of a GaussianSimilarity do not fit together.")

    @property
    def bandwidths(self) -> tuple[float, ...]:
        """The sigma in use: there is nothing to choose from."""
        return (self.bandwidth,)

    bandwidths_for_counting = bandwidths

    def __len__(self) -> int:
        return len(self.points)

    def matrix(self, bandwidth: float | None = None) -> FloatArray:
        """Return exp(-||x - y||^2 / sigma) for all pairs of nodes."""
        return self._between(np.arange(len(self.points)), self.bandwidth if bandwidth is None else bandwidth)

    def at(self, bandwidth: float | None) -> GaussianSimilarity:
        """Return the same kernel with another sigma in use; None keeps the one it has."""
        return self if bandwidth is None else replace(self, bandwidth=bandwidth)

    def strength(self, some: npt.NDArray[np.intp]) -> FloatArray:
        """Return the similarity of some nodes."""
        return self._between(some, self.bandwidth)

    def apart(self, some: npt.NDArray[np.intp], points: FloatArray) -> FloatArray:
        """Return distances in units of the root of sigma."""
        own = self.points[some].astype(np.float64)
        return np.sqrt(_squared_distances(own, own) / self.bandwidth)

    def describe(self) -> Description:
        """Say what it is."""
        return Description(
            neighbours="Distances tell which signatures are neighbours",
            meaning="Alike means: a Gaussian of the distance between the two.",
            unit="mean similarity",
        )

    def _between(self, some: npt.NDArray[np.intp], sigma: float) -> FloatArray:
        points = self.points[some].astype(np.float64)
        squared = _squared_distances(points, points)
        similarity: FloatArray = np.exp(squared / -sigma)
        return similarity


class GaussianKernel(Gaussian):
    """Similarity of points by a Gaussian of their distance, as an estimator.

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
    points_ : ndarray of shape (n, n_features), float64
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

    similarity_: FloatArray
    points_: FloatArray
    sigma_: float
    n_features_in_: int

    def fit(self, X: npt.ArrayLike, y: Any = None) -> Self:
        """Compute the similarity of the rows of X to each other; y is ignored."""
        self.check()
        points = validate_data(self, X, dtype=np.float64)
        squared = _squared_distances(points, points)
        self.sigma_ = _median_between_distinct(squared) if self.sigma is None else float(self.sigma)
        self.points_ = points
        self.similarity_ = np.exp(squared / -self.sigma_)
        return self

    def similarity(self, X: npt.ArrayLike) -> FloatArray:
        """Return the similarity of each row of X to each fitted point, of shape (rows, n)."""
        check_is_fitted(self)
        points = validate_data(self, X, dtype=np.float64, reset=False)
        similarity: FloatArray = np.exp(_squared_distances(points, self.points_) / -self.sigma_)
        return similarity


def _squared_distances(A: FloatArray, B: FloatArray) -> FloatArray:
    """Return ||a - b||^2 for all pairs, about the mean of B so that little cancels."""
    centre = B.mean(axis=0)
    B_centred = B - centre
    if A is not B:
        return squared_distances(A - centre, B_centred)
    squared = squared_distances(B_centred, B_centred)
    np.fill_diagonal(squared, 0.0)
    return squared


def _median_between_distinct(squared_distances: FloatArray) -> float:
    """Return the median over pairs that differ by more than rounding; 1 if there is no such pair."""
    pairs = squared_distances[np.triu_indices_from(squared_distances, k=1)]
    distinct = pairs[pairs > 1e-12 * pairs.max(initial=0.0)]
    return float(np.median(distinct)) if distinct.size else 1.0
