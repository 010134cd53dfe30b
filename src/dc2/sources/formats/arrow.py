"""Arrow files (also called Feather): record batches."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from dc2.sources.found import FoundFile, import_pyarrow
from dc2.sources.plain import plain_schema, plain_table

__all__ = ["Arrow"]


@dataclass(frozen=True)
class Arrow:
    """Named, typed columns. Units are record batches, which are read whole."""

    name: str = "arrow"
    named_columns: bool = True

    def describe(self, file: FoundFile, travelling: Collection[str] = ()) -> tuple[Any, int | None]:
        """Return schema and number of rows; an older pyarrow can count them only by unpacking all."""
        with file.open_file() as handle:
            reader = import_pyarrow("ipc").open_file(handle)
            return plain_schema(reader.schema), reader.count_rows() if hasattr(reader, "count_rows") else None

    def read(self, file: FoundFile, fields: Sequence[Any], rows: int, units: range | None = None) -> Iterator[Any]:
        """Yield a table for each record batch."""
        arrow, ipc = import_pyarrow(), import_pyarrow("ipc")
        with file.open_file() as handle:
            schema = ipc.open_file(handle).schema
            wanted = [schema.get_field_index(field.name) for field in fields if field.name in schema.names]
            reader = ipc.open_file(handle, options=ipc.IpcReadOptions(included_fields=wanted))
            for index in range(reader.num_record_batches) if units is None else units:
                batch = reader.get_batch(index)
                # Arrow trusts what it reads; wrong offsets in a damaged file may point anywhere in memory.
                batch.validate(full=True)
                yield plain_table(arrow.Table.from_batches([batch]))

    def parts(self, file: FoundFile, size: int) -> Iterator[tuple[range, int | None]]:
        """Group record batches, assuming that all have the same size."""
        with file.open_file() as handle:
            batches = import_pyarrow("ipc").open_file(handle).num_record_batches
            most = max(1, batches * size // max(1, handle.size()))
        for first in range(0, batches, most):
            yield range(first, min(first + most, batches)), None
