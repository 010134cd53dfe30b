"""Rows that come only once, or not twice in the same order, are kept: few in memory, many in a temporary file."""

from __future__ import annotations

import atexit
import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from dc2.errors import InputError, InputTypeError, SourceError
from dc2.sources.found import import_pyarrow
from dc2.sources.plain import plain_table

__all__ = ["kept_table"]

MOST_IN_MEMORY = 2**26
"""Bytes held in memory; larger data go to a file, whose pages the system loads and drops as needed."""


def kept_table(data: Any) -> Any:
    """Return the rows of a stream or a query as an Arrow table.

    Parameters
    ----------
    data : object
        Anything with the Arrow stream interface (a pyarrow.RecordBatchReader, a DuckDB relation, ...) or, like a
        polars.LazyFrame, with the method ``sink_ipc``.
    """
    arrow = import_pyarrow()
    try:
        if hasattr(data, "sink_ipc"):
            return plain_table(_sunk(data))
        reader = arrow.RecordBatchReader.from_stream(data)
        table = plain_table(_kept(reader.schema, reader))
    except (arrow.lib.ArrowException, OSError) as error:
        raise SourceError(f"The {_kind(data)} broke while it was read: {error}") from error
    if table.num_rows == 0:
        raise InputError(
            f"The {_kind(data)} gave no rows: Found array with 0 sample(s) while a minimum of 1 is required. If it can "
            "be read only once, it was used up before: read it into a table first, as read_all() of a reader does, and "
            "pass that."
        )
    return table


def _kind(data: Any) -> str:
    return f"{type(data).__module__.partition('.')[0]}.{type(data).__name__}"


def _kept(schema: Any, batches: Iterable[Any]) -> Any:
    arrow = import_pyarrow()
    held: list[Any] = []
    size = 0
    remaining = iter(batches)
    for batch in remaining:
        held.append(batch)
        size += batch.get_total_buffer_size()  # which an older pyarrow knows of views too
        if size > MOST_IN_MEMORY:
            break
    else:
        return arrow.Table.from_batches(held, schema)
    with _temporary_file() as path:
        with import_pyarrow("ipc").new_file(path, schema) as writer:
            while held:
                writer.write_batch(held.pop(0))
            for batch in remaining:
                writer.write_batch(batch)
        return _mapped(path)


def _sunk(query: Any) -> Any:
    with _temporary_file() as path:
        try:
            query.sink_ipc(path, compression="uncompressed")
        except Exception as error:
            raise InputTypeError(f"The {_kind(query)} could not be computed: {error}") from error
        return _mapped(path)


def _mapped(path: str) -> Any:
    return import_pyarrow("ipc").open_file(import_pyarrow().memory_map(path)).read_all()


@contextmanager
def _temporary_file() -> Iterator[str]:
    """Yield the path of a file that is removed at the end; memory maps of it stay valid."""
    handle, path = tempfile.mkstemp(prefix="dc2-", suffix=".arrow")
    os.close(handle)
    try:
        yield path
    finally:
        try:
            os.unlink(path)
        except PermissionError:  # on Windows a mapped file cannot be removed
            atexit.register(Path(path).unlink, missing_ok=True)
