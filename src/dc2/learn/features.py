"""RPFFeatures: leaf indicators of a forest, whose inner products are the share of trees that put rows together."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
from numpy.random import SeedSequence
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin
from sklearn.utils.validation import check_is_fitted
from threadpoolctl import threadpool_limits

from dc2.compress.compressor import Compressor
from dc2.engines.engine import DEFAULT_BLOCK_BYTES
from dc2.engines.map_rows import RunOptions, Verbose, mapped_rows
from dc2.io.columns import Columns, KnowsItsColumns, fitted_source
from dc2.io.containers import SourceTransformer, in_container
from dc2.parameters import MOST_DIRECTIONS, check_choice, check_integer
from dc2.random import RandomStateLike, seed_sequence
from dc2.trees.forest import RPForest, forest_leaf_size


@dataclass(frozen=True, eq=False)
class FeaturesRecord:
    """The result of a fit; `learned` is what the features need, made from the signatures."""

    columns: Columns
    compressor: Compressor
    learned: Any


class RowFeatures(KnowsItsColumns, ClassNamePrefixFeaturesOutMixin, SourceTransformer, BaseEstimator, ABC):
    """`fit` and `transform` of the kernel features; a subclass says what it learns from signatures."""

    n_jobs: int | None
    block_bytes: int
    random_state: RandomStateLike
    verbose: Verbose
    _record: FeaturesRecord

    def fit(self, X: Any, y: Any = None, sample_weight: ArrayLike | str | None = None) -> Self:
        """Compress all rows, and learn from their signatures.

        Parameters
        ----------
        X : array-like, data frame, path, list of paths, glob, callable, Dask collection or Source
            The rows.
        y : ignored
        sample_weight : array-like of shape (n_rows,), str or None
            Weights, or the name of the column that holds them.
        """
        seeds = seed_sequence(self.random_state)
        compressor = self._checked_compressor(seeds)
        source, columns = fitted_source(X, sample_weight, type(self).__name__)
        compressor.fit(source)
        self._record = FeaturesRecord(columns, compressor, self._learn(compressor.signatures_.points, seeds))
        return self

    def transform(self, X: Any) -> Any:
        """Return the features of each row, of shape (n_rows, n_features_out).

        For rows that are not in memory it is an iterator over blocks of features; for Dask collections an array that
        is computed on demand.
        """
        check_is_fitted(self)
        source = self._source(X)
        points = self.compressor_.signatures_.points
        with threadpool_limits(limits=1):  # the engine's threads share the cores already
            features = mapped_rows(
                source,
                lambda block: self._features(block.X),
                lambda: self._features(points[:1].astype(source.dtype, copy=False)),
                RunOptions.of(self),
                self._width,
            )
        return in_container(features, X, self)

    def fit_transform(self, X: Any, y: Any = None, **params: Any) -> Any:
        """Fit, and return the features of the same rows."""
        return self.fit(X, y, **params).transform(X)

    @property
    def compressor_(self) -> Compressor:
        """The compressor, with the signatures of all rows."""
        return self._record.compressor

    @abstractmethod
    def _checked_compressor(self, seeds: SeedSequence) -> Compressor:
        """Check the parameters, and return the compressor that makes the signatures."""

    @abstractmethod
    def _learn(self, points: NDArray[Any], seeds: SeedSequence) -> Any:
        """Return what `_features` needs, learned from the signatures."""

    @abstractmethod
    def _features(self, X: NDArray[Any]) -> Any:
        """Return the features of some rows, in the dtype of the rows."""

    @property
    @abstractmethod
    def _width(self) -> int:
        """How many float64 numbers a row takes up while its features are made."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


class RPFFeatures(RowFeatures):
    """Sparse leaf indicators: a linear model on them is a kernel machine on the share kernel.

    A forest of T random trees is grown; a row becomes the indicators of its T leaves, divided by sqrt(T). With Z the
    bare indicators, the inner products are ZZ'/T: the share of trees in which two rows fall into the same leaf.

    Parameters
    ----------
    n_trees : int, default=200
        Number of trees T; every row has as many nonzero features.
    leaf_size : float or "auto", default="auto"
        A node with fewer points is not split. "auto" is a twentieth of the points within 5 and 30. Smaller leaves
        see more detail and make more features.
    n_points : int, default=1000
        Number of points that the forest is grown on.
    grow_on : {"signatures", "sample"}, default="signatures"
        Whether the points are signatures, which stand for all rows, or rows drawn from each signature at random.
    n_jobs, block_bytes, random_state, verbose
        As in `DC2Clustering`.

    Attributes
    ----------
    forest_ : RPForest
        The forest.
    compressor_ : Compressor
        What made its points.
    n_features_in_, feature_names_in_

    Notes
    -----
    `transform` takes O(T log(n_points) d) time and 8 T (float32) or 12 T (float64) bytes per row, in a CSR matrix. For
    rows that are not in memory it is an iterator over such blocks; for Dask collections an array of them, computed when
    asked for.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.svm import LinearSVC
    >>> from dc2 import RPFFeatures
    >>> X, y = make_moons(5_000, noise=0.1, random_state=0)
    >>> model = make_pipeline(RPFFeatures(n_trees=50, random_state=0), LinearSVC())
    >>> model.fit(X, y).score(X, y) > 0.99
    True
    >>> Z = model[0].transform(X[:3])
    >>> share = model[0].forest_.share(X[:3])  # with the points of the forest
    >>> (Z @ Z.T).diagonal().round(6)
    array([1., 1., 1.])
    """

    def __init__(
        self,
        n_trees: int = 200,
        *,
        leaf_size: float | Literal["auto"] = "auto",
        n_points: int = 1000,
        grow_on: Literal["signatures", "sample"] = "signatures",
        n_jobs: int | None = None,
        block_bytes: int = DEFAULT_BLOCK_BYTES,
        random_state: RandomStateLike = None,
        verbose: Verbose = 0,
    ) -> None:
        self.n_trees = n_trees
        self.leaf_size = leaf_size
        self.n_points = n_points
        self.grow_on = grow_on
        self.n_jobs = n_jobs
        self.block_bytes = block_bytes
        self.random_state = random_state
        self.verbose = verbose

    def _checked_compressor(self, seeds: SeedSequence) -> Compressor:
        check_integer("n_trees", self.n_trees, low=1, high=MOST_DIRECTIONS)
        check_integer("n_points", self.n_points, low=1)
        check_choice("grow_on", self.grow_on, ("signatures", "sample"))
        forest_leaf_size(self.leaf_size, 1)
        (own_seeds,) = seeds.spawn(1)
        return Compressor(
            self.n_points, signature="centroid" if self.grow_on == "signatures" else "member", populate="leaf",
            n_jobs=self.n_jobs, block_bytes=self.block_bytes, random_state=own_seeds, verbose=self.verbose,
        )  # fmt: skip

    def _learn(self, points: NDArray[Any], seeds: SeedSequence) -> RPForest:
        (own_seeds,) = seeds.spawn(1)
        return RPForest.grow(points, self.n_trees, self.leaf_size, n_jobs=self.n_jobs, rng=own_seeds)

    @property
    def forest_(self) -> RPForest:
        """The forest."""
        forest: RPForest = self._record.learned
        return forest

    def _features(self, X: NDArray[Any]) -> Any:
        first = self._first_leaves()
        leaves = self.forest_.apply(X).T + first[:-1]  # each row's leaves in the order of its features
        value = np.sqrt(1.0 / self.forest_.n_trees).astype(X.dtype)
        ends = np.arange(len(leaves) + 1) * self.forest_.n_trees
        return sparse.csr_matrix(
            (np.full(leaves.size, value), leaves.ravel(), ends), shape=(len(leaves), int(first[-1]))
        )

    @property
    def _width(self) -> int:
        return 2 * self.forest_.n_trees

    def _first_leaves(self) -> Any:
        """Return the number of each tree's first leaf, and of leaves in all."""
        return np.cumsum([0, *(tree.n_leaves for tree in self.forest_.trees)], dtype=np.int32)

    @property
    def _n_features_out(self) -> int:
        return int(self._first_leaves()[-1])
