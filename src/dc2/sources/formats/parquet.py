"""Parquet files: row groups."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from dc2.sources.found import FoundFile, import_pyarrow

__all__ = ["Parquet"]

READ_BUFFER_BYTES = 2**20


@dataclass(frozen=True)
class Parquet:
    """Named, typed columns; the footer says how many rows there are. Units are row groups."""

    name: str = "parquet"
    named_columns: bool = True

    def describe(self, file: FoundFile, travelling: Collection[str] = ()) -> tuple[Any, int | None]:
        """Return schema and number of rows from the footer."""
        with file.open_file() as handle:
            parquet = import_pyarrow("parquet").ParquetFile(handle)
            return parquet.schema_arrow, parquet.metadata.num_rows

    def read(self, file: FoundFile, fields: Sequence[Any], rows: int, units: range | None = None) -> Iterator[Any]:
        """Yield tables of at most this many rows."""
        table = import_pyarrow().Table
        with file.open_file() as handle:
            # Through a small buffer, one row group at a time; otherwise row groups, or the whole file, stay in memory.
            parquet = import_pyarrow("parquet").ParquetFile(handle, buffer_size=READ_BUFFER_BYTES, pre_buffer=False)
            names = [field.name for field in fields]
            for group in range(parquet.num_row_groups) if units is None else units:
                for batch in parquet.iter_batches(rows, row_groups=[group], columns=names):
                    yield table.from_batches([batch])

    def parts(self, file: FoundFile, size: int) -> Iterator[tuple[range, int | None]]:
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
