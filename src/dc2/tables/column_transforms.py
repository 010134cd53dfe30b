"""How columns become numbers: frozen parts that are applied to any block of rows, and saved with a model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import KDTree

from dc2.core.reference import hash_at
from dc2.errors import InputError
from dc2.io.columns import Columns
from dc2.io.frame_columns import check_vectors, vector_matrix, vector_names
from dc2.io.frames import Frame
from dc2.io.model_file import saved_record
from dc2.tables.texts import TextTransform
from dc2.tables.values import Words, as_numbers, as_words, column_values, number_name

FEWEST_VALUES = 3
ROWS_PER_VALUE = 4  # on average; with fewer rows per value, they do not pile up


def step_of(values: NDArray[np.float64]) -> float:
    """Return the step that divides all differences of values; 0 if there is none, or if rows do not pile up.

    Examples
    --------
    >>> step_of(np.repeat([1.0, 2.0, 5.0], 10)), step_of(np.repeat([0.0, 0.5, 1.5], 10)), step_of(np.arange(100.0))
    (1.0, 0.5, 0.0)
    """
    there = np.sort(values[np.isfinite(values)])
    new = np.append(True, there[1:] != there[:-1])
    distinct = there[new]
    if not FEWEST_VALUES <= len(distinct) <= len(there) / ROWS_PER_VALUE:
        return 0.0
    gaps = np.diff(distinct)
    step = float(gaps.min())
    steps = gaps / step
    return step if (np.abs(steps - np.rint(steps)) < 1e-6).all() else 0.0


def spread(columns: Sequence[NDArray[np.float64]], steps: Sequence[float]) -> list[NDArray[np.float64]]:
    """Return the columns, with those on steps jittered within their steps; missing values stay missing.

    Examples
    --------
    >>> ratings = np.array([1.0, 1.0, 2.0])
    >>> alone, other = spread([ratings, np.array([0.1, 0.2, 0.3])], [1.0, 0.0])
    >>> np.rint(alone).tolist(), bool(alone[0] != alone[1]), other.tolist()
    ([1.0, 1.0, 2.0], True, [0.1, 0.2, 0.3])
    """
    if not any(steps):
        return list(columns)
    key = np.zeros(len(columns[0]), np.uint64)
    for column in columns:
        # Adding 0 turns -0 into 0; missing values are not compared by their bits.
        bits = np.where(np.isfinite(column), column + 0.0, 0.0).view(np.uint64)
        key = hash_at(0, key ^ bits)
    answer = []
    for number, (column, step) in enumerate(zip(columns, steps, strict=True)):
        if step:
            drawn = (hash_at(number + 1, key) >> np.uint64(11)).astype(np.float64) * 2.0**-53
            answer.append(column + step * (drawn - 0.5))
        else:
            answer.append(column)
    return answer


def on_steps(values: NDArray[np.float64], step: float, one: float) -> NDArray[np.float64]:
    """Put spread values back on their steps; `one` is any value on a step."""
    return one + np.rint((values - one) / step) * step if step else values


FEWEST, MOST = 16, 1024
_TOGETHER = 128  # rows compared with all complete rows at a time: their distances stay in the cache
_WORTH_A_TREE = 64  # rows that lack the same columns
_NEARER = 1.0 + 1e-9  # a factor larger than any rounding of distances


def complete_rows_of(columns: list[NDArray[np.float64]], blank: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return some rows without missing values, at even steps; none if there are too few, or if nothing is missing."""
    whole = np.flatnonzero(~blank.any(axis=1))
    if not blank.any() or len(whole) < FEWEST:
        return np.empty((0, len(columns)))
    chosen = whole[:: -(-len(whole) // MOST)]
    return np.stack([column[chosen] for column in columns], axis=1)


def impute(rows: NDArray[np.float64], blank: NDArray[np.bool_], complete_rows: NDArray[np.float64]) -> None:
    """Fill each missing value with the value of the complete row that is nearest in the columns that are not missing.

    Among equally near complete rows, the first is taken. Rows with only missing values stay as they are.

    Examples
    --------
    >>> rows = np.array([[1.0, 0.0], [9.0, 0.0]])
    >>> impute(rows, np.array([[False, True], [False, True]]), np.array([[0.0, -5.0], [10.0, 5.0]]))
    >>> rows.tolist()
    [[1.0, -5.0], [9.0, 5.0]]
    """
    for some, lacks in _alike(blank):
        nearest = _nearest(rows[np.ix_(some, np.flatnonzero(~lacks))], complete_rows[:, ~lacks])
        rows[np.ix_(some, np.flatnonzero(lacks))] = complete_rows[nearest][:, lacks]


def _alike(blank: NDArray[np.bool_]) -> Iterator[tuple[NDArray[np.intp], NDArray[np.bool_]]]:
    """Yield groups of rows that lack the same columns, and those columns; not rows that lack none or all."""
    columns = np.ascontiguousarray(blank.T)  # as they were made: few long lines are soon compared
    lacking = np.flatnonzero(columns.any(axis=0) & ~columns.all(axis=0))
    if not len(lacking):
        return
    keys = np.unique(np.packbits(blank[lacking], axis=1), axis=0, return_inverse=True)[1].ravel()
    order = np.argsort(keys, kind="stable")
    changes = np.flatnonzero(np.diff(keys[order])) + 1
    for some in np.split(lacking[order], changes):
        yield some, blank[some[0]]


def _nearest(rows: NDArray[np.float64], complete_rows: NDArray[np.float64]) -> NDArray[np.intp]:
    """Return the nearest complete row of each row, found by a tree.

    If two are almost equally near, all complete rows are compared: the result does not depend on how the tree rounds.
    """
    if len(rows) < _WORTH_A_TREE:
        return _tried(rows, complete_rows)
    distances, found = map(np.asarray, KDTree(complete_rows).query(rows, 2))
    nearest: NDArray[np.intp] = found[:, 0].astype(np.intp)
    unsure = np.flatnonzero(~(distances[:, 0] * _NEARER < distances[:, 1]) | ~np.isfinite(distances).all(axis=1))
    nearest[unsure] = _tried(rows[unsure], complete_rows)
    return nearest


def _tried(rows: NDArray[np.float64], complete_rows: NDArray[np.float64]) -> NDArray[np.intp]:
    nearest = np.empty(len(rows), np.intp)
    for start in range(0, len(rows), _TOGETHER):
        some = rows[start : start + _TOGETHER]
        squared = np.zeros((len(some), len(complete_rows)))
        for own, theirs in zip(some.T, complete_rows.T, strict=True):  # in order: sums must be the same everywhere
            squared += (own[:, None] - theirs) ** 2
        nearest[start : start + _TOGETHER] = squared.argmin(axis=1)
    return nearest


CYCLES = {"hour": 24, "weekday": 7, "month": 12, "time of day": 24}
"""Their steps; the last one belongs to numbers in the form HHMM, the others to points in time."""


@saved_record
@dataclass(frozen=True, eq=False)
class NumberTransform:
    """A column of numbers, or of points in time in seconds: (x - shift) * factor, or a curve."""

    name: str
    reading: Literal["number", "time"]
    fill: float
    shift: float
    factor: float
    knots: NDArray[np.float64] | None = None
    heights: NDArray[np.float64] | None = None
    step: float = 0.0
    missing: float = 0.0

    def check(self) -> None:
        """Raise if the parts do not fit together; called when read from a model file."""
        numbers = np.array([self.fill, self.shift, self.factor, self.step, self.missing])
        curve = (self.knots, self.heights)
        if not np.isfinite(numbers).all() or self.step < 0 or (self.knots is None) != (self.heights is None):
            raise InputError("the parts of a NumberTransform do not fit together.")
        for line in curve:
            if line is not None and not (
                line.dtype == np.float64
                and line.ndim == 1
                and len(line) > 0
                and self.knots is not None
                and line.shape == self.knots.shape
                and np.isfinite(line).all()
            ):
                raise InputError("the curve of a NumberTransform does not fit together.")

    def scaled(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return scaled numbers."""
        filled = np.where(np.isfinite(values), values, self.fill)
        if self.knots is None or self.heights is None:
            return (filled - self.shift) * self.factor
        return np.interp(filled, self.knots, self.heights)


@saved_record
@dataclass(frozen=True, eq=False)
class VectorTransform:
    """A column of lists of numbers: all times one factor, which keeps their angles."""

    name: str
    width: int
    factor: float

    def check(self) -> None:
        """Raise if the width or the factor makes no sense; called when read from a model file."""
        if self.width < 1 or not np.isfinite(self.factor):
            raise InputError("the parts of a VectorTransform do not fit together.")

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
class CycleTransform:
    """The hour, the weekday or the month of a point in time, or the hour of a time HHMM, as a place on a circle."""

    name: str
    cycle: str
    circle: NDArray[np.float64]

    def check(self) -> None:
        """Raise unless the circle has a place for each step; called when read from a model file."""
        if self.circle.shape != (CYCLES.get(self.cycle, -1) + 1, 2) or not np.isfinite(self.circle).all():
            raise InputError("the parts of a CycleTransform do not fit together.")

    def apply(self, frame: Frame, start: int, out: NDArray[Any]) -> None:
        """Write the two columns of a block into `out`; missing values are in the middle."""
        reading: Literal["number", "time"] = "number" if self.cycle == "time of day" else "time"
        out[:] = self.circle[cycle_places(self.cycle, as_numbers(frame, self.name, reading, start))]


@saved_record
@dataclass(frozen=True, eq=False)
class CategoryTransform:
    """A column of levels, each with a place in a space that all categories share."""

    name: str
    reading: Literal["level", "blank"]
    levels: tuple[str, ...]
    places: NDArray[np.float64]

    def check(self) -> None:
        """Raise if levels and places do not fit together; called when read from a model file."""
        if self.places.ndim != 2 or len(self.places) != len(self.levels) + 2 or not np.isfinite(self.places).all():
            raise InputError("the parts of a CategoryTransform do not fit together.")

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
    """Return the number of each row's level: len(levels) for others, len(levels) + 1 for missing values.

    Fit and `predict` both find levels here. A level that is not found as it is written is looked up as a number, so
    1, "1" and "1.0" are the same.

    Examples
    --------
    >>> level_codes(Words.of(["1.0", "0", "b", None]), ("1", "b"), "level").tolist()
    [0, 2, 1, 3]
    """
    other, blank = len(levels), len(levels) + 1
    if reading == "blank":
        is_missing = values.codes < 0 if isinstance(values, Words) else ~np.isfinite(values)
        return np.where(is_missing, blank, other)
    words = as_words(values)
    as_written = {level: place for place, level in enumerate(levels)}
    as_number = {number_name(level): place for place, level in reversed(list(enumerate(levels)))}
    found = (as_written.get(level, as_number.get(number_name(level), other)) for level in words.levels)
    place_of = np.array([*found, blank], np.int64)
    return place_of[words.codes]


def cycle_places(cycle: str, seconds: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the hour, weekday (0 is Monday) or month (0 is January) of values; missing ones get one more.

    Values are seconds since 1970; for the time of day they are numbers in the form HHMM.

    Examples
    --------
    >>> cycle_places("weekday", np.array([0.0, 86_400.0, np.nan])).tolist()
    [3, 4, 7]
    """
    is_there = np.isfinite(seconds)
    whole = np.floor(np.where(is_there, seconds, 0.0)).astype(np.int64)
    if cycle == "time of day":
        places = whole // 100 % 24
    elif cycle == "hour":
        places = whole // 3600 % 24
    elif cycle == "weekday":
        places = (whole // 86_400 + 3) % 7
    else:
        places = whole.astype("datetime64[s]").astype("datetime64[M]").astype(np.int64) % 12
    return np.where(is_there, places, CYCLES[cycle])


@saved_record
@dataclass(frozen=True, eq=False)
class TableTransforms:
    """Everything a fitted preparer has learned."""

    columns: Columns
    numbers: tuple[NumberTransform, ...]
    cycles: tuple[CycleTransform, ...]
    categories: tuple[CategoryTransform, ...]
    category_names: tuple[str, ...]
    decisions: tuple[tuple[str, str], ...]
    vectors: tuple[VectorTransform, ...]
    complete_rows: NDArray[np.float64]
    texts: tuple[TextTransform, ...] = ()

    def check(self) -> None:
        """Raise if the parts do not fit together; called when read from a model file."""
        width = len(self.category_names)
        if (
            self.complete_rows.dtype != np.float64
            or self.complete_rows.ndim != 2
            or self.complete_rows.shape[1] != len(self.numbers)
            or not np.isfinite(self.complete_rows).all()
        ):
            raise InputError("the complete rows of a TableTransforms do not fit together.")
        known = set(self.columns.names or ())
        if any(part.places.shape[1] != width for part in self.categories) or not self._in_use <= known:
            raise InputError("the parts of a TableTransforms do not fit together.")

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

    def known(self, frame: Frame) -> NDArray[np.bool_]:
        """Return which rows of a block have a value in each column of numbers."""
        there = [np.isfinite(as_numbers(frame, number.name, number.reading, 0)) for number in self.numbers]
        return np.stack(there, axis=1)

    def apply(self, frame: Frame, start: int = 0, unseen: Counter[str] | None = None) -> NDArray[np.float32]:
        """Return the rows of a block as numbers."""
        n_plain = len(self.names_out) - sum(part.width for part in self.vectors)
        out = np.zeros((len(frame), n_plain))
        place = len(self.numbers)
        blank = np.zeros((len(frame), place), dtype=np.bool_, order="F")
        values = [as_numbers(frame, number.name, number.reading, start) for number in self.numbers]
        values = spread(values, [number.step for number in self.numbers])
        for column, number in enumerate(self.numbers):
            out[:, column] = number.scaled(values[column])
            blank[:, column] = ~np.isfinite(values[column])
        if len(self.complete_rows):
            impute(out[:, :place], blank, self.complete_rows)
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
