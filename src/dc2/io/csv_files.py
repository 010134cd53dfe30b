"""Text with separators: CSV and TSV."""

from __future__ import annotations

import codecs
import csv
import io
import itertools
import re
import warnings
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from dc2.errors import ColumnTypeError, ParameterError, PreparationNote, SourceError
from dc2.io.frame_columns import import_pyarrow
from dc2.io.source import listed

if TYPE_CHECKING:
    from dc2.io.formats import DataFile

PIECE_BYTES = 2**20
AROUND = 12
MOST_SHOWN = 60
"""Bytes that are shown on either side of one that cannot be read."""
MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


@contextmanager
def telling_encoding(file: DataFile, encoding: str = "utf-8", *, can_be_given: bool) -> Iterator[None]:
    """Where reading a file fails because of its encoding, say so instead of what came of it."""
    try:
        yield
    except (import_pyarrow().ArrowInvalid, UnicodeError) as error:
        found = _what_is_wrong(file, encoding)
        if found is None and not isinstance(error, UnicodeError):
            raise
        where, guess = found or (str(error), None)
        advice = "" if guess is None else f" {_what_to_do(guess, can_be_given)}"
        problem = f"{file.path!r} is not {encoding.upper()}: {where}."
        if guess is None or not can_be_given:
            raise SourceError(f"{problem}{advice}") from error
        raise SourceError(f"{problem}{advice}", parameter="encoding", value=guess, problem=problem) from error


def _what_to_do(guess: str, can_be_given: bool) -> str:
    if not can_be_given:
        return f"Convert it first, such as by iconv -f {guess.replace('latin-1', 'iso-8859-1')} -t utf-8."
    return (
        f"If it is {guess}, read it with dc2.as_source(path, csv=dc2.CsvOptions(encoding={guess!r})), or with "
        f"pandas.read_csv(path, encoding={guess!r})."
    )


def _what_is_wrong(file: DataFile, encoding: str) -> tuple[str, str | None] | None:
    """Return where a file cannot be what it is read as, and what it may be, if known; None where nothing shows."""
    with file.open_stream() as stream:
        first = bytes(stream.read(AROUND))
    is_utf8 = codecs.lookup(encoding).name == "utf-8"
    if is_utf8 and first[:2] in MARKS:
        return f"it begins with {first[:2].hex(' ')}, the mark of UTF-16", "utf-16"
    if is_utf8 and b"\0" in first:
        guess = "utf-16-be" if first[0] == 0 else "utf-16-le"
        return f"every other byte is 0, as in {guess.upper()}", guess
    return _first_unreadable(file, encoding)


def _first_unreadable(file: DataFile, encoding: str) -> tuple[str, str | None] | None:
    """Return the line and the bytes that cannot be decoded."""
    decoder: Any = codecs.getincrementaldecoder(encoding)()
    line = 1
    with file.open_stream() as stream:
        while True:
            piece = bytes(stream.read(PIECE_BYTES))
            kept = decoder.getstate()[0]
            try:
                decoder.decode(piece, final=not piece)
            except UnicodeDecodeError as error:
                return _shown(error, line, encoding)
            except UnicodeError as error:  # such as UTF-16 without its mark
                return str(error), None
            if not piece:
                return None
            line += (kept + piece).count(b"\n") - kept.count(b"\n")


def _shown(error: UnicodeDecodeError, line: int, encoding: str) -> tuple[str, str | None]:
    text, place = error.object, error.start
    line += text[:place].count(b"\n")
    begin = max(text.rfind(b"\n", 0, place) + 1, place - AROUND)
    around = text[begin : place + AROUND].split(b"\n")[0].rstrip(b"\r")
    # cp1252 has characters where Latin-1 has none, but not everywhere.
    guess = "cp1252" if 0x80 <= text[place] < 0xA0 else "latin-1"
    if codecs.lookup(encoding).name == codecs.lookup(guess).name:
        guess = "latin-1"
    shown = f"line {line} has the byte 0x{text[place]:02x} in {around.decode(guess, 'replace')!r} (as {guess})"
    return shown, guess


BLOCK_BYTES = 2**22


SHOWN_BYTES = 2**16
"""The beginning of a file, which shows how it is written."""
MARKS_BETWEEN = ",;\t|"
QUOTED = re.compile(r'"[^"]*"')
NUMBER = re.compile(r"[-+]?(\d+[.,]?\d*|[.,]\d+)([eE][-+]?\d+)?")
DECIMAL_COMMA, DECIMAL_POINT = re.compile(r'"?[-+]?\d+(,\d+)+"?'), re.compile(r'"?[-+]?\d+[.]\d+"?')
GROUPED = re.compile(r'"?[-+]?[1-9]\d{0,2}(,\d{3})+"?')
NOT_OF_FILES = ("idna", "punycode")  # encodings of names in the internet


@dataclass(frozen=True)
class CsvOptions:
    """How to read text files that differ from the usual.

    Attributes
    ----------
    delimiter : str or None
        The character between columns. By default a comma, and in .tsv files a tab.
    header : bool
        Whether the first line holds the names of the columns; if not, they are called x0, x1, ...
    encoding : str
        Text encoding of the file, by any of Python's names: ``"latin-1"``, ``"cp1252"``, ``"utf-16"``, ...
    decimal : str
        The character before decimals: ``","`` in many countries.
    thousands : str or None
        The character between groups of three digits, as in ``1,103``.
    na : tuple of str
        Texts that mean a missing value, beside the empty one, ``NA``, ``NaN``, ``null``, ``?`` and the like.

    Examples
    --------
    >>> CsvOptions(delimiter=";", decimal=",", thousands=".").na
    ()
    """

    delimiter: str | None = None
    header: bool = True
    encoding: str = "utf-8"
    decimal: str = "."
    thousands: str | None = None
    na: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        try:
            "".encode(self.encoding)
            is_known = self.encoding not in NOT_OF_FILES
        except (LookupError, TypeError, ValueError):
            is_known = False
        if not is_known:
            raise _impossible(
                "encoding",
                self.encoding,
                "not known. Give one that Python knows, such as 'utf-8', 'latin-1', 'cp1252' or 'utf-16'.",
            )
        if self.delimiter is not None and (len(self.delimiter) != 1 or ord(self.delimiter) > 127):
            raise _impossible("delimiter", self.delimiter, "not one ASCII character. Give one, such as ';'.")
        if self.decimal not in (".", ","):
            raise _impossible("decimal", self.decimal, "not a decimal mark. Give '.' or ','.")
        if self.thousands is not None and (len(self.thousands) != 1 or self.thousands in f"{self.decimal}0123456789-+"):
            raise _impossible(
                "thousands",
                self.thousands,
                f"not a mark between digits. Give one character that is not the decimal mark {self.decimal!r}.",
            )
        if isinstance(self.na, str) or not all(isinstance(text, str) for text in self.na):
            raise _impossible("na", self.na, "not a tuple of texts. Give one, such as ('-999', 'missing').")


def _impossible(parameter: str, value: Any, problem: str) -> ParameterError:
    return ParameterError(f"{parameter}={value!r}: {problem}", parameter=parameter, value=value, problem=problem)


@dataclass(frozen=True)
class Csv:
    """Named columns without types: all numbers are read as float64, and columns that only travel as text.

    The whole file is one unit.
    """

    separator: str = ","
    options: CsvOptions = CsvOptions()
    name: str = "csv"
    named_columns: bool = True

    def describe(self, file: DataFile, travelling: Collection[str] = ()) -> tuple[Any, int | None]:
        """Infer the columns from the first rows."""
        own, read_as = self._as_written(file)
        if read_as:
            warnings.warn(f"{file.path!r} is read with {read_as}.", PreparationNote, stacklevel=2)
        try:
            with own._telling_encoding(file):
                return own._described(file, travelling), None
        except import_pyarrow().ArrowInvalid as error:
            own._raise_ragged(file, str(error))
            raise

    def _as_written(self, file: DataFile) -> tuple[Csv, str]:
        """Return this format with what the first lines show if nothing else was asked for, and a sentence on it."""
        with file.open_stream() as stream:
            lines = bytes(stream.read(SHOWN_BYTES)).decode(self.options.encoding, "replace").splitlines()
        found: dict[str, Any] = {}
        first, later = (lines[0] if lines else "").lstrip("\ufeff"), lines[1:-1] or lines[1:]
        delimiter = self._delimiter
        if self.options.delimiter is None:
            others = [mark for mark in MARKS_BETWEEN if mark in QUOTED.sub("", first)]
            if len(others) == 1 and others != [delimiter]:
                found["delimiter"] = delimiter = others[0]
        if delimiter != "," and self.options.decimal == "." and self.options.thousands is None:
            values = [value for line in later for value in line.split(delimiter)]
            commas = [value for value in values if DECIMAL_COMMA.fullmatch(value)]
            if not all(map(GROUPED.fullmatch, commas)) and not any(map(DECIMAL_POINT.fullmatch, values)):
                found["decimal"] = ","
        names = [name.strip().strip('"') for name in first.split(delimiter)]
        # Counted names are what pandas writes for columns without names.
        is_counted = names == [str(place) for place in range(len(names))]
        if self.options.header and later and not is_counted and all(map(NUMBER.fullmatch, names)):
            found["header"] = False
        said = ", ".join(f"{name}={value!r}" for name, value in found.items())
        return replace(self, options=replace(self.options, **found)), said

    def _described(self, file: DataFile, travelling: Collection[str]) -> Any:
        arrow = import_pyarrow()
        try:
            opened = self._open(file)
        except arrow.ArrowInvalid as error:
            if "Expected 1 columns" in str(error):  # such as commas in numbers between semicolons
                self._check_separator(self._first_line(file), file.path)
            raise
        grouped: set[str] = set()
        with opened as reader:
            schema = reader.schema
            if self.options.thousands is not None:
                first_rows = next(iter(reader), None)
                grouped = (
                    set()
                    if first_rows is None
                    else {
                        field.name
                        for field, column in zip(schema, first_rows.columns, strict=True)
                        if arrow.types.is_string(field.type) and self._as_numbers(column) is not None
                    }
                )
            if not self.options.header and len(schema) == 1 and arrow.types.is_string(schema.field(0).type):
                first = next((value for batch in reader for value in batch.column(0).to_pylist()), None)
                self._check_separator(first or "", file.path)
        names = [self._outside(name) for name in schema.names]
        if any("\0" in name for name in names):
            raise UnicodeError("a name holds a byte that is 0")
        if self.options.header:
            self._check_header(names, file.path)
        named = [place for place, name in enumerate(names) if name]
        if len(named) < len(names):
            _say_unnamed(file.path, names, arrow.types.is_null(schema.field(len(names) - 1).type))
        types = [
            arrow.string()
            if name in travelling
            else arrow.float64()
            if field.name in grouped
            else _widest(arrow, field.type)
            for name, field in zip(names, schema, strict=True)
        ]
        return arrow.schema([(names[place], types[place]) for place in named])

    def read(self, file: DataFile, fields: Sequence[Any], rows: int, units: range | None = None) -> Iterator[Any]:
        """Yield a table for some megabytes of text at a time."""
        return self._as_written(file)[0]._read(file, fields)

    def _read(self, file: DataFile, fields: Sequence[Any]) -> Iterator[Any]:
        arrow = import_pyarrow()
        numbers = [place for place, field in enumerate(fields) if arrow.types.is_floating(field.type)]
        grouped = numbers if self.options.thousands is not None else []
        as_read = [field.with_type(arrow.string()) if i in grouped else field for i, field in enumerate(fields)]
        done = 0
        try:
            with self._telling_encoding(file), self._open(file, as_read) as reader:
                for batch in reader:
                    table = arrow.Table.from_batches([batch]).rename_columns([field.name for field in fields])
                    for place in grouped:
                        values = self._as_numbers(batch.column(place))
                        if values is None:
                            raise arrow.ArrowInvalid(f"CSV conversion error after {done} rows")
                        table = table.set_column(place, fields[place], values)
                    done += len(table)
                    yield table
        except arrow.ArrowInvalid as error:
            if "CSV conversion error" in str(error):
                self._raise_misfits(file, fields)
            self._raise_ragged(file, str(error))
            raise

    def _as_numbers(self, column: Any) -> Any | None:
        """Return texts as numbers; None if one is not a number as the options write it."""
        arrow, compute = import_pyarrow(), import_pyarrow("compute")
        digits = compute.utf8_trim_whitespace(column)
        missing = compute.is_in(digits, value_set=arrow.array(self._missing, digits.type))
        digits = compute.if_else(missing, arrow.scalar(None, digits.type), digits)
        mark, decimal = self.options.thousands, self.options.decimal
        if mark is not None:
            # Groups of three digits only: with thousands="," the text "1,5" is not 15.
            group, point = re.escape(mark), re.escape(decimal)
            shape = rf"^[+-]?([0-9]{{1,3}}({group}[0-9]{{3}})+({point}[0-9]*)?|[^{group}]*)$"
            if not compute.all(compute.match_substring_regex(digits, shape), min_count=0).as_py():
                return None
            digits = compute.replace_substring(digits, mark, "")
        if decimal != ".":
            digits = compute.replace_substring(digits, decimal, ".")
        try:
            return digits.cast(arrow.float64())
        except arrow.ArrowInvalid:
            return None

    def _raise_misfits(self, file: DataFile, fields: Sequence[Any]) -> None:
        """Raise the error that names all columns with values that are not numbers, and the place of the first one."""
        arrow = import_pyarrow()
        numbers = [field for field in fields if not arrow.types.is_string(field.type)]
        misfits: dict[str, tuple[int, str]] = {}
        done = 0
        with self._open(file, [field.with_type(arrow.string()) for field in numbers]) as reader:
            for batch in reader:
                for field, column in zip(numbers, batch.columns, strict=True):
                    if field.name not in misfits and self._converted(column, field.type) is None:
                        one_by_one = (self._converted(column[i : i + 1], field.type) for i in range(len(column)))
                        row = next(i for i, value in enumerate(one_by_one) if value is None)
                        misfits[field.name] = done + row, column[row].as_py()
                done += len(batch)
        if misfits:
            name, (row, value) = min(misfits.items(), key=lambda item: item[1][0])
            others = "" if len(misfits) == 1 else f" {len(misfits) - 1} other columns have such values too."
            type_ = next(field.type for field in numbers if field.name == name)
            before = "numbers" if arrow.types.is_floating(type_) else f"values of type {type_}"
            problem = (
                f"{file.path!r} has {value!r} in column {name!r}, line {self._line_of(file, row)}, but {before} "
                f"before.{others}"
            )
            raise ColumnTypeError(
                f"{problem} Correct the values, leave the column out with columns= or drop= of dc2.as_source, or say "
                "how they are written with dc2.CsvOptions(na=..., thousands=..., decimal=...).",
                tuple(misfits),
                problem=problem,
            )

    def _raise_ragged(self, file: DataFile, problem: str) -> None:
        """Raise the error that shows the line with too few or too many values, if this is the problem."""
        found = re.search(r"Row #(\d+): Expected (\d+) columns, got (\d+): (.*)", problem, re.DOTALL)
        if found is None:
            return
        row, expected, got, text = found.groups()
        line = self._line_of(file, int(row) - 1 - self.options.header)
        shown = text if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]}..."
        raise SourceError(
            f"{file.path!r} has {got} values in line {line}, but {expected} columns: {shown!r}. Correct the line, put "
            f"values that hold {self._delimiter!r} in double quotes, or delete lines above the one with the names."
        )

    def _converted(self, column: Any, type_: Any) -> Any | None:
        arrow = import_pyarrow()
        if arrow.types.is_floating(type_):
            return self._as_numbers(column)
        try:
            return column.cast(type_)
        except (arrow.ArrowInvalid, arrow.ArrowNotImplementedError):
            return None

    def _line_of(self, file: DataFile, row: int) -> int:
        """Return the line on which a row ends, the first being 1; texts in quotes may have line breaks."""
        with file.open_stream() as stream, io.TextIOWrapper(stream, self.options.encoding, newline="") as text:
            lines = csv.reader(text, delimiter=self._delimiter)
            next(itertools.islice(filter(None, lines), row + self.options.header, None), None)
            return lines.line_num

    def parts(self, file: DataFile, size: int) -> Iterator[tuple[range, int | None]]:
        """Give the file as one part: to know where a line begins one must read all before it."""
        yield range(1), None

    def _telling_encoding(self, file: DataFile) -> Any:
        return telling_encoding(file, self.options.encoding, can_be_given=True)

    def _open(self, file: DataFile, fields: Sequence[Any] = ()) -> Any:
        arrow_csv = import_pyarrow("csv")
        names = [self._inside(field.name) for field in fields]
        return arrow_csv.open_csv(
            file.open_stream(),
            # Without threads, which would gain nothing here, errors name their line.
            read_options=arrow_csv.ReadOptions(
                use_threads=False,
                block_size=BLOCK_BYTES,
                encoding=self.options.encoding,
                autogenerate_column_names=not self.options.header,
            ),
            parse_options=arrow_csv.ParseOptions(delimiter=self._delimiter, newlines_in_values=True),
            convert_options=arrow_csv.ConvertOptions(
                include_columns=names,
                column_types={name: field.type for name, field in zip(names, fields, strict=True)},
                null_values=self._missing,
                strings_can_be_null=bool(self.options.na),
                quoted_strings_can_be_null=True,
                decimal_point=self.options.decimal,
            ),
        )

    @property
    def _missing(self) -> list[str]:
        return [*import_pyarrow("csv").ConvertOptions().null_values, "?", *self.options.na]

    @property
    def _delimiter(self) -> str:
        return self.options.delimiter or self.separator

    def _outside(self, name: str) -> str:
        """Return our name of a column: Arrow calls unnamed ones f0, f1, ..."""
        return name if self.options.header else f"x{name[1:]}"

    def _inside(self, name: str) -> str:
        return name if self.options.header else f"f{name[1:]}"

    def _check_header(self, names: Sequence[str], path: str) -> None:
        if len(names) == 1:
            self._check_separator(names[0], path)
        if not any(names):
            raise SourceError(f"The first line of {path!r} names no column. Add a line with names.")

    def _check_separator(self, only: str, path: str) -> None:
        """Raise if the only value of a line contains another common separator."""
        other = next((sign for sign in ",;\t|" if sign in only), None)
        if other is not None:
            problem = f"{path!r} seems to separate its columns by {other!r}, but {self._delimiter!r} is expected."
            raise SourceError(
                f"{problem} Read it with dc2.as_source(path, csv=dc2.CsvOptions(delimiter={other!r})).",
                parameter="delimiter",
                value=other,
                problem=problem,
            )

    def _first_line(self, file: DataFile) -> str:
        with file.open_stream() as stream:
            return bytes(stream.read(1 << 16)).decode(self.options.encoding, "replace").split("\n", 1)[0]


def _say_unnamed(path: str, names: Sequence[str], last_is_empty: bool) -> None:
    places = [place + 1 for place, name in enumerate(names) if not name]
    if places == [len(names)] and last_is_empty:
        problem = "has a separator at the end of each line: its last column has neither a name nor values"
    else:
        problem = f"has no name for column {listed(places)}: often it is the index of a pandas frame"
    warnings.warn(f"{path!r} {problem}, and is not used.", PreparationNote, stacklevel=2)


def _widest(arrow: Any, type_: Any) -> Any:
    """Return float64 for integers and for columns that begin empty, since later values may be any number.

    What is not UTF-8 looks binary to Arrow. It is text here, so that it is refused where it is read.
    """
    if arrow.types.is_binary(type_):
        return arrow.string()
    return arrow.float64() if arrow.types.is_integer(type_) or arrow.types.is_null(type_) else type_
