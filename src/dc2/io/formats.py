"""File formats, one per file; a new one is listed here and nowhere else."""

from __future__ import annotations

import codecs
import io
import os
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dc2.errors import SourceError
from dc2.io.arrays import check_numeric_array
from dc2.io.csv_files import Csv, CsvOptions, telling_encoding
from dc2.io.frame_columns import arrow_schema, arrow_table, import_pyarrow


class Format(Protocol):
    """A kind of file. `dc2.io.formats` lists them all; threads and clusters read by the same methods."""

    @property
    def name(self) -> str:
        """Its name in messages."""

    @property
    def named_columns(self) -> bool:
        """Whether columns have names; if so pieces are Arrow tables, otherwise arrays."""

    def describe(self, file: DataFile, travelling: Collection[str] = ()) -> tuple[Any, int | None]:
        """Return the Arrow schema of a file, or an array of its dtype and width without rows; and its number of rows.

        The number is None if counting needs a pass. `travelling` columns are passed through unchanged, so a format
        without types must not guess types for them.
        """

    def read(self, file: DataFile, fields: Sequence[Any], rows: int, units: range | None = None) -> Iterator[Any]:
        """Yield pieces of about this many rows, with at least the columns of `fields`; of all units, or of some."""

    def parts(self, file: DataFile, size: int) -> Iterator[tuple[range, int | None]]:
        """Cut a file into runs of units (rows, row groups, ...) of about `size` bytes, each with its rows if known."""


@dataclass(frozen=True)
class DataFile:
    """One file."""

    path: str
    format: Format
    filesystem: Any | None = None

    @property
    def identity(self) -> tuple[str, str]:
        """The same for all names of one file: a local one may have links."""
        if self.filesystem is None or self.is_local:
            about = os.stat(self.path)
            return "local", f"{about.st_dev} {about.st_ino}" if about.st_ino else os.path.realpath(self.path)
        return self.filesystem.type_name, self.path

    @property
    def is_local(self) -> bool:
        """Whether it is a file on this machine."""
        return self.filesystem is None or self.filesystem.type_name == "local"

    def open_file(self) -> Any:
        """Open the file for random access."""
        filesystem, path = self._place()
        return filesystem.open_input_file(path)

    def open_stream(self) -> Any:
        """Open the file for reading from its start, unpacked if its suffix says it is packed."""
        filesystem, path = self._place()
        return filesystem.open_input_stream(path, compression=self._compression())

    def _place(self) -> tuple[Any, Any]:
        """Return the filesystem and the path in it; a local name need not be UTF-8, so it is given as bytes."""
        if self.filesystem is not None:
            return self.filesystem, self.path
        return import_pyarrow("fs").LocalFileSystem(), os.fsencode(self.path)

    def _compression(self) -> str | None:
        packed = {".gz": "gzip", ".zst": "zstd"}
        return packed.get(os.path.splitext(self.path)[1].lower())


@dataclass(frozen=True)
class Arrow:
    """Named, typed columns. Units are record batches, which are read whole."""

    name: str = "arrow"
    named_columns: bool = True

    def describe(self, file: DataFile, travelling: Collection[str] = ()) -> tuple[Any, int | None]:
        """Return schema and number of rows; an older pyarrow can count them only by unpacking all."""
        with file.open_file() as handle:
            reader = import_pyarrow("ipc").open_file(handle)
            return arrow_schema(reader.schema), reader.count_rows() if hasattr(reader, "count_rows") else None

    def read(self, file: DataFile, fields: Sequence[Any], rows: int, units: range | None = None) -> Iterator[Any]:
        """Yield a table for each record batch."""
        arrow, ipc = import_pyarrow(), import_pyarrow("ipc")
        with file.open_file() as handle:
            schema = ipc.open_file(handle).schema
            present = {name: place for place, name in enumerate(schema.names)}
            wanted = [present[field.name] for field in fields if field.name in present]
            reader = ipc.open_file(handle, options=ipc.IpcReadOptions(included_fields=wanted))
            for index in range(reader.num_record_batches) if units is None else units:
                batch = reader.get_batch(index)
                # Arrow trusts what it reads; wrong offsets in a damaged file may point anywhere in memory.
                batch.validate(full=True)
                yield arrow_table(arrow.Table.from_batches([batch]))

    def parts(self, file: DataFile, size: int) -> Iterator[tuple[range, int | None]]:
        """Group record batches, assuming that all have the same size."""
        with file.open_file() as handle:
            batches = import_pyarrow("ipc").open_file(handle).num_record_batches
            most = max(1, batches * size // max(1, handle.size()))
        for first in range(0, batches, most):
            yield range(first, min(first + most, batches)), None


BLOCK_BYTES = 2**22


@dataclass(frozen=True)
class JsonLines:
    """Named columns, with types inferred from the values. The whole file is one unit."""

    name: str = "jsonl"
    named_columns: bool = True

    def describe(self, file: DataFile, travelling: Collection[str] = ()) -> tuple[Any, int | None]:
        """Infer the columns from the first lines; numbers are read as float64, since later ones may need it."""
        arrow = import_pyarrow()
        with telling_encoding(file, can_be_given=False):
            schema = _parsed(next(_blocks(file), b"")).schema
            return arrow.schema([_field(arrow, field, field.name in travelling) for field in schema]), None

    def read(self, file: DataFile, fields: Sequence[Any], rows: int, units: range | None = None) -> Iterator[Any]:
        """Yield a table for some megabytes of text at a time."""
        schema = import_pyarrow().schema(list(fields))
        for block in _blocks(file):
            with telling_encoding(file, can_be_given=False):
                table = _parsed(block, explicit_schema=schema, unexpected_field_behavior="ignore")
            yield table

    def parts(self, file: DataFile, size: int) -> Iterator[tuple[range, int | None]]:
        """Give the file as one part."""
        yield range(1), None


def _blocks(file: DataFile) -> Iterator[bytes]:
    """Yield the text in blocks of whole lines."""
    with file.open_stream() as stream:
        rest = b""
        if (start := bytes(stream.read(len(codecs.BOM_UTF8)))) != codecs.BOM_UTF8:
            rest = start
        while text := stream.read(BLOCK_BYTES):
            whole, newline, end = text.rpartition(b"\n")
            if newline:
                yield rest + whole + newline
                rest = end
            else:
                rest += end
        if rest.strip():
            yield rest


DEEPEST = 32
"""Brackets within brackets of a line of JSON: Arrow's parser takes time and stack that grow with them without limit."""
BRACKETS = re.compile(rb'"(?:[^"\\]|\\.)*"|[\[{]|[\]}]', re.DOTALL)


def _check_depth(text: bytes) -> None:
    """Raise if brackets are nested too deeply; most text is known to be flat by a count."""
    if max(text.count(b"["), text.count(b"{")) <= DEEPEST // 2:
        return
    for line in text.splitlines():
        if line.count(b"[") + line.count(b"{") <= DEEPEST:
            continue
        depth = 0
        for token in BRACKETS.finditer(line):
            depth += (token[0] in b"[{") - (token[0] in b"]}")
            if depth > DEEPEST:
                raise import_pyarrow().ArrowInvalid(
                    f"a line nests more than {DEEPEST} brackets: {line[:40].decode(errors='replace')!r}..."
                )


def _parsed(text: bytes, **options: Any) -> Any:
    json = import_pyarrow("json")
    if text.lstrip().startswith(b"["):
        raise import_pyarrow().ArrowInvalid(
            "it holds one array, and not an object in each line, as pandas.DataFrame.to_json(lines=True) writes"
        )
    text.decode()  # Arrow does not look whether it can be
    _check_depth(text)
    return json.read_json(
        io.BytesIO(text),
        # Arrow cuts text into its own blocks, and a line must fit into one of them.
        read_options=json.ReadOptions(use_threads=False, block_size=max(BLOCK_BYTES, len(text))),
        parse_options=json.ParseOptions(**options),
    )


def _field(arrow: Any, field: Any, travels: bool) -> Any:
    if travels:  # a text that looks like a date is still a text
        return field.with_type(arrow.string()) if arrow.types.is_timestamp(field.type) else field
    if arrow.types.is_list(field.type) and arrow.types.is_integer(field.type.value_type):
        return field.with_type(arrow.list_(arrow.float64()))
    return field.with_type(arrow.float64()) if arrow.types.is_integer(field.type) else field


@dataclass(frozen=True)
class Npy:
    """Columns without names, all of one type. Units are rows."""

    name: str = "npy"
    named_columns: bool = False

    def describe(self, file: DataFile, travelling: Collection[str] = ()) -> tuple[Any, int | None]:
        """Return an array without rows, and the number of rows."""
        mapped = _mapped(file)
        empty = np.empty((0, *mapped.shape[1:]) if mapped.ndim else (), mapped.dtype)
        try:
            return check_numeric_array(empty, min_rows=0), len(mapped)
        except (TypeError, ValueError) as error:
            raise SourceError(f"Cannot read {file.path!r} as .npy: {error}") from error

    def read(self, file: DataFile, fields: Sequence[Any], rows: int, units: range | None = None) -> Iterator[Any]:
        """Yield arrays of at most this many rows."""
        mapped = _mapped(file)
        units = range(len(mapped)) if units is None else units
        with open(file.path, "rb") as handle:
            for start in range(units.start, units.stop, rows):
                yield _rows(handle, file, mapped, start, min(start + rows, units.stop))

    def parts(self, file: DataFile, size: int) -> Iterator[tuple[range, int | None]]:
        """Cut into parts of about `size` bytes."""
        mapped = _mapped(file)
        most = max(1, size // max(1, mapped.dtype.itemsize * mapped.shape[1]))
        for start in range(0, len(mapped), most):
            rows = range(start, min(start + most, len(mapped)))
            yield rows, len(rows)


def _mapped(file: DataFile) -> np.memmap[Any, Any]:
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


def _rows(handle: Any, file: DataFile, mapped: np.memmap[Any, Any], start: int, stop: int) -> NDArray[Any]:
    n_rows, width = mapped.shape
    rows = stop - start
    if mapped.flags.c_contiguous:
        return _values(handle, file, mapped, start * width, rows * width).reshape(rows, width)
    columns = np.empty((width, rows), mapped.dtype)
    for column in range(width):
        columns[column] = _values(handle, file, mapped, column * n_rows + start, rows)
    return columns.T


def _values(handle: Any, file: DataFile, mapped: np.memmap[Any, Any], first: int, count: int) -> NDArray[Any]:
    handle.seek(mapped.offset + first * mapped.dtype.itemsize)
    values = np.fromfile(handle, mapped.dtype, count)
    if len(values) < count:
        raise SourceError(
            f"{file.path!r} ended too early: it has become shorter since it was opened. Files must not change while "
            "they are read."
        )
    return values


READ_BUFFER_BYTES = 2**20


@dataclass(frozen=True)
class Parquet:
    """Named, typed columns; the footer says how many rows there are. Units are row groups."""

    name: str = "parquet"
    named_columns: bool = True

    def describe(self, file: DataFile, travelling: Collection[str] = ()) -> tuple[Any, int | None]:
        """Return schema and number of rows from the footer."""
        with file.open_file() as handle:
            parquet = import_pyarrow("parquet").ParquetFile(handle)
            return arrow_schema(parquet.schema_arrow), parquet.metadata.num_rows

    def read(self, file: DataFile, fields: Sequence[Any], rows: int, units: range | None = None) -> Iterator[Any]:
        """Yield tables of at most this many rows."""
        table = import_pyarrow().Table
        with file.open_file() as handle:
            # Through a small buffer, one row group at a time; otherwise row groups, or the whole file, stay in memory.
            parquet = import_pyarrow("parquet").ParquetFile(handle, buffer_size=READ_BUFFER_BYTES, pre_buffer=False)
            names = [field.name for field in fields]
            for group in range(parquet.num_row_groups) if units is None else units:
                for batch in parquet.iter_batches(rows, row_groups=[group], columns=names):
                    yield arrow_table(table.from_batches([batch]))

    def parts(self, file: DataFile, size: int) -> Iterator[tuple[range, int | None]]:
        """Group row groups into parts."""
        with file.open_file() as handle:
            metadata = import_pyarrow("parquet").ParquetFile(handle).metadata
        first = rows = filled = 0
        for group in range(metadata.num_row_groups):
            rows += metadata.row_group(group).num_rows
            filled += metadata.row_group(group).total_byte_size
            if filled >= size or group == metadata.num_row_groups - 1:
                yield range(first, group + 1), rows
                first, rows, filled = group + 1, 0, 0


FORMATS: dict[str, Format] = {
    ".parquet": Parquet(),
    ".pq": Parquet(),
    ".arrow": Arrow(),
    ".feather": Arrow(),
    ".ipc": Arrow(),
    **{f".csv{packed}": Csv() for packed in ("", ".gz", ".zst")},
    **{f".tsv{packed}": Csv(separator="\t") for packed in ("", ".gz", ".zst")},
    **{f"{suffix}{packed}": JsonLines() for suffix in (".jsonl", ".ndjson", ".json") for packed in ("", ".gz", ".zst")},
    ".npy": Npy(),
}
"""The format of each suffix."""


def format_of(path: str, csv: CsvOptions | None = None) -> Format | None:
    """Return the format that belongs to the suffix of a path, or None.

    Examples
    --------
    >>> format_of("rows.TSV.gz").name
    'csv'
    >>> format_of("rows.xlsx") is None
    True
    """
    found = next((made for suffix, made in FORMATS.items() if path.lower().endswith(suffix)), None)
    return replace(found, options=csv) if csv is not None and isinstance(found, Csv) else found
