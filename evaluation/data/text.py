"""Reading text tables, plain or gzipped, block by block: memory stays near the size of the result."""

import io
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from dc2.errors import SourceError
from evaluation.data.bounded import open_bytes

__all__ = ["line_blocks", "numeric_blocks", "stack"]

_LINES_PER_BLOCK = 2_000  # small: many short-lived strings are quicker while they fit the cache


def line_blocks(path: Path, *, skip: int = 0) -> Iterator[tuple[int, list[str]]]:
    """Yield (number of the first line, lines), a block at a time; `skip` lines are left out at the top."""
    # Latin-1 maps every byte to a character: a stray byte then shows in the message about its line.
    with io.TextIOWrapper(open_bytes(path), encoding="latin-1") as lines:
        first = 1 + sum(1 for _ in islice(lines, skip))
        while block := list(islice(lines, _LINES_PER_BLOCK)):
            yield first, block
            first += len(block)


def numeric_blocks(
    path: Path, *, n_columns: int, delimiter: str | None, dtype: DTypeLike, skip: int = 0
) -> Iterator[NDArray[Any]]:
    """Yield arrays of `n_columns` columns; `delimiter=None` is any white space."""
    for first, lines in line_blocks(path, skip=skip):
        try:
            block = np.loadtxt(lines, delimiter=delimiter, dtype=dtype, ndmin=2, comments=None)
        except ValueError as error:
            raise SourceError(
                f"{path} is not a table of {n_columns} numbers a line, from line {first:,} on: {error} "
                "Fetch the file again."
            ) from error
        if block.shape[1] != n_columns:
            raise SourceError(f"{path} has {block.shape[1]} columns at line {first:,}; {n_columns} are expected.")
        yield block


def stack(blocks: Iterable[NDArray[Any]], path: Path) -> NDArray[Any]:
    """Join blocks of rows as they come, in one array that grows by an eighth whenever it is full.

    Keeping all blocks beside the result would double the peak of memory; most systems enlarge a big array in place.
    """
    result: NDArray[Any] | None = None
    n_rows = 0
    for block in blocks:
        if result is None:
            result = np.empty_like(block, order="C")
        needed = n_rows + len(block)
        if needed > len(result):
            result.resize((max(needed, len(result) * 9 // 8), *block.shape[1:]), refcheck=False)
        result[n_rows:needed] = block
        n_rows = needed
    if result is None or n_rows == 0:
        raise SourceError(f"{path} holds no usable rows. Fetch the file again.")
    result.resize((n_rows, *result.shape[1:]), refcheck=False)
    return result
