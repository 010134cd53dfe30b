"""What the figures share: axes, bars by data set, and saving as PNG and SVG."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from matplotlib import rc_context
from matplotlib.figure import Figure

from dc2.io.outputs import renamed_at_the_end
from evaluation.summary import Summary

__all__ = ["COLOURS", "bars", "new_figure", "save"]

COLOURS = (
    "#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#777777", "#222222", "#ee8833",
    "#99ddaa", "#882255",
)  # fmt: skip


def new_figure(n_axes: int = 1) -> tuple[Figure, list[Any]]:
    """Return a figure with two axes per row."""
    n_columns = min(n_axes, 2)
    n_rows = -(-n_axes // n_columns)
    figure = Figure(figsize=(8.5, 3.6 * n_rows), layout="constrained")
    axes = figure.subplots(n_rows, n_columns, squeeze=False).ravel()
    for number, axis in enumerate(axes):
        axis.spines[["top", "right"]].set_visible(False)
        axis.set_visible(number < n_axes)
    return figure, list(axes[:n_axes])


def bars(
    summary: Summary,
    sets: Sequence[str],
    series: Sequence[str],
    height: Callable[[str, str], float | None],
    label: str,
) -> tuple[Figure, Any]:
    """Draw bars side by side: a group for each data set, a colour for each series."""
    figure, (axis,) = new_figure()
    width = 0.8 / len(series)
    for number, name in enumerate(series):
        offset = (number - (len(series) - 1) / 2) * width
        there = [(place + offset, value) for place, one in enumerate(sets) if (value := height(one, name)) is not None]
        places, values = zip(*there, strict=True) if there else ((), ())
        axis.bar(places, values, width, label=name, color=COLOURS[number % len(COLOURS)])
    axis.set_xticks(range(len(sets)), [summary.title(name).replace(" (", "\n(") for name in sets])
    axis.set_ylabel(label)
    axis.legend(frameon=False, fontsize="small", ncols=3, loc="upper center", bbox_to_anchor=(0.5, 1.22))
    return figure, axis


def save(figure: Figure, path: Path) -> list[Path]:
    """Write a figure as PNG and SVG; each file appears only when it is complete."""
    path.parent.mkdir(exist_ok=True)
    saved = []
    for kind in ("png", "svg"):
        target = path.with_suffix(f".{kind}")
        with renamed_at_the_end(target) as temporary, rc_context({"svg.fonttype": "none"}):
            figure.savefig(temporary, format=kind, dpi=110)
        figure.set_layout_engine("none")  # everything has its place now
        saved.append(target)
    return saved
