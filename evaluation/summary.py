"""Rows of results, picked and averaged."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from statistics import mean, median

import numpy as np

from evaluation.sets import PAPER_SETS, TITLES
from evaluation.store import Row

__all__ = ["Summary", "numbers", "pick", "slope", "title_of"]


def pick(rows: Iterable[Row], **wanted: object) -> list[Row]:
    """Return the rows that have all the values wanted.

    Examples
    --------
    >>> pick([{"seed": "0"}, {"seed": "1"}], seed=1)
    [{'seed': '1'}]
    """
    return [row for row in rows if all(row.get(name, "") == str(value) for name, value in wanted.items())]


def numbers(rows: Iterable[Row], column: str) -> list[float]:
    """Return a column as numbers, without empty cells."""
    return [float(row[column]) for row in rows if row.get(column)]


def slope(x: Iterable[float], y: Iterable[float]) -> float | None:
    """Return the slope of log y over log x, by least squares over positive pairs; None with fewer than three.

    Examples
    --------
    >>> round(slope([1, 2, 4], [3, 12, 48]), 6)
    2.0
    """
    pairs = [(a, b) for a, b in zip(x, y, strict=True) if a > 0 and b > 0]
    if len(pairs) < 3:
        return None
    log_x, log_y = np.log(np.array(pairs)).T
    return float(np.polyfit(log_x, log_y, deg=1)[0])


def title_of(name: str, rows: Iterable[Row]) -> str:
    """Return the title of a data set, with its origin where that is not the genuine data."""
    origin = next((row["origin"] for row in rows if row["data_set"] == name), "genuine")
    return TITLES[name] if origin in ("genuine", "generated") else f"{TITLES[name]} ({origin})"


class Summary:
    """The rows of a table, averaged over seeds: scores by their mean, seconds by their median."""

    def __init__(self, rows: list[Row]) -> None:
        self.rows = rows

    def sets(self, *, scored: bool = False) -> list[str]:
        """Return the paper's data sets that have rows; if `scored`, only those whose scores mean something."""
        there = {row["data_set"] for row in self.rows if not (scored and row["origin"] == "simulated")}
        return [name for name in PAPER_SETS if name in there]

    def title(self, name: str) -> str:
        """Return the title of a data set."""
        return title_of(name, self.rows)

    def mean(self, column: str, **wanted: object) -> float | None:
        """Return the mean of a column."""
        return self._of(mean, column, wanted)

    def median(self, column: str, **wanted: object) -> float | None:
        """Return the median of a column."""
        return self._of(median, column, wanted)

    def runs(self, **wanted: object) -> int:
        """Return the number of seeds."""
        return len({row["seed"] for row in pick(self.rows, **wanted)})

    def _of(self, average: Callable[[list[float]], float], column: str, wanted: dict[str, object]) -> float | None:
        values = numbers(pick(self.rows, **wanted), column)
        return average(values) if values else None
