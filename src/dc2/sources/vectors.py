"""Columns whose values are lists of numbers, such as embeddings: each becomes several columns."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from dc2.errors import InputError

__all__ = [
    "FirstRows",
    "check_vectors",
    "holds_numbers",
    "inner_of",
    "may_be_vectors",
    "no_rows",
    "vector_matrix",
    "vector_names",
    "whole_columns",
    "width_of",
    "with_lists_of",
    "with_widths",
]

FirstRows = Callable[[Sequence[str]], nw.DataFrame[Any] | None]
ELEMENT = re.compile(r"(.*)\[\d+\]", re.DOTALL)


def holds_numbers(dtype: Any) -> bool:
    """Return whether values are numbers, or booleans."""
    return bool(dtype.is_numeric() or dtype == nw.Boolean)


def inner_of(dtype: Any) -> Any:
    """Return the type of the values in the lists of a column."""
    inner = dtype.inner
    return inner() if isinstance(inner, type) else inner


def width_of(dtype: Any) -> int | None:
    """Return how many numbers the lists of a column hold; None unless they are lists of one known length.

    Examples
    --------
    >>> width_of(nw.Array(nw.Float16(), 384)), width_of(nw.List(nw.Float16())), width_of(nw.Float64())
    (384, None, None)
    """
    if dtype != nw.Array or len(dtype.shape) != 1 or not holds_numbers(inner_of(dtype)):
        return None
    return int(dtype.shape[0]) or None


def may_be_vectors(dtype: Any) -> bool:
    """Return whether the values of a column may be lists of numbers; of objects only a look at them can tell."""
    return width_of(dtype) is not None or (dtype == nw.List and holds_numbers(inner_of(dtype))) or dtype == nw.Object


def no_rows(names: Sequence[str]) -> None:
    """Return no rows, if there are none to look at."""


def with_widths(schema: Mapping[str, Any], first_rows: FirstRows) -> dict[str, Any]:
    """Return a schema in which lists of numbers have a length: that of the first list.

    Objects that are lists of numbers get a type too: the widest that occurs.

    Parameters
    ----------
    schema : mapping of column names to narwhals dtypes
    first_rows : callable
        Takes the names of columns and returns a frame with their first rows, or None if there are no rows. It is
        called only if the schema does not tell the lengths.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = nw.from_native(pd.DataFrame({"vec": [[1.0, 2.0], [3.0, 4.0]], "name": ["a", "b"]}))
    >>> with_widths(frame.schema, frame.select)["vec"]
    Array(Float64, shape=(2,))
    """
    known = dict(schema)
    unknown = [name for name in schema if may_be_vectors(schema[name]) and width_of(schema[name]) is None]
    rows = first_rows(unknown) if unknown else None
    for name in () if rows is None else rows.columns:
        assert rows is not None
        inner, width = _first_vector(rows.get_column(name))
        if width:
            known[name] = nw.Array(inner, width)
    return known


def vector_names(name: str, width: int) -> list[str]:
    """Return the names of the numbers of a list.

    Examples
    --------
    >>> vector_names("vec", 3)
    ['vec[0]', 'vec[1]', 'vec[2]']
    """
    return [f"{name}[{place}]" for place in range(width)]


def whole_columns(names: Iterable[str], there: Iterable[str]) -> list[str]:
    """Return the columns that hold features: for ``vec[0]``, ``vec[1]``, ... the column ``vec``, if it exists.

    Examples
    --------
    >>> whole_columns(["age", "vec[0]", "vec[1]"], ["vec", "age"])
    ['age', 'vec']
    >>> whole_columns(["vec[0]"], ["vec[0]"])
    ['vec[0]']
    """
    present = set(there)
    columns = []
    for name in names:
        element = None if name in present else ELEMENT.fullmatch(name)
        columns.append(element[1] if element is not None and element[1] in present else name)
    return list(dict.fromkeys(columns))


def check_vectors(frame: nw.DataFrame[Any], widths: Mapping[str, int], where: str = "X", start: int = 0) -> None:
    """Raise if a list is missing or has another length than the first, naming its row; `start` numbers the rows."""
    for name, width in widths.items():
        lengths = _lengths(frame.get_column(name))
        wrong = np.flatnonzero(lengths != width)
        if not len(wrong):
            continue
        first = int(wrong[0])
        has = "no list of numbers" if lengths[first] < 0 else f"a list of {lengths[first]}"
        raise InputError(
            f"{where} has {has} in column {name!r}, row {start + first}, but lists of {width} numbers before "
            f"({len(wrong)} such rows in {start} to {start + len(frame) - 1}). Every row needs one of the same length: "
            "correct these rows or drop them."
        )


def vector_matrix(column: Any, width: int) -> NDArray[Any]:
    """Return lists of numbers as rows, in their own type; without a copy if Arrow has them in one piece.

    Parameters
    ----------
    column : narwhals.Series
        Checked by `check_vectors`. Numbers that are missing become NaN.
    width : int
        The length of each list.

    Examples
    --------
    >>> import pyarrow as pa
    >>> lists = nw.from_native(pa.chunked_array([[[1.0, 2.0], [3.0, 4.0]]]), series_only=True)
    >>> vector_matrix(lists, 2).tolist()
    [[1.0, 2.0], [3.0, 4.0]]
    """
    native = column.to_native()
    if column.implementation.is_polars():
        arrays = native if column.dtype == nw.Array else native.list.to_array(width)
        matrix: NDArray[Any] = arrays.to_numpy()
        return matrix.reshape(-1, width)
    chunks = _arrow_chunks(column)
    if chunks is None:
        if not len(native):
            return np.empty((0, width))
        return np.stack([np.asarray(value) for value in native])
    pieces = [chunk.flatten().to_numpy(zero_copy_only=False).reshape(-1, width) for chunk in chunks]
    return pieces[0] if len(pieces) == 1 else np.concatenate([np.empty((0, width), np.bool_), *pieces])


def with_lists_of(frame: nw.DataFrame[Any], widths: Mapping[str, int], dtype: np.dtype[Any]) -> nw.DataFrame[Any]:
    """Return a frame whose lists all hold numbers of one type, so it can be stacked with others."""
    native = frame.to_native()
    for name, width in widths.items():
        matrix = vector_matrix(frame.get_column(name), width).astype(dtype)
        if frame.implementation.is_pyarrow():
            import pyarrow

            lists = pyarrow.FixedSizeListArray.from_arrays(pyarrow.array(matrix.ravel()), width)
            native = native.set_column(native.column_names.index(name), name, lists)
        elif frame.implementation.is_polars():
            import polars

            native = native.with_columns(polars.Series(name, matrix))
        else:
            native = native.assign(**{name: list(matrix)})
    joined: nw.DataFrame[Any] = nw.from_native(native, eager_only=True)
    return joined


def _first_vector(column: nw.Series[Any]) -> tuple[Any, int]:
    """Return the type and the length of the first list of a column; length 0 if there is none."""
    if column.dtype == nw.Object:
        values = [value for value in column.to_native() if _length(value) >= 0]
        if not values:
            return None, 0
        dtypes = {value.dtype if isinstance(value, np.ndarray) else np.asarray(value).dtype for value in values}
        return _NARROW.get(np.result_type(*dtypes).name, nw.Float64()), _length(values[0])
    lengths = _lengths(column)
    there = lengths[lengths >= 0]
    return inner_of(column.dtype), int(there[0]) if len(there) else 0


_NARROW = {
    dtype.__name__.lower().replace("boolean", "bool"): dtype()
    for dtype in (nw.Boolean, nw.Int8, nw.Int16, nw.UInt8, nw.UInt16, nw.Float16, nw.Float32)
}
"""The types whose values float32 holds exactly; all others are worked on as float64."""


def _lengths(column: nw.Series[Any]) -> NDArray[np.int64]:
    """Return the length of each list; -1 if there is none."""
    native = column.to_native()
    if column.implementation.is_polars():
        if column.dtype == nw.Array:
            return np.where(native.is_null().to_numpy(), -1, column.dtype.shape[0])  # type: ignore[attr-defined]
        lengths: NDArray[np.int64] = native.list.len().cast(int).fill_null(-1).to_numpy()
        return lengths
    chunks = _arrow_chunks(column)
    if chunks is None:
        return np.fromiter((_length(value) for value in native), np.int64, len(native))
    from pyarrow.compute import list_value_length

    counted = [list_value_length(chunk).fill_null(-1).to_numpy(zero_copy_only=False) for chunk in chunks]
    return np.concatenate([np.empty(0, np.int64), *counted])


def _length(value: Any) -> int:
    if not isinstance(value, np.ndarray | list | tuple):
        return -1
    try:
        array = np.asarray(value)
    except ValueError:  # lists of lists of different lengths
        return -1
    return len(array) if array.ndim == 1 and array.dtype.kind in "biuf" else -1


def _arrow_chunks(column: nw.Series[Any]) -> list[Any] | None:
    """Return the Arrow arrays of a column; None if it holds objects."""
    native = column.to_native()
    if not column.implementation.is_pyarrow():
        if column.dtype == nw.Object:
            return None
        import pyarrow

        native = pyarrow.array(native)  # pandas shares them
    return list(native.chunks) if hasattr(native, "chunks") else [native]
