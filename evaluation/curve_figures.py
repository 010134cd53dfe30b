"""Curves: over dimensions, bandwidths, noise, depth, and cut rules."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from evaluation.accuracy import SWEPT
from evaluation.distortion import VARIANTS as PARTITIONS
from evaluation.drawing import COLOURS, new_figure
from evaluation.measures import small_noise
from evaluation.ours import VARIANTS
from evaluation.sets import GENERATED
from evaluation.store import Row
from evaluation.summary import Summary, numbers, pick, slope, title_of

__all__ = ["intrinsic", "ours", "radius", "sweep", "theorem"]


def intrinsic(rows: list[Row]) -> Any:
    """Draw the ratio of distortions over the dimension of generated manifolds."""
    summary = Summary([row for row in rows if row["data_set"] in GENERATED])
    if not summary.rows:
        return None
    figure, (axis,) = new_figure()
    for colour, variant in zip(COLOURS, PARTITIONS, strict=False):
        found = [summary.mean("ratio", data_set=name, variant=variant) for name in GENERATED]
        axis.plot(range(1, len(found) + 1), found, "o-", color=colour, label=variant)
    axis.axhline(1, color="black", linewidth=0.8)
    axis.set_xlabel("intrinsic dimension of generated data (20 columns)")
    axis.set_ylabel("distortion, sampling / projection")
    axis.legend(frameon=False)
    return figure


def sweep(rows: list[Row]) -> Any:
    """Draw the accuracy of all bandwidths."""
    sets = Summary(rows).sets()
    if not sets:
        return None
    figure, axes = new_figure(len(sets))
    for axis, name in zip(axes, sets, strict=True):
        for colour, method in zip(COLOURS, SWEPT, strict=False):
            some = pick(rows, data_set=name, variant=method, seed=0)
            if not some:
                continue
            bandwidths, accuracy = numbers(some, "bandwidth"), numbers(some, "accuracy")
            # Both kernels on one scale: a sigma and a b do not compare.
            lowest, highest = math.log(min(bandwidths)), math.log(max(bandwidths))
            share = [(math.log(value) - lowest) / (highest - lowest or 1) for value in bandwidths]
            axis.plot(share, accuracy, color=colour, label=method, linewidth=1)
            bad = [place for place, row in enumerate(some) if row["degenerate"] == "True"]
            axis.plot([share[i] for i in bad], [accuracy[i] for i in bad], "x", color=colour, markersize=4)
        axis.set(title=title_of(name, rows), xlabel="bandwidth, lowest to highest (log)")
    axes[0].set_ylabel("accuracy (x: degenerate)")
    axes[0].legend(frameon=False, fontsize="small")
    return figure


def theorem(perturbation: str) -> Callable[[list[Row]], Any]:
    """Return a function that draws the change of the Laplacian and the loss over the noise."""

    def draw(rows: list[Row]) -> Any:
        drawn = pick(rows, perturbation=perturbation)
        kinds = list(dict.fromkeys((row["kernel"], row["data_set"]) for row in drawn))
        if not kinds:
            return None
        figure, axes = new_figure(len(kinds))
        for axis, (kernel, name) in zip(axes, kinds, strict=True):
            _over_noise(axis, pick(drawn, kernel=kernel, data_set=name))
            outside = "" if kernel == "gaussian" else "\n(outside the theorem)"
            axis.set_title(f"{kernel} kernel, {title_of(name, rows)}{outside}", fontsize="small")
        return figure

    return draw


def _over_noise(axis: Any, rows: list[Row]) -> None:
    sigma2, small = numbers(rows, "sigma2"), small_noise(rows)
    axis.plot(sigma2, sigma2, "-", color="black", linewidth=0.8, label="σ²")
    for colour, column, label in zip(COLOURS, ("laplacian2", "loss"), ("‖L̃−L‖²", "loss"), strict=False):
        fitted = slope(numbers(small, "sigma2"), numbers(small, column))
        positive = [(x, y) for x, y in zip(sigma2, numbers(rows, column), strict=True) if y > 0]
        if positive:
            text = label if fitted is None else f"{label}, slope {fitted:.2f}"
            axis.plot(*zip(*positive, strict=True), "o", color=colour, markersize=3, label=text)
    axis.set(xscale="log", yscale="log", xlabel="σ²")
    axis.tick_params(axis="x", which="minor", labelbottom=False)
    axis.legend(frameon=False, fontsize="small")


def radius(rows: list[Row]) -> Any:
    """Draw the radius of tree nodes over their depth."""
    names = dict.fromkeys(row["data_set"] for row in rows)
    panels = [[name for name in names if (name in GENERATED) == generated] for generated in (False, True)]
    panels = [panel for panel in panels if panel]
    if not panels:
        return None
    figure, axes = new_figure(len(panels))
    for axis, panel in zip(axes, panels, strict=True):
        for number, name in enumerate(panel):
            some = Summary(pick(rows, data_set=name))
            depths = sorted({int(row["depth"]) for row in some.rows})
            means = [some.mean("relative", depth=depth) for depth in depths]
            # Dimensions have an order, so they are shades of grey.
            grey = f"{0.8 * number / len(panel):.2f}"
            colour = grey if name in GENERATED else COLOURS[number % len(COLOURS)]
            axis.plot(depths, means, ".-", linewidth=1, color=colour, label=some.title(name))
        axis.set(xlabel="depth", yscale="log", ylabel="radius / radius of the root")
        axis.legend(frameon=False, fontsize="x-small")
    return figure


def ours(rows: list[Row]) -> Any:
    """Draw distortion and NMI by cut rule and sharpening."""
    names = list(dict.fromkeys(row["data_set"] for row in rows))
    if not names:
        return None
    summary = Summary(rows)
    figure, axes = new_figure(2)
    labels = {"relative_distortion": "distortion / variance", "nmi": "NMI"}
    for axis, (column, label) in zip(axes, labels.items(), strict=True):
        for number, name in enumerate(names):
            found = [summary.mean(column, data_set=name, variant=variant) for variant in VARIANTS]
            colour = COLOURS[number % len(COLOURS)]
            if any(value is not None for value in found):
                axis.plot(range(len(VARIANTS)), found, "o-", color=colour, markersize=3, label=summary.title(name))
        axis.set_xticks(range(len(VARIANTS)), list(VARIANTS), rotation=60, ha="right", fontsize="x-small")
        axis.set_ylabel(label)
    handles = axes[0].get_legend_handles_labels()
    figure.legend(*handles, frameon=False, fontsize="x-small", loc="outside upper center", ncols=4)
    return figure
