"""A file that was found, and what a format must provide to read it."""

from __future__ import annotations

import importlib
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

__all__ = ["FoundFile", "Format", "import_pyarrow"]


class Format(Protocol):
    """A kind of file. `dc2.sources.formats` lists them all; threads and clusters read by the same methods."""

    @property
    def name(self) -> str:
        """Its name in messages."""

    @property
    def named_columns(self) -> bool:
        """Whether columns have names; if so pieces are Arrow tables, otherwise arrays."""

    def describe(self, file: FoundFile, travelling: Collection[str] = ()) -> tuple[Any, int | None]:
        """Return the Arrow schema of a file, or an array of its dtype and width without rows; and its number of rows.

        The number is None if counting needs a pass. `travelling` columns are passed through unchanged, so a format
        without types must not guess types for them.
        """

    def read(self, file: FoundFile, fields: Sequence[Any], rows: int, units: range | None = None) -> Iterator[Any]:
        """Yield pieces of about this many rows, with at least the columns of `fields`; of all units, or of some."""

    def parts(self, file: FoundFile, size: int) -> Iterator[tuple[range, int | None]]:
        """Cut a file into runs of units (rows, row groups, ...) of about `size` bytes, each with its rows if known."""


@dataclass(frozen=True)
class FoundFile:
    """One file.

    Attributes
    ----------
    path : str
        Its path in its filesystem.
    format : Format
        How it is read.
    filesystem : pyarrow.fs.FileSystem or None
        The filesystem of a file given by an address; None for a plain local path.
    """

    path: str
    format: Format
    filesystem: Any | None = None

    @property
    def is_local(self) -> bool:
        """Whether it is a file on this machine."""
        return self.filesystem is None or self.filesystem.type_name == "local"

    def open_file(self) -> Any:
        """Open the file for random access."""
        return self._opened_in().open_input_file(self.path)

    def open_stream(self) -> Any:
        """Open the file for reading from its start, unpacked if its suffix says it is packed."""
        return self._opened_in().open_input_stream(self.path)

    def _opened_in(self) -> Any:
        return self.filesystem or import_pyarrow("fs").LocalFileSystem()


def import_pyarrow(module: str = "") -> Any:
    """Import pyarrow, or one of its modules, or say how to get it."""
    try:
        return importlib.import_module(f"pyarrow.{module}" if module else "pyarrow")
    except ModuleNotFoundError as error:
        raise ImportError('Tables in files need pyarrow, which is not installed: pip install "dc2[files]"') from error
