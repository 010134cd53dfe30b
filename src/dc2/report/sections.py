"""What the sections of a report show; the templates say how."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dc2.report.cluster_statistics import ClusterStatistics, cut_costs, gap_after
from dc2.report.page import Section, Table, count, number, percent, seconds
from dc2.report.profiles import LEVELS, Silhouette, level_word
from dc2.report.svg import Chart, Mark, Series, chart

MOST_COLUMNS = 30
STRONGEST = 2.0


def clusters_section(statistics: ClusterStatistics) -> Section:
    """Return the table of clusters: sizes, stability, and what sets each apart."""
    content = {
        "statistics": statistics,
        "largest": float(statistics.shares.max()) or 1.0,
        "noise_signatures": int((statistics.labels < 0).sum()),
    }
    return Section("Clusters", _clusters_lead(statistics), "clusters.html", content)


def _clusters_lead(statistics: ClusterStatistics) -> str:
    k, noise, unit, shares = statistics.n_clusters, statistics.noise, statistics.unit, statistics.shares
    in_none = "" if noise is None else f" {number(noise)} {unit} are in no cluster and have the label −1."
    if k == 1:
        return f"All {unit} are in one cluster." if not noise else f"There is one cluster.{in_none}"
    big, small = int(shares.argmax()), int(shares.argmin())
    return (
        f"The largest of the {k} clusters is {big}, with {percent(shares[big])} of the {unit}; the smallest is "
        f"{small}, with {percent(shares[small])}. {_labels(statistics)}{in_none}"
    )


def _labels(statistics: ClusterStatistics) -> str:
    """Return which label in the output each cluster has: after updates, pages still count them from the largest."""
    numbers = statistics.numbers[: statistics.n_listed]
    if numbers == tuple(range(len(numbers))):
        return "These numbers are the labels in the output."
    pairs = ", ".join(f"{place} is {number}" for place, number in enumerate(numbers))
    return f"This page counts clusters from the largest; their labels in the output are others: {pairs}."


def profile_section(statistics: ClusterStatistics) -> Section | None:
    """Return the heat map of standardised differences; None for a given graph."""
    if not statistics.names:
        return None
    levels = [f"from {number(least)} on {high} or {low}" for least, high, low in reversed(LEVELS)]
    content = {
        "statistics": statistics,
        "columns": statistics.profile.differing_columns(MOST_COLUMNS).tolist(),
        "strongest": STRONGEST,
        "levels": ", ".join(levels),
        "level_word": level_word,
        "signed": _signed,
    }
    lead = "Orange: the cluster is above the mean of all rows in this column. Violet: below it. Pale: near it."
    return Section("What sets clusters apart", lead, "profile.html", content)


def _signed(difference: float) -> str:
    return f"{difference:+.1f}".replace("-", "−").replace("+0.0", "0.0").replace("−0.0", "0.0")


def rules_section(statistics: ClusterStatistics) -> Section | None:
    """Return a short rule for each cluster; None if there is only one."""
    if statistics.n_listed < 2:
        return None
    rules = statistics.rules.items()
    rows = [(str(k), rule.text, percent(rule.precision), percent(rule.coverage)) for k, rule in rules]
    lead = (
        "Conditions that most rows of a cluster meet, and few others. Precision: the share of the rows that meet the "
        "rule and are in the cluster. Coverage: the share of the cluster's rows that meet it."
    )
    table = Table("A short rule for each cluster", ["Cluster", "Rule", "Precision", "Coverage"], rows, n_text=2)
    return Section("Rules", lead, content={"parts": [table]})


def compare_section(statistics: ClusterStatistics) -> Section | None:
    """Return the comparison of two clusters, which a script fills in; None if there is only one."""
    if statistics.n_listed < 2 or not statistics.names:
        return None
    lead = "Two clusters side by side: the columns in which they differ most come first."
    return Section("Compare two clusters", lead, "compare.html", {"statistics": statistics})


SEPARATION = ((0.5, "well apart"), (0.25, "apart"), (0.0, "close to its neighbour"), (-1.0, "mixed with its neighbour"))


def quality_section(statistics: ClusterStatistics) -> Section | None:
    """Return spread and silhouettes; None for a given graph."""
    if not statistics.names:
        return None
    lead = _quality_lead(statistics.silhouette, statistics.kernel_silhouette)
    content = {"statistics": statistics, "separation": _separation}
    return Section("How well they hold together", lead, "quality.html", content)


def _separation(silhouette: float) -> str:
    return next(word for least, word in SEPARATION if silhouette >= least)


def _quality_lead(straight: Silhouette | None, kernel: Silhouette | None) -> str:
    if straight is None:
        return "There is only one cluster, so there is nothing to compare it with."
    by_kernel = "" if kernel is None else f" in straight lines and {kernel.overall:.2f} by the kernel"
    return f"The mean silhouette is {straight.overall:.2f}{by_kernel}: 1 is far apart, 0 is touching."


def resolutions_section(statistics: ClusterStatistics) -> Section | None:
    """Return the sweep over resolutions, if communities made the clusters."""
    path, verdict = (getattr(statistics.model, name, None) for name in ("resolution_path_", "verdict_"))
    if path is None:
        return None
    k = statistics.n_clusters
    taken = path["resolution"][path["chosen"].astype(bool)]
    drawn = chart(
        [Series(path["resolution"], path["n_clusters"], "clusters")],
        alt=f"The number of clusters at each resolution; {k} were taken.",
        x_title="resolution (finer to the right, logarithmic)",
        y_title="clusters (logarithmic)",
        x_log=True,
        y_log=True,
        marks=[Mark(float(resolution), f"taken: {k}") for resolution in taken[:1]],
    )
    content = {"chart": drawn, "numbers": _evaluated_numbers(path), "evidence": _evidence(verdict)}
    return Section("How many clusters", statistics.verdict or "", "resolutions.html", content)


def _evidence(verdict: Any) -> list[tuple[str, list[str]]]:
    """Return the numbers behind the chosen number of clusters and the runner-up, for a table."""
    shown = [("chosen", verdict.chosen)] + ([("runner-up", verdict.runner_up)] if verdict.runner_up else [])
    return [
        (
            f"{one.n_clusters} ({role})",
            [
                number(value, 2) if np.isfinite(value) else ""
                for value in (one.agreement, one.persistence, one.depth, one.crossing, one.evidence, one.score)
            ],
        )
        for role, one in shown
    ]


MOST_NUMBERS = 12


def _evaluated_numbers(path: Any) -> list[tuple[int, str, str]]:
    """Return the numbers of clusters that were evaluated, with score and agreement, best first."""
    evaluated = np.flatnonzero(np.isfinite(path["score"]))
    order = evaluated[np.argsort(-path["score"][evaluated], kind="stable")]
    found: dict[int, tuple[int, str, str]] = {}
    for place in order.tolist():
        k = int(path["n_clusters"][place])
        agreement = path["agreement"][evaluated[path["n_clusters"][evaluated] == k]]
        best = percent(float(np.nanmax(agreement))) if np.isfinite(agreement).any() else ""
        found.setdefault(k, (k, number(float(path["score"][place]), 2), best))
    return list(found.values())[:MOST_NUMBERS]


def spectrum_section(statistics: ClusterStatistics) -> Section | None:
    """Return the eigenvalues, if there is more than one to show."""
    eigenvalues: Any = getattr(statistics.model, "eigenvalues_", ())
    k = statistics.n_clusters
    if len(eigenvalues) < 2:
        return None
    groups, costs, gap = np.arange(1, len(eigenvalues) + 1), cut_costs(eigenvalues), gap_after(eigenvalues)
    made = (groups > 1) & (groups <= k)
    drawn = chart(
        [
            Series(groups[made], costs[made], "cuts that were made", line=False),
            Series(groups[groups > k], costs[groups > k], "further cuts", "var(--muted)", line=False),
        ],
        alt=f"The cost of cutting into 2 to {len(groups)} groups. {_gap_sentence(gap, k)}",
        x_title="number of groups",
        y_title="cost of the cut (1 − eigenvalue, logarithmic)",
        y_log=True,
        whole_x=True,
        marks=[] if gap is None else [Mark(gap + 0.5, f"gap after {gap}")],
    )
    return Section("How many clusters", _gap_sentence(gap, k), "spectrum.html", {"chart": drawn})


def _gap_sentence(gap: int | None, k: int) -> str:
    if gap is None:
        return (
            "No jump in the cost of cuts stands out, so the eigenvalues do not support a particular number of clusters."
        )
    if gap == k:
        return f"The cost of cuts jumps after {gap} groups, and {k} clusters were made: the number fits the data."
    made = f"{count(k, 'cluster')} {'was' if k == 1 else 'were'} made"
    return f"The cost of cuts jumps after {gap} groups, while {made}: try n_clusters={gap}."


RUNNERS_UP = 2


def choices_section(statistics: ClusterStatistics) -> Section | None:
    """Return the scores of what was tried, if the model chose anything."""
    model = statistics.model
    names = ("n_clusters_path_", "bandwidth_path_", "bandwidth_")
    numbers, bandwidths, taken = (getattr(model, name, None) for name in names)
    if bandwidths is None and numbers is None:
        return None
    content: dict[str, Any] = {"numbers": None, "bandwidth_chart": None}
    if numbers is not None:
        k = statistics.n_clusters
        content["numbers"] = _taken_number(k, numbers)
        content["numbers_chart"] = _curve(numbers, "n_clusters", "number of clusters", k, whole_x=True)
    if bandwidths is not None:
        content["bandwidth_chart"] = _curve(bandwidths, "bandwidth", "bandwidth", taken, x_log=True)
    lead = "dc2 tried several values. The score says how clearly the clusters are separated with each."
    return Section("What was tried", lead, "choices.html", content)


def _taken_number(k: int, path: Mapping[str, Any]) -> str:
    """Return the number of clusters that was taken, and the next best."""
    numbers, score = np.asarray(path["n_clusters"]), np.asarray(path["score"], float)
    others = [n for n in numbers[np.argsort(-score, kind="stable")].tolist() if n != k]
    then = f" Next come {' and '.join(map(str, others[:RUNNERS_UP]))}." if len(others) > 1 else ""
    return f"dc2 took the number of clusters with the best score: {k}.{then}"


def _curve(path: Mapping[str, Any], key: str, name: str, taken: Any, **axis: bool) -> Chart:
    """Return the score of every value that was tried, with a mark at the one taken."""
    return chart(
        [Series(path[key], path["score"], name)],
        alt=f"Score of each {name}; {number(taken)} was taken.",
        x_title=name,
        y_title="score (higher is better)",
        marks=[Mark(taken, f"taken: {number(taken)}")],
        **axis,
    )


LEFT_OUT = "left out"


def preparation_section(statistics: ClusterStatistics) -> Section | None:
    """Return what was done with the columns of a table; None if rows were not prepared."""
    preparer = getattr(statistics.model, "preparer_", None)
    if preparer is None:
        return None
    decisions = preparer.decisions_
    used = {name: text for name, text in decisions.items() if not text.startswith(LEFT_OUT)}
    unused = {name: text.removeprefix(f"{LEFT_OUT}: ") for name, text in decisions.items() if name not in used}
    lead = (
        f"dc2 prepared the table: it uses {len(used)} of {len(decisions)} columns. A sample of the rows decided how; "
        "use a TablePreparer to decide otherwise."
    )
    return Section("What was done with the columns", lead, "preparation.html", {"used": used, "unused": unused})


STAGES = {
    "divide": "draw a sample and place the cuts",
    "compress": "send every row to its signature and add it up",
    "conquer": "compare the signatures and find the clusters",
    "populate": "give every row the cluster of its signature",
}


def timings_section(statistics: ClusterStatistics) -> Section | None:
    """Return the seconds of each stage, if the model knows them."""
    spent = getattr(statistics.model, "stage_seconds_", None)
    if not spent or sum(spent.values()) <= 0:
        return None
    total, n_rows = sum(spent.values()), statistics.n_rows
    stages = {stage: {"does": text, "colour": place} for place, (stage, text) in enumerate(STAGES.items())}
    speed = f", {number(float(f'{n_rows / total:.2g}'))} rows a second" if n_rows >= 1000 else ""
    content = {"spent": spent, "total": total, "stages": stages}
    return Section("Time", f"Fitting took {seconds(total)}{speed}.", "timings.html", content)
