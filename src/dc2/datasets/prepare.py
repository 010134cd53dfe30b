"""What the generators share: a check of the number of rows, and rows in blocks."""

from collections.abc import Iterator

import numpy as np

from dc2.errors import ParameterError

__all__ = ["check_rows", "row_blocks"]

_ROWS_PER_BLOCK = 1 << 14


def check_rows(n: int) -> int:
    """Return `n`, a number of rows to generate, if it is one."""
    if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 1:
        raise ParameterError(f"n={n!r} rows cannot be generated; n must be a whole number of at least 1.")
    return int(n)


def row_blocks(n: int) -> Iterator[slice]:
    """Yield slices that cut `n` rows into blocks small enough to stay in a processor's cache."""
    for start in range(0, n, _ROWS_PER_BLOCK):
        yield slice(start, min(start + _ROWS_PER_BLOCK, n))
