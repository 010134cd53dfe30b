"""Results as tidy CSV files that are complete at any moment, so an interrupted run can go on."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

from dc2 import core
from dc2.errors import ParameterError
from dc2.io.outputs import write_whole
from dc2.versions import __version__, package_versions
from evaluation.settings import Settings

__all__ = ["KEY", "Row", "Store", "Table", "versions"]

Row: TypeAlias = dict[str, str]

# The key of a piece of work; all rows with the same key were computed together.
KEY = ("data_set", "variant", "seed")


class Table:
    """The rows of one CSV file.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     table = Table(Path(folder, "scores.csv"))
    ...     table.put([{"data_set": "a", "variant": "KASP", "seed": 0, "accuracy": 0.5}])
    ...     again = Table(Path(folder, "scores.csv"))
    ...     again.holds("a", "KASP", 0), again.holds("a", "KASP", 1)
    (True, False)
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.rows: list[Row] = []
        if path.exists():
            with path.open(newline="", encoding="utf-8") as file:
                self.rows = list(csv.DictReader(file))
        self._keys = {_key(row) for row in self.rows}

    def holds(self, data_set: str, variant: str, seed: int) -> bool:
        """Return whether a piece of work is done."""
        return (data_set, variant, str(seed)) in self._keys

    def put(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Add the rows of a piece of work, replacing older ones, and write the file."""
        new = [{name: _text(value) for name, value in row.items()} for row in rows]
        keys = {_key(row) for row in new}
        self.rows = [row for row in self.rows if _key(row) not in keys] + new
        self._keys |= keys
        names = list(dict.fromkeys(name for row in self.rows for name in row))
        lines = [names, *([row.get(name, "") for name in names] for row in self.rows)]
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows(lines)
        write_whole(self.path, text.getvalue())


class Store:
    """A folder of tables, all computed with the same settings."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._tables: dict[str, Table] = {}

    def open_for(self, settings: Settings) -> None:
        """Make the folder, or check that what it holds was computed with these settings."""
        self.folder.mkdir(parents=True, exist_ok=True)
        identity = json.loads(json.dumps(settings.identity()))
        path = self.folder / "settings.json"
        if path.exists():
            stored = json.loads(path.read_text("utf-8"))
            different = [name for name in identity if stored.get(name) != identity[name]]
            if different:
                raise ParameterError(
                    f"{str(self.folder)!r} holds results of other settings ({', '.join(different)} differ; a quick "
                    "run and a full run cannot share a folder). Choose another output folder, or remove this one."
                )
        else:
            write_whole(path, json.dumps(identity, indent=1))

    def table(self, name: str) -> Table:
        """Return a table by name."""
        if name not in self._tables:
            self._tables[name] = Table(self.folder / f"{name}.csv")
        return self._tables[name]


@cache
def versions() -> str:
    """Return what computed a row."""
    packages = " ".join(f"{name} {version}" for name, version in package_versions().items())
    return f"dc2 {__version__} ({core.name}) {packages}"


def _key(row: Row) -> tuple[str, ...]:
    return tuple(row[name] for name in KEY)


def _text(value: Any) -> str:
    if value is None:
        return ""
    return format(float(value), ".6g") if isinstance(value, float) else str(value)
