"""JSON lines: one object per line, whose keys are the columns."""

from __future__ import annotations

import io
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from dc2.sources.formats.encoding import telling_encoding
from dc2.sources.found import FoundFile, import_pyarrow

__all__ = ["JsonLines"]

BLOCK_BYTES = 2**22


@dataclass(frozen=True)
class JsonLines:
    """Named columns, with types inferred from the values. The whole file is one unit."""

    name: str = "jsonl"
    named_columns: bool = True

    def describe(self, file: FoundFile, travelling: Collection[str] = ()) -> tuple[Any, int | None]:
        """Infer the columns from the first lines; numbers are read as float64, since later ones may need it."""
        arrow = import_pyarrow()
        with telling_encoding(file, can_be_given=False):
            schema = _parsed(next(_blocks(file), b"")).schema
            return arrow.schema([_field(arrow, field, field.name in travelling) for field in schema]), None

    def read(self, file: FoundFile, fields: Sequence[Any], rows: int, units: range | None = None) -> Iterator[Any]:
        """Yield a table for some megabytes of text at a time."""
        schema = import_pyarrow().schema(list(fields))
        for block in _blocks(file):
            with telling_encoding(file, can_be_given=False):
                table = _parsed(block, explicit_schema=schema, unexpected_field_behavior="ignore")
            yield table

    def parts(self, file: FoundFile, size: int) -> Iterator[tuple[range, int | None]]:
        """Give the file as one part."""
        yield range(1), None


def _blocks(file: FoundFile) -> Iterator[bytes]:
    """Yield the text in blocks of whole lines."""
    with file.open_stream() as stream:
        rest = b""
        while text := stream.read(BLOCK_BYTES):
            whole, newline, end = text.rpartition(b"\n")
            if newline:
                yield rest + whole + newline
                rest = end
            else:
                rest += end
        if rest.strip():
            yield rest


def _parsed(text: bytes, **options: Any) -> Any:
    json = import_pyarrow("json")
    text.decode()  # Arrow does not look whether it can be
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
