"""The rows of a block of a frame: as they are, or as a matrix made on demand."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from dc2.errors import InputTypeError
from dc2.sources.base import in_rows
from dc2.sources.vectors import vector_matrix

__all__ = ["ConvertedRows", "FrameRows", "TableRows", "native_columns"]

Frame = nw.DataFrame[Any]


class TableRows:
    """Rows of a table with columns of any type, as a frame; they must be prepared to become a matrix.

    Parameters
    ----------
    frame : narwhals.DataFrame
    names : sequence of str
        The features.
    vectors : mapping of str to int
        Which of them are lists of numbers, and how long these are.
    """

    def __init__(self, frame: Frame, names: Sequence[str], vectors: Mapping[str, int]) -> None:
        self.frame = frame.select(names)
        self.vectors = vectors

    def __len__(self) -> int:
        return len(self.frame)

    def matrix(self) -> NDArray[Any]:
        """Raise: words are no numbers."""
        raise InputTypeError(
            "X is a table whose columns are not prepared. Fit a dc2.TablePreparer and use its transform."
        )

    def take(self, places: NDArray[np.integer[Any]]) -> NDArray[Any]:
        """Raise: words are no numbers."""
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
    """Rows of a frame as numbers.

    Parameters
    ----------
    frame : narwhals.DataFrame
    names : sequence of str
        The features.
    vectors : mapping of str to int
        Which of them are lists of numbers, and how long these are: each is a block of columns.
    dtype : dtype
        Of the matrix.
    """

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
