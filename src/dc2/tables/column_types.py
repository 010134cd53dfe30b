"""What each column of a sample is: a number, a point in time, a category, or nothing to cluster by."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from dc2.core.reference import hash_at, smallest_hashes
from dc2.engines.engine import Engine
from dc2.errors import InputError, ParameterError
from dc2.io.frame_columns import TableRows, vector_matrix
from dc2.io.resolve import TableSource
from dc2.io.source import Block, listed
from dc2.tables.column_transforms import level_codes
from dc2.tables.texts import TextTransform, learned_text
from dc2.tables.values import (
    Reading,
    Words,
    as_words,
    column_values,
    level_of,
    number_of,
    seconds_of,
    sign_of,
    written_number,
)

SAMPLED_ROWS = 16_384
SEED = 20_260  # the same table always has the same sample, so decisions do not depend on luck
ALL = 2**64 - 1


@dataclass(frozen=True, eq=False)
class SampledColumn:
    """The sampled values of a column: numbers (NaN is missing), texts, or lists of numbers in their own type.

    `written` is an example if numbers were read from texts with commas or signs.
    """

    name: str
    reading: Reading
    values: NDArray[Any] | Words
    written: str = ""

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
    copies: NDArray[np.int64] | None = None  # of each row with a key


def sample_table(table: TableSource, engine: Engine) -> TableSample:
    """Return 16,384 rows with a weight above 0, or all, in one pass that holds about twice as many at a time."""
    return table.widened(lambda: _sampled(table, engine))


def _sampled(table: TableSource, engine: Engine) -> TableSample:
    picker = _Picker()
    parts: list[_Part] = []
    held = 0
    for part in engine.map(picker, table, stage="divide", merge=_smallest):
        parts.append(part)
        held += len(part.rows)
        if held > 2 * SAMPLED_ROWS:
            parts = [_smallest(parts)]
            held = SAMPLED_ROWS
            picker.limit = int(hash_at(SEED, parts[0].rows).max())
    chosen = _repeated(_smallest(parts))
    columns = [
        SampledColumn(name, reading, Words.of(values) if isinstance(values, list) else values)
        for name, (reading, values) in chosen.columns.items()
    ]
    return TableSample(chosen.rows, columns, chosen.n_rows)


class _Picker:
    """Keeps the rows of a block whose hash is at most a limit, which may fall during the pass."""

    def __init__(self) -> None:
        self.limit = ALL

    def __call__(self, block: Block) -> _Part:
        assert isinstance(block.rows, TableRows)
        places = block.sampled(SEED, self.limit)
        if block.weights is not None:
            places = places[block.weights[places] > 0]
        copies = None
        if block.keys is not None:
            _, first, copies = np.unique(block.keys[places], return_index=True, return_counts=True)
            places = places[first]
        rows = block.identities(places)
        kept = smallest_hashes(SEED, rows, SAMPLED_ROWS)
        rows, places = rows[kept], places[kept]
        frame = block.rows.frame[places.tolist(), :]
        columns: dict[str, tuple[Reading, Any]] = {}
        for name in frame.columns:
            width = block.rows.vectors.get(name)
            if width is not None:
                columns[name] = "vector", vector_matrix(frame.get_column(name), width).copy()
                continue
            reading, values = column_values(frame.get_column(name))
            columns[name] = reading, _texts(values) if isinstance(values, Words) else values
        return _Part(rows, columns, block.n_rows, None if copies is None else copies[kept])


def _texts(words: Words) -> list[str | None]:
    levels = [*words.levels, None]
    return [levels[code] for code in words.codes]


def _smallest(parts: Sequence[_Part]) -> _Part:
    rows = np.concatenate([part.rows for part in parts])
    copies, places = None, np.arange(len(rows))
    if parts[0].copies is not None:  # rows with keys come in any order, equal ones are one row
        counts = np.concatenate([part.copies for part in parts if part.copies is not None])
        rows, places, of_row = np.unique(rows, return_index=True, return_inverse=True)
        copies = np.bincount(of_row, counts).astype(np.int64)
    kept = smallest_hashes(SEED, rows, SAMPLED_ROWS)
    whole = _Part(rows, _joined_columns(parts), sum(part.n_rows for part in parts), copies)
    return _taken(whole, kept, places[kept])


def _joined_columns(parts: Sequence[_Part]) -> dict[str, tuple[Reading, Any]]:
    columns: dict[str, tuple[Reading, Any]] = {}
    for name, (reading, first) in parts[0].columns.items():
        values = [part.columns[name][1] for part in parts]
        joined = [text for part in values for text in part] if isinstance(first, list) else np.concatenate(values)
        columns[name] = reading, joined
    return columns


def _taken(part: _Part, rows: NDArray[np.intp], places: NDArray[np.intp]) -> _Part:
    """Return some rows of a part, whose values are at these places of its columns."""
    columns = {
        name: (reading, [values[place] for place in places] if isinstance(values, list) else values[places])
        for name, (reading, values) in part.columns.items()
    }
    return _Part(part.rows[rows], columns, part.n_rows, None if part.copies is None else part.copies[rows])


def _repeated(part: _Part) -> _Part:
    """Return a part with every row as often as it occurs; in proportion and at least once, if these are too many."""
    if part.copies is None:
        return part
    copies = part.copies
    if copies.sum() > SAMPLED_ROWS:
        copies = np.maximum(copies * SAMPLED_ROWS // copies.sum(), 1)
    places = np.repeat(np.arange(len(copies)), copies)
    return _taken(part, places, places)


FEW_ROWS = 20
"""In fewer rows, it means nothing if all values differ."""
RARE_SHARE = 0.005
MOST_LEVELS = 48
MOSTLY_ONE = 0.5
FEWEST_OF_A_CLOCK = 12
"""Different hours, and different minutes."""
WITH_COMMA = re.compile(r"[-+]?[\d.]*\d,\d+(,\d+)*([.]\d+)?")
WITH_SIGN = re.compile(r"[-+]?[$€£¥]\s?[-+]?\d[\d.,]*|[-+]?\d[\d.,]*\s?[%$€£¥]")
CODE = re.compile(r"0\d+")
OTHER_DATE = re.compile(
    r"\d{1,2}[./-]\d{1,2}[./-]\d{4}.*|[A-Z][a-z]{2,8}\.? \d{1,2},? \d{4}.*|\d{1,2} [A-Z][a-z]{2,8} \d{4}.*"
)
AN_ID = "left out: an id, every row has its own"
ID_NAME = re.compile(r"(?i:(^|[_\W])(id|uuid|guid|index|key)$)|[a-z]I[dD]$")


@dataclass(frozen=True, eq=False)
class Number:
    """A column of numbers, of points in time in seconds, or of times of day in the form HHMM."""

    name: str
    reading: Literal["number", "time", "clock"]
    values: NDArray[np.float64]
    written: str = ""


@dataclass(frozen=True, eq=False)
class Category:
    """A column of levels, as in `CategoryTransform`, and the level of each sampled row."""

    name: str
    reading: Literal["level", "blank"]
    levels: tuple[str, ...]
    codes: NDArray[np.int64]
    words: str


@dataclass(frozen=True, eq=False)
class LeftOut:
    """A column that is not used, and the reason."""

    name: str
    why: str


@dataclass(frozen=True, eq=False)
class Vector:
    """A column of lists of numbers, which stay together."""

    name: str
    rows: NDArray[Any]


@dataclass(frozen=True, eq=False)
class Text:
    """A column whose texts are analysed, the place of each sampled row, and whether all texts are whole numbers."""

    part: TextTransform
    rows: NDArray[np.float64]
    are_numbers: bool = False

    @property
    def name(self) -> str:
        """Name of the column."""
        return self.part.name


Kind = Number | Vector | Category | Text | LeftOut


def kinds_of(
    sample: TableSample, categories: tuple[str, ...] = (), texts: tuple[str, ...] = (), *, numbers_stay: bool = False
) -> list[Kind]:
    """Return what each column is; the user declares some as `categories` or `texts`.

    Numbers that are mostly one value are a category, unless `numbers_stay`.
    """
    taken_as = dict.fromkeys(categories, "category") | dict.fromkeys(texts, "text")
    return [_kind_of(column, sample.rows, taken_as.get(column.name), numbers_stay) for column in sample.columns]


def _kind_of(column: SampledColumn, rows: NDArray[np.int64], taken_as: str | None, numbers_stay: bool) -> Kind:
    if column.reading == "vector":
        return _vector(column, rows, taken_as)
    if column.reading == "nested":
        return LeftOut(column.name, "left out: lists or structures, which are neither numbers nor texts nor dates")
    if column.blank.all():
        return LeftOut(column.name, "left out: every value sampled is missing")
    if taken_as is not None:
        return category_of(column) if taken_as == "category" else _text(column)
    declared = column.reading == "category"  # such as pandas' categories: their numbers are codes
    column = _read(column, rows)
    if isinstance(column.values, Words):
        return _words(column)
    return category_of(column) if declared else _number(column, column.values, numbers_stay)


def _vector(column: SampledColumn, rows: NDArray[np.int64], taken_as: str | None) -> Vector:
    values = column.values
    assert isinstance(values, np.ndarray)
    if taken_as is not None:
        raise ParameterError(f"column {column.name!r} holds lists of numbers, which cannot be a {taken_as}.")
    bad = ~np.isfinite(values).all(axis=1)
    if bad.any():
        raise InputError(
            f"column {column.name!r} has NaN or infinity in the list of row {rows[bad.argmax()]} ({bad.sum()} such "
            f"rows in a sample of {len(rows)}). Correct these rows or drop them: lists are not filled in."
        )
    return Vector(column.name, values)


def _read(column: SampledColumn, rows: NDArray[np.int64]) -> SampledColumn:
    """Read texts that are numbers or dates as such; raise if most are numbers but some are words."""
    words = column.values
    if not isinstance(words, Words):
        return column
    counts = words.counts()
    for reading, read in (("number", number_of), ("time", seconds_of)):
        numbers = np.array([read(level) for level in words.levels])
        is_one = np.isfinite(numbers)
        share = counts[is_one].sum() / counts.sum()
        if share == 1:
            return replace(column, reading=reading, values=np.append(numbers, np.nan)[words.codes])  # type: ignore[arg-type]
        if share >= 0.5 and reading == "number" and not any(map(CODE.fullmatch, words.levels)):
            is_one |= np.isfinite([written_number(level) for level in words.levels])
            if not is_one.all():
                _refuse(column.name, words, is_one, rows)
    signs = {sign_of(level) for level in words.levels} - {""}
    numbers = np.array([written_number(level) for level in words.levels])
    if len(signs) <= 1 and np.isfinite(numbers).all():
        example = next(level for level in words.levels if np.isnan(number_of(level)))
        return replace(column, reading="number", values=np.append(numbers, np.nan)[words.codes], written=example)
    _refuse_commas_and_signs(column.name, words)
    return column


def _refuse_commas_and_signs(name: str, words: Words) -> None:
    as_category = (
        f"or, if these are names, take them as a category: TablePreparer(categories=[{name!r}]), on the command line "
        f"--as category:{name}."
    )
    example = _most_are(WITH_COMMA, words)
    if example is not None:
        raise InputError(
            f"column {name!r} holds numbers with commas, such as {example!r}. Use dc2.CsvOptions(thousands=',') or "
            "decimal=',', on the command line --thousands , or --decimal , (pandas.read_csv has the same options); "
            f"{as_category}"
        )
    example = _most_are(WITH_SIGN, words)
    if example is not None:
        raise InputError(
            f"column {name!r} holds numbers with a sign before or after them, such as {example!r}, which are not read "
            f"as numbers. Remove it, such as by table[{name!r}].str.strip('%$€ ').astype(float), and pass the frame; "
            f"{as_category}"
        )


def _most_are(pattern: re.Pattern[str], words: Words) -> str | None:
    """Return an example if more than half of the rows match a pattern, else None."""
    fits = np.array([pattern.fullmatch(level) is not None for level in words.levels], dtype=np.bool_)
    counts = words.counts()
    return words.levels[int(fits.argmax())] if counts[fits].sum() > counts.sum() / 2 else None


def _refuse(name: str, words: Words, is_number: NDArray[np.bool_], rows: NDArray[np.int64]) -> None:
    wrong = np.flatnonzero((words.codes >= 0) & ~np.append(is_number, True)[words.codes])
    found = list(dict.fromkeys(words.levels[code] for code in words.codes[wrong]))
    where = ", ".join(str(row) for row in rows[wrong[:5]]) + ", ..." * (len(wrong) > 5)
    raise InputError(
        f"column {name!r} holds numbers and words: {listed(found)}, in {len(wrong)} of {len(rows)} sampled rows (rows "
        f"{where}, counted from 0). Correct them or leave the column out. If they stand for missing values, use "
        f"dc2.CsvOptions(na=({found[0]!r},)), on the command line --na {found[0]!r}. If its values are names, take it "
        f"as a category: TablePreparer(categories=[{name!r}]), on the command line --as category:{name}."
    )


def _words(column: SampledColumn) -> Kind:
    words = column.values
    assert isinstance(words, Words)
    n_there = int((~column.blank).sum())
    name, example = column.name, _most_are(OTHER_DATE, words)
    if example is not None:
        why = f"left out: dates such as {example!r} are not read; write them as 2020-12-31 to have them used"
        return LeftOut(name, why)
    if len(words.levels) == n_there > FEW_ROWS and ID_NAME.search(name):
        return LeftOut(name, AN_ID)
    if len(words.levels) > max(n_there / 2, FEW_ROWS):
        why = f"left out: text with many distinct values ({len(words.levels):,} in {n_there:,})"
        return LeftOut(name, f"{why}; TablePreparer(texts=[{name!r}]), --as text:{name}, analyses it")
    return category_of(column)


def _text(column: SampledColumn) -> Text | LeftOut:
    words = as_words(column.values)
    numbers = np.array([number_of(level) for level in words.levels])
    are_numbers = bool(np.isfinite(numbers).all())
    if are_numbers and (numbers % 1 != 0).any():
        raise ParameterError(
            f"texts=[{column.name!r}]: the column holds measured numbers, such as "
            f"{words.levels[int((numbers % 1 != 0).argmax())]!r}. Leave it out of texts (on the command line, of --as) "
            "to use it as numbers."
        )
    part = learned_text(column.name, words)
    if part is None:
        return LeftOut(column.name, "left out: its texts are all made of the same letters")
    return Text(part, part.places_of(words), are_numbers)


def category_of(column: SampledColumn) -> Category | LeftOut:
    """Keep the levels that are not rare; the others are one."""
    values = column.values
    if isinstance(values, Words):
        levels, counts = values.levels, values.counts()
    else:
        numbers, counts = np.unique(values[~column.blank], return_counts=True)
        levels = [level_of(number) for number in numbers]
    least = max(1.0, RARE_SHARE * len(column.blank))
    order = sorted(range(len(levels)), key=lambda place: (-counts[place], levels[place]))
    kept = tuple(levels[place] for place in order[:MOST_LEVELS] if counts[place] >= least)
    if len(levels) == 1 and not column.blank.any():
        return LeftOut(column.name, f"left out: always {levels[0]!r}")
    if not kept:
        return LeftOut(column.name, f"left out: {len(levels):,} categories, all of them rare")
    rare = len(levels) - len(kept)
    words = f"{len(kept)} value{'s' if len(kept) != 1 else ''}" + (f", {rare:,} rare ones joined" if rare else "")
    return Category(column.name, "level", kept, level_codes(values, kept, "level"), words)


def _number(column: SampledColumn, values: NDArray[np.float64], stays: bool) -> Kind:
    there = values[np.isfinite(values)]
    distinct, counts = np.unique(there, return_counts=True)
    if len(distinct) == 1 and len(there) == len(values):
        return LeftOut(column.name, f"left out: always {distinct[0]:g}")
    if column.reading == "number" and _is_id(column.name, there, len(distinct)):
        return LeftOut(column.name, AN_ID)
    if len(distinct) <= 2:
        return category_of(column)
    if not stays and len(there) < MOSTLY_ONE * len(values):
        words = f"mostly missing ({1 - len(there) / len(values):.0%}): counts as present or missing"
        return Category(column.name, "blank", (), np.where(column.blank, 1, 0), words)
    largest = int(counts.argmax())
    if counts[largest] > MOSTLY_ONE * len(there) and not stays:
        levels = (level_of(distinct[largest]),)
        words = f"mostly {distinct[largest]:g}: counts as that value or another"
        return Category(column.name, "level", levels, level_codes(values, levels, "level"), words)
    if column.reading == "time":
        return Number(column.name, "time", values)
    return Number(column.name, "clock" if not stays and is_clock(distinct) else "number", values, column.written)


def is_clock(distinct: NDArray[np.float64]) -> bool:
    """Return whether numbers are times of day in the form HHMM: whole, none beyond 2400, no minute beyond 59.

    Examples
    --------
    >>> is_clock(np.array([hour * 100 + minute for hour in range(6, 22) for minute in range(0, 60, 5)]))
    True
    >>> is_clock(np.arange(2400.0))
    False
    """
    hours, minutes = np.divmod(distinct, 100)
    is_time = (distinct >= 0) & (distinct <= 2400) & (minutes < 60) & (minutes % 1 == 0)
    return bool(is_time.all() and min(len(np.unique(hours)), len(np.unique(minutes))) >= FEWEST_OF_A_CLOCK)


def _is_id(name: str, values: NDArray[np.float64], n_distinct: int) -> bool:
    if n_distinct < len(values) or len(values) < FEW_ROWS or (values != np.floor(values)).any():
        return False
    steps = np.diff(values)
    return bool((steps > 0).all() or (steps < 0).all() or ID_NAME.search(name))
