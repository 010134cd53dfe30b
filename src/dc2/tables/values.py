"""The values of a column of any frame, in one of two forms: numbers with NaN for missing values, or distinct texts."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any, Literal

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from dc2.errors import InputError, printable
from dc2.io.frames import Frame, is_numeric
from dc2.io.source import listed

BLANKS = frozenset({"", "na", "n/a", "n.a.", "#n/a", "null", "nan", "?", "-", "--"})
"""What people write for a missing value, in lower case."""

Reading = Literal["number", "time", "text", "category", "vector", "nested"]


@dataclass(frozen=True, eq=False)
class Words:
    """A column of texts."""

    levels: list[str]
    codes: NDArray[np.int64]

    @classmethod
    def of(cls, texts: list[Any]) -> Words:
        """Take texts one by one; missing values may be None, NaN or one of the usual words for a missing value.

        Examples
        --------
        >>> words = Words.of(["b", None, "a", "N/A", "b "])
        >>> words.levels, words.codes.tolist()
        (['b', 'a'], [0, -1, 1, -1, 0])
        """
        distinct: dict[Any, int] = {}
        raw = np.fromiter((distinct.setdefault(text, len(distinct)) for text in texts), np.int64, len(texts))
        return cls._joined(list(distinct), raw)

    @classmethod
    def of_series(cls, column: nw.Series[Any]) -> Words:
        """Take a column of a frame."""
        if column.implementation.is_pyarrow():  # Arrow finds the distinct texts itself, and fast
            chunks = column.to_native().combine_chunks()
            encoded = chunks if hasattr(chunks, "dictionary") else chunks.dictionary_encode("encode")
            codes = encoded.indices.cast("int64").fill_null(-1).to_numpy(zero_copy_only=False)
            return cls._joined([*encoded.dictionary.to_pylist(), None], codes)
        return cls.of(column.to_list())

    @classmethod
    def _joined(cls, distinct: list[Any], raw: NDArray[np.int64]) -> Words:
        """Strip texts, and join those that are then equal."""
        levels: dict[str, int] = {}
        code_of = np.empty(len(distinct), np.int64)
        for place, text in enumerate(distinct):
            stripped = "" if _is_missing(text) else printable(str(text).strip())
            code_of[place] = -1 if is_blank(stripped) else levels.setdefault(stripped, len(levels))
        return cls(list(levels), code_of[raw])

    def counts(self) -> NDArray[np.int64]:
        """Return the rows of each level."""
        return np.bincount(self.codes[self.codes >= 0], minlength=len(self.levels))


def _is_missing(value: Any) -> bool:
    """Return whether a value is None, NaN or pandas.NA, which cannot be compared."""
    return value is None or type(value).__name__ == "NAType" or value != value


def is_blank(text: str) -> bool:
    """Return whether a text stands for a missing value.

    Examples
    --------
    >>> is_blank("N/A"), is_blank("nadir")
    (True, False)
    """
    return text.casefold() in BLANKS


def column_values(column: nw.Series[Any]) -> tuple[Reading, NDArray[np.float64] | Words]:
    """Return the values of a column of a frame: numbers, points in time as seconds, texts, or declared categories."""
    dtype = column.dtype
    if is_numeric(dtype):
        return "number", _floats(column)
    if dtype in (nw.Date, nw.Datetime):
        return "time", _floats(column.dt.timestamp("us")) / 1e6
    if dtype == nw.Duration:
        if getattr(dtype, "time_unit", "") == "ns":
            return "number", _floats(column.dt.total_nanoseconds()) / 1e9
        return "number", _floats(column.dt.total_microseconds()) / 1e6
    if column.implementation.is_pandas() and getattr(column.to_native().dtype, "kind", "") == "c":
        raise InputError(f"Complex data not supported: column {column.name!r} holds complex numbers.")
    if dtype in (nw.List, nw.Struct, nw.Array, nw.Unknown):
        return "nested", np.full(len(column), np.nan)
    try:
        return "category" if dtype in (nw.Categorical, nw.Enum) else "text", Words.of_series(column)
    except (TypeError, NotImplementedError):  # objects that cannot be compared, such as lists in a pandas frame
        return "nested", np.full(len(column), np.nan)


def as_numbers(frame: Frame, name: str, reading: Literal["number", "time"], start: int) -> NDArray[np.float64]:
    """Return a column that is known to hold numbers or points in time; raise if a text is neither."""
    found, values = column_values(frame.get_column(name))
    if isinstance(values, np.ndarray):
        if found != reading:
            nouns = {"number": "numbers", "time": "dates"}
            raise InputError(
                f"column {name!r} held {nouns[reading]} in fit, but holds {nouns[found]} here. Convert it to "
                f"{nouns[reading]}, or fit again."
            )
        return values
    read = written_number if reading == "number" else seconds_of
    numbers = np.array([*(read(level) for level in values.levels), np.nan])
    wrong = np.flatnonzero(np.isnan(numbers[values.codes]) & (values.codes >= 0))
    if len(wrong):
        words = list(dict.fromkeys(values.levels[code] for code in values.codes[wrong]))
        raise InputError(
            f"column {name!r} holds {'numbers' if reading == 'number' else 'dates'}, but {len(wrong)} rows of this "
            f"block do not: {listed(words)}, first in row {start + wrong[0]}. Correct them, or fit with the column as "
            f"a category: TablePreparer(categories=[{name!r}]), on the command line dc2 cluster --as category:{name}."
        )
    return numbers[values.codes]


def as_words(values: NDArray[np.float64] | Words) -> Words:
    """Return the values of a column as texts, whatever they are."""
    if isinstance(values, Words):
        return values
    is_missing = ~np.isfinite(values)
    numbers, codes = np.unique(np.where(is_missing, 0.0, values), return_inverse=True)
    return Words([level_of(number) for number in numbers], np.where(is_missing, -1, codes))


def level_of(number: float) -> str:
    """Return how a number is written as a level.

    Examples
    --------
    >>> level_of(1.0), level_of(0.25)
    ('1', '0.25')
    """
    return f"{number:.17g}"


def number_name(text: str) -> str:
    """Return a text that holds a number as `level_of` writes it, and any other text as it is.

    Examples
    --------
    >>> number_name("1.0"), number_name("02139"), number_name("yes")
    ('1', '02139', 'yes')
    """
    number = number_of(text)
    return text if np.isnan(number) else level_of(number)


def number_of(text: str) -> float:
    """Return the number that a text holds, or NaN; digits that begin with 0 or hold _ are a code, not a number.

    Examples
    --------
    >>> number_of("1.5e3"), number_of("02139"), number_of("inf"), number_of("many")
    (1500.0, nan, nan, nan)
    """
    if "_" in text or (len(text) > 1 and text.isdigit() and text[0] == "0"):
        return np.nan
    try:
        number = float(text)
    except ValueError:
        return np.nan
    return number if np.isfinite(number) else np.nan


GROUPS = re.compile(r"[-+]?[1-9]\d{0,2}(,\d{3})+([.]\d*)?")
"""Digits in groups of three. No number below one is written so: where ',' is the decimal mark, some value shows it."""
SIGNS = "$€£¥%"


def written_number(text: str) -> float:
    """Return the number of a text as people write it: also with commas between groups of digits, and with a sign.

    Examples
    --------
    >>> written_number("1,103"), written_number("-$5"), written_number("12 %"), written_number("1,5")
    (1103.0, -5.0, 12.0, nan)
    """
    bare = text.translate(_WITHOUT_SIGNS).replace(" ", "") if sign_of(text) else text
    return number_of(bare.replace(",", "") if GROUPS.fullmatch(bare) else bare)


_WITHOUT_SIGNS = dict.fromkeys(map(ord, SIGNS))


def sign_of(text: str) -> str:
    """Return the sign of a currency or of percent at either end of a text; an empty text if there is none.

    Examples
    --------
    >>> sign_of("-$5"), sign_of("12 %"), sign_of("12")
    ('$', '%', '')
    """
    ends = text.lstrip("+-")
    found = {sign for sign in SIGNS if ends.startswith(sign) or ends.endswith(sign)}
    return found.pop() if len(found) == 1 else ""


def seconds_of(text: str) -> float:
    """Return the seconds since 1970 of a date or time in ISO 8601, also with slashes; NaN for other texts.

    Examples
    --------
    >>> seconds_of("1970-01-02"), seconds_of("1970-01-01 00:00:05"), seconds_of("soon")
    (86400.0, 5.0, nan)
    """
    if len(text) < len("2020-01-01") or text[4] not in "-/":
        return np.nan
    try:
        moment = datetime.fromisoformat(text.replace("/", "-", 2))
    except ValueError:
        return np.nan
    aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    return (aware - datetime.combine(date(1970, 1, 1), datetime.min.time(), UTC)).total_seconds()


def _floats(column: nw.Series[Any]) -> NDArray[np.float64]:
    values = column.to_numpy()
    if values.dtype == object:
        values = np.array([np.nan if _is_missing(value) else float(value) for value in values])
    numbers = values.astype(np.float64, copy=False)
    infinite = np.isinf(numbers)
    if infinite.any():
        raise InputError(
            f"column {column.name!r} holds infinity in {infinite.sum()} of {len(numbers)} rows of a block, such as "
            f"{numbers[infinite][0]}. Correct these values, or replace them by NaN if they are missing."
        )
    return numbers
