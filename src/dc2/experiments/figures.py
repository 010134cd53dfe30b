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
        rows = store.table(table).rows
        if rows:
            figure = draw(rows)
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
    axis: Any, groups: Sequence[str], series: Sequence[str], height: Callable[[int, str], float | None]
) -> None:
    """Draw bars side by side: a group for each place, a colour for each series."""
    width = 0.8 / len(series)
    for number, name in enumerate(series):
        places, heights = [], []
        for group in range(len(groups)):
            value = height(group, name)
            if value is not None:
                places.append(group + (number - (len(series) - 1) / 2) * width)
                heights.append(value)
        axis.bar(places, heights, width, label=name, color=COLOURS[number % len(COLOURS)])
    axis.set_xticks(range(len(groups)), [group.replace(" (", "\n(") for group in groups])
    axis.legend(frameon=False, fontsize="small", ncols=3, loc="upper center", bbox_to_anchor=(0.5, 1.22))


def _distortion(rows: list[Row]) -> Any:
    summary = Summary(rows)
    sets = summary.sets()
    figure, (axis,) = _figure()
    _bars(
        axis, [summary.title(name) for name in sets], ["2 partitions", "3 partitions"],
        lambda group, variant: summary.mean("ratio", data_set=sets[group], variant=variant),
    )  # fmt: skip
    axis.axhline(1, color="black", linewidth=0.8)
    axis.set_ylabel("distortion, sampling / projection")
    return figure


def _intrinsic(rows: list[Row]) -> Any:
    summary = Summary(rows)
    figure, (axis,) = _figure()
    for colour, variant in zip(COLOURS, ("2 partitions", "3 partitions"), strict=False):
        found = [
            (int(name.removeprefix("intrinsic_")), summary.mean("ratio", data_set=name, variant=variant))
            for name in GENERATED
        ]
        pairs = [(dimension, ratio) for dimension, ratio in found if ratio is not None]
        axis.plot(*zip(*pairs, strict=True), "o-", color=colour, label=variant) if pairs else None
    axis.axhline(1, color="black", linewidth=0.8)
    axis.set(
        xlabel="intrinsic dimension of generated data (20 columns)",
        ylabel="distortion, sampling / projection",
    )
    axis.legend(frameon=False)
    return figure


def _accuracy(selection: str) -> Callable[[list[Row]], Any]:
    def draw(rows: list[Row]) -> Any:
        summary = Summary(rows)
        sets = summary.sets(scored=True)
        methods = ["K-means", *SWEPT] if selection == "oracle" else [m for m in METHODS if "restart" not in m]

        def height(group: int, method: str) -> float | None:
            chosen = "no labels" if method == "K-means" else selection
            return summary.mean("accuracy", data_set=sets[group], variant=method, selection=chosen)

        figure, (axis,) = _figure()
        _bars(axis, [summary.title(name) for name in sets], methods, height)
        for group, name in enumerate(sets):
            floor = summary.mean("floor", data_set=name)
            if floor is not None:
                axis.plot(
                    [group - 0.45, group + 0.45], [floor, floor], color="black", linewidth=1, linestyle="--"
                )
        axis.set(ylabel="accuracy (dashed: all rows in one cluster)", ylim=(0, 1))
        return figure

    return draw


def _time(rows: list[Row]) -> Any:
    summary = Summary(rows)
    sets = summary.sets()
    figure, (axis,) = _figure()
    _bars(
        axis, [summary.title(name) for name in sets], METHODS,
        lambda group, method: summary.median(
            "seconds", data_set=sets[group], variant=method, selection="no labels"
        ),
    )  # fmt: skip
    axis.set(ylabel="seconds (median)", yscale="log")
    return figure


def _sweep(rows: list[Row]) -> Any:
    sets = Summary(rows).sets()
    figure, axes = _figure(len(sets))
    for axis, name in zip(axes, sets, strict=False):
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
        figure, (axis,) = _figure()
        _bars(
            axis, [summary.title(name) for name in sets], SCHEMES,
            lambda group, scheme: average(column, data_set=sets[group], variant=scheme, selection=selection),
        )  # fmt: skip
        axis.set_ylabel(label)
        return figure

    return draw


def _theorem(perturbation: str) -> Callable[[list[Row]], Any]:
    def draw(rows: list[Row]) -> Any:
        drawn = pick(rows, perturbation=perturbation)
        kinds = list(dict.fromkeys((row["kernel"], row["data_set"]) for row in drawn))
        figure, axes = _figure(max(1, len(kinds)))
        for axis, (kernel, name) in zip(axes, kinds, strict=False):
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
    figure, axes = _figure(2)
    for axis, generated in zip(axes, (False, True), strict=True):
        names = [
            name
            for name in dict.fromkeys(row["data_set"] for row in rows)
            if (name in GENERATED) == generated
        ]
        for number, name in enumerate(names):
            some = Summary(pick(rows, data_set=name))
            depths = sorted({int(row["depth"]) for row in some.rows})
            means = [some.mean("relative", depth=depth) for depth in depths]
            # Dimensions have an order, so they are shades of grey.
            colour = f"{0.8 * number / len(names):.2f}" if generated else COLOURS[number % len(COLOURS)]
            axis.plot(depths, means, ".-", linewidth=1, color=colour, label=some.title(name))
        axis.set(xlabel="depth", yscale="log", ylabel="radius / radius of the root")
        axis.legend(frameon=False, fontsize="x-small")
    return figure


def _ours(rows: list[Row]) -> Any:
    figure, axes = _figure(2)
    names = list(dict.fromkeys(row["data_set"] for row in rows))
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
