"""The paper's bar charts redrawn: distortion, accuracy and time by data set."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from evaluation.accuracy import METHODS, OURS, SWEPT
from evaluation.distortion import VARIANTS as PARTITIONS
from evaluation.drawing import bars
from evaluation.partitions import SCHEMES
from evaluation.store import Row
from evaluation.summary import Summary

__all__ = ["accuracy", "by_scheme", "distortion", "time"]


def distortion(rows: list[Row]) -> Any:
    """Draw the ratio of distortions."""
    summary = Summary(rows)
    sets = summary.sets()
    if not sets:
        return None

    def height(name: str, variant: str) -> float | None:
        return summary.mean("ratio", data_set=name, variant=variant)

    figure, axis = bars(summary, sets, PARTITIONS, height, "distortion, sampling / projection")
    axis.axhline(1, color="black", linewidth=0.8)
    return figure


def accuracy(selection: str) -> Callable[[list[Row]], Any]:
    """Return a function that draws the accuracy of all methods, with bandwidths selected in a given way."""
    methods = ["K-means", *SWEPT, *(OURS if selection == "no labels" else [])]

    def draw(rows: list[Row]) -> Any:
        summary = Summary(rows)
        sets = summary.sets(scored=True)
        if not sets:
            return None

        def height(name: str, method: str) -> float | None:
            chosen = "no labels" if method == "K-means" else selection
            return summary.mean("accuracy", data_set=name, variant=method, selection=chosen)

        figure, axis = bars(summary, sets, methods, height, "accuracy (dashed: all rows in one cluster)")
        for group, name in enumerate(sets):
            floor = [summary.mean("floor", data_set=name)] * 2
            axis.plot([group - 0.45, group + 0.45], floor, color="black", linewidth=1, linestyle="--")
        axis.set_ylim(0, 1)
        return figure

    return draw


def time(rows: list[Row]) -> Any:
    """Draw the seconds of all methods."""
    summary = Summary(rows)
    sets = summary.sets()
    if not sets:
        return None

    def height(name: str, method: str) -> float | None:
        return summary.median("seconds", data_set=name, variant=method, selection="no labels")

    figure, axis = bars(summary, sets, METHODS, height, "seconds (median)")
    axis.set_yscale("log")
    return figure


def by_scheme(column: str, selection: str, label: str) -> Callable[[list[Row]], Any]:
    """Return a function that draws a column by scheme and number of partitions."""

    def draw(rows: list[Row]) -> Any:
        summary = Summary(rows)
        sets = summary.sets(scored=selection == "oracle")
        average = summary.mean if column == "accuracy" else summary.median
        if not sets:
            return None

        def height(name: str, scheme: str) -> float | None:
            return average(column, data_set=name, variant=scheme, selection=selection)

        figure, _ = bars(summary, sets, SCHEMES, height, label)
        return figure

    return draw
