"""Rows of a pyarrow.dataset, scanned as they are needed."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import narwhals as nw
import numpy as np

from dc2.errors import InputError, InputTypeError, SourceError
from dc2.io.arrays import ArrayLayout
from dc2.io.csv_files import CsvOptions
from dc2.io.formats import DataFile
from dc2.io.frame_columns import arrow_schema, arrow_table, import_pyarrow
from dc2.io.frames import FrameLayout
from dc2.io.paths import find_files
from dc2.io.source import listed
from dc2.io.streams import StreamSource
from dc2.io.unchanged import Unchanged

NO_LIMIT = 2**31 - 1


def file_source(
    paths: Any,
    columns: Sequence[Any] | None = None,
    drop: Sequence[Any] | None = None,
    weight: str | None = None,
    extra: Sequence[str] = (),
    csv: CsvOptions | None = None,
    *,
    mixed: bool = False,
    texts: Sequence[str] = (),
) -> FileSource:
    """Return the source for files: the rows of all files in turn, whatever their formats.

    The columns of all files are checked now; rows are read only by `blocks`, and only the columns needed.
    """
    files = find_files(paths, csv)
    unnamed = [file for file in files if not file.format.named_columns]
    if not unnamed:
        layout_of = partial(FrameLayout, columns=columns, drop=drop, weight=weight, extra=extra, mixed=mixed)
        return _table_source(files, layout_of, (set(extra) - {*(columns or ()), weight}) | set(texts))
    if len(unnamed) < len(files):
        other = next(file for file in files if file.format.named_columns)
        raise SourceError(f"{unnamed[0].path!r} has no column names but {other.path!r} has: they do not mix.")
    if weight is not None or extra:
        raise InputTypeError(f"{files[0].path!r} has no column names, so none can be taken for weights or ids.")
    layout: ArrayLayout | None = None
    n_rows = 0
    for file in files:
        empty, rows = file.format.describe(file)
        layout = layout or ArrayLayout(empty, columns, drop)
        layout.check(empty, repr(file.path))
        n_rows += rows or 0
    assert layout is not None, "find_files gives at least one file"
    return FileSource(layout, [(file, ()) for file in files], n_rows)


def _table_source(files: Sequence[DataFile], layout_of: Callable[..., FrameLayout], texts: set[str]) -> FileSource:
    schemas = []
    layout: FrameLayout | None = None
    n_rows: int | None = 0
    for file in files:
        schema, rows = _described(file, texts)
        schemas.append(schema)
        types = nw.from_native(schema.empty_table()).schema
        first_rows = partial(_first_rows, files, schema)
        layout = layout or layout_of(types, where=repr(file.path), first_rows=first_rows)
        layout.check_columns(types, repr(file.path))
        layout.widen(types)
        n_rows = None if n_rows is None or rows is None else n_rows + rows
    assert layout is not None, "find_files gives at least one file"
    fields = [[schema.field(name) for name in layout.needed_columns] for schema in schemas]
    return FileSource(layout, list(zip(files, fields, strict=True)), n_rows)


def _first_rows(files: Sequence[DataFile], schema: Any, names: Sequence[str]) -> Any:
    """Return the first rows, with these columns; None if all files are empty."""
    fields = [schema.field(name) for name in names]
    for file in files:
        try:
            table = next((table for table in file.format.read(file, fields, 1) if table.num_rows), None)
        except _failures() as error:
            raise SourceError(f"{file.path!r} broke: {error}") from error
        if table is not None:
            return nw.from_native(table)
    return None


def _described(file: DataFile, travelling: set[str]) -> tuple[Any, int | None]:
    try:
        schema, rows = file.format.describe(file, travelling)
        names = schema.names  # which may be no text, in a damaged file
    except _failures() as error:
        raise SourceError(f"Cannot read {file.path!r} as {file.format.name}: {error}") from error
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        raise InputError(f"{file.path!r} has several columns named {listed(repeated)}.")
    return schema, rows


class FileSource(StreamSource[Any]):
    """Rows of files, one after the other."""

    def __init__(
        self, layout: ArrayLayout | FrameLayout, files: Sequence[tuple[DataFile, Sequence[Any]]], n_rows: int | None
    ) -> None:
        self._files = files
        self._unchanged = Unchanged()
        super().__init__(layout, self._read, n_rows)

    def parts(self, size: int) -> Iterator[FilePart]:
        """Yield parts of about `size` bytes that can be read independently, by any machine that sees the files."""
        for file, fields in self._files:
            for units, rows in file.format.parts(file, size):
                yield FilePart(_found_anywhere(file), fields, units, rows)

    def _raise_no_rows(self) -> None:
        shown = listed([file.path for file, _ in self._files])
        raise InputError(
            f"{shown} holds columns but no rows: Found array with 0 sample(s) (shape=(0, {self.n_features})) while a "
            "minimum of 1 is required."
        )

    def _read(self, rows: int) -> Iterator[Any]:
        for number, (file, fields) in enumerate(self._files):
            pieces = (
                self._frames(file, fields, rows, self.layout)
                if isinstance(self.layout, FrameLayout)
                else file.format.read(file, fields, rows)
            )
            yield from self._unchanged.watched(number, repr(file.path), pieces, self.layout.values)

    def _frames(self, file: DataFile, fields: Sequence[Any], rows: int, layout: FrameLayout) -> Iterator[Any]:
        done = 0
        try:
            for table in file.format.read(file, fields, rows):
                present = set(table.column_names)
                lost = [name for name in layout.needed_columns if name not in present]
                if lost:
                    raise SourceError(
                        f"{file.path!r} has no column {listed(lost)} any more, but had when it was opened. Files must "
                        "not change while they are read."
                    )
                frame = nw.from_native(table).select(layout.needed_columns)
                layout.check_values(frame, repr(file.path), done)
                done += len(frame)
                yield frame
        except _failures() as error:
            raise SourceError(f"{file.path!r} broke after {done} rows: {error}") from error


@dataclass(frozen=True, eq=False)
class FilePart:
    """Some consecutive rows of a file."""

    file: DataFile
    fields: Sequence[Any]
    units: range
    rows: int | None

    def read(self) -> Any:
        """Return the rows, as an array or an Arrow table."""
        if not self.file.format.named_columns:
            return np.concatenate(list(self.file.format.read(self.file, (), NO_LIMIT, self.units)))
        try:
            tables = list(self.file.format.read(self.file, self.fields, NO_LIMIT, self.units))
        except _failures() as error:
            raise SourceError(f"{self.file.path!r} broke: {error}") from error
        schema = import_pyarrow().schema(list(self.fields))
        return import_pyarrow().concat_tables([schema.empty_table(), *tables], promote_options="permissive")


def _found_anywhere(file: DataFile) -> DataFile:
    """Return a local file under its full name: another process may have another working directory."""
    return file if file.filesystem is not None else replace(file, path=os.path.abspath(file.path))


def _failures() -> tuple[type[Exception], ...]:
    """What comes out of Arrow when a file is not what it should be."""
    return import_pyarrow().lib.ArrowException, OSError, UnicodeDecodeError


def is_dataset(data: Any) -> bool:
    """Return whether this is a pyarrow.dataset.Dataset, without importing pyarrow."""
    return type(data).__module__.startswith("pyarrow") and hasattr(data, "get_fragments")


def dataset_source(
    dataset: Any,
    columns: Sequence[Any] | None = None,
    drop: Sequence[Any] | None = None,
    weight: str | None = None,
    extra: Sequence[str] = (),
    *,
    mixed: bool = False,
) -> StreamSource[Any]:
    """Return the source for a dataset; only the columns needed are read."""
    arrow = import_pyarrow()
    schema = nw.from_native(arrow_schema(dataset.schema).empty_table()).schema
    layout = FrameLayout(
        schema,
        columns,
        drop,
        weight,
        extra,
        "the dataset",
        mixed=mixed,
        first_rows=lambda names: nw.from_native(arrow_table(dataset.head(1, columns=list(names)))),
    )
    unchanged = Unchanged()

    def frames(rows: int) -> Iterator[Any]:
        done = 0
        try:
            # Little reading ahead, which would hold many blocks in memory.
            for batch in dataset.to_batches(
                columns=layout.needed_columns, batch_size=rows, batch_readahead=1, fragment_readahead=1
            ):
                frame = nw.from_native(arrow_table(arrow.Table.from_batches([batch])))
                layout.check_values(frame, "the dataset", done)
                done += len(frame)
                yield frame
        except (arrow.lib.ArrowException, OSError) as error:
            raise SourceError(f"The dataset broke after {done} rows: {error}") from error

    return StreamSource(layout, lambda rows: unchanged.watched(None, "The dataset", frames(rows), layout.values))
