"""Rows to features, a few at a time, by what was learned from the signatures of all rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Self

from numpy.random import SeedSequence
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin
from sklearn.utils.validation import check_is_fitted
from threadpoolctl import threadpool_limits

from dc2.compress import Compressor
from dc2.engines import RunOptions, Verbose, answered
from dc2.estimators.columns import Columns, KnowsItsColumns, fitted_source
from dc2.estimators.containers import SourceTransformer, in_container
from dc2.random import RandomStateLike, seed_sequence

__all__ = ["RowFeatures"]


@dataclass(frozen=True, eq=False)
class FeaturesRecord:
    """What a fit learned.

    Attributes
    ----------
    columns : Columns
    compressor : Compressor
        Fitted on all rows.
    learned : object
        What else the features need, made from the signatures.
    """

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
        is computed when asked for.
        """
        check_is_fitted(self)
        source = self._source(X)
        points = self.compressor_.signatures_.points
        with threadpool_limits(limits=1):  # the engine's threads share the cores already
            features = answered(
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
