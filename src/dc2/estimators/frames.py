"""Tables as data frames, of the kind that a user works with."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from typing import Any

from narwhals.dependencies import (
    is_pandas_dataframe,
    is_polars_dataframe,
    is_polars_lazyframe,
    is_pyarrow_table,
)
from sklearn import get_config

__all__ = ["KINDS", "as_frame", "frame_kind", "kind_of_frame"]

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
