"""Prepared rows, or means of them, back in the units of the table, as far as possible."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dc2.tables.parts import NumberPart, TableParts
from dc2.tables.steps import on_steps

__all__ = ["in_units", "levels_of_columns", "names_in_units"]

SECONDS_OF_A_YEAR = 365.2425 * 86_400


def in_units(parts: TableParts, rows: NDArray[Any], means: bool = True) -> NDArray[np.float64]:
    """Return prepared rows, or means of them, in the units of the table.

    Numbers become what they were, and points in time become years; the column of a level becomes the share of rows
    with that level. Cycles, and components that several categories share, stay as they are; components of texts are
    put back to the scale at which a text has length 1.

    Parameters
    ----------
    parts : TableParts
        How the columns were prepared.
    rows : ndarray of shape (n_rows, n_out)
    means : bool, default=True
        Whether rows may be means; if not, values spread within steps are put back on them.
    """
    values = rows.astype(np.float64)
    for place, number in enumerate(parts.numbers):
        values[:, place] = _unscaled(number, values[:, place])
        if not means:
            values[:, place] = on_steps(values[:, place], number.step, number.fill)
    shares = _steps(parts)
    start = len(parts.numbers) + 2 * len(parts.cycles)
    values[:, start : start + len(shares)] /= shares
    start += len(shares)
    for text in parts.texts:
        values[:, start : start + text.width] /= text.factor
        start += text.width
    for vector in parts.vectors:
        values[:, start : start + vector.width] /= vector.factor
        start += vector.width
    return values


def names_in_units(parts: TableParts) -> tuple[str, ...]:
    """Return the names of the columns of `in_units`."""
    years = [f"{part.name} (year)" if part.reading == "time" else part.name for part in parts.numbers]
    return (*years, *parts.names_out[len(years) :])


def levels_of_columns(parts: TableParts) -> dict[int, str]:
    """Return the places of the columns that hold the share of rows with a level, and the table's column of each."""
    start = len(parts.numbers) + 2 * len(parts.cycles)
    return {
        start + column: part.name
        for part in parts.categories
        for column in range(part.places.shape[1])
        if np.count_nonzero(part.places[:, column]) == 1 and not _is_shared(parts, column)
    }


def _unscaled(part: NumberPart, scaled: NDArray[np.float64]) -> NDArray[np.float64]:
    if part.knots is None or part.heights is None:
        values = scaled / part.factor + part.shift
    else:
        values = np.interp(scaled, part.heights, part.knots)
    return 1970 + values / SECONDS_OF_A_YEAR if part.reading == "time" else values


def _steps(parts: TableParts) -> NDArray[np.float64]:
    """Return how far having a level moves a row, for each column of categories; 1 if levels share columns."""
    steps = np.ones(len(parts.category_names))
    for part in parts.categories:
        for column in range(part.places.shape[1]):
            there = part.places[:, column][part.places[:, column] != 0]
            if len(there) == 1 and not _is_shared(parts, column):
                steps[column] = there[0]
    return steps


def _is_shared(parts: TableParts, column: int) -> bool:
    return sum(int(np.count_nonzero(part.places[:, column])) for part in parts.categories) > 1
