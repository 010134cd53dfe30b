"""The paper's figures redrawn, and ours, as PNG and SVG."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from dc2.experiments.accuracy import METHODS, SWEPT
from dc2.experiments.claims import small_noise
from dc2.experiments.ours import VARIANTS
from dc2.experiments.partitions import SCHEMES
from dc2.experiments.sets import GENERATED
from dc2.experiments.store import Row, Store
from dc2.experiments.summary import Summary, numbers, pick, slope, title_of
from dc2.output import renamed_at_the_end

__all__ = ["draw_all", "import_figure"]

COLOURS = ("#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#777777")


def draw_all(store: Store) -> list[Path]:
    """Draw every figure that there are results for, into the folder ``figures`` of a store."""
    drawn = []
    for name, (table, draw) in FIGURES.items():
        figure = draw(store.table(table).rows)
        if figure is not None:
            drawn += _save(figure, store.folder / "figures" / name)
    return drawn


def import_figure() -> Any:
    """Import matplotlib's Figure, or say how to get it."""
    try:
        from matplotlib.figure import Figure
    except ModuleNotFoundError as error:
        raise ImportError(
            'The figures of the evaluation need matplotlib, which is not installed: pip install "dc2[plot]"'
        ) from error
    return Figure


def _save(figure: Any, path: Path) -> list[Path]:
    from matplotlib import rc_context

    path.parent.mkdir(exist_ok=True)
    saved = []
    for kind in ("png", "svg"):
        target = path.with_suffix(f".{kind}")
        with renamed_at_the_end(target) as temporary, rc_context({"svg.fonttype": "none"}):
            figure.savefig(temporary, format=kind, dpi=110)
        figure.set_layout_engine("none")  # everything has its place now
        saved.append(target)
    return saved


def _figure(n_axes: int = 1) -> tuple[Any, list[Any]]:
    """Return a figure with axes two in a row."""
    n_columns = min(n_axes, 2)
    n_rows = -(-n_axes // n_columns)
    figure = import_figure()(figsize=(8.5, 3.6 * n_rows), layout="constrained")
    axes = figure.subplots(n_rows, n_columns, squeeze=False).ravel()
    for number, axis in enumerate(axes):
        axis.spines[["top", "right"]].set_visible(False)
        axis.set_visible(number < n_axes)
    return figure, list(axes[:n_axes])


def _bars(
    summary: Summary,
    sets: Sequence[str],
    series: Sequence[str],
    height: Callable[[str, str], float | None],
    label: str,
) -> tuple[Any, Any]:
    """Draw bars side by side: a group for each data set, a colour for each series."""
    figure, (axis,) = _figure()
    width = 0.8 / len(series)
    for number, name in enumerate(series):
        offset = (number - (len(series) - 1) / 2) * width
        bars = [(group + offset, height(one, name)) for group, one in enumerate(sets)]
        there = [(place, value) for place, value in bars if value is not None]
        axis.bar(
            [place for place, _ in there],
            [value for _, value in there],
            width,
            label=name,
            color=COLOURS[number % len(COLOURS)],
        )
    axis.set_xticks(range(len(sets)), [summary.title(name).replace(" (", "\n(") for name in sets])
    axis.set_ylabel(label)
    axis.legend(frameon=False, fontsize="small", ncols=3, loc="upper center", bbox_to_anchor=(0.5, 1.22))
    return figure, axis


def _distortion(rows: list[Row]) -> Any:
    summary = Summary(rows)
    sets = summary.sets()
    if not sets:
        return None

    def height(name: str, variant: str) -> float | None:
        return summary.mean("ratio", data_set=name, variant=variant)

    figure, axis = _bars(
        summary, sets, ("2 partitions", "3 partitions"), height, "distortion, sampling / projection"
    )
    axis.axhline(1, color="black", linewidth=0.8)
    return figure


def _intrinsic(rows: list[Row]) -> Any:
    summary = Summary([row for row in rows if row["data_set"] in GENERATED])
    if not summary.rows:
        return None
    figure, (axis,) = _figure()
    for colour, variant in zip(COLOURS, ("2 partitions", "3 partitions"), strict=False):
        found = [summary.mean("ratio", data_set=name, variant=variant) for name in GENERATED]
        axis.plot(range(1, len(found) + 1), found, "o-", color=colour, label=variant)
    axis.axhline(1, color="black", linewidth=0.8)
    axis.set_xlabel("intrinsic dimension of generated data (20 columns)")
    axis.set_ylabel("distortion, sampling / projection")
    axis.legend(frameon=False)
    return figure


def _accuracy(selection: str) -> Callable[[list[Row]], Any]:
    methods = ["K-means", *SWEPT, *(["dc2 defaults"] if selection == "no labels" else [])]

    def draw(rows: list[Row]) -> Any:
        summary = Summary(rows)
        sets = summary.sets(scored=True)
        if not sets:
            return None

        def height(name: str, method: str) -> float | None:
            chosen = "no labels" if method == "K-means" else selection
            return summary.mean("accuracy", data_set=name, variant=method, selection=chosen)

        figure, axis = _bars(summary, sets, methods, height, "accuracy (dashed: all rows in one cluster)")
        for group, name in enumerate(sets):
            floor = [summary.mean("floor", data_set=name)] * 2
            axis.plot([group - 0.45, group + 0.45], floor, color="black", linewidth=1, linestyle="--")
        axis.set_ylim(0, 1)
        return figure

    return draw


def _time(rows: list[Row]) -> Any:
    summary = Summary(rows)
    sets = summary.sets()
    if not sets:
        return None

    def height(name: str, method: str) -> float | None:
        return summary.median("seconds", data_set=name, variant=method, selection="no labels")

    figure, axis = _bars(summary, sets, METHODS, height, "seconds (median)")
    axis.set_yscale("log")
    return figure


def _sweep(rows: list[Row]) -> Any:
    sets = Summary(rows).sets()
    if not sets:
        return None
    figure, axes = _figure(len(sets))
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


def _by_scheme(column: str, selection: str, label: str) -> Callable[[list[Row]], Any]:
    def draw(rows: list[Row]) -> Any:
        summary = Summary(rows)
        sets = summary.sets(scored=selection == "oracle")
        average = summary.mean if column == "accuracy" else summary.median
        if not sets:
            return None

        def height(name: str, scheme: str) -> float | None:
            return average(column, data_set=name, variant=scheme, selection=selection)

        figure, _ = _bars(summary, sets, SCHEMES, height, label)
        return figure

    return draw


def _theorem(perturbation: str) -> Callable[[list[Row]], Any]:
    def draw(rows: list[Row]) -> Any:
        drawn = pick(rows, perturbation=perturbation)
        kinds = list(dict.fromkeys((row["kernel"], row["data_set"]) for row in drawn))
        if not kinds:
            return None
        figure, axes = _figure(len(kinds))
        for axis, (kernel, name) in zip(axes, kinds, strict=True):
            some = pick(drawn, kernel=kernel, data_set=name)
            sigma2 = numbers(some, "sigma2")
            axis.plot(sigma2, sigma2, "-", color="black", linewidth=0.8, label="σ²")
            for colour, (column, label) in zip(
                COLOURS, {"laplacian2": "‖L̃−L‖²", "loss": "loss"}.items(), strict=False
            ):
                small = small_noise(some)
                fitted = slope(numbers(small, "sigma2"), numbers(small, column))
                text = label if fitted is None else f"{label}, slope {fitted:.2f}"
                positive = [(x, y) for x, y in zip(sigma2, numbers(some, column), strict=True) if y > 0]
                if positive:
                    axis.plot(*zip(*positive, strict=True), "o", color=colour, markersize=3, label=text)
            outside = "" if kernel == "gaussian" else "\n(outside the theorem)"
            axis.set(
                xscale="log",
                yscale="log",
                xlabel="σ²",
                title=f"{kernel} kernel, {title_of(name, rows)}{outside}",
            )
            axis.title.set_fontsize("small")
            axis.tick_params(axis="x", which="minor", labelbottom=False)
            axis.legend(frameon=False, fontsize="small")
        return figure

    return draw


def _radius(rows: list[Row]) -> Any:
    names = dict.fromkeys(row["data_set"] for row in rows)
    panels = [[name for name in names if (name in GENERATED) == generated] for generated in (False, True)]
    panels = [panel for panel in panels if panel]
    if not panels:
        return None
    figure, axes = _figure(len(panels))
    for axis, panel in zip(axes, panels, strict=True):
        for number, name in enumerate(panel):
            some = Summary(pick(rows, data_set=name))
            depths = sorted({int(row["depth"]) for row in some.rows})
            means = [some.mean("relative", depth=depth) for depth in depths]
            # Dimensions have an order, so they are shades of grey.
            colour = (
                f"{0.8 * number / len(panel):.2f}" if name in GENERATED else COLOURS[number % len(COLOURS)]
            )
            axis.plot(depths, means, ".-", linewidth=1, color=colour, label=some.title(name))
        axis.set(xlabel="depth", yscale="log", ylabel="radius / radius of the root")
        axis.legend(frameon=False, fontsize="x-small")
    return figure


def _ours(rows: list[Row]) -> Any:
    names = list(dict.fromkeys(row["data_set"] for row in rows))
    if not names:
        return None
    figure, axes = _figure(2)
    summary = Summary(rows)
    for axis, (column, label) in zip(
        axes, {"relative_distortion": "distortion / variance", "nmi": "NMI"}.items(), strict=True
    ):
        for number, name in enumerate(names):
            found = [summary.mean(column, data_set=name, variant=variant) for variant in VARIANTS]
            if any(value is not None for value in found):
                axis.plot(
                    range(len(VARIANTS)), found, "o-", color=COLOURS[number % len(COLOURS)], markersize=3,
                    label=summary.title(name),
                )  # fmt: skip
        axis.set_xticks(range(len(VARIANTS)), list(VARIANTS), rotation=60, ha="right", fontsize="x-small")
        axis.set_ylabel(label)
    figure.legend(
        *axes[0].get_legend_handles_labels(),
        frameon=False,
        fontsize="x-small",
        loc="outside upper center",
        ncols=4,
    )
    return figure


FIGURES: dict[str, tuple[str, Callable[[list[Row]], Any]]] = {
    "distortion": ("distortion", _distortion),
    "intrinsic": ("distortion", _intrinsic),
    "accuracy_oracle": ("accuracy", _accuracy("oracle")),
    "accuracy_no_labels": ("accuracy", _accuracy("no labels")),
    "sweep": ("sweep", _sweep),
    "time": ("accuracy", _time),
    "partitions_accuracy": ("partitions", _by_scheme("accuracy", "oracle", "accuracy (oracle)")),
    "partitions_time": ("partitions", _by_scheme("seconds", "no labels", "seconds, in parallel")),
    "partitions_sequential": (
        "partitions",
        _by_scheme("seconds_sequential", "no labels", "seconds, one by one"),
    ),
    "theorem_noise": ("theorem", _theorem("noise")),
    "theorem_signatures": ("theorem", _theorem("signatures")),
    "radius": ("radius", _radius),
    "ours": ("ours", _ours),
}
