"""How columns become numbers: frozen parts that are applied to any block of rows, and saved with a model."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from dc2.errors import InputError
from dc2.estimators.columns import Columns
from dc2.model_file import saved_record
from dc2.sources.frames import Frame
from dc2.sources.vectors import check_vectors, vector_matrix, vector_names
from dc2.tables.donors import fill_blanks
from dc2.tables.steps import spread
from dc2.tables.texts import TextPart
from dc2.tables.values import Words, as_numbers, as_words, column_values

__all__ = [
    "CYCLES",
    "CategoryPart",
    "CyclePart",
    "NumberPart",
    "TableParts",
    "VectorPart",
    "cycle_places",
]

CYCLES = {"hour": 24, "weekday": 7, "month": 12}


@saved_record
@dataclass(frozen=True, eq=False)
class NumberPart:
    """A column of numbers, or of points in time in seconds: (x - shift) * factor, or a curve.

    Attributes
    ----------
    name : str
    reading : {"number", "time"}
    fill : float
        The value of blanks if no donor can fill them.
    shift, factor : float
    knots, heights : ndarray or None
        A curve through these points instead, flat beyond its ends. Logarithms are taken only when it is made, so every
        platform applies the same curve.
    step : float
        The size of the steps on which values stand, and within which they are spread; 0 if there are none.
    """

    name: str
    reading: Literal["number", "time"]
    fill: float
    shift: float
    factor: float
    knots: NDArray[np.float64] | None = None
    heights: NDArray[np.float64] | None = None
    step: float = 0.0

    def check(self) -> None:
        """Raise if the parts do not fit together; called when read from a model file."""
        numbers = np.array([self.fill, self.shift, self.factor, self.step])
        curve = (self.knots, self.heights)
        if not np.isfinite(numbers).all() or self.step < 0 or (self.knots is None) != (self.heights is None):
            raise InputError("the parts of a NumberPart do not fit together.")
        for line in curve:
            if line is not None and not (
                line.dtype == np.float64
                and line.ndim == 1
                and len(line) > 0
                and self.knots is not None
                and line.shape == self.knots.shape
                and np.isfinite(line).all()
            ):
                raise InputError("the curve of a NumberPart does not fit together.")

    def scaled(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return scaled numbers."""
        filled = np.where(np.isfinite(values), values, self.fill)
        if self.knots is None or self.heights is None:
            return (filled - self.shift) * self.factor
        return np.interp(filled, self.knots, self.heights)


@saved_record
@dataclass(frozen=True, eq=False)
class VectorPart:
    """A column of lists of numbers: all times one factor, which keeps their angles.

    Attributes
    ----------
    name : str
    width : int
        Numbers in a list.
    factor : float
    """

    name: str
    width: int
    factor: float

    def check(self) -> None:
        """Raise if the width or the factor makes no sense; called when read from a model file."""
        if self.width < 1 or not np.isfinite(self.factor):
            raise InputError("the parts of a VectorPart do not fit together.")

    def scaled(self, rows: NDArray[Any]) -> NDArray[Any]:
        """Return scaled lists; narrow numbers as float32."""
        wide = rows.astype(np.result_type(rows.dtype, np.float32), copy=False)
        return wide if self.factor == 1.0 else wide * self.factor

    def apply(self, frame: Frame, start: int, out: NDArray[Any]) -> None:
        """Write the numbers of a block's lists into `out`."""
        check_vectors(frame, {self.name: self.width}, "the table", start)
        out[:] = self.scaled(vector_matrix(frame.get_column(self.name), self.width))


@saved_record
@dataclass(frozen=True, eq=False)
class CyclePart:
    """The hour, the weekday or the month of a point in time, as a place on a circle."""

    name: str
    cycle: str
    circle: NDArray[np.float64]

    def check(self) -> None:
        """Raise unless the circle has a place for each step; called when read from a model file."""
        if self.circle.shape != (CYCLES.get(self.cycle, -1) + 1, 2) or not np.isfinite(self.circle).all():
            raise InputError("the parts of a CyclePart do not fit together.")

    def apply(self, frame: Frame, start: int, out: NDArray[Any]) -> None:
        """Write the two columns of a block into `out`; blanks lie in the middle."""
        out[:] = self.circle[cycle_places(self.cycle, as_numbers(frame, self.name, "time", start))]


@saved_record
@dataclass(frozen=True, eq=False)
class CategoryPart:
    """A column of levels, each with a place in a space that all categories share.

    Attributes
    ----------
    name : str
    reading : {"level", "blank"}
        Whether the levels are the values of the column, or only say whether there is a value.
    levels : tuple of str
        The levels with places of their own, in the first lines of `places`.
    places : ndarray of shape (n_levels + 2, n_out)
        The last two lines are for all other levels, and for blanks.
    """

    name: str
    reading: Literal["level", "blank"]
    levels: tuple[str, ...]
    places: NDArray[np.float64]

    def check(self) -> None:
        """Raise if levels and places do not fit together; called when read from a model file."""
        if self.places.ndim != 2 or len(self.places) != len(self.levels) + 2 or not np.isfinite(self.places).all():
            raise InputError("the parts of a CategoryPart do not fit together.")

    def codes(self, frame: Frame) -> NDArray[np.int64]:
        """Return the line of `places` of each row."""
        return level_codes(column_values(frame.get_column(self.name))[1], self.levels, self.reading)

    @property
    def tells_unseen(self) -> bool:
        """Whether every level without a line of its own is new; if not, fit joined rare levels to "other"."""
        return self.reading == "level" and not self.places[-2].any()

    def add(self, frame: Frame, out: NDArray[Any], unseen: Counter[str] | None = None) -> None:
        """Add the places of a block's rows to `out`, and count those with a level unseen in fit in `unseen`."""
        codes = self.codes(frame)
        out += self.places[codes]
        if unseen is not None and self.tells_unseen:
            n_unseen = int(np.count_nonzero(codes == len(self.levels)))
            if n_unseen:
                unseen[self.name] += n_unseen


def level_codes(values: NDArray[np.float64] | Words, levels: tuple[str, ...], reading: str) -> NDArray[np.int64]:
    """Return the number of each row's level: len(levels) for others, len(levels) + 1 for blanks."""
    other, blank = len(levels), len(levels) + 1
    if reading == "blank":
        is_missing = values.codes < 0 if isinstance(values, Words) else ~np.isfinite(values)
        return np.where(is_missing, blank, other)
    words = as_words(values)
    known = {level: place for place, level in enumerate(levels)}
    place_of = np.array([*(known.get(level, other) for level in words.levels), blank], np.int64)
    return place_of[words.codes]


def cycle_places(cycle: str, seconds: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the hour, weekday (0 is Monday) or month (0 is January) of points in time; blanks get one number more.

    Examples
    --------
    >>> cycle_places("weekday", np.array([0.0, 86_400.0, np.nan])).tolist()
    [3, 4, 7]
    """
    is_there = np.isfinite(seconds)
    whole = np.floor(np.where(is_there, seconds, 0.0)).astype(np.int64)
    if cycle == "hour":
        places = whole // 3600 % 24
    elif cycle == "weekday":
        places = (whole // 86_400 + 3) % 7
    else:
        places = whole.astype("datetime64[s]").astype("datetime64[M]").astype(np.int64) % 12
    return np.where(is_there, places, CYCLES[cycle])


@saved_record
@dataclass(frozen=True, eq=False)
class TableParts:
    """Everything a fitted preparer has learned.

    Attributes
    ----------
    columns : Columns
        The columns of the table.
    numbers, cycles, categories : tuple
        The parts made from them.
    category_names : tuple of str
        Names of the columns that all categories become together.
    decisions : tuple of (str, str)
        Each column of the table, and what was done with it, in words.
    vectors : tuple of VectorPart
        Lists of numbers, whose columns come last.
    donors : ndarray of shape (n_donors, n_numbers)
        Rows without blanks, scaled, that fill the blanks of others.
    texts : tuple of TextPart
        Analysed texts, whose columns come before those of lists.
    """

    columns: Columns
    numbers: tuple[NumberPart, ...]
    cycles: tuple[CyclePart, ...]
    categories: tuple[CategoryPart, ...]
    category_names: tuple[str, ...]
    decisions: tuple[tuple[str, str], ...]
    vectors: tuple[VectorPart, ...]
    donors: NDArray[np.float64]
    texts: tuple[TextPart, ...] = ()

    def check(self) -> None:
        """Raise if the parts do not fit together; called when read from a model file."""
        width = len(self.category_names)
        if (
            self.donors.dtype != np.float64
            or self.donors.ndim != 2
            or self.donors.shape[1] != len(self.numbers)
            or not np.isfinite(self.donors).all()
        ):
            raise InputError("the donors of a TableParts do not fit together.")
        known = set(self.columns.names or ())
        if any(part.places.shape[1] != width for part in self.categories) or not self._in_use <= known:
            raise InputError("the parts of a TableParts do not fit together.")

    @property
    def names_out(self) -> tuple[str, ...]:
        """Names of the columns of numbers."""
        cycles = [f"{part.name} ({part.cycle} {end})" for part in self.cycles for end in ("sin", "cos")]
        vectors = [name for part in self.vectors for name in vector_names(part.name, part.width)]
        texts = [name for part in self.texts for name in part.components]
        return (*(part.name for part in self.numbers), *cycles, *self.category_names, *texts, *vectors)

    @property
    def used(self) -> tuple[str, ...]:
        """Names of the columns of the table that are not left out, in its order."""
        names = self._in_use
        return tuple(name for name in self.columns.names or () if name in names)

    @property
    def _in_use(self) -> set[str]:
        names = {part.name for part in self.numbers} | {part.name for part in self.cycles}
        names |= {part.name for part in self.categories} | {part.name for part in self.vectors}
        return names | {part.name for part in self.texts}

    def apply(self, frame: Frame, start: int = 0, unseen: Counter[str] | None = None) -> NDArray[np.float32]:
        """Return the rows of a block as numbers.

        Parameters
        ----------
        frame : narwhals.DataFrame
        start : int
            Number of the first row, for messages.
        unseen : Counter, optional
            Counts the rows with a level unseen in fit, by column.
        """
        n_plain = len(self.names_out) - sum(part.width for part in self.vectors)
        out = np.zeros((len(frame), n_plain))
        place = len(self.numbers)
        blank = np.zeros((len(frame), place), dtype=np.bool_, order="F")
        values = [as_numbers(frame, number.name, number.reading, start) for number in self.numbers]
        values = spread(values, [number.step for number in self.numbers])
        for column, number in enumerate(self.numbers):
            out[:, column] = number.scaled(values[column])
            blank[:, column] = ~np.isfinite(values[column])
        if len(self.donors):
            fill_blanks(out[:, :place], blank, self.donors)
        for cycle in self.cycles:
            cycle.apply(frame, start, out[:, place : place + 2])
            place += 2
        for category in self.categories:
            category.add(frame, out[:, place : place + len(self.category_names)], unseen)
        place += len(self.category_names)
        for text in self.texts:
            text.apply(frame, out[:, place : place + text.width])
            place += text.width
        return self._with_vectors(out, frame, start) if self.vectors else out.astype(np.float32)

    def _with_vectors(self, plain: NDArray[Any], frame: Frame, start: int) -> NDArray[np.float32]:
        rows = np.empty((len(plain), len(self.names_out)), np.float32)
        place = plain.shape[1]
        rows[:, :place] = plain
        for vector in self.vectors:
            vector.apply(frame, start, rows[:, place : place + vector.width])
            place += vector.width
        return rows
