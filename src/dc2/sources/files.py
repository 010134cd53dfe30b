"""Rows of files, read as they are needed: Parquet, Arrow, CSV and .npy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from dc2.errors import InputError, InputTypeError, SourceError
from dc2.sources.arrays import ArrayLayout, check_numeric_array
from dc2.sources.checks import listed
from dc2.sources.formats import TABLE_FORMATS
from dc2.sources.frames import Frame, FrameLayout, check_no_nulls
from dc2.sources.paths import FoundFile, find_files, import_pyarrow
from dc2.sources.streams import StreamSource

__all__ = ["file_source", "open_npy"]


def file_source(
    paths: Any,
    columns: Sequence[Any] | None = None,
    drop: Sequence[Any] | None = None,
    weight: str | None = None,
    extra: Sequence[str] = (),
) -> StreamSource[Any]:
    """Return the source for files: their rows one after the other, whatever their formats.

    The columns of all files are checked at once; rows are read only by `blocks`, and only the columns needed.

    Parameters
    ----------
    paths : path or sequence of paths
        As for `dc2.sources.paths.find_files`.
    columns, drop, weight, extra
        As for `dc2.sources.frames.FrameLayout`; of .npy files, which have no column names, `columns` and
        `drop` take indices.
    """
    files = find_files(paths)
    arrays = [file for file in files if file.format == "npy"]
    if not arrays:
        return _TableFiles(files, columns, drop, weight, extra)
    if len(arrays) < len(files):
        other = next(file for file in files if file.format != "npy")
        raise SourceError(f"{arrays[0].path!r} has no column names but {other.path!r} has: they do not mix.")
    if weight is not None or extra:
        raise InputTypeError(
            f"{files[0].path!r} has no column names, so none can be taken for weights or ids."
        )
    layout = ArrayLayout(open_npy(files[0]), columns, drop)
    n_rows = 0
    for file in files:
        array = open_npy(file)
        layout.check(array, repr(file.path))
        n_rows += len(array)
    return StreamSource(layout, lambda rows: map(open_npy, files), n_rows)


class _TableFiles(StreamSource[Frame]):
    """Rows of files with named columns."""

    def __init__(
        self,
        files: Sequence[FoundFile],
        columns: Sequence[str] | None,
        drop: Sequence[str] | None,
        weight: str | None,
        extra: Sequence[str],
    ) -> None:
        self._failures = (import_pyarrow().lib.ArrowException, OSError)
        n_rows: int | None = 0
        layout = None
        all_fields = []
        for file in files:
            fields, rows = self._describe(file)
            all_fields.append(fields)
            schema = nw.from_native(fields.empty_table()).schema
            where = repr(file.path)
            if layout is None:
                layout = FrameLayout(schema, columns, drop, weight, extra, where)
            layout.check_columns(schema, where)
            layout.widen(schema)
            n_rows = None if n_rows is None or rows is None else n_rows + rows
        assert layout is not None, "find_files gives at least one file"
        self._frame_layout = layout
        needed = layout.needed_columns
        self._files = [
            (file, [fields.field(name) for name in needed])
            for file, fields in zip(files, all_fields, strict=True)
        ]
        super().__init__(layout, self._read, n_rows)

    def _describe(self, file: FoundFile) -> tuple[Any, int | None]:
        try:
            fields, rows = TABLE_FORMATS[file.format].describe(file)
        except self._failures as error:
            raise SourceError(f"Cannot read {file.path!r} as {file.format}: {error}") from error
        repeated = [name for name in dict.fromkeys(fields.names) if fields.names.count(name) > 1]
        if repeated:
            raise InputError(f"{file.path!r} has several columns named {listed(repeated)}.")
        return fields, rows

    def _read(self, rows: int) -> Iterator[Frame]:
        layout = self._frame_layout
        for file, fields in self._files:
            done = 0
            try:
                for table in TABLE_FORMATS[file.format].read(file, fields, rows):
                    frame = nw.from_native(table).select(layout.needed_columns)
                    check_no_nulls(frame, layout.number_columns, repr(file.path), done)
                    done += len(frame)
                    yield frame
            except self._failures as error:
                raise SourceError(f"{file.path!r} broke after {done} rows: {error}") from error


def open_npy(file: FoundFile) -> NDArray[Any]:
    """Map an .npy file into memory."""
    if file.filesystem is not None and file.filesystem.type_name != "local":
        raise SourceError(f"{file.path!r}: .npy files are mapped into memory and must be local; use Parquet.")
    try:
        return check_numeric_array(np.load(file.path, mmap_mode="r", allow_pickle=False), min_rows=0)
    except (OSError, ValueError) as error:
        raise SourceError(f"Cannot read {file.path!r} as .npy: {error}") from error
