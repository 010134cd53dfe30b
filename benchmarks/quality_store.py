"""Measured scores as lines of JSON, added one by one: a run continues where it was broken off."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

Row = dict[str, Any]
KEY = ("set", "seed", "method", "labelling")


class Store:
    """A file of rows; among several with the same key, the last counts."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._rows: dict[tuple[Any, ...], Row] = {}
        if path.exists():
            self._keep(json.loads(line) for line in path.read_text("utf-8").splitlines())

    @property
    def rows(self) -> list[Row]:
        return list(self._rows.values())

    def knows(self, **key: Any) -> bool:
        return tuple(key[name] for name in KEY) in self._rows

    def add(self, rows: list[Row]) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a", encoding="utf-8") as file:
            file.writelines(json.dumps(row) + "\n" for row in rows)
        self._keep(rows)

    def _keep(self, rows: Iterable[Row]) -> None:
        self._rows.update({tuple(row[name] for name in KEY): row for row in rows})
