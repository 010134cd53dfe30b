"""The page docs/quality.md and its plot, from rows of results."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from quality_methods import methods
from quality_notes import EXPLAINED, HEADER, K_SETS, NOTES

from dc2.versions import __version__

OURS = "RPFCluster"
ALLOWED_LOSS = 0.05
AUTO_K = "RPFCluster, auto k"
NOT_DRAWN = ("RPFCluster, oracle b", "RPFCluster, leaf", "RPFCluster, b=0.05")
SHORTEST = 0.0005  # seconds are written with three digits
GROUPS = {
    "battery": "Batteries, up to 20,000 rows",
    "large battery": "Batteries, 100,000 rows",
    "shapes": "Shapes of 20,000 rows, mean over seeds",
    "real": "Real data",
    "generated": "Generated, mean over seeds",
}


def write_page(rows: Iterable[dict[str, Any]], page: Path) -> None:
    """Write the page and the plot beside it."""
    results = _numbers(pd.DataFrame(rows)).sort_values(["group", "set"], kind="stable")
    best = _best_labelling(results)
    image = page.parent / "images" / "quality.png"
    image.parent.mkdir(exist_ok=True)
    _plot(best, image)
    parts = [
        HEADER.format(
            version=__version__, machine=f"{os.cpu_count()} cores, Python {platform.python_version()}"
        ),
        "## What was to be reached\n",
        _reached(best, results),
        "## Summary\n",
        _summary(best),
        f"![quality against seconds](images/{image.name})\n",
        *(
            f"## {title}: adjusted Rand index\n\n{_by_set(best, group, 'ari')}"
            for group, title in GROUPS.items()
            if (best["group"] == group).any()
        ),
        "## Large and real data: accuracy, NMI and seconds\n",
        _large(best),
        f"## Worse than K-means by more than {ALLOWED_LOSS}\n",
        _worse_than_kmeans(best),
        "## Number of clusters found\n",
        _numbers_found(best, results),
        "## Every labelling\n",
        _labellings(results),
        "## Left out, and why\n",
        _left_out(results),
        NOTES,
    ]
    page.write_text("\n".join(parts))
    print(f"wrote {page} and {image}")


def _numbers(results: pd.DataFrame) -> pd.DataFrame:
    for name in ("rows", "columns", "k", "seed", "labelling"):
        results[name] = results[name].astype(int)
    for name in ("ari", "nmi", "accuracy", "seconds", "k_found"):
        results[name] = pd.to_numeric(results[name])
    return results


def _best_labelling(results: pd.DataFrame) -> pd.DataFrame:
    """Each method's best labelling of each set and seed: more than one answer is right."""
    ran = results[results["ari"].notna()]
    return ran.loc[ran.groupby(["set", "seed", "method"], sort=False)["ari"].idxmax()]


def _by_set(best: pd.DataFrame, group: str, score: str) -> str:
    part = best[best["group"] == group]
    means = part.pivot_table(index="set", columns="method", values=score, sort=False)
    means = means[[method for method in _order(best) if method in means]]
    table = [["set", "rows", *means.columns]]
    sizes = part.groupby("set")["rows"].first()
    for name, values in means.iterrows():
        top = np.nanmax([v for method, v in values.items() if "oracle" not in method])
        cells = [_cell(value, bold=value >= top - 0.0005) for value in values]
        table.append([str(name), f"{sizes[name]:,}", *cells])
    table.append(
        ["**mean**", "", *(_cell(v) if part_ok else f"({_cell(v)})" for v, part_ok in _means(means))]
    )
    return markdown(table)


def _means(table: pd.DataFrame) -> list[tuple[float, bool]]:
    """Mean of each column, and whether the method ran on every set."""
    return [(table[name].mean(), bool(table[name].notna().all())) for name in table]


def _summary(best: pd.DataFrame) -> str:
    """Mean and rank of every method on the sets up to 20,000 rows, where all ran."""
    part = best[best["group"] == "battery"]
    aris = part.pivot_table(index="set", columns="method", values="ari")
    others = aris.drop(
        columns=[name for name in aris if "," in name and name.startswith(OURS)], errors="ignore"
    )
    ranks = others.rank(axis=1, ascending=False).mean()
    rows = [["method", "mean ARI", "mean NMI", "mean accuracy", "mean rank", "worst ARI", "median seconds"]]
    for method in sorted(aris, key=lambda name: -aris[name].mean()):
        own = part[part["method"] == method]
        rank = f"{ranks[method]:.2f}" if method in ranks else ""
        middle = [f"{own[name].mean():.3f}" for name in ("nmi", "accuracy")]
        rows.append(
            [method, f"{own['ari'].mean():.3f}", *middle, rank, f"{own['ari'].min():.3f}",
             f"{own['seconds'].median():.2f}"]
        )  # fmt: skip
    return (
        f"The {aris.shape[0]} sets of the batteries with at most 20,000 rows, best labelling; ranks among "
        f"different clusterers, ours with its defaults.\n\n{markdown(rows)}"
    )


def _large(best: pd.DataFrame) -> str:
    part = best[~best["group"].isin(["battery", "shapes"])]
    rows = [["set", "rows x columns", "k", "method", "ARI", "NMI", "accuracy", "lowest accuracy", "seconds"]]
    for name, of_set in part.groupby("set", sort=False):
        for method in _order(best):
            own = of_set[of_set["method"] == method]
            if len(own):
                about = own.iloc[0]
                size = f"{about['rows']:,} x {about['columns']}"
                scores = [f"{own[score].mean():.3f}" for score in ("ari", "nmi")]
                accuracy = [f"{own['accuracy'].mean():.4f}", f"{own['accuracy'].min():.4f}"]
                seconds = f"{own['seconds'].mean():.2f}"
                rows.append([str(name), size, str(about["k"]), method, *scores, *accuracy, seconds])
    return markdown(rows)


def _worse_than_kmeans(best: pd.DataFrame) -> str:
    means = best.pivot_table(index="set", columns="method", values="ari", sort=False)
    loss = (means["KMeans"] - means[OURS]).dropna()
    worse = loss[loss > ALLOWED_LOSS].sort_values(ascending=False)
    if worse.empty:
        return f"Nowhere, on {len(loss)} sets.\n"
    rows = [["set", "K-means", "ours", "oracle bandwidth", "why"]]
    for name in worse.index:
        scores = (means.loc[name, method] for method in ("KMeans", OURS, "RPFCluster, oracle b"))
        rows.append(
            [str(name), *(_cell(score) for score in scores), EXPLAINED.get(str(name), "not explained yet")]
        )
    return f"{len(worse)} of {len(loss)} sets.\n\n{markdown(rows)}"


def _numbers_found(best: pd.DataFrame, results: pd.DataFrame) -> str:
    auto = best[best["method"] == AUTO_K]
    rows = [["set", "k", "found, by seed", "ARI"]]
    for name, own in auto.groupby("set", sort=False):
        valid = sorted(_valid_numbers(results, str(name)))
        found = " ".join(str(int(k)) for k in own["k_found"])
        exact = own["k_found"].isin(valid).all()
        rows.append(
            [
                str(name),
                " or ".join(map(str, valid)),
                found if exact else f"{found} ✗",
                _cell(own["ari"].mean()),
            ]
        )
    hits = auto.apply(lambda row: row["k_found"] in _valid_numbers(results, row["set"]), axis=1)
    return f"Exact in {int(hits.sum())} of {len(hits)} runs.\n\n{markdown(rows)}"


def _valid_numbers(results: pd.DataFrame, name: str) -> set[int]:
    """The numbers of clusters of every labelling."""
    return {int(k) for k in results.loc[results["set"] == name, "k"]}


def _labellings(results: pd.DataFrame) -> str:
    """Sets with more than one labelling, each with its own number of clusters."""
    several = results.groupby("set")["labelling"].transform("nunique") > 1
    part = results[several & results["ari"].notna()]
    means = part.pivot_table(index=["set", "labelling", "k"], columns="method", values="ari", sort=False)
    means = means[[method for method in _order(results) if method in means]]
    rows = [["set", "labelling", "k", *means.columns]]
    rows += [[*map(str, index), *(_cell(value) for value in values)] for index, values in means.iterrows()]
    return markdown(rows)


def _left_out(results: pd.DataFrame) -> str:
    part = results[results["ari"].isna()].drop_duplicates(["set", "method"])
    rows = [["method", "sets", "why"]]
    for (method, kind), own in part.groupby(
        ["method", part["left_out"].str.split(r" on (?=\d)| for ", regex=True).str[0]], sort=False
    ):
        rows.append([str(method), ", ".join(own["set"]), str(kind)])
    return markdown(rows)


def _reached(best: pd.DataFrame, results: pd.DataFrame) -> str:
    def mean(name: str, score: str, method: str = OURS, least: bool = False) -> float | None:
        own = best[(best["set"] == name) & (best["method"] == method)][score]
        return None if own.empty else float(own.min() if least else own.mean())

    small = best[(best["group"] == "battery") & (best["method"] == OURS)]["ari"].mean()
    auto = best[(best["method"] == AUTO_K) & best["set"].isin(K_SETS)]
    exact = auto.apply(lambda row: row["k_found"] in _valid_numbers(results, row["set"]), axis=1).mean()
    noisy = [mean(f"{shape} + 8 noise", "accuracy", least=True) for shape in ("bananas", "rings", "spirals")]
    seconds, rival = mean("MNIST", "seconds"), mean("MNIST", "seconds", "KMeans")
    lines: list[tuple[str, str, Any, Callable[[Any], bool]]] = [
        ("mean ARI, 25 sets up to 20,000 rows", "≥ 0.94, better > 0.95", small, lambda v: v >= 0.94),
        ("two bananas, 1M rows: accuracy, lowest seed", "≥ 0.995", mean("bananas 1M", "accuracy", least=True),
         lambda v: v >= 0.995),
        ("circles in circles, 5M rows: accuracy, lowest seed", "≥ 0.999",
         mean("rings 5M", "accuracy", least=True), lambda v: v >= 0.999),
        ("shapes with 8 noise columns: accuracy, lowest", "≥ 0.95",
         None if None in noisy else min(noisy), lambda v: v >= 0.95),
        ("MNIST raw pixels: NMI", "≥ 0.70, better 0.77", mean("MNIST", "nmi"), lambda v: v >= 0.70),
        ("MNIST: seconds, ours / KMeans(10, n_init=1)", "< 1",
         None if seconds is None or rival is None else seconds / rival, lambda v: v < 1),
        (f"k found exactly, {len(auto)} runs on sets named beforehand", "≥ 80%", exact, lambda v: v >= 0.8),
    ]  # fmt: skip
    rows = [["what", "reach", "measured", ""]]
    for what, reach, value, reached in lines:
        known = value is not None and not np.isnan(value)
        shown = f"{value:.4f}" if known else "not run"
        rows.append([what, reach, shown, ("✓" if reached(value) else "not reached") if known else ""])
    return (
        markdown(rows)
        + "\nDistortion against K-means with as many centres: see [benchmarks](benchmarks.md).\n"
    )


def _plot(best: pd.DataFrame, path: Path) -> None:
    """Mean quality against seconds: small sets on the left, large ones on the right."""
    figure = Figure(figsize=(11, 4.6), layout="constrained")
    panels = figure.subplots(1, 2)
    titles = ("battery sets up to 20,000 rows", "generated sets, 300,000 to 5,000,000 rows")
    for axes, group, title in zip(panels, ("battery", "generated"), titles, strict=True):
        part = best[(best["group"] == group) & ~best["method"].isin(NOT_DRAWN)]
        if part.empty:
            continue
        sets = part["set"].nunique()
        for method, own in part.groupby("method", sort=False):
            if own["set"].nunique() < sets:
                continue  # a mean over other sets does not compare
            seconds = np.exp(np.log(own["seconds"].clip(lower=SHORTEST)).mean())
            ours = str(method).startswith(OURS)
            axes.scatter(
                seconds, own["ari"].mean(), color="#b3261e" if ours else "#4a5a6a", s=40 if ours else 28
            )
            below = str(method).startswith("Mini")  # else it would hide the name of K-means
            axes.annotate(
                str(method), (seconds, own["ari"].mean()), xytext=(5, -11 if below else 4),
                textcoords="offset points", fontsize=8,
            )  # fmt: skip
        axes.set(
            xscale="log", title=title, xlabel="seconds (geometric mean)", ylabel="mean adjusted Rand index"
        )
        axes.margins(x=0.25)
        axes.grid(alpha=0.3)
    figure.savefig(path, dpi=110)


def _order(results: pd.DataFrame) -> list[str]:
    known = [method.name for method in methods()]
    return [name for name in known if (results["method"] == name).any()]


def _cell(value: float, bold: bool = False) -> str:
    if np.isnan(value):
        return "–"
    return f"**{value:.3f}**" if bold else f"{value:.3f}"


def markdown(rows: list[list[str]]) -> str:
    """A table; the first row is its head."""
    head, *body = rows
    lines = [head, ["---"] * len(head), *body]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines) + "\n"
