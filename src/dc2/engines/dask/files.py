"""Files as chunks for a cluster: every worker reads its own parts, with the readers that one machine uses."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import dask.array as da
import numpy as np
from dask._task_spec import Task
from dask.highlevelgraph import HighLevelGraph

from dc2.engines.dask.pieces import OBJECTS
from dc2.engines.dask.reader import Reader
from dc2.engines.dask.source import DaskSource
from dc2.errors import SourceError
from dc2.sources.files import file_source, open_npy
from dc2.sources.formats import TABLE_FORMATS
from dc2.sources.paths import FoundFile, find_files, import_pyarrow

__all__ = ["dask_files"]

CHUNK_BYTES = 64 * 2**20


@dataclass(frozen=True, eq=False)
class Part:
    """Some consecutive rows of a file.

    Attributes
    ----------
    file : FoundFile
    fields : sequence of pyarrow.Field
        The columns to read; none of an .npy file, which is read whole.
    span : range
        Row groups of a Parquet file, record batches of an Arrow file, rows of an .npy file; a CSV file has one part.
    rows : int or None
        Number of rows, where the file tells it.
    """

    file: FoundFile
    fields: Sequence[Any]
    span: range
    rows: int | None


def dask_files(
    paths: Any,
    *,
    columns: Sequence[Any] | None = None,
    drop: Sequence[Any] | None = None,
    sample_weight: str | None = None,
    extra: Sequence[str] = (),
) -> DaskSource:
    """Return files as a source whose chunks the workers read; they must see the files under the same names.

    Parameters
    ----------
    paths, columns, drop, sample_weight, extra
        As for `dc2.sources.as_source`. A CSV file is one chunk: split a large one, or use Parquet.
    """
    layout: Any = file_source(paths, columns, drop, sample_weight, extra).layout
    needed = getattr(layout, "needed_columns", [])
    parts = [part for file in find_files(paths) for part in _parts(_found_anywhere(file), needed)]
    name = f"dc2-read-{uuid.uuid4().hex}"
    graph = {(name, number): Task((name, number), read_part, part) for number, part in enumerate(parts)}
    sizes = tuple(np.nan if part.rows is None else part.rows for part in parts)
    pieces = da.Array(HighLevelGraph.from_collections(name, graph), name, (sizes,), meta=OBJECTS)
    return DaskSource(pieces, Reader(layout))


def read_part(part: Part) -> Any:
    """Return the rows of a part, as an array or an Arrow table."""
    if part.file.format == "npy":
        return np.array(open_npy(part.file)[part.span.start : part.span.stop])
    arrow = import_pyarrow()
    try:
        tables = list(_READ[part.file.format](part))
    except (arrow.lib.ArrowException, OSError) as error:
        raise SourceError(f"{part.file.path!r} broke: {error}") from error
    return arrow.concat_tables(tables)


def _found_anywhere(file: FoundFile) -> FoundFile:
    """Return a local file under its full name: a worker may have another working directory."""
    return file if file.filesystem is not None else replace(file, path=os.path.abspath(file.path))


def _parts(file: FoundFile, names: Sequence[str]) -> Iterator[Part]:
    if file.format == "npy":
        array = open_npy(file)
        most = max(1, CHUNK_BYTES // (array.dtype.itemsize * array.shape[1]))
        for start in range(0, len(array), most):
            rows = range(start, min(start + most, len(array)))
            yield Part(file, (), rows, len(rows))
        return
    schema, n_rows = TABLE_FORMATS[file.format].describe(file)
    fields = [schema.field(name) for name in names]
    if file.format == "csv":
        yield Part(file, fields, range(1), n_rows)
    elif file.format == "arrow":
        yield from _arrow_parts(file, fields)
    else:
        yield from _parquet_parts(file, fields)


def _parquet_parts(file: FoundFile, fields: Sequence[Any]) -> Iterator[Part]:
    """Put row groups together until they make a chunk."""
    with file.open_file() as handle:
        metadata = import_pyarrow("parquet").ParquetFile(handle).metadata
    first = rows = size = 0
    for group in range(metadata.num_row_groups):
        rows += metadata.row_group(group).num_rows
        size += metadata.row_group(group).total_byte_size
        if size >= CHUNK_BYTES or group == metadata.num_row_groups - 1:
            yield Part(file, fields, range(first, group + 1), rows)
            first, rows, size = group + 1, 0, 0


def _arrow_parts(file: FoundFile, fields: Sequence[Any]) -> Iterator[Part]:
    with file.open_file() as handle:
        batches = import_pyarrow("ipc").open_file(handle).num_record_batches
        most = max(1, batches * CHUNK_BYTES // max(1, handle.size()))
    for first in range(0, batches, most):
        yield Part(file, fields, range(first, min(first + most, batches)), None)


def _read_parquet(part: Part) -> Iterator[Any]:
    with part.file.open_file() as handle:
        parquet = import_pyarrow("parquet").ParquetFile(handle)
        yield parquet.read_row_groups(list(part.span), columns=[field.name for field in part.fields])


def _read_arrow(part: Part) -> Iterator[Any]:
    names = [field.name for field in part.fields]
    with part.file.open_file() as handle:
        reader = import_pyarrow("ipc").open_file(handle)
        for batch in part.span:
            yield import_pyarrow().Table.from_batches([reader.get_batch(batch)]).select(names)


def _read_csv(part: Part) -> Iterator[Any]:
    return TABLE_FORMATS["csv"].read(part.file, part.fields, 0)


_READ = {"parquet": _read_parquet, "arrow": _read_arrow, "csv": _read_csv}
