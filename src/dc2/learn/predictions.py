"""Results for rows: by the fitted estimator block by block, or through the row's signature."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, OneToOneFeatureMixin, RegressorMixin, is_clusterer
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from dc2.engines.map_rows import RunOptions, mapped_rows
from dc2.errors import InputTypeError
from dc2.io.columns import Columns, KnowsItsColumns
from dc2.io.containers import in_container
from dc2.io.source import Source
from dc2.learn.metadata_routing import routed, whole
from dc2.learn.targets import TrainingSet, has_transform


def _estimator_has(method: str) -> Callable[[Any], bool]:
    """Return a check that the estimator has a method: the fitted one, if there is one."""

    def check(self: Any) -> bool:
        getattr(getattr(self, "estimator_", self.estimator), method)  # or raise the estimator's own error
        return True

    return check


def _predicts(self: Any) -> bool:
    return is_clusterer(self.estimator) or _estimator_has("predict")(self)


def _fit_predicts(self: Any) -> bool:
    return is_clusterer(self.estimator) or (_estimator_has("fit_predict")(self) and _predicts(self))


def _transforms(self: Any) -> bool:
    return has_transform(self.estimator) or _estimator_has("transform")(self)


@dataclass(frozen=True, eq=False)
class LearnedRecord:
    """The result of a fit of `DC2`."""

    columns: Columns
    training: TrainingSet
    estimator: Any
    weights_used: bool
    embedding: NDArray[Any] | None = None  # of transformers that have no `transform`
    signature_labels: NDArray[Any] | None = None  # of clusterers
    labels: NDArray[Any] | None = None  # of clusterers, for rows in memory


class Predictions(KnowsItsColumns):
    """The methods of `DC2` that its estimator supports; others do not exist.

    `transform` is defined here and not in a scikit-learn transformer, because `set_output` would wrap it there, and it
    would always seem to exist.
    """

    estimator: Any
    _record: LearnedRecord

    @available_if(_predicts)
    def predict(self, X: Any, **params: Any) -> Any:
        """Return the cluster of each row's signature, or what the estimator predicts for the row."""
        if is_clusterer(self.estimator):
            check_is_fitted(self)
            assert self._record.signature_labels is not None
            return self._through_signatures(X, self._record.signature_labels)
        return self._by_estimator("predict", X, params)

    @available_if(_fit_predicts)
    def fit_predict(self, X: Any, y: Any = None, **params: Any) -> Any:
        """Fit, and return the results for the same rows."""
        self.fit(X, y, **params)  # type: ignore[attr-defined]
        if is_clusterer(self.estimator) and self._record.labels is not None:
            return self._record.labels
        return self.predict(X)

    @available_if(_estimator_has("predict_proba"))
    def predict_proba(self, X: Any, **params: Any) -> Any:
        """Return the estimator's probabilities of the classes for each row."""
        return self._by_estimator("predict_proba", X, params)

    @available_if(_estimator_has("predict_log_proba"))
    def predict_log_proba(self, X: Any, **params: Any) -> Any:
        """Return the logarithms of the estimator's probabilities of the classes for each row."""
        return self._by_estimator("predict_log_proba", X, params)

    @available_if(_estimator_has("decision_function"))
    def decision_function(self, X: Any, **params: Any) -> Any:
        """Return the estimator's decision function for each row."""
        return self._by_estimator("decision_function", X, params)

    @available_if(_estimator_has("score_samples"))
    def score_samples(self, X: Any) -> Any:
        """Return the estimator's score of each row."""
        return self._by_estimator("score_samples", X, {})

    @available_if(_transforms)
    def transform(self, X: Any, **params: Any) -> Any:
        """Return each row transformed by the estimator or, where it cannot, the embedding of its signature."""
        check_is_fitted(self)
        if self._record.embedding is not None:
            transformed = self._through_signatures(X, self._record.embedding)
        else:
            transformed = self._by_estimator("transform", X, params)
        return in_container(transformed, X, self)

    @available_if(_transforms)
    def fit_transform(self, X: Any, y: Any = None, **params: Any) -> Any:
        """Fit, and transform the same rows."""
        self.fit(X, y, **params)  # type: ignore[attr-defined]
        return self.transform(X)

    @available_if(_estimator_has("inverse_transform"))
    def inverse_transform(self, X: Any, **params: Any) -> Any:
        """Return what the estimator maps back from its output; in the scaled columns if the compressor scales."""
        check_is_fitted(self)
        return self._record.estimator.inverse_transform(X, **routed(self, "inverse_transform", params))

    @available_if(_estimator_has("score"))
    def score(self, X: Any, y: Any = None, **params: Any) -> float:
        """Return the estimator's score on rows in memory."""
        check_is_fitted(self)
        source = self._in_memory(X)
        own = type(self._record.estimator).score
        if own in (ClassifierMixin.score, RegressorMixin.score):
            # scikit-learn's score by what self predicts: through our predict, which keeps to the budget of memory.
            return float(own(self, X, y, **routed(self, "score", params)))
        return float(self._method("score")(whole(source), y, **routed(self, "score", params)))

    @available_if(_transforms)
    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Return the names of the columns that `transform` gives."""
        check_is_fitted(self)
        record = self._record
        if record.embedding is not None:
            name = type(record.estimator).__name__.lower()
            return np.array([f"{name}{column}" for column in range(record.embedding.shape[1])], dtype=object)
        names: NDArray[Any] = record.estimator.get_feature_names_out(
            OneToOneFeatureMixin.get_feature_names_out(self, input_features)
        )
        return names

    def _through_signatures(self, X: Any, of_signature: NDArray[Any]) -> Any:
        return self._record.training.compressors[0].look_up(self._source(X), of_signature)

    def _by_estimator(self, method: str, X: Any, params: dict[str, Any]) -> Any:
        check_is_fitted(self)
        function = self._method(method)
        if params:
            return function(whole(self._in_memory(X)), **routed(self, method, params))
        source = self._source(X)
        points, compressor = self._record.training.signatures.points, self._record.training.compressors[0]
        # One thread: an estimator may have its own, and need not be safe in several.
        return mapped_rows(
            source,
            lambda block: function(block.X),
            lambda: function(points[:1].astype(source.dtype, copy=False)),
            RunOptions(1, compressor.block_bytes, compressor.verbose),
            len(points),
        )

    def _in_memory(self, X: Any) -> Source:
        source = self._source(X)
        if not source.in_memory:
            raise InputTypeError(
                f"keyword arguments need all rows in memory, but X is a {type(source).__name__}. Call this without "
                "them to get results block by block.",
                parameter="X",
            )
        return source

    def _method(self, name: str) -> Callable[..., Any]:
        """Return a method of the estimator that takes rows as they are, though it saw signatures scaled."""
        method: Callable[..., Any] = getattr(self._record.estimator, name)
        scaling = self._record.training.compressors[0].router_.scaling
        if scaling is None:
            return method
        return lambda X, *args, **params: method(scaling.apply(X), *args, **params)
