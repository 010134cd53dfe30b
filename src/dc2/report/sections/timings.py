"""The seconds of each stage."""

from __future__ import annotations

from dc2.facts.facts import Facts
from dc2.report.html import Cell, Row, bar, join, table, tag
from dc2.report.numbers import number, percent, seconds
from dc2.report.page import Section

__all__ = ["section"]

DOES = {
    "divide": "draw a sample and place the cuts",
    "compress": "send every row to its signature and add it up",
    "conquer": "compare the signatures and find the clusters",
    "populate": "give every row the cluster of its signature",
}
COLOURS = {"divide": 0, "compress": 1, "conquer": 2, "populate": 3}


def section(facts: Facts) -> Section | None:
    """Return the section, if the model knows its times."""
    spent = getattr(facts.model, "stage_seconds_", None)
    if not spent or sum(spent.values()) <= 0:
        return None
    total = sum(spent.values())
    strip = tag(
        "div",
        *(
            tag("i", style=f"flex:{value / total:.4f};background:var(--c{COLOURS.get(stage, 4)})")
            for stage, value in spent.items()
        ),
        class_="strip",
        aria_hidden="true",
    )
    rows: list[Row] = [
        [
            tag(
                "span",
                tag("i", class_="dot", style=f"background:var(--c{COLOURS.get(stage, 4)})"),
                stage,
                class_="swatch",
            ),
            Cell(seconds(value), sort=value),
            Cell(bar(value / total, percent(value / total), f"var(--c{COLOURS.get(stage, 4)})"), sort=value),
            DOES.get(stage, ""),
        ]
        for stage, value in spent.items()
    ]
    drawn = table(
        ["Stage", "Time", "Share", "What it does"],
        rows,
        label="Time of each stage",
        text_columns=(0, 3),
        class_="stacked",
    )
    speed = f", {number(float(f'{facts.n_rows / total:.2g}'))} rows a second" if facts.n_rows >= 1000 else ""
    return Section("Time", f"Fitting took {seconds(total)}{speed}.", join(strip, drawn))
