"""All figures by name, with the table each is drawn from and the function that draws it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from evaluation import bar_figures, curve_figures
from evaluation.drawing import save
from evaluation.store import Row, Store

__all__ = ["FIGURES", "draw_all"]

FIGURES: dict[str, tuple[str, Callable[[list[Row]], Any]]] = {
    "distortion": ("distortion", bar_figures.distortion),
    "intrinsic": ("distortion", curve_figures.intrinsic),
    "accuracy_oracle": ("accuracy", bar_figures.accuracy("oracle")),
    "accuracy_no_labels": ("accuracy", bar_figures.accuracy("no labels")),
    "sweep": ("sweep", curve_figures.sweep),
    "time": ("accuracy", bar_figures.time),
    "partitions_accuracy": ("partitions", bar_figures.by_scheme("accuracy", "oracle", "accuracy (oracle)")),
    "partitions_time": ("partitions", bar_figures.by_scheme("seconds", "no labels", "seconds, in parallel")),
    "partitions_sequential": (
        "partitions",
        bar_figures.by_scheme("seconds_sequential", "no labels", "seconds, sequential"),
    ),
    "theorem_noise": ("theorem", curve_figures.theorem("noise")),
    "theorem_signatures": ("theorem", curve_figures.theorem("signatures")),
    "radius": ("radius", curve_figures.radius),
    "ours": ("ours", curve_figures.ours),
}


def draw_all(store: Store) -> list[Path]:
    """Draw every figure that has results, into the folder ``figures`` of a store."""
    drawn = []
    for name, (table, draw) in FIGURES.items():
        figure = draw(store.table(table).rows)
        if figure is not None:
            drawn += save(figure, store.folder / "figures" / name)
    return drawn
