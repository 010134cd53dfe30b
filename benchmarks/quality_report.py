"""The file docs/measured/quality.md, a section for each kind of data, and a plot, from rows of results."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from quality_data import KINDS
from quality_methods import methods

COMMAND = "python benchmarks/quality.py"
SHORTEST = 0.0005  # seconds are written with three digits
NOT_DRAWN = ("RPFCluster, oracle b",)
OURS = ("DC2Clustering", "RPFCluster")


def write_tables(rows: Iterable[dict[str, Any]], folder: Path) -> None:
    """Write the tables of each kind of data that was measured, and those over all kinds."""
    results = pd.DataFrame(rows)
    if results.empty:
        raise SystemExit("Nothing was measured yet.")
    for name in ("ari", "seconds", "k_found", "clustered", "ari_clustered", "nmi", "accuracy", "left_out"):
        if name not in results:
            results[name] = np.nan  # nothing of it was measured
    folder.mkdir(parents=True, exist_ok=True)
    best = _best_labelling(results)
    kinds = {title: _kind(best, kind) for kind, title in KINDS.items() if (best["kind"] == kind).any()}
    sections = {
        "Summary": _summary(best),
        **kinds,
        "Number of clusters found": _numbers_found(best, results),
        "Left out, and why": _left_out(results),
    }
    parts = [_provenance(results), *(f"## {title}\n\n{text}" for title, text in sections.items() if text)]
    (folder / "quality.md").write_text("\n\n".join(part.rstrip() for part in parts) + "\n", "utf-8")
    _plot(best, folder / "quality.png")
    print(f"wrote {folder / 'quality.md'} and {folder / 'quality.png'}")


def _provenance(results: pd.DataFrame) -> str:
    dates, machines = sorted(results["date"].unique()), results["machine"].unique()
    when = " to ".join(dict.fromkeys([dates[0], dates[-1]]))
    # The load at the start differs from run to run; what the machine is does not.
    kinds = dict.fromkeys(text.split("; load averages")[0] for text in machines)
    return f"`{COMMAND}`, {when}. {' / '.join(kinds)}."


def _best_labelling(results: pd.DataFrame) -> pd.DataFrame:
    """Each method's score for the labelling it fits best, by set and seed: more than one answer is right."""
    ran = results[results["ari"].notna()]
    return ran.loc[ran.groupby(["set", "seed", "method"], sort=False)["ari"].idxmax()]


def _kind(best: pd.DataFrame, kind: str) -> str:
    part = best[best["kind"] == kind]
    if kind == "none":
        return _clusters_where_none_are(part)
    parts = [
        "Adjusted Rand index, mean over seeds; noise is a cluster of its own.\n",
        _by_set(part, lambda own: own["ari"].mean()),
    ]
    noisy = part.groupby("method")["clustered"].min()
    with_noise = part[part["method"].isin(noisy[noisy < 1].index)]
    if len(with_noise):
        parts += [
            "\nOf clustered rows only: adjusted Rand index, and in brackets the share of rows that is clustered.\n",
            _by_set(with_noise, lambda own: own["ari_clustered"].mean(), lambda own: own["clustered"].mean()),
        ]
    parts += [
        "\nSeconds, median over seeds.\n",
        _by_set(part, lambda own: own["seconds"].median(), digits=2),
    ]
    return "\n".join(parts)


def _by_set(
    part: pd.DataFrame,
    value: Callable[[pd.DataFrame], float],
    share: Callable[[pd.DataFrame], float] | None = None,
    digits: int = 3,
) -> str:
    """One row per method, one column per set and one for their mean; the best score is bold."""
    names = list(dict.fromkeys(part["set"]))
    values = pd.DataFrame(
        {name: {method: value(own) for method, own in of_set.groupby("method")} for name, of_set in part.groupby("set")}
    )
    shares = {
        (name, method): share(own) for (name, method), own in part.groupby(["set", "method"]) if share is not None
    }
    sizes = {name: f"{own['rows'].iloc[0]:,} × {own['columns'].iloc[0]}" for name, own in part.groupby("set")}
    rows = [["method", *(f"{name}<br>{sizes[name]}" for name in names), "mean"]]
    top = values.drop(index="RPFCluster, oracle b", errors="ignore").max() if digits == 3 else None
    for method in _order(part):
        line = [
            _cell(number, digits, bold=top is not None and share is None and number >= top[name] - 0.0005)
            + (f" ({shares[name, method]:.2f})" if (name, method) in shares else "")
            for name, number in ((name, values[name].get(method, np.nan)) for name in names)
        ]
        own = values.loc[method, names]
        mean = _cell(own.mean(), digits)
        rows.append([method, *line, mean if own.notna().all() else f"({mean})"])
    return markdown(rows)


def _clusters_where_none_are(part: pd.DataFrame) -> str:
    names = list(dict.fromkeys(part["set"]))
    rows = [["method", *names, "one cluster"]]
    for method in _order(part):
        own = part[part["method"] == method].sort_values("seed")
        found = [" ".join(str(int(k)) for k in own[own["set"] == name]["k_found"]) for name in names]
        rows.append([method, *found, f"{int((own['k_found'] <= 1).sum())} of {len(own)}"])
    return "Number of clusters found, by seed; methods that are told a number are left out.\n\n" + markdown(rows)


def _summary(best: pd.DataFrame) -> str:
    """Means by kind, over the sets of the kind that a method ran on."""
    kinds = [kind for kind in KINDS if kind != "none" and (best["kind"] == kind).any()]
    rows = [["method", *(KINDS[kind] for kind in kinds), "worst", "median seconds, batteries"]]
    sets = {kind: best[best["kind"] == kind]["set"].nunique() for kind in kinds}
    for method in _order(best):
        own = best[(best["method"] == method) & (best["kind"] != "none")]
        if own.empty:
            continue
        cells = []
        for kind in kinds:
            part = own[own["kind"] == kind]
            mean = _cell(part.groupby("set")["ari"].mean().mean())
            cells.append(mean if part["set"].nunique() == sets[kind] or mean == "–" else f"({mean})")
        seconds = own[own["kind"] == "battery"]["seconds"].median()
        rows.append([method, *cells, _cell(own["ari"].min()), _cell(seconds, 2)])
    if len(rows) == 1:
        return ""
    return (
        "Mean adjusted Rand index by kind of data: best labelling, mean over seeds and sets; in brackets where a "
        f"method did not run on all sets of the kind.\n\n{markdown(rows)}"
    )


def _numbers_found(best: pd.DataFrame, results: pd.DataFrame) -> str:
    finding = {method.name for method in methods() if method.finds_k}
    part = best[best["method"].isin(finding) & (best["kind"] != "none")]
    if part.empty:
        return ""
    order = _order(part)
    rows = [["set", "k", *order]]
    exact = dict.fromkeys(order, 0)
    runs = dict.fromkeys(order, 0)
    for name, of_set in part.groupby("set", sort=False):
        valid = {int(k) for k in results.loc[results["set"] == name, "k"]}
        line = []
        for method in order:
            found = of_set[of_set["method"] == method].sort_values("seed")["k_found"].astype(int)
            exact[method] += int(found.isin(valid).sum())
            runs[method] += len(found)
            line.append(" ".join(map(str, dict.fromkeys(found))) or "–")
        rows.append([str(name), " or ".join(map(str, sorted(valid))), *line])
    rows.append(["**exact**", "", *(f"{exact[method]} of {runs[method]}" for method in order)])
    return f"Every number that some seed gave.\n\n{markdown(rows)}"


def _left_out(results: pd.DataFrame) -> str:
    part = results[results["left_out"].notna()].drop_duplicates(["set", "method"])
    rows = [["method", "why", "sets"]]
    for (method, why), own in part.groupby(["method", "left_out"], sort=False):
        rows.append([str(method), str(why), ", ".join(own["set"])])
    return markdown(rows) if len(rows) > 1 else ""


def _plot(best: pd.DataFrame, path: Path) -> None:
    """Mean quality against seconds for each kind that has several sets."""
    kinds = [kind for kind in KINDS if kind != "none" and (best["kind"] == kind).any()]
    if not kinds:
        return
    figure = Figure(figsize=(11, 3.8 * -(-len(kinds) // 2)), layout="constrained")
    panels = figure.subplots(-(-len(kinds) // 2), 2, squeeze=False).ravel()
    for axes in panels[len(kinds) :]:
        axes.set_visible(False)
    for axes, kind in zip(panels, kinds, strict=False):
        part = best[(best["kind"] == kind) & ~best["method"].isin(NOT_DRAWN)]
        for method, own in part.groupby("method", sort=False):
            if own["set"].nunique() < part["set"].nunique():
                continue  # means over different sets cannot be compared
            seconds = float(np.exp(np.log(own["seconds"].clip(lower=SHORTEST)).mean()))
            quality = float(own.groupby("set")["ari"].mean().mean())
            ours = str(method).startswith(OURS)
            axes.scatter(seconds, quality, color="#b3261e" if ours else "#4a5a6a", s=40 if ours else 28)
            axes.annotate(str(method), (seconds, quality), xytext=(5, 4), textcoords="offset points", fontsize=7)
        axes.set(xscale="log", title=KINDS[kind], xlabel="seconds (geometric mean)", ylabel="mean ARI")
        axes.margins(x=0.25)
        axes.grid(alpha=0.3)
    figure.savefig(path, dpi=110)


def _order(results: pd.DataFrame) -> list[str]:
    known = [method.name for method in methods()]
    there = set(results["method"])
    return [name for name in known if name in there] + sorted(there - set(known))


def _cell(value: float, digits: int = 3, bold: bool = False) -> str:
    if np.isnan(value):
        return "–"
    return f"**{value:.{digits}f}**" if bold else f"{value:.{digits}f}"


def markdown(rows: list[list[str]]) -> str:
    """A table; the first row is its head."""
    head, *body = rows
    lines = [head, ["---"] + ["--:"] * (len(head) - 1), *body]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines) + "\n"
