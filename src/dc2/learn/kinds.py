"""Which estimators can learn from signatures, and how."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from sklearn.base import is_classifier, is_clusterer, is_regressor
from sklearn.utils import get_tags

from dc2.errors import ParameterError

__all__ = ["Kind", "has_transform", "kind_of"]

ANSWERS = ("predict", "decision_function", "score_samples")
"""The methods that answer for rows, of estimators that are neither clusterers nor transformers."""


class Kind(StrEnum):
    """Kinds of estimators, by what their signatures must carry and how rows get their answer."""

    CLUSTERER = "clusterer"
    CLASSIFIER = "classifier"
    REGRESSOR = "regressor"
    SEMI_SUPERVISED = "semi-supervised classifier"
    TRANSFORMER = "transformer"
    DETECTOR = "detector"


def kind_of(estimator: Any) -> Kind:
    """Return the kind of an estimator; raise with what is missing if it cannot conquer signatures.

    Examples
    --------
    >>> from sklearn.svm import SVC, OneClassSVM
    >>> kind_of(SVC()).value, kind_of(OneClassSVM()).value
    ('classifier', 'detector')
    """
    _check_estimator(estimator)
    name = type(estimator).__name__
    if is_clusterer(estimator):
        return Kind.CLUSTERER
    if is_classifier(estimator):
        _check_answers(estimator, name)
        return Kind.SEMI_SUPERVISED if _is_semi_supervised(estimator) else Kind.CLASSIFIER
    if is_regressor(estimator):
        _check_answers(estimator, name)
        return Kind.REGRESSOR
    if has_transform(estimator):
        return Kind.TRANSFORMER
    _check_answers(estimator, name)
    return Kind.DETECTOR


def has_transform(estimator: Any) -> bool:
    """Return whether rows can be transformed: by the estimator, or else through their signature."""
    return hasattr(estimator, "transform") or (
        get_tags(estimator).estimator_type is None and hasattr(estimator, "fit_transform")
    )


def _check_estimator(estimator: Any) -> None:
    if isinstance(estimator, type):
        raise ParameterError(
            f"estimator is the class {estimator.__name__}; give an instance of it: {estimator.__name__}()."
        )
    if not hasattr(estimator, "fit") or not hasattr(estimator, "get_params"):
        missing = "fit" if not hasattr(estimator, "fit") else "get_params"
        raise ParameterError(
            f"estimator={estimator!r} has no {missing} method, so it cannot learn from signatures; give a "
            "scikit-learn estimator such as SVC(), KernelRidge() or SpectralClustering()."
        )
    if get_tags(estimator).input_tags.pairwise:
        raise ParameterError(
            f"{estimator!r} expects a precomputed matrix of pairs, but signatures are points. Give it a kernel or "
            "metric by name or as a function; or fit it yourself on a kernel of Compressor().fit(X).signatures_.points."
        )


def _check_answers(estimator: Any, name: str) -> None:
    if not any(hasattr(estimator, method) for method in ANSWERS):
        raise ParameterError(
            f"{name} has none of {', '.join(ANSWERS)} or transform, so it has no answer for rows that it was not "
            "fitted on. Use one that has, or set it up so that it has (such as LocalOutlierFactor(novelty=True))."
        )


def _is_semi_supervised(estimator: Any) -> bool:
    """Only these read -1 as "not labelled", also in a pipeline or a search; to all others it is an ordinary class."""
    inner = [estimator, *estimator.get_params().values()]
    bases = (base for part in inner for base in type(part).__mro__)
    return any(base.__module__.startswith("sklearn.semi_supervised") for base in bases)
