"""Every pass must give the same rows: checksums of the first pass are kept, and compared with later ones."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from dc2.errors import SourceError

P = TypeVar("P", bound=Any)

STRETCH_ROWS = 2**16
"""Rows per checksum. Stretches do not depend on how rows are cut into blocks, which may differ between passes."""


class Unchanged:
    """Checks that the rows of files and streams do not change.

    Later passes are compared with the first one, or with as much of it as was read.

    Examples
    --------
    >>> unchanged = Unchanged()
    >>> rows = np.arange(6.0).reshape(3, 2)
    >>> sum(len(piece) for piece in unchanged.watched(0, "X", [rows], lambda piece: [piece]))
    3
    >>> list(unchanged.watched(0, "X", [rows[::-1]], lambda piece: [piece]))
    Traceback (most recent call last):
    ...
    dc2.errors.SourceError: X has other values in its rows 0 to 2 than in the pass before. Every pass must give the \
same rows: the data must not change while it is read.
    """

    def __init__(self) -> None:
        self._known: dict[Hashable, tuple[int, list[int]]] = {}

    def watched(
        self, key: Hashable, where: str, pieces: Iterable[P], columns: Callable[[P], list[NDArray[Any]]]
    ) -> Iterator[P]:
        """Yield pieces; raise at the end of a stretch of rows if it has changed."""
        start, rows, sums = 0, 0, list[int]()
        for piece in pieces:
            values = columns(piece)
            taken = 0
            while taken < len(piece):
                step = min(STRETCH_ROWS - rows, len(piece) - taken)
                parts = [np.ascontiguousarray(column[taken : taken + step]) for column in values]
                sums = sums or [0] * len(parts)
                sums = [zlib.crc32(part.data, old) for part, old in zip(parts, sums, strict=True)]
                taken += step
                rows += step
                if rows == STRETCH_ROWS:
                    self._compare((key, start), where, start, rows, sums)
                    start, rows, sums = start + rows, 0, []
            yield piece
        self._compare((key, start), where, start, rows, sums)

    def _compare(self, key: Hashable, where: str, start: int, rows: int, sums: list[int]) -> None:
        known_rows, known_sums = self._known.setdefault(key, (rows, sums))
        if rows != known_rows:
            # A stretch that is not full is the last one, so here the rows have ended.
            counts = f"gave {start + rows} rows, but there were {'at least ' * (known_rows == STRETCH_ROWS)}"
            raise SourceError(f"{where} {counts}{start + known_rows} before. {_SAME_ROWS}")
        if sums != known_sums:
            place = f"rows {start} to {start + rows - 1}"
            raise SourceError(f"{where} has other values in its {place} than in the pass before. {_SAME_ROWS}")


_SAME_ROWS = "Every pass must give the same rows: the data must not change while it is read."
