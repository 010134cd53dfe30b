"""Cells of the report's tables: a column of results, averaged and written."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

from evaluation.document import Grid, Part
from evaluation.summary import Summary, numbers, pick

__all__ = ["Cell", "bandwidths", "count", "degenerate", "grid", "mean", "median", "number", "percent", "runs"]

# Gives the text of a cell from a summary and the row's selection.
Cell: TypeAlias = Callable[[Summary, dict[str, Any]], str]


def mean(column: str, digits: int) -> Cell:
    """Write the mean of a column."""
    return lambda summary, wanted: number(summary.mean(column, **wanted), digits)


def count(column: str) -> Cell:
    """Write a whole number that is the same in all runs."""
    return lambda summary, wanted: f"{summary.mean(column, **wanted):,.0f}"


def median(column: str, digits: int) -> Cell:
    """Write the median of a column."""
    return lambda summary, wanted: number(summary.median(column, **wanted), digits)


def percent(column: str) -> Cell:
    """Write the mean of a column of shares in percent."""

    def write(summary: Summary, wanted: dict[str, Any]) -> str:
        share = summary.mean(column, **wanted)
        return number(None if share is None else 100 * share, 1)

    return write


def runs(summary: Summary, wanted: dict[str, Any]) -> str:
    """Write the number of seeds."""
    return str(len({row["seed"] for row in pick(summary.rows, **wanted)}))


def bandwidths(summary: Summary, wanted: dict[str, Any]) -> str:
    """Write the smallest and the largest bandwidth."""
    found = sorted(set(numbers(pick(summary.rows, **wanted), "bandwidth")))
    return " to ".join(dict.fromkeys(f"{value:.4g}" for value in found[:1] + found[-1:]))


def degenerate(summary: Summary, wanted: dict[str, Any]) -> str:
    """Write the number of degenerate runs, nothing for none."""
    return str(len(pick(summary.rows, **wanted, degenerate=True)) or "")


def number(value: float | None, digits: int) -> str:
    """Write a number, or a dash."""
    return "–" if value is None else f"{value:.{digits}f}"


def grid(
    label: str,
    summary: Summary,
    lines: Iterable[Mapping[str, Any]],
    named: Mapping[str, str],
    columns: Mapping[str, Cell],
) -> list[Part]:
    """Return a table with a row for each wanted line that has results, or nothing.

    Parameters
    ----------
    label : str
        Title of the table.
    summary : Summary
        The results.
    lines : iterable of mapping
        What each row is about, such as ``{"data_set": "usci", "variant": "RASP"}``.
    named : mapping
        Headings of these fields' columns, by the name of the field.
    columns : mapping
        The other columns by their headings.
    """
    rows = []
    for line in lines:
        wanted = dict(line)
        if pick(summary.rows, **wanted):
            names = [summary.title(wanted[key]) if key == "data_set" else str(wanted[key]) for key in named]
            rows.append([*names, *(cell(summary, wanted) for cell in columns.values())])
    return [Grid(label, [*named.values(), *columns], rows, n_text=len(named))] if rows else []
