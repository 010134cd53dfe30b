"""Text with separators: CSV and TSV."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from dc2.errors import ParameterError, SourceError
from dc2.sources.formats.encoding import telling_encoding
from dc2.sources.found import FoundFile, import_pyarrow

__all__ = ["Csv", "CsvOptions"]

BLOCK_BYTES = 2**22


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
        How letters are written, by any of Python's names: ``"latin-1"``, ``"cp1252"``, ``"utf-16"``, ...

    Examples
    --------
    >>> CsvOptions(delimiter=";", encoding="latin-1")
    CsvOptions(delimiter=';', header=True, encoding='latin-1')
    """

    delimiter: str | None = None
    header: bool = True
    encoding: str = "utf-8"

    def __post_init__(self) -> None:
        try:
            "".encode(self.encoding)
            is_known = self.encoding not in NOT_OF_FILES
        except (LookupError, TypeError, ValueError):
            is_known = False
        if not is_known:
            raise ParameterError(
                f"encoding should be one that Python knows, such as 'utf-8', 'latin-1', 'cp1252' or 'utf-16'; got "
                f"{self.encoding!r}."
            )
        if self.delimiter is not None and len(self.delimiter) != 1:
            raise ParameterError(f"delimiter should be one character, such as ';'; got {self.delimiter!r}.")


@dataclass(frozen=True)
class Csv:
    """Named columns without types: all numbers are read as float64, and columns that only travel as text.

    The whole file is one unit.
    """

    separator: str = ","
    options: CsvOptions = CsvOptions()
    name: str = "csv"
    named_columns: bool = True

    def describe(self, file: FoundFile, travelling: Collection[str] = ()) -> tuple[Any, int | None]:
        """Infer the columns from the first rows."""
        with self._telling_encoding(file):
            return self._described(file, travelling), None

    def _described(self, file: FoundFile, travelling: Collection[str]) -> Any:
        arrow = import_pyarrow()
        try:
            opened = self._open(file)
        except arrow.ArrowInvalid as error:
            if "Expected 1 columns" in str(error):  # such as commas in numbers between semicolons
                self._check_separator(self._first_line(file), file.path)
            raise
        with opened as reader:
            schema = reader.schema
            if not self.options.header and len(schema) == 1 and arrow.types.is_string(schema.field(0).type):
                first = next((value for batch in reader for value in batch.column(0).to_pylist()), None)
                self._check_separator(first or "", file.path)
        names = [self._outside(name) for name in schema.names]
        if any("\0" in name for name in names):
            raise UnicodeError("a name holds a byte that is 0")
        if self.options.header:
            self._check_header(names, file.path)
        types = [
            arrow.string() if name in travelling else _widest(arrow, field.type)
            for name, field in zip(names, schema, strict=True)
        ]
        return arrow.schema(list(zip(names, types, strict=True)))

    def read(self, file: FoundFile, fields: Sequence[Any], rows: int, units: range | None = None) -> Iterator[Any]:
        """Yield a table for some megabytes of text at a time."""
        table = import_pyarrow().Table
        with self._telling_encoding(file), self._open(file, fields) as reader:
            for batch in reader:
                yield table.from_batches([batch]).rename_columns([field.name for field in fields])

    def parts(self, file: FoundFile, size: int) -> Iterator[tuple[range, int | None]]:
        """Give the file as one part: to know where a line begins one must read all before it."""
        yield range(1), None

    def _telling_encoding(self, file: FoundFile) -> Any:
        return telling_encoding(file, self.options.encoding, can_be_given=True)

    def _open(self, file: FoundFile, fields: Sequence[Any] = ()) -> Any:
        csv = import_pyarrow("csv")
        names = [self._inside(field.name) for field in fields]
        return csv.open_csv(
            file.open_stream(),
            # Without threads, which would gain nothing here, errors name their line.
            read_options=csv.ReadOptions(
                use_threads=False,
                block_size=BLOCK_BYTES,
                encoding=self.options.encoding,
                autogenerate_column_names=not self.options.header,
            ),
            parse_options=csv.ParseOptions(delimiter=self._delimiter),
            convert_options=csv.ConvertOptions(
                include_columns=names,
                column_types={name: field.type for name, field in zip(names, fields, strict=True)},
                null_values=[*csv.ConvertOptions().null_values, "?"],
            ),
        )

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
        if "" in names:
            raise SourceError(
                f"Column {list(names).index('') + 1} of {path!r} has no name: often it is the index of a pandas frame, "
                "which would be clustered like any other column. Write the file with index=False, or name the column."
            )
        if list(names) == [str(index) for index in range(len(names))]:
            return  # what pandas writes for columns without names
        try:
            [float(name) for name in names]
        except ValueError:
            return
        raise SourceError(
            f"The first line of {path!r} holds only numbers ({self._delimiter.join(names)[:60]}), so its columns have "
            "no names. Add a line with them, or read it with dc2.as_source(path, csv=dc2.CsvOptions(header=False))."
        )

    def _check_separator(self, only: str, path: str) -> None:
        """Raise if the only value of a line contains another common separator."""
        other = next((sign for sign in ",;\t|" if sign in only), None)
        if other is not None:
            raise SourceError(
                f"{path!r} seems to separate its columns by {other!r}, but {self._delimiter!r} is expected. "
                f"Read it with dc2.as_source(path, csv=dc2.CsvOptions(delimiter={other!r}))."
            )

    def _first_line(self, file: FoundFile) -> str:
        with file.open_stream() as stream:
            return bytes(stream.read(1 << 16)).decode(self.options.encoding, "replace").split("\n", 1)[0]


def _widest(arrow: Any, type_: Any) -> Any:
    """Return float64 for integers and for columns that begin empty, since later values may be any number.

    What is not UTF-8 looks binary to Arrow. It is text here, so that it is refused where it is read.
    """
    if arrow.types.is_binary(type_):
        return arrow.string()
    return arrow.float64() if arrow.types.is_integer(type_) or arrow.types.is_null(type_) else type_
