"""What can be told of data files without reading their rows."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from dc2.cli.failures import CommandError
from dc2.sources.checks import listed
from dc2.sources.formats import CsvOptions
from dc2.sources.paths import FoundFile, find_files

__all__ = ["data_facts"]


def data_facts(paths: Sequence[str], csv: CsvOptions | None = None) -> dict[str, Any]:
    """Return the number of files and rows, and the type of every column."""
    files = find_files(list(paths), csv)
    columns: dict[str, str] = {}
    n_rows: int | None = 0
    for file in files:
        found, rows = _columns(file)
        columns = columns or found
        other = sorted(set(found) ^ set(columns))
        if other:
            raise CommandError(
                f"{file.path!r} and {files[0].path!r} have different columns: {listed(other)} is only in one of them. "
                "Look at them one at a time, and choose columns that both have with --columns."
            )
        n_rows = None if rows is None or n_rows is None else n_rows + rows
    return {
        "files": len(files),
        "format": ", ".join(sorted({file.format.name for file in files})),
        "rows": n_rows,
        "columns": len(columns),
        "column_types": columns,
    }


def _columns(file: FoundFile) -> tuple[dict[str, str], int | None]:
    """Return the columns of a file and their types, and its rows where that needs no pass."""
    try:
        if file.format.name == "npy":
            array = np.lib.format.open_memmap(file.path, mode="r")
            if array.ndim not in (1, 2):
                raise ValueError(f"it holds an array of shape {array.shape}, and no rows")
            width = array.shape[1] if array.ndim == 2 else 1
            return {str(index): str(array.dtype) for index in range(width)}, len(array)
        schema, rows = file.format.describe(file)
    except Exception as error:  # a damaged header breaks readers in many ways
        raise CommandError(f"{file.path!r} cannot be read as {file.format.name}: {error}") from error
    return {field.name: str(field.type) for field in schema}, rows
