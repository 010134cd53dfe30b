"""What scikit-learn expects of an estimator's input and output, for anything that is a source."""

from __future__ import annotations

from typing import Any

import numpy as np
from narwhals.dependencies import is_pandas_dataframe, is_polars_dataframe, is_pyarrow_table
from scipy import sparse
from sklearn.base import TransformerMixin
from sklearn.utils.validation import validate_data

from dc2.errors import InputError
from dc2.sources.base import Source
from dc2.sources.paths import is_path
from dc2.sources.resolve import as_source

__all__ = ["SourceTransformer", "in_container", "source_for"]


class SourceTransformer(TransformerMixin):
    """A transformer that puts its features into containers itself, by `in_container`.

    scikit-learn would put whatever `transform` returns into what `set_output` asks for, also blocks that are yet to be
    read and arrays that are yet to be computed.
    """

    def __init_subclass__(cls, **parameters: Any) -> None:
        methods = {
            name: cls.__dict__[name] for name in ("transform", "fit_transform") if name in cls.__dict__
        }
        super().__init_subclass__(**parameters)  # makes `set_output` available, and wraps these methods
        for name, method in methods.items():
            setattr(cls, name, method)


class _Handed(TransformerMixin):
    """A transformer that is handed its features; scikit-learn wraps them by the rules of whoever is `self`."""

    def transform(self, X: Any, features: Any) -> Any:
        return features


def in_container(features: Any, X: Any, owner: Any) -> Any:
    """Put features into what the owner's `set_output` asks for; blocks and lazy arrays stay what they are."""
    in_memory = isinstance(features, np.ndarray) or sparse.issparse(features)
    return _Handed.transform(owner, X, features) if in_memory else features


def source_for(estimator: Any, X: Any, *, reset: bool, sample_weight: Any = None) -> Source:
    """Return the source for X, and remember or compare its width and column names in the estimator.

    Parameters
    ----------
    estimator : estimator
        Gets ``n_features_in_`` and ``feature_names_in_``, or has them.
    X : array, frame, path, source, ...
        What `as_source` takes.
    reset : bool
        True at fit: remember. False later: compare.
    sample_weight : array-like, str or None
        Weights of the rows, or the name of the column that holds them.
    """
    # Of a file, the columns that the model knows are read, wherever they stand and whatever else there is.
    known = None if reset or not is_path(X) else getattr(estimator, "feature_names_in_", None)
    columns = None if known is None else [str(name) for name in known]
    source = as_source(X, columns=columns, sample_weight=sample_weight)
    if _scikit_learn_sees(X, source):
        # scikit-learn's own rule and words for the names of arrays and frames; their number is compared below.
        validate_data(estimator, X, reset=reset, skip_check_array=True, ensure_2d=False)
    else:
        _check_names(estimator, source.feature_names, reset)
    if reset:
        estimator.n_features_in_ = source.n_features
    elif source.n_features != estimator.n_features_in_:
        raise InputError(
            f"X has {source.n_features} features, but {type(estimator).__name__} is expecting "
            f"{estimator.n_features_in_} features as input."
        )
    return source


def _scikit_learn_sees(X: Any, source: Source) -> bool:
    """Return whether scikit-learn finds the same columns in X as the source: it knows nothing of weights or queries."""
    if is_pandas_dataframe(X) or is_polars_dataframe(X) or is_pyarrow_table(X):
        return len(X.columns) == source.n_features
    return hasattr(X, "__array__") and not hasattr(X, "columns")


def _check_names(estimator: Any, names: tuple[str, ...] | None, reset: bool) -> None:
    fitted = getattr(estimator, "feature_names_in_", None)
    if reset:
        if names is not None:
            estimator.feature_names_in_ = np.array(names, dtype=object)
        elif fitted is not None:
            del estimator.feature_names_in_
    elif names is not None and fitted is not None and list(names) != list(fitted):
        missing = [name for name in fitted if name not in names]
        unknown = [name for name in names if name not in fitted]
        order = "" if missing or unknown else " The names are the same, but their order is not."
        raise InputError(
            "The feature names should match those that were passed during fit."
            + (f" Missing: {missing}." if missing else "")
            + (f" Unknown: {unknown}." if unknown else "")
            + order
            + f" Choose the columns with as_source(..., columns={list(fitted)!r})."
        )
