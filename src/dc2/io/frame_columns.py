"""The rows of a block of a frame: as they are, or as a matrix made on demand."""

from __future__ import annotations

import importlib
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from hashlib import blake2b
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from dc2.errors import InputError, InputTypeError
from dc2.io.source import in_rows, row_hashes

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
    """Return whether the values of a column may be lists of numbers; objects are checked value by value."""
    return width_of(dtype) is not None or (dtype == nw.List and holds_numbers(inner_of(dtype))) or dtype == nw.Object


def no_rows(names: Sequence[str]) -> None:
    """Return no rows, if there are none to look at."""


def with_widths(schema: Mapping[str, Any], first_rows: FirstRows) -> dict[str, Any]:
    """Return a schema in which lists of numbers have a length: that of the first list.

    Objects that are lists of numbers get a type too: the widest that occurs.

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


def table_hashes(columns: Sequence[Any]) -> NDArray[np.uint64]:
    """Return a 64-bit hash of each row of Arrow columns of any type.

    Examples
    --------
    >>> import pyarrow as pa
    >>> column = pa.chunked_array([["a", "a", "b", None]])
    >>> hashes = table_hashes([column])
    >>> len(set(hashes.tolist())), bool(hashes[0] == hashes[1])
    (3, True)
    """
    return row_hashes(np.stack([_hashable(column) for column in columns], axis=1))


def _hashable(column: Any) -> NDArray[np.int64]:
    """Return a whole number for each value of an Arrow column; for whole numbers, themselves."""
    import pyarrow as pa

    kind = column.type
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        values = column.cast(pa.uint64() if kind == pa.uint64() else pa.int64()).fill_null(0).to_numpy().view(np.int64)
    elif pa.types.is_floating(kind):
        values = (column.cast(pa.float64()).fill_null(np.nan).to_numpy() + 0.0).view(np.int64)
    elif pa.types.is_nested(kind):
        values = np.fromiter((_hash_of(value) for value in column.to_pylist()), np.int64, len(column))
    else:
        coded = (
            column.combine_chunks().dictionary_encode() if not pa.types.is_dictionary(kind) else column.combine_chunks()
        )
        known = np.array([_hash_of(value) for value in coded.dictionary.to_pylist()] or [0], np.int64)
        values = known[coded.indices.fill_null(0).to_numpy(zero_copy_only=False)]
    hashed: NDArray[np.int64] = np.where(column.is_null().to_numpy(), values ^ _MISSING, values)
    return hashed


_MISSING = np.int64(0x51ED_270B_9F3C)


def _hash_of(value: Any) -> int:
    return int.from_bytes(
        blake2b(str(value).encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little", signed=True
    )


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


Frame = nw.DataFrame[Any]


class TableRows:
    """Rows of a table with columns of any type, as a frame; they must be prepared to become a matrix."""

    def __init__(self, frame: Frame, names: Sequence[str], vectors: Mapping[str, int]) -> None:
        self.frame = frame.select(names)
        self.vectors = vectors

    def __len__(self) -> int:
        return len(self.frame)

    def matrix(self) -> NDArray[Any]:
        """Raise: the columns are not prepared."""
        raise InputTypeError(
            "X is a table whose columns are not prepared. Fit a dc2.TablePreparer and use its transform."
        )

    def take(self, places: NDArray[np.integer[Any]]) -> NDArray[Any]:
        """Raise: the columns are not prepared."""
        return self.matrix()


class ConvertedRows(ABC):
    """Rows of a frame that become a matrix on demand; the frame is then let go, since a block has a budget."""

    def __init__(self, frame: Frame) -> None:
        self._frame: Frame | None = frame
        self._matrix: NDArray[Any] | None = None
        self._n_rows = len(frame)

    def __len__(self) -> int:
        return self._n_rows

    def matrix(self) -> NDArray[Any]:
        """Return all rows."""
        if self._matrix is None:
            assert self._frame is not None
            self._matrix = self._converted(self._frame)
            self._frame = None
        return self._matrix

    @abstractmethod
    def _converted(self, frame: Frame) -> NDArray[Any]: ...


class FrameRows(ConvertedRows):
    """Rows of a frame as numbers."""

    def __init__(self, frame: Frame, names: Sequence[str], vectors: Mapping[str, int], dtype: np.dtype[Any]) -> None:
        super().__init__(frame)
        self._names, self._vectors, self._dtype = names, vectors, dtype

    def _converted(self, frame: Frame) -> NDArray[Any]:
        return self._joined(frame) if self._vectors else _as_matrix(frame, self._names, self._dtype)

    def take(self, places: NDArray[np.integer[Any]]) -> NDArray[Any]:
        """Return the rows at some places."""
        if self._frame is None:
            chosen: NDArray[Any] = self.matrix()[places]
            return chosen
        if self._vectors:
            return self._joined(self._frame, places)
        X = np.empty((len(places), len(self._names)), self._dtype)
        for index, column in enumerate(native_columns(self._frame, self._names)):
            X[:, index] = column.to_numpy()[places]
        return X

    def _joined(self, frame: Frame, places: Any = slice(None)) -> NDArray[Any]:
        """Return rows made of lists and plain columns side by side; lists alone are not copied if possible."""
        parts = list(self._parts(frame))
        if len(parts) == 1:
            return np.require(parts[0][places], self._dtype, "A")
        X = np.empty((len(parts[0][places]), sum(part.shape[1] for part in parts)), self._dtype)
        start = 0
        for part in parts:
            X[:, start : start + part.shape[1]] = part[places]
            start += part.shape[1]
        return X

    def _parts(self, frame: Frame) -> Iterator[NDArray[Any]]:
        for name in self._names:
            column = frame.get_column(name)
            width = self._vectors.get(name)
            yield column.to_numpy()[:, None] if width is None else vector_matrix(column, width)


def _as_matrix(frame: Frame, names: Sequence[str], dtype: np.dtype[Any]) -> NDArray[Any]:
    if frame.implementation.is_pandas():
        chosen = frame if frame.columns == names else frame.select(names)
        if all(found == dtype for found in chosen.to_native().dtypes):
            return in_rows(chosen.to_numpy())  # without a copy if pandas holds them as one matrix
    if frame.implementation.is_polars():
        native = frame.to_native().select(names)
        if len(set(native.dtypes)) == 1 and (values := native.to_numpy()).dtype == dtype:
            return in_rows(values)
    X = np.empty((len(frame), len(names)), dtype, order="F")
    for index, column in enumerate(native_columns(frame, names)):
        _fill(X[:, index], column)
    return in_rows(X)


def native_columns(frame: Frame, names: Sequence[str]) -> list[Any]:
    """Return columns unwrapped if possible: wrapping hundreds of columns costs more than reading their values."""
    if frame.implementation.is_pyarrow():
        return list(frame.to_native().select(names).columns)
    if frame.implementation.is_polars():
        return list(frame.to_native().select(names).get_columns())
    return [frame.get_column(name) for name in names]


def _fill(values: NDArray[Any], column: Any) -> None:
    """Copy a column only once: pyarrow would join its chunks first."""
    if not hasattr(column, "chunks"):
        values[:] = column.to_numpy()
        return
    start = 0
    for chunk in column.chunks:
        values[start : start + len(chunk)] = chunk.to_numpy(zero_copy_only=False)
        start += len(chunk)


def import_pyarrow(module: str = "") -> Any:
    """Import pyarrow, or one of its modules, or say how to get it."""
    try:
        return importlib.import_module(f"pyarrow.{module}" if module else "pyarrow")
    except ModuleNotFoundError as error:
        raise ImportError('Tables in files need pyarrow, which is not installed: pip install "dc2[files]"') from error


def arrow_schema(schema: Any) -> Any:
    """Return the schema of a table after `arrow_table`."""
    return import_pyarrow().schema([field.with_type(_plain(field.type)) for field in schema])


def arrow_table(table: Any) -> Any:
    """Return a table without string views and run-end encoding, which half of Arrow's functions do not support.

    Examples
    --------
    >>> import pyarrow as pa
    >>> table = pa.table({"word": pa.array(["a", "b"], pa.string_view())})
    >>> arrow_table(table).schema.field("word").type
    DataType(large_string)
    """
    arrow, compute = import_pyarrow(), import_pyarrow("compute")
    for place, field in enumerate(table.schema):
        plain, column = _plain(field.type), table.column(place)
        if plain == field.type:
            continue
        if arrow.types.is_run_end_encoded(field.type):
            column = compute.run_end_decode(column)
        table = table.set_column(place, field.name, column.cast(plain))
    return table


@lru_cache(maxsize=256)
def _plain(dtype: Any) -> Any:
    arrow = import_pyarrow()
    if arrow.types.is_run_end_encoded(dtype):
        return _plain(dtype.value_type)
    views = {arrow.string_view(): arrow.large_string(), arrow.binary_view(): arrow.large_binary()}
    return views.get(dtype, dtype)
