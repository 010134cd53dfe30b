"""Labels to a file, in row order, as they come."""

from __future__ import annotations

import io
import os
import shutil
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from dc2.errors import InputError, ParameterError
from dc2.output.csv_lines import write_csv
from dc2.output.target import check_target, renamed_at_the_end
from dc2.sources.paths import import_pyarrow

__all__ = ["check_columns", "check_output_path", "check_room", "write_labels"]

Labels = NDArray[Any] | Mapping[str, NDArray[Any]]

# The fewest bytes of a label in a file; compressed ones may take next to nothing.
LEAST_BYTES = {".parquet": 0, ".arrow": 4, ".feather": 4, ".csv": 2, ".csv.gz": 0, ".npy": 4}


def write_labels(
    path: str | os.PathLike[str],
    pieces: Iterable[Labels | tuple[Labels, Any]],
    column: str = "label",
) -> int:
    """Write labels to a file and return how many rows it has.

    The suffix says the format: .parquet, .arrow or .feather, .csv, .csv.gz, or .npy (labels alone). Rows are
    written under a temporary name in the same folder, which is renamed at the end; on any error or interrupt
    it is removed and a file that was there before stays as it was.

    Parameters
    ----------
    path : path
        The file to write; an existing one is replaced.
    pieces : iterable
        The labels of consecutive rows: an array, or a mapping of column names to arrays; or a pair of that and
        a pyarrow table of columns to write before it (`Block.extra`), or None.
    column : str, default="label"
        Name of the column, where the labels are an array.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     rows = write_labels(Path(folder, "labels.npy"), [np.array([0, 1]), np.array([1])])
    ...     print(rows, np.load(Path(folder, "labels.npy")))
    3 [0 1 1]
    """
    target = check_output_path(path)
    tables = (_columns(piece, column) for piece in pieces)
    with renamed_at_the_end(target) as temporary, open(temporary, "xb") as sink:
        rows = _written(_suffix(target), sink, tables)
        if rows == 0:
            raise InputError(f"There are no labels to write to {str(target)!r}.")
    return rows


def check_output_path(path: str | os.PathLike[str]) -> Path:
    """Return the path if labels can be written there, else raise; call it before any work.

    Examples
    --------
    >>> check_output_path("labels.xlsx")
    Traceback (most recent call last):
    ...
    dc2.errors.ParameterError: Labels cannot be written to 'labels.xlsx': its suffix should be one of .parquet, \
.arrow, .feather, .csv, .csv.gz, .npy.
    """
    suffix = _suffix(Path(path))
    if not suffix:
        raise ParameterError(
            f"Labels cannot be written to {os.fspath(path)!r}: its suffix should be one of {', '.join(_WRITERS)}."
        )
    if suffix != ".npy":
        import_pyarrow()
    return check_target(path, "Labels")


def check_room(path: Path, n_rows: int | None) -> None:
    """Raise if the disk cannot hold so many labels, however well they pack; call it before any work.

    Examples
    --------
    >>> check_room(Path("labels.npy"), 10**18)
    Traceback (most recent call last):
    ...
    dc2.errors.ParameterError: Labels of 1000000000000000000 rows cannot be written to 'labels.npy': they take at \
least 4.0e+18 bytes, and ... are free.
    """
    if n_rows is None:
        return
    least = int(n_rows * LEAST_BYTES[_suffix(path)])
    free = shutil.disk_usage(path.parent).free
    if least > free:
        raise ParameterError(
            f"Labels of {n_rows} rows cannot be written to {str(path)!r}: they take at least {least:.1e} bytes, and "
            f"{free:.1e} are free."
        )


def check_columns(path: str | os.PathLike[str], columns: Any) -> None:
    """Raise if the file's format cannot hold columns of these types; call it before any work.

    Parameters
    ----------
    path : path
        Where labels are to be written.
    columns : pyarrow.Table or None
        Some rows of the columns to be written beside them (`Block.extra`).
    """
    if columns is None:
        return
    suffix = _suffix(Path(path))
    for field in columns.schema:
        try:
            _written(suffix, io.BytesIO(), [{field.name: columns.column(field.name)[:0]}])
        except InputError as error:
            raise ParameterError(
                f"Column {field.name!r} is of type {field.type}, which a {suffix} file cannot hold. Write .parquet, or "
                "leave the column out."
            ) from error


def _written(suffix: str, sink: Any, tables: Iterable[dict[str, Any]]) -> int:
    """Write tables and return how many rows they have."""
    if suffix == ".npy":
        return _write_npy(sink, tables)
    try:
        return _WRITERS[suffix](sink, tables)
    except (
        import_pyarrow().lib.ArrowInvalid,
        import_pyarrow().lib.ArrowTypeError,
        NotImplementedError,
    ) as error:
        raise InputError(f"A {suffix} file cannot hold these columns: {error}") from error


def _columns(piece: Labels | tuple[Labels, Any], column: str) -> dict[str, Any]:
    """Return the columns of a piece: those that travelled with the rows, then the labels."""
    labels, extra = piece if isinstance(piece, tuple) else (piece, None)
    named = dict(labels) if isinstance(labels, Mapping) else {column: labels}
    if extra is None:
        return named
    clash = [name for name in named if name in extra.column_names]
    if clash:
        raise ParameterError(f"The data has a column {clash[0]!r} already; write the labels under another name.")
    return {name: extra.column(name) for name in extra.column_names} | named


def _suffix(path: Path) -> str:
    return next((suffix for suffix in _WRITERS if path.name.lower().endswith(suffix)), "")


def _write_tables(open_writer: Callable[[Any, Any], Any], sink: Any, pieces: Iterable[dict[str, Any]]) -> int:
    """Write Arrow tables through a writer that is opened when the columns are known."""
    arrow = import_pyarrow()
    writer = None
    rows = 0
    try:
        for piece in pieces:
            table = arrow.table(piece)
            if writer is None:
                writer = open_writer(sink, table.schema)
            writer.write_table(table)
            rows += table.num_rows
    finally:
        if writer is not None:
            writer.close()
    return rows


def _write_parquet(sink: BinaryIO, pieces: Iterable[dict[str, Any]]) -> int:
    return _write_tables(import_pyarrow("parquet").ParquetWriter, sink, pieces)


def _write_arrow(sink: BinaryIO, pieces: Iterable[dict[str, Any]]) -> int:
    return _write_tables(import_pyarrow("ipc").new_file, sink, pieces)


def _write_packed_csv(sink: BinaryIO, pieces: Iterable[dict[str, Any]]) -> int:
    with import_pyarrow().CompressedOutputStream(sink, "gzip") as packed:
        return write_csv(packed, pieces)


def _write_npy(sink: BinaryIO, pieces: Iterable[dict[str, Any]]) -> int:
    """Write a 1-D array piece by piece; its header, which has room for any length, is written again at the end."""
    dtype: np.dtype[Any] | None = None
    rows = 0
    for piece in pieces:
        if len(piece) != 1:
            raise ParameterError(f"A .npy file holds labels alone, not the columns {list(piece)}; use .parquet.")
        labels = np.ascontiguousarray(next(iter(piece.values())))
        if dtype is None:
            dtype = labels.dtype
            _write_npy_header(sink, dtype, 0)
        sink.write(labels.astype(dtype, copy=False).tobytes())
        rows += len(labels)
    if dtype is not None:
        sink.seek(0)
        _write_npy_header(sink, dtype, rows)
    return rows


def _write_npy_header(sink: BinaryIO, dtype: np.dtype[Any], rows: int) -> None:
    header = {"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": (rows,)}
    np.lib.format.write_array_header_1_0(sink, header)


_WRITERS: dict[str, Callable[[Any, Iterable[dict[str, Any]]], int]] = {
    ".parquet": _write_parquet,
    ".arrow": _write_arrow,
    ".feather": _write_arrow,
    ".csv": write_csv,
    ".csv.gz": _write_packed_csv,
    ".npy": _write_npy,
}
