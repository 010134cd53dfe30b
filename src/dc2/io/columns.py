"""The columns that a model was fitted on, and the source for rows that must have them too."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib.util import find_spec
from typing import Any

import numpy as np
from narwhals.dependencies import is_pandas_dataframe, is_polars_dataframe, is_polars_lazyframe, is_pyarrow_table
from numpy.typing import NDArray
from scipy.sparse import csr_array
from sklearn import get_config
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from dc2.core.reference import hash_at
from dc2.errors import InputError, InputTypeError, PreparationNote
from dc2.io.arrays import SparseRows
from dc2.io.frame_columns import whole_columns
from dc2.io.model_file import saved_record
from dc2.io.paths import is_path
from dc2.io.resolve import as_source, library_with_engine
from dc2.io.source import Block, DeferredRows, Source, SourceOver, has_sparse_rows, is_on_cuda

KINDS = ("pandas", "polars", "pyarrow")


def kind_of_frame(X: Any) -> str | None:
    """Return the library that a data frame comes from; None where X is none that we know.

    Examples
    --------
    >>> import pandas
    >>> kind_of_frame(pandas.DataFrame({"a": [1]})), kind_of_frame([[1]])
    ('pandas', None)
    """
    if is_pandas_dataframe(X):
        return "pandas"
    if is_polars_dataframe(X) or is_polars_lazyframe(X):
        return "polars"
    return "pyarrow" if is_pyarrow_table(X) else None


def frame_kind(estimator: Any, fitted_on: str | None) -> str | None:
    """Return the kind of frame for an estimator's tables, None where no library for frames is installed.

    It is what `set_output` chose, else the kind that the estimator was fitted on, else the first that is installed.
    """
    own = getattr(estimator, "_sklearn_output_config", {}).get("transform")
    chosen = get_config()["transform_output"] if own is None else own
    wanted = [kind for kind in (chosen, fitted_on) if kind in KINDS]
    return next((kind for kind in (*wanted, *KINDS) if find_spec(kind) is not None), None)


def as_frame(columns: Mapping[str, Sequence[Any]], kind: str | None) -> Any:
    """Return columns as a data frame; without a library for frames, as a list of records.

    Columns of whole numbers with gaps stay whole numbers.

    Examples
    --------
    >>> as_frame({"a": [1, 2], "b": ["x", None]}, None)
    [{'a': 1, 'b': 'x'}, {'a': 2, 'b': None}]
    """
    if kind is None:
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    library = importlib.import_module(kind)
    if kind == "pandas":
        return library.DataFrame({name: _for_pandas(library, values) for name, values in columns.items()})
    return library.DataFrame(dict(columns)) if kind == "polars" else library.table(dict(columns))


def _for_pandas(pandas: Any, values: Sequence[Any]) -> Any:
    known = [value for value in values if value is not None]
    with_gaps = len(known) < len(values)
    if not with_gaps or not known:
        return values
    if all(isinstance(value, int) for value in known):
        return pandas.array(values, dtype="Int64")
    return [float("nan") if value is None else value for value in values] if isinstance(known[0], float) else values


MOST_COLUMNS = 4096
"""Sparse rows with so many columns, or fewer, are worked on as dense rows would be."""
COMPONENTS = 1024
SEED = 41_096


@saved_record
@dataclass(frozen=True)
class SparseProjection:
    """Adds or subtracts half of each column to or from four components, which nearly keeps lengths and angles.

    The components and signs are a hash of the column's number. With m components a squared distance is right within
    a relative error of about sqrt(2 / m), of one standard deviation.

    Examples
    --------
    >>> rows = csr_array(([3.0, 4.0], ([0, 1], [7, 99_999])), shape=(2, 100_000))
    >>> projected = SparseProjection(100_000).apply(rows)
    >>> projected.shape, float(np.linalg.norm(projected[1]))
    ((2, 1024), 4.0)

    References
    ----------
    Kane, Nelson: Sparser Johnson-Lindenstrauss transforms.
    """

    n_features: int
    n_components: int = COMPONENTS
    seed: int = SEED

    def check(self) -> None:
        """Raise if there is nothing to project, or to project to; called when read from a model file."""
        if self.n_features < 1 or self.n_components < 4 or self.n_components % 4 or not 0 <= self.seed < 2**64:
            raise InputError("the parts of a SparseProjection do not fit together.")

    @property
    def names_out(self) -> tuple[str, ...]:
        """Names of the components."""
        return tuple(f"component {number}" for number in range(self.n_components))

    def apply(self, rows: Any) -> NDArray[np.float64]:
        """Return the components of rows, sparse or dense; the same bits for either."""
        ordered = csr_array(rows, dtype=np.float64)
        ordered.sum_duplicates()  # sums follow the order of columns
        components: NDArray[np.float64] = (ordered @ _matrix(self.n_features, self.n_components, self.seed)).toarray()
        return components


@lru_cache(maxsize=4)
def _matrix(n_features: int, n_components: int, seed: int) -> csr_array:
    places = hash_at(seed, np.arange(4 * n_features))
    quarter = np.uint64(n_components // 4)
    components = (places % quarter).reshape(-1, 4).astype(np.int64) + np.arange(4) * int(quarter)
    # Halves: a product with one is exact, so that no compiler rounds a sum of them in another way.
    values = np.where(places >> np.uint64(63), 0.5, -0.5)
    starts = np.arange(n_features + 1, dtype=np.int64) * 4
    return csr_array((values, components.ravel(), starts), shape=(n_features, n_components))


class ProjectedSource(SourceOver):
    """Rows of a source, projected by the threads that need them."""

    def __init__(self, source: Source, projection: SparseProjection) -> None:
        super().__init__(source)
        self.projection = projection
        self.n_features = projection.n_components
        self.feature_names = projection.names_out

    def blocks(self, block_bytes: int) -> Iterator[Block]:
        """Start a fresh pass."""
        if has_sparse_rows(self._source):
            # The budget is for components: only these will be dense.
            block_bytes = block_bytes * self._source.n_features // self.n_features
        for block in self._source.blocks(block_bytes):
            yield replace(block, rows=_ProjectedRows(block.rows, self.projection, self.dtype))


class _ProjectedRows:
    """Rows that are projected when they are asked for."""

    def __init__(self, rows: NDArray[Any] | DeferredRows, projection: SparseProjection, dtype: np.dtype[Any]) -> None:
        self._rows = rows
        self._projection, self._dtype = projection, dtype
        self._projected: NDArray[Any] | None = None

    def __len__(self) -> int:
        return len(self._rows)

    def matrix(self) -> NDArray[Any]:
        if self._projected is None:
            self._projected = self._projection.apply(self._all()).astype(self._dtype)
        return self._projected

    def take(self, places: NDArray[np.integer[Any]]) -> NDArray[Any]:
        return self._projection.apply(self._all()[places]).astype(self._dtype)

    def _all(self) -> Any:
        if isinstance(self._rows, SparseRows):
            return self._rows.sparse
        return self._rows if isinstance(self._rows, np.ndarray) else self._rows.matrix()


def projection_for(source: Source) -> SparseProjection | None:
    """Return how the rows of a source are reduced, and say so; None where they are taken as they are."""
    if not has_sparse_rows(source) or source.n_features <= MOST_COLUMNS:
        return None
    warnings.warn(
        f"X is sparse and has {source.n_features:,} columns, more than {MOST_COLUMNS:,}: they are reduced to "
        f"{COMPONENTS:,} by a fixed random projection, which the model keeps and uses for new rows. Distances stay "
        "right within a few percent. Where the rows fit into memory, components learned from them keep more: reduce "
        "them by sklearn.decomposition.TruncatedSVD first.",
        PreparationNote,
        stacklevel=5,
    )
    return SparseProjection(source.n_features)


@saved_record
@dataclass(frozen=True)
class Columns:
    """What a model remembers of the columns it was fitted on."""

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
    """Return the source for rows to be fitted, and its columns; nothing is changed anywhere."""
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

    Columns with names are found by name, in any order, and others may be there too.
    """
    if isinstance(X, ProjectedSource) and X.projection == fitted.projection:
        return X
    if library_with_engine(X) is None and isinstance(X, Source):
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
    return names if set(names) <= set(there) and (extra or list(names) != list(there)) else None


def _lacks_columns(X: Any, fitted: Columns) -> bool:
    there = _column_names(X)
    is_lazy = hasattr(X, "map_partitions") or library_with_engine(X) is not None
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
    if library_with_engine(X) is None and hasattr(X, "column_names"):  # of Arrow, whose columns are not names
        return list(X.column_names)
    columns = getattr(X, "columns", None)
    return None if columns is None else list(columns() if callable(columns) else columns)  # a method in Ray


def _scikit_learn_sees(X: Any, source: Source) -> bool:
    """Return whether scikit-learn finds the same columns in X as the source; it does not know weights or queries."""
    if is_pandas_dataframe(X) or is_polars_dataframe(X) or is_pyarrow_table(X):
        names = tuple(_column_names(X) or ())
        return len(names) == source.n_features and source.feature_names in (None, names)
    return hasattr(X, "__array__") and not hasattr(X, "columns") and not is_on_cuda(X)


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
