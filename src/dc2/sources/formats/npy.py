"""NumPy's .npy files: one array."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dc2.errors import SourceError
from dc2.sources.arrays import check_numeric_array
from dc2.sources.found import FoundFile

__all__ = ["Npy"]


@dataclass(frozen=True)
class Npy:
    """Columns without names, all of one type. Units are rows."""

    name: str = "npy"
    named_columns: bool = False

    def describe(self, file: FoundFile, travelling: Collection[str] = ()) -> tuple[Any, int | None]:
        """Return an array without rows, and the number of rows."""
        mapped = _mapped(file)
        empty = np.empty((0, *mapped.shape[1:]) if mapped.ndim else (), mapped.dtype)
        try:
            return check_numeric_array(empty, min_rows=0), len(mapped)
        except (TypeError, ValueError) as error:
            raise SourceError(f"Cannot read {file.path!r} as .npy: {error}") from error

    def read(self, file: FoundFile, fields: Sequence[Any], rows: int, units: range | None = None) -> Iterator[Any]:
        """Yield arrays of at most this many rows."""
        mapped = _mapped(file)
        units = range(len(mapped)) if units is None else units
        with open(file.path, "rb") as handle:
            for start in range(units.start, units.stop, rows):
                yield _rows(handle, file, mapped, start, min(start + rows, units.stop))

    def parts(self, file: FoundFile, size: int) -> Iterator[tuple[range, int | None]]:
        """Cut into parts of about `size` bytes."""
        mapped = _mapped(file)
        most = max(1, size // max(1, mapped.dtype.itemsize * mapped.shape[1]))
        for start in range(0, len(mapped), most):
            rows = range(start, min(start + most, len(mapped)))
            yield rows, len(rows)


def _mapped(file: FoundFile) -> np.memmap[Any, Any]:
    """Map a file to read its header; values are read in another way.

    If a file shrinks while it is in use, reading a map of it kills the process; an ordinary read only raises an error.
    """
    if not file.is_local:
        raise SourceError(f"{file.path!r}: .npy files must be local; use Parquet.")
    try:
        mapped = np.lib.format.open_memmap(file.path, mode="r")
    except Exception as error:  # a damaged header breaks NumPy's parser in many ways
        raise SourceError(f"Cannot read {file.path!r} as .npy: {error}") from error
    if not isinstance(mapped, np.memmap):
        raise SourceError(f"Cannot read {file.path!r} as .npy: it holds several arrays.")
    return mapped


def _rows(handle: Any, file: FoundFile, mapped: np.memmap[Any, Any], start: int, stop: int) -> NDArray[Any]:
    n_rows, width = mapped.shape
    rows = stop - start
    if mapped.flags.c_contiguous:
        return _values(handle, file, mapped, start * width, rows * width).reshape(rows, width)
    columns = np.empty((width, rows), mapped.dtype)
    for column in range(width):
        columns[column] = _values(handle, file, mapped, column * n_rows + start, rows)
    return columns.T


def _values(handle: Any, file: FoundFile, mapped: np.memmap[Any, Any], first: int, count: int) -> NDArray[Any]:
    handle.seek(mapped.offset + first * mapped.dtype.itemsize)
    values = np.fromfile(handle, mapped.dtype, count)
    if len(values) < count:
        raise SourceError(
            f"{file.path!r} ended too early: it has become shorter since it was opened. Files must not change while "
            "they are read."
        )
    return values
