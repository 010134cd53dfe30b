"""The rpf-kernel: points are alike if many random trees put them into one leaf."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from dc2.parameters import check_integer, check_positive
from dc2.random import RandomStateLike, seed_sequence
from dc2.trees import RPForest
from dc2.trees.forest import forest_leaf_size

__all__ = ["RPFKernel", "rpf_similarity"]


class RPFKernel(BaseEstimator):
    """The rpf-kernel exp((s - 1) / b), with s the share of random trees in which two points share a leaf.

    Parameters
    ----------
    n_trees : int, default=800
        Trees of the forest.
    leaf_size : float or "auto", default="auto"
        A node with fewer points is not split. "auto" is n_points / 20 within 5 and 30; the paper has 30.
    bandwidth : float, default=0.05
        The b above. The paper's beta is b times the number of trees: 0.0125 to 0.1 for its 10 to 80 with 800 trees.
    n_jobs : int, optional
        Number of threads; None takes all cores.
    random_state : int, RandomState, Generator or None, default=None
        Seed of the forest.

    Attributes
    ----------
    similarity_ : ndarray of shape (n_points, n_points), float64
        Similarity of the fitted points; symmetric, 1 on the diagonal.
    forest_ : RPForest

    Notes
    -----
    Growing takes O(T n d log n) time for T trees, counting O(T n leaf_size); memory is n^2.

    Examples
    --------
    >>> import numpy as np
    >>> S = np.random.default_rng(0).normal(size=(200, 2))
    >>> kernel = RPFKernel(n_trees=100, random_state=0).fit(S)
    >>> kernel.similarity_.shape, kernel.similarity(S[:3]).shape
    ((200, 200), (3, 200))
    """

    def __init__(
        self,
        n_trees: int = 800,
        leaf_size: float | Literal["auto"] = "auto",
        bandwidth: float = 0.05,
        n_jobs: int | None = None,
        random_state: RandomStateLike = None,
    ) -> None:
        self.n_trees = n_trees
        self.leaf_size = leaf_size
        self.bandwidth = bandwidth
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: Any = None) -> RPFKernel:
        """Grow the forest on points of shape (n_points, n_features) and compute their similarity; y is ignored."""
        check_integer("n_trees", self.n_trees, low=1)
        check_positive("bandwidth", self.bandwidth)
        forest_leaf_size(self.leaf_size, 1)
        X = validate_data(self, X, dtype=[np.float64, np.float32])
        self.forest_ = RPForest.grow(
            X,
            self.n_trees,
            self.leaf_size,
            n_jobs=self.n_jobs,
            rng=seed_sequence(self.random_state),
        )
        self.similarity_ = rpf_similarity(
            self.forest_.counts(n_jobs=self.n_jobs), self.n_trees, self.bandwidth
        )
        return self

    def similarity(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return the similarity of each of new points to each fitted point, of shape (n_new, n_points)."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=[np.float64, np.float32], reset=False)
        return rpf_similarity(self.forest_.counts(X, n_jobs=self.n_jobs), self.n_trees, self.bandwidth)


def rpf_similarity(counts: NDArray[np.integer[Any]], n_trees: int, bandwidth: float) -> NDArray[np.float64]:
    """Return exp((s - 1) / b) from counts of shared leaves; each of the n_trees + 1 values is computed once."""
    values: NDArray[np.float64] = np.exp((np.arange(n_trees + 1) / n_trees - 1.0) / bandwidth)
    similarity: NDArray[np.float64] = values[counts]
    return similarity
