"""Import pyarrow, and unpack string views and run-end encoding, which half of its functions do not support."""

from __future__ import annotations

import importlib
from functools import lru_cache
from typing import Any


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
