"""Arrow columns in a form that all functions of Arrow support: string views and run-end encoding are unpacked."""

from __future__ import annotations

from typing import Any

from dc2.sources.found import import_pyarrow

__all__ = ["plain_schema", "plain_table"]


def plain_schema(schema: Any) -> Any:
    """Return the schema of a table after `plain_table`."""
    return import_pyarrow().schema([field.with_type(_plain(field.type)) for field in schema])


def plain_table(table: Any) -> Any:
    """Return a table without string views and run-end encoding, which half of Arrow's functions do not support.

    Examples
    --------
    >>> import pyarrow as pa
    >>> table = pa.table({"word": pa.array(["a", "b"], pa.string_view())})
    >>> plain_table(table).schema.field("word").type
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


def _plain(dtype: Any) -> Any:
    arrow = import_pyarrow()
    if arrow.types.is_run_end_encoded(dtype):
        return _plain(dtype.value_type)
    views = {arrow.string_view(): arrow.large_string(), arrow.binary_view(): arrow.large_binary()}
    return views.get(dtype, dtype)
