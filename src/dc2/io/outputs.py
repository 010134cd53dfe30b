"""Labels to a file, in row order, as they come."""

from __future__ import annotations

import io
import os
import secrets
import shutil
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from dc2.errors import InputError, ParameterError
from dc2.io.frame_columns import import_pyarrow


def check_target(path: str | os.PathLike[str], what: str) -> Path:
    """Return the path if a file can be written there, else raise; `what` names its contents in the message.

    An existing file is replaced at the end, so it must be a regular file: a link, a device or a pipe would be lost.

    Examples
    --------
    >>> check_target("no/such/folder/report.html", "A report")
    Traceback (most recent call last):
    ...
    dc2.errors.ParameterError: A report cannot be written to 'no/such/folder/report.html': there is no such folder.
    """
    target = Path(path).expanduser()
    problem = _problem(target)
    if problem:
        raise ParameterError(f"{what} cannot be written to {str(target)!r}: {problem}.")
    return target


def _problem(target: Path) -> str | None:
    if not os.path.isdir(target.parent):
        return "there is no such folder"
    if os.path.isdir(target):
        return "it is a folder; add a file name"
    if len(os.fsencode(target.name)) > _longest_name(target.parent):
        return f"the name has {len(target.name)} characters, more than a file can have here"
    if os.path.islink(target):
        return "it is a link, which would be replaced; name the file that it leads to"
    if os.path.exists(target) and not os.path.isfile(target):
        return "it is not a regular file, and would be replaced"
    if not os.access(target.parent, os.W_OK | os.X_OK):
        return "files cannot be made in its folder; choose another"
    return None


def _longest_name(folder: Path) -> int:
    try:
        return os.pathconf(folder, "PC_NAME_MAX")
    except (AttributeError, OSError, ValueError):  # Windows, or a file system that does not say
        return 255


@contextmanager
def renamed_at_the_end(target: Path, *, overwrite: bool = True) -> Iterator[Path]:
    """Give an empty temporary file in the same folder, renamed to the target at the end; on an error it is removed.

    It has the permissions of the file that it replaces. Without `overwrite`, a file that has appeared under the name of
    the target meanwhile stays, and a ParameterError is raised.
    """
    # A name may be as long as names can be, so the temporary one has only its beginning.
    temporary = target.with_name(f".{target.name[:40]}.{secrets.token_hex(4)}.partial")
    try:
        temporary.touch(exist_ok=False)
        if overwrite and target.exists():
            temporary.chmod(stat.S_IMODE(target.stat().st_mode))
        yield temporary
        if not overwrite:
            _claim(temporary, target)
        os.replace(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)


def _claim(temporary: Path, target: Path) -> None:
    """Give a file its second name, or raise if that is taken; of several processes one succeeds."""
    try:
        try:
            os.link(temporary, target)
        except FileExistsError:
            raise
        except OSError:  # a file system without links: an empty file holds the name until it is replaced
            target.touch(exist_ok=False)
    except FileExistsError as error:
        problem = f"{str(target)!r} appeared while dc2 worked, and is kept. Choose another name, or overwrite it."
        raise ParameterError(f"overwrite=False: {problem}", parameter="overwrite", problem=problem) from error


def write_whole(path: Path, text: str, *, overwrite: bool = True) -> None:
    """Write a text; the file appears whole or not at all."""
    with renamed_at_the_end(path, overwrite=overwrite) as temporary:
        # Names of files need not be text: bytes that are none are spelled out.
        temporary.write_text(text, encoding="utf-8", errors="backslashreplace", newline="\n")


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


Labels = NDArray[Any] | Mapping[str, NDArray[Any]]

# The fewest bytes of a label in a file; compressed ones may take next to nothing.
LEAST_BYTES = {".parquet": 0, ".arrow": 4, ".feather": 4, ".csv": 2, ".csv.gz": 0, ".npy": 4}


def write_labels(
    path: str | os.PathLike[str],
    pieces: Iterable[Labels | tuple[Labels, Any]],
    column: str = "label",
    *,
    overwrite: bool = True,
) -> int:
    """Write labels to a file and return how many rows it has.

    The suffix says the format: .parquet, .arrow or .feather, .csv, .csv.gz, or .npy (labels alone). Rows are
    written under a temporary name in the same folder, which is renamed at the end; on any error or interrupt
    it is removed and a file that was there before stays as it was.

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
    with renamed_at_the_end(target, overwrite=overwrite) as temporary, open(temporary, "wb") as sink:
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
    """Raise if the file's format cannot hold columns of these types; call it before any work."""
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
    except (import_pyarrow().lib.ArrowInvalid, import_pyarrow().lib.ArrowTypeError, NotImplementedError) as error:
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
