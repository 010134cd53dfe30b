"""Rows of data frames and tables: pandas, polars, pyarrow and all else that has the Arrow stream interface."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

import narwhals as nw
import numpy as np
from narwhals.dependencies import is_into_series, is_pandas_dataframe
from numpy.typing import NDArray

from dc2.errors import InputError, InputTypeError, MissingValuesError
from dc2.io.frame_columns import (
    FirstRows,
    FrameRows,
    TableRows,
    arrow_table,
    check_vectors,
    holds_numbers,
    inner_of,
    may_be_vectors,
    native_columns,
    no_rows,
    vector_matrix,
    vector_names,
    whole_columns,
    width_of,
    with_lists_of,
    with_widths,
)
from dc2.io.source import Block, check_weights, listed, promoted_dtype
from dc2.io.streams import StreamSource, spilled_table

Frame = nw.DataFrame[Any]
Schema = Mapping[str, Any]


class FrameSource(StreamSource[Frame]):
    """Rows of a data frame, converted block by block.

    Parameters
    ----------
    frame : narwhals.DataFrame
        The rows.
    columns, drop, weight, extra
        As for `FrameLayout`.
    named : bool, default=True
        Whether the columns have names; False if they are only numbered.
    mixed : bool, default=False
        As for `FrameLayout`.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = nw.from_native(pd.DataFrame({"x": [1.5, 2.5], "n": [1, 2], "w": [1, 3]}))
    >>> source = FrameSource(frame, weight="w")
    >>> source.feature_names
    ('x', 'n')
    >>> [block.weights.tolist() for block in source.blocks(block_bytes=1024)]
    [[1.0, 3.0]]
    """

    def __init__(
        self,
        frame: Frame,
        columns: Sequence[str] | None = None,
        drop: Sequence[str] | None = None,
        weight: str | None = None,
        extra: Sequence[str] = (),
        named: bool = True,
        *,
        mixed: bool = False,
    ) -> None:
        layout = FrameLayout(frame.schema, columns, drop, weight, extra, mixed=mixed, first_rows=frame.select)
        layout.check_values(frame)
        super().__init__(layout, lambda rows: iter([frame]), len(frame), in_memory=True)
        if not named:
            self.feature_names = None


class FrameLayout:
    """The columns of frames and the parts they play."""

    def __init__(
        self,
        schema: Schema,
        columns: Sequence[str] | None = None,
        drop: Sequence[str] | None = None,
        weight: str | None = None,
        extra: Sequence[str] = (),
        where: str = "X",
        *,
        mixed: bool = False,
        first_rows: FirstRows = no_rows,
    ) -> None:
        self.mixed = mixed
        self._weight = weight
        self._extra = list(extra)
        self._every_column_used = columns is None
        others = dict.fromkeys([*(drop or ()), *([] if weight is None else [weight]), *extra])
        columns = columns if columns is None else whole_columns(columns, schema)
        _check_present(schema, [*(columns or ()), *others], where)
        names = [name for name in schema if name not in others] if columns is None else list(columns)
        self._names = names
        self._schema = self._with_widths(schema, first_rows)
        _check_numeric(self._schema, self.number_columns, where)
        widths = {name: width_of(self._schema[name]) for name in names}
        self.vectors: dict[str, int] = {name: width for name, width in widths.items() if width is not None}
        features = [vector_names(name, self.vectors[name]) if name in self.vectors else [name] for name in names]
        self.width: int = sum(len(own) for own in features)
        self.feature_names: tuple[str, ...] | None = tuple(names if mixed else chain.from_iterable(features))
        self.n_features: int = len(self.feature_names)
        self.dtype: np.dtype[Any] = np.dtype(np.float64) if mixed else _promoted(self._schema, names)

    @property
    def number_columns(self) -> list[str]:
        """The columns that must be numbers: the weights and, unless these may be of any type, the features."""
        return [*([] if self.mixed else self._names), *([] if self._weight is None else [self._weight])]

    @property
    def needed_columns(self) -> list[str]:
        """All columns that have to be read, each once."""
        return list(dict.fromkeys([*self._names, *self.number_columns, *self._extra]))

    @property
    def is_numeric(self) -> bool:
        """Whether every feature is a number or a boolean, or a list of these."""
        return all(is_numeric(self._schema[name]) for name in self._names)

    def _with_widths(self, schema: Schema, first_rows: FirstRows) -> dict[str, Any]:
        """Return a schema in which features that are lists of numbers have a length; other columns are unchanged."""
        features = {name: schema[name] for name in self._names if name in schema}
        return {**schema, **with_widths(features, first_rows)}

    def check_values(self, frame: Frame, where: str = "X", start: int = 0) -> None:
        """Raise if numbers are missing, or lists do not have their length; `start` numbers the rows."""
        check_vectors(frame, self.vectors, where, start)
        plain = [name for name in self.number_columns if name not in self.vectors]
        check_no_nulls(frame, plain, where, start)

    def check_columns(self, schema: Schema, where: str) -> None:
        """Raise unless a frame with this schema has the columns of the first one."""
        _check_present(schema, self.needed_columns, where)
        unknown = [name for name in schema if name not in self._schema]
        if self._every_column_used and unknown:
            problem = f"{where} has columns that the first does not have: {listed(unknown)}."
            raise InputError(f"{problem} Name the columns to use with columns=.", parameter="columns", problem=problem)
        lists = [name for name in self._names if may_be_vectors(schema[name]) and name in self.vectors]
        _check_numeric(schema, [name for name in self.number_columns if name not in lists], where)
        words = [
            name
            for name in self._names
            if self.mixed and name not in lists and is_numeric(schema[name]) != is_numeric(self._schema[name])
        ]
        for name in [*self._extra, *words]:
            if schema[name] != self._schema[name]:
                raise InputError(
                    f"{where} has {schema[name]} in column {name!r}, but the first has {self._schema[name]}. "
                    "Give the column one type throughout."
                )

    def check_dtype(self, schema: Schema, where: str) -> None:
        """Raise if a frame with this schema holds wider numbers than the first one."""
        if not self.mixed and not np.can_cast(_promoted(schema, self._names), self.dtype, casting="safe"):
            wide = [n for n in self._names if not np.can_cast(_numpy_dtype(schema[n]), self.dtype, "safe")]
            raise InputError(
                f"{where} has wider numbers in column {listed(wide)} than the first, which is worked on as "
                f"{self.dtype}. Give the column one type throughout."
            )

    def checked(self, piece: Any, where: str, start: int = 0) -> Frame:
        """Return a later piece as a frame, or raise if it cannot follow the first one; `start` numbers its rows."""
        frame = as_frame(piece)
        if frame is None:
            raise InputTypeError(f"{where} is {type(piece).__name__}, but the first is a data frame.")
        schema = self._with_widths(frame.schema, frame.select)
        self.check_columns(schema, where)
        self.check_dtype(schema, where)
        self.check_values(frame, where, start)
        return frame

    def widen(self, schema: Schema) -> None:
        """Widen the dtype, if needed, to hold the numbers of one more frame."""
        if not self.mixed:
            self.dtype = promoted_dtype([self.dtype, _promoted(schema, self._names)])

    def join(self, pieces: Sequence[Frame]) -> Frame:
        """Stack frames, even if some hold integers and others floats."""
        if any(piece.schema != pieces[0].schema for piece in pieces):
            used = [name for name in self.needed_columns if name not in self._extra]
            numbers = [name for name in used if holds_numbers(self._schema[name])]
            pieces = [piece.with_columns(nw.col(numbers).cast(nw.Float64)) for piece in pieces]
            pieces = [with_lists_of(piece, self.vectors, self.dtype) for piece in pieces]
        return nw.concat(pieces)

    def values(self, piece: Frame) -> list[NDArray[Any]]:
        """Return the numbers, which must be the same in every pass."""
        names = self.needed_columns if self.mixed else self.number_columns
        schema, others = piece.schema, set(self._extra)  # a frame makes its schema each time
        numbers = [name for name in names if name not in others and holds_numbers(schema[name])]
        texts = [name for name in names if name not in others and schema[name] == nw.String]
        arrays = [column.to_numpy() for column in native_columns(piece, numbers)]
        arrays += [piece.get_column(name).str.len_chars().fill_null(-1).to_numpy() for name in texts]
        arrays += [vector_matrix(piece.get_column(name), width) for name, width in self.vectors.items()]
        return [array for array in arrays if array.dtype.kind in "biuf"]

    def block(self, piece: Frame, start: int) -> Block:
        """Turn a frame into a block."""
        weights = None
        if self._weight is not None:
            weights = check_weights(piece.get_column(self._weight).to_numpy(), start=start)
        extra = piece.select(self._extra).to_arrow() if self._extra else None
        rows = (
            TableRows(piece, self._names, self.vectors)
            if self.mixed
            else FrameRows(piece, self._names, self.vectors, self.dtype)
        )
        return Block(start, rows, weights, extra)


def as_frame(data: Any) -> Frame | None:
    """Return a data frame of any kind as a narwhals one, or None if this is no data frame."""
    if is_into_series(data):
        return None
    if is_pandas_dataframe(data):
        data = _own_columns(data)
    try:
        frame: Any = nw.from_native(data, pass_through=True)
    except nw.exceptions.DuplicateError as error:
        raise InputError(f"X has columns of the same name; give each its own. {error}") from error
    if isinstance(frame, nw.DataFrame):
        return nw.from_native(arrow_table(data)) if frame.implementation.is_pyarrow() else frame
    if hasattr(data, "__arrow_c_stream__") or hasattr(data, "sink_ipc"):
        kept: Frame = nw.from_native(spilled_table(data))
        return kept
    if isinstance(frame, nw.LazyFrame):
        raise InputTypeError(
            f"X is a lazy frame ({type(data).__module__}.{type(data).__name__}). Collect it first, or, if it is "
            "larger than memory, write it to Parquet and pass the path."
        )
    return None


def check_no_nulls(frame: Frame, names: Sequence[str], where: str = "X", start: int = 0) -> None:
    """Raise if columns have missing values, saying which, how many, and the first row.

    NaN among floats is not checked here; it is found when sums are made.
    """
    found = []
    if frame.implementation.is_pyarrow():  # wrapping thousands of columns costs more than counting their nulls
        names = [name for name, column in zip(names, native_columns(frame, names), strict=True) if column.null_count]
    for name in names:
        if frame.implementation.is_pandas() and isinstance(frame.to_native()[name].dtype, np.dtype):
            continue  # such a column has no missing values other than NaN
        column = frame.get_column(name)
        missing = column.null_count()
        if missing:
            first = start + int(column.is_null().to_numpy().argmax())
            found.append(f"column {name!r} has {missing} (first in row {first})")
    if found:
        raise MissingValuesError(
            f"Input {where} contains missing values (null, NaN). In rows {start} to {start + len(frame) - 1}: "
            f"{', '.join(found[:5])}{f' and {len(found) - 5} more columns' if len(found) > 5 else ''}. "
            "Fill them in, for instance with sklearn.impute.SimpleImputer, or drop these rows."
        )


def has_text_names(data: Any) -> bool:
    """Return whether column names are text, as they are everywhere but in pandas."""
    return not is_pandas_dataframe(data) or all(isinstance(name, str) for name in data.columns)


def _own_columns(data: Any) -> Any:
    """Return a pandas frame with text as column names; it shares the data, and keeps columns that are dropped later."""
    texts = [isinstance(name, str) for name in data.columns]
    if any(texts) and not all(texts):
        number, text = data.columns[texts.index(False)], data.columns[texts.index(True)]
        raise InputTypeError(
            f"X has column names of several types, such as {text!r} and {number!r}. Make all of them text: "
            "X.columns = X.columns.astype(str)."
        )
    own = data.copy(deep=False)
    if not all(texts):
        own.columns = [str(name) for name in data.columns]
    return own


def _check_present(schema: Schema, names: Sequence[str], where: str) -> None:
    absent = [name for name in names if name not in schema]
    if absent:
        raise InputError(f"{where} has no column {listed(absent)}; it has {listed(list(schema))}.")


def _check_numeric(schema: Schema, names: Sequence[str], where: str) -> None:
    wide = [name for name in names if schema[name] in (nw.Int128, nw.UInt128)]
    if wide:
        problem = f"{where} has integers of 128 bits, for which NumPy has no type: {listed(wide)}."
        raise InputTypeError(
            f"{problem} Cast them first, for instance to Float64, or leave them out with columns= or drop= of "
            "dc2.as_source.",
            parameter="columns",
            problem=problem,
        )
    other = [name for name in names if not is_numeric(schema[name])]
    if other:
        kinds = sorted({str(schema[name]) for name in other})
        problem = f"{where} has columns that are not numeric: {listed(other)} ({', '.join(kinds)})."
        raise InputTypeError(
            f"{problem} Leave them out with columns= or drop= of dc2.as_source, or turn them into numbers first, for "
            "instance with dc2.TablePreparer or sklearn.preprocessing.OneHotEncoder.",
            parameter="columns",
            problem=problem,
        )


def is_numeric(dtype: Any) -> bool:
    """Return whether the values of a column can be used as they are."""
    return holds_numbers(dtype) or width_of(dtype) is not None


def _numpy_dtype(dtype: Any) -> np.dtype[Any]:
    if dtype in (nw.Array, nw.List):
        return _numpy_dtype(inner_of(dtype))
    if dtype == nw.Boolean:
        return np.dtype(np.bool_)
    narrow = (nw.Int8, nw.Int16, nw.UInt8, nw.UInt16, nw.Float16, nw.Float32)
    return np.dtype(str(dtype).lower()) if dtype in narrow else np.dtype(np.float64)


def _promoted(schema: Schema, names: Sequence[str]) -> np.dtype[Any]:
    return promoted_dtype(_numpy_dtype(schema[name]) for name in names)
