"""How each file format says what is in it, and gives its rows in pieces that are never large."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from dc2.errors import SourceError
from dc2.sources.paths import FoundFile, import_pyarrow

__all__ = ["TABLE_FORMATS", "TableFormat"]

READ_BUFFER_BYTES = 2**20
CSV_BLOCK_BYTES = 2**22


@dataclass(frozen=True)
class TableFormat:
    """A kind of file that holds named columns.

    Attributes
    ----------
    describe : callable
        Returns the Arrow schema of a file, and its number of rows where that needs no pass.
    read : callable
        Takes a file, the fields to read and a number of rows; yields Arrow tables of at most so many rows
        (an Arrow file: of the rows of its record batches).
    """

    describe: Callable[[FoundFile], tuple[Any, int | None]]
    read: Callable[[FoundFile, Sequence[Any], int], Iterator[Any]]


def _describe_parquet(file: FoundFile) -> tuple[Any, int]:
    with file.open_file() as handle:
        parquet = import_pyarrow("parquet").ParquetFile(handle)
        return parquet.schema_arrow, parquet.metadata.num_rows


def _read_parquet(file: FoundFile, fields: Sequence[Any], rows: int) -> Iterator[Any]:
    table = import_pyarrow().Table
    with file.open_file() as handle:
        # Through a small buffer, one row group at a time: else whole row groups, or the file, stay in memory.
        parquet = import_pyarrow("parquet").ParquetFile(
            handle, buffer_size=READ_BUFFER_BYTES, pre_buffer=False
        )
        names = [field.name for field in fields]
        for group in range(parquet.num_row_groups):
            for batch in parquet.iter_batches(rows, row_groups=[group], columns=names):
                yield table.from_batches([batch])


def _describe_arrow(file: FoundFile) -> tuple[Any, int]:
    with file.open_file() as handle:
        reader = import_pyarrow("ipc").open_file(handle)
        return reader.schema, reader.count_rows()


def _read_arrow(file: FoundFile, fields: Sequence[Any], rows: int) -> Iterator[Any]:
    arrow, ipc = import_pyarrow(), import_pyarrow("ipc")
    with file.open_file() as handle:
        schema = ipc.open_file(handle).schema
        wanted = [schema.get_field_index(field.name) for field in fields]
        reader = ipc.open_file(handle, options=ipc.IpcReadOptions(included_fields=wanted))
        for index in range(reader.num_record_batches):
            yield arrow.Table.from_batches([reader.get_batch(index)])


def _describe_csv(file: FoundFile) -> tuple[Any, None]:
    """Infer the columns from the first rows; all numbers are taken as float64, since later ones may be."""
    arrow = import_pyarrow()
    with _open_csv(file) as reader:
        schema = reader.schema
    _check_csv_header(schema.names, file.path)
    numbers = [
        field.with_type(arrow.float64())
        if arrow.types.is_integer(field.type) or arrow.types.is_null(field.type)
        else field
        for field in schema
    ]
    return arrow.schema(numbers), None


def _read_csv(file: FoundFile, fields: Sequence[Any], rows: int) -> Iterator[Any]:
    table = import_pyarrow().Table
    with _open_csv(file, fields) as reader:
        for batch in reader:
            yield table.from_batches([batch])


def _open_csv(file: FoundFile, fields: Sequence[Any] = ()) -> Any:
    csv = import_pyarrow("csv")
    return csv.open_csv(
        file.open_stream(),
        # Without threads, which gain nothing here, errors name their line.
        read_options=csv.ReadOptions(use_threads=False, block_size=CSV_BLOCK_BYTES),
        convert_options=csv.ConvertOptions(
            include_columns=[field.name for field in fields],
            column_types={field.name: field.type for field in fields},
        ),
    )


def _check_csv_header(names: Sequence[str], path: str) -> None:
    separator = next((sign for sign in ";\t|" if len(names) == 1 and sign in names[0]), None)
    if separator is not None:
        raise SourceError(
            f"{path!r} seems to separate its columns by {separator!r}, but commas are expected. Write it with commas, "
            f"or read it with pandas.read_csv(path, sep={separator!r}) and pass the data frame."
        )
    if "" in names:
        raise SourceError(
            f"Column {list(names).index('') + 1} of {path!r} has no name: often it is the index of a pandas frame, "
            "which would be clustered like any other column. Write the file with index=False, or name the column."
        )
    if list(names) == [str(index) for index in range(len(names))]:
        return  # what pandas writes for columns without names
    try:
        [float(name) for name in names]
    except ValueError:
        return
    raise SourceError(
        f"The first line of {path!r} holds only numbers ({','.join(names)[:60]}), so its columns have no names. "
        "Add a line with the column names."
    )


TABLE_FORMATS = {
    "parquet": TableFormat(_describe_parquet, _read_parquet),
    "arrow": TableFormat(_describe_arrow, _read_arrow),
    "csv": TableFormat(_describe_csv, _read_csv),
}
