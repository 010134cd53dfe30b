"""The columns that a model was fitted on, and the source for rows that must have them too."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from narwhals.dependencies import is_pandas_dataframe, is_polars_dataframe, is_pyarrow_table
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from dc2.errors import InputError, InputTypeError
from dc2.estimators.frames import KINDS, kind_of_frame
from dc2.estimators.projection import ProjectedSource, SparseProjection, projection_for
from dc2.foreign import lies_on_cuda
from dc2.model_file import saved_record
from dc2.sources.base import Source
from dc2.sources.paths import is_path
from dc2.sources.resolve import as_source
from dc2.sources.vectors import whole_columns

__all__ = ["Columns", "KnowsItsColumns", "fitted_source", "matching_source"]


@saved_record
@dataclass(frozen=True)
class Columns:
    """What a model remembers of the columns it was fitted on.

    Attributes
    ----------
    n_features : int
        How many there are.
    names : tuple of str or None
        What they are called, where they have names.
    frame : {"pandas", "polars", "pyarrow"} or None
        The kind of data frame that they came in.
    projection : SparseProjection or None
        How sparse rows with very many columns are reduced.
    """

    n_features: int
    names: tuple[str, ...] | None = None
    frame: str | None = None
    projection: SparseProjection | None = None

    def check(self) -> None:
        """Raise if number and names do not fit together; called when read from a model file."""
        names = self.names
        if (
            type(self.n_features) is not int
            or self.frame not in (None, *KINDS)
            or (self.projection is not None and self.projection.n_features != self.n_features)
            or not (
                names is None
                or (
                    isinstance(names, tuple)
                    and len(names) == self.n_features
                    and all(isinstance(name, str) for name in names)
                )
            )
        ):
            raise InputError("the parts of Columns do not fit together.")

    @property
    def width(self) -> int:
        """Columns of the rows that are worked on."""
        return self.n_features if self.projection is None else self.projection.n_components

    @property
    def names_out(self) -> tuple[str, ...] | None:
        """Names of the columns of the rows that are worked on, where they have any."""
        return self.names if self.projection is None else self.projection.names_out

    @property
    def feature_names_in(self) -> NDArray[np.object_]:
        """The names as scikit-learn keeps them; an AttributeError where there are none."""
        if self.names is None:
            raise AttributeError("feature_names_in_ exists only where the rows had named columns.")
        return np.array(self.names, dtype=object)


class KnowsItsColumns:
    """Gives an estimator ``n_features_in_`` and ``feature_names_in_``, read from the record of its fit."""

    _record: Any

    @property
    def n_features_in_(self) -> int:
        """Number of columns seen in fit."""
        columns: Columns = self._record.columns
        return columns.n_features

    @property
    def feature_names_in_(self) -> NDArray[np.object_]:
        """Names of the columns seen in fit, where they have names."""
        columns: Columns = self._record.columns
        return columns.feature_names_in

    def _source(self, X: Any, extra: Sequence[str] = ()) -> Source:
        """Return the source for rows that must have the fitted columns."""
        return matching_source(X, self._record.columns, type(self).__name__, extra)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_record")


def fitted_source(X: Any, sample_weight: Any = None, owner: str = "model") -> tuple[Source, Columns]:
    """Return the source for rows to be fitted, and its columns; nothing is changed anywhere.

    Parameters
    ----------
    X : array, frame, path, source, ...
        What `as_source` takes.
    sample_weight : array-like, str or None
        Weights of the rows, or the name of the column that holds them.
    owner : str
        The class that asks, for messages.
    """
    source = as_source(X, sample_weight=sample_weight)
    projection = projection_for(source)
    if projection is not None:
        return ProjectedSource(source, projection), Columns(source.n_features, projection=projection)
    if not _scikit_learn_sees(X, source):
        return source, Columns(source.n_features, source.feature_names, kind_of_frame(X))
    seen = _probe(owner)
    validate_data(seen, X, skip_check_array=True, ensure_2d=False)
    names = getattr(seen, "feature_names_in_", None)
    return source, Columns(source.n_features, None if names is None else tuple(names), kind_of_frame(X))


def matching_source(X: Any, fitted: Columns, owner: str, extra: Sequence[str] = ()) -> Source:
    """Return the source for rows that must have the columns a model was fitted on.

    Columns with names are found by name, and others may be there too. A frame that has just the fitted columns must
    have them in the same order, as in scikit-learn.

    Parameters
    ----------
    X : array, frame, path, source, ...
        What `as_source` takes.
    fitted : Columns
        What the model was fitted on.
    owner : str
        Its class, for messages.
    extra : sequence of str
        Columns that travel along.
    """
    if isinstance(X, ProjectedSource) and X.projection == fitted.projection:
        return X
    if isinstance(X, Source):
        if extra:
            raise InputTypeError(
                f"{list(extra)} cannot be taken from a source that is made already. Make it with as_source(..., "
                "extra=...), or pass the data itself."
            )
        source = X
    else:
        if _lacks_columns(X, fitted):  # before any other error about its columns
            _check_as_scikit_learn(X, fitted, owner)
        source = as_source(X, columns=_columns_to_select(X, fitted, extra), extra=extra)
    if _scikit_learn_sees(X, source):
        _check_as_scikit_learn(X, fitted, owner)
    elif fitted.names is not None and source.feature_names is not None:
        _check_names(source.feature_names, fitted.names)
    if source.n_features != fitted.n_features:
        raise InputError(
            f"X has {source.n_features} features, but {owner} is expecting {fitted.n_features} features as input."
        )
    return source if fitted.projection is None else ProjectedSource(source, fitted.projection)


def _columns_to_select(X: Any, fitted: Columns, extra: Sequence[str]) -> list[str] | None:
    """Return the names to look for: in files always, in frames where not all columns are features and no more."""
    if fitted.names is None:
        return None
    if is_path(X):
        return list(fitted.names)
    there = _column_names(X)
    if there is None:
        return None
    names = whole_columns(fitted.names, there)
    return names if set(names) < set(there) or (extra and set(names) == set(there)) else None


def _lacks_columns(X: Any, fitted: Columns) -> bool:
    there = _column_names(X)
    is_lazy = hasattr(X, "map_partitions")
    return (
        there is not None
        and fitted.names is not None
        and not is_lazy
        and not set(whole_columns(fitted.names, there)) <= set(there)
    )


def _check_as_scikit_learn(X: Any, fitted: Columns, owner: str) -> None:
    """Raise what scikit-learn raises where the columns are not those of the fit."""
    seen = _probe(owner)
    seen.n_features_in_ = fitted.n_features
    if fitted.names is not None:
        seen.feature_names_in_ = fitted.feature_names_in
    validate_data(seen, X, reset=False, skip_check_array=True, ensure_2d=False)


def _column_names(X: Any) -> list[Any] | None:
    if hasattr(X, "column_names"):  # of Arrow, whose columns are not names
        return list(X.column_names)
    return list(X.columns) if hasattr(X, "columns") else None


def _scikit_learn_sees(X: Any, source: Source) -> bool:
    """Return whether scikit-learn finds the same columns in X as the source; it does not know weights or queries."""
    if is_pandas_dataframe(X) or is_polars_dataframe(X) or is_pyarrow_table(X):
        names = tuple(_column_names(X) or ())
        return len(names) == source.n_features and source.feature_names in (None, names)
    return hasattr(X, "__array__") and not hasattr(X, "columns") and not lies_on_cuda(X)


def _probe(owner: str) -> Any:
    """Return a stand-in for an estimator of this name, on which scikit-learn may set its attributes."""
    return type(owner, (BaseEstimator,), {})()


def _check_names(names: Sequence[str], fitted: Sequence[str]) -> None:
    if list(names) == list(fitted):
        return
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
