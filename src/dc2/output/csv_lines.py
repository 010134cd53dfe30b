"""Columns as lines of CSV: text exactly as it is, in quotes only where CSV needs them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from dc2.sources.paths import import_pyarrow

__all__ = ["write_csv"]


def write_csv(sink: Any, pieces: Iterable[dict[str, Any]]) -> int:
    """Write a line of names and a line per row, and return how many rows there are; what is missing is empty."""
    arrow = import_pyarrow()
    rows = 0
    for number, piece in enumerate(pieces):
        table = arrow.table(piece)
        if number == 0:
            names = [_csv_text(arrow.chunked_array([[name]])) for name in table.column_names]
            _write_lines(sink, names)
        _write_lines(sink, [_csv_text(column) for column in table.columns])
        rows += table.num_rows
    return rows


def _csv_text(column: Any) -> Any:
    """Return values as the text that stands for them between commas."""
    arrow, compute = import_pyarrow(), import_pyarrow("compute")
    if arrow.types.is_binary(column.type) or arrow.types.is_large_binary(column.type):
        raise NotImplementedError(f"{column.type} is not text")
    text = compute.cast(column, arrow.large_string())
    if arrow.types.is_integer(column.type) or arrow.types.is_floating(column.type):
        return text
    needs_quotes = compute.match_substring_regex(text, '[",\r\n]')
    if not compute.any(needs_quotes).as_py():
        return text
    doubled = compute.replace_substring(text, '"', '""')
    return compute.if_else(needs_quotes, _joined(['"', doubled, '"'], ""), text)


def _write_lines(sink: Any, columns: Sequence[Any]) -> None:
    """Write a line per row; the lines of an Arrow array lie one after the other in memory, as they do in a file."""
    lines = _joined([_joined(columns, ","), "\n"], "")
    for chunk in lines.chunks:
        _, offsets, text = chunk.buffers()
        if len(chunk):
            begins = np.frombuffer(offsets, np.int64)[chunk.offset : chunk.offset + len(chunk) + 1]
            sink.write(memoryview(text)[begins[0] : begins[-1]])


def _joined(parts: Sequence[Any], separator: str) -> Any:
    """Join texts and columns of texts row by row; a value that is missing is an empty text."""
    arrow, compute = import_pyarrow(), import_pyarrow("compute")
    texts = [
        arrow.scalar(part, arrow.large_string()) if isinstance(part, str) else part for part in (*parts, separator)
    ]
    return compute.binary_join_element_wise(*texts, null_handling="replace", null_replacement="")
