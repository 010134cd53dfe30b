"""The sample of a table that decides how its columns are used: the rows with the smallest hash."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dc2 import core
from dc2.core.reference import hash_at, smallest_hashes
from dc2.engines import Engine
from dc2.sources.base import Block
from dc2.sources.frame_rows import TableRows
from dc2.sources.tables import TableSource
from dc2.sources.vectors import vector_matrix
from dc2.tables.values import Reading, Words, column_values

__all__ = ["SampledColumn", "TableSample", "sample_table"]

SAMPLED_ROWS = 16_384
SEED = 20_260  # the same table always has the same sample, so decisions do not depend on luck
ALL = 2**64 - 1


@dataclass(frozen=True, eq=False)
class SampledColumn:
    """The sampled values of a column: numbers (NaN is blank), texts, or lists of numbers as rows, in their own type."""

    name: str
    reading: Reading
    values: NDArray[Any] | Words

    @property
    def blank(self) -> NDArray[np.bool_]:
        """Which rows have no value."""
        return self.values.codes < 0 if isinstance(self.values, Words) else ~np.isfinite(self.values)


@dataclass(frozen=True, eq=False)
class TableSample:
    """Sampled rows: their numbers in the table, ascending, and their columns."""

    rows: NDArray[np.int64]
    columns: list[SampledColumn]
    n_rows: int


@dataclass(frozen=True, eq=False)
class _Part:
    rows: NDArray[np.int64]
    columns: dict[str, tuple[Reading, Any]]
    n_rows: int


def sample_table(table: TableSource, engine: Engine) -> TableSample:
    """Return 16,384 rows with a weight above 0, or all, in one pass that holds about twice as many at a time."""
    picker = _Picker()
    parts: list[_Part] = []
    held = 0
    for part in engine.map(picker, table, stage="divide"):
        parts.append(part)
        held += len(part.rows)
        if held > 2 * SAMPLED_ROWS:
            parts = [_smallest(parts)]
            held = SAMPLED_ROWS
            picker.limit = int(hash_at(SEED, parts[0].rows).max())
    chosen = _smallest(parts)
    columns = [
        SampledColumn(name, reading, Words.of(values) if reading == "text" else values)
        for name, (reading, values) in chosen.columns.items()
    ]
    return TableSample(chosen.rows, columns, chosen.n_rows)


class _Picker:
    """Keeps the rows of a block whose hash is at most a limit, which may fall during the pass."""

    def __init__(self) -> None:
        self.limit = ALL

    def __call__(self, block: Block) -> _Part:
        assert isinstance(block.rows, TableRows)
        rows = core.sample_rows(SEED, block.start, block.stop, self.limit)
        if block.weights is not None:
            rows = rows[block.weights[rows - block.start] > 0]
        rows = rows[smallest_hashes(SEED, rows, SAMPLED_ROWS)]
        frame = block.rows.frame[(rows - block.start).tolist(), :]
        columns: dict[str, tuple[Reading, Any]] = {}
        for name in frame.columns:
            width = block.rows.vectors.get(name)
            if width is not None:
                columns[name] = "vector", vector_matrix(frame.get_column(name), width).copy()
                continue
            reading, values = column_values(frame.get_column(name))
            columns[name] = reading, _texts(values) if isinstance(values, Words) else values
        return _Part(rows, columns, block.n_rows)


def _texts(words: Words) -> list[str | None]:
    levels = [*words.levels, None]
    return [levels[code] for code in words.codes]


def _smallest(parts: Sequence[_Part]) -> _Part:
    rows = np.concatenate([part.rows for part in parts])
    places = smallest_hashes(SEED, rows, SAMPLED_ROWS)
    columns: dict[str, tuple[Reading, Any]] = {}
    for name, (reading, _) in parts[0].columns.items():
        values = [part.columns[name][1] for part in parts]
        if reading == "text":
            texts = [text for part in values for text in part]
            columns[name] = reading, [texts[place] for place in places]
        else:
            columns[name] = reading, np.concatenate(values)[places]
    return _Part(rows[places], columns, sum(part.n_rows for part in parts))
