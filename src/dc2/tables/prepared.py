"""A table as a source of numbers: its blocks are prepared by the threads that need them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dc2.sources.base import Block
from dc2.sources.frame_rows import ConvertedRows, TableRows
from dc2.sources.frames import Frame
from dc2.sources.tables import TableSource
from dc2.tables.parts import TableParts

__all__ = ["PreparedRows", "PreparedSource"]


class PreparedSource:
    """Rows of a table, prepared.

    Parameters
    ----------
    table : TableSource
        The rows as they are.
    parts : TableParts
        Turns them into numbers.
    """

    def __init__(self, table: TableSource, parts: TableParts) -> None:
        self._table = table
        self._parts = parts
        self.feature_names: tuple[str, ...] | None = parts.names_out
        self.n_features: int = len(parts.names_out)
        self.dtype: np.dtype[Any] = np.dtype(np.float32)
        self.in_memory: bool = table.in_memory

    @property
    def n_rows(self) -> int | None:
        """Number of rows, or None if it is not known without a pass."""
        return self._table.n_rows

    def blocks(self, block_bytes: int) -> Iterator[Block]:
        """Start a fresh pass."""
        for block in self._table.blocks(block_bytes):
            assert isinstance(block.rows, TableRows)
            yield replace(block, rows=PreparedRows(block.rows.frame, self._parts, block.start))


class PreparedRows(ConvertedRows):
    """Rows of a frame, prepared on demand.

    Parameters
    ----------
    frame : narwhals.DataFrame
    parts : TableParts
    start : int
        Number of the first row in the table.

    Attributes
    ----------
    unseen : Counter
        How many rows have a level unseen in fit, by column; complete once all rows have been asked for.
    """

    def __init__(self, frame: Frame, parts: TableParts, start: int) -> None:
        super().__init__(frame)
        self._parts, self._start = parts, start
        self.unseen: Counter[str] = Counter()

    def _converted(self, frame: Frame) -> NDArray[Any]:
        return self._parts.apply(frame, self._start, self.unseen)

    def take(self, places: NDArray[np.integer[Any]]) -> NDArray[Any]:
        """Return the rows at some places."""
        if self._frame is None or 4 * len(places) > self._n_rows:
            chosen: NDArray[Any] = self.matrix()[places]
            return chosen
        return self._parts.apply(self._frame[places.tolist(), :], self._start)
