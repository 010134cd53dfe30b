"""How many clusters the graph shows at each resolution, and which number persists."""

from __future__ import annotations

from typing import Any

import numpy as np

from dc2.facts.facts import Facts
from dc2.report.html import figure, join, more, paragraph, table
from dc2.report.numbers import number, percent
from dc2.report.page import Section
from dc2.report.svg import Mark, Series, chart

__all__ = ["section"]

MOST_NUMBERS = 12


def section(facts: Facts) -> Section | None:
    """Return the section, where communities made the clusters."""
    path: Any = getattr(facts.model, "resolution_path_", None)
    if path is None:
        return None
    taken = path["resolution"][path["chosen"].astype(bool)]
    drawn = chart(
        [Series(path["resolution"], path["n_clusters"], "clusters")],
        alt=f"The number of clusters at each resolution; {facts.clusters.n_clusters} were taken.",
        x_title="resolution (finer to the right, logarithmic)",
        y_title="clusters (logarithmic)",
        x_log=True,
        y_log=True,
        marks=[Mark(float(place), f"taken: {facts.clusters.n_clusters}") for place in taken[:1]],
    )
    explained = more(
        "What is shown here",
        paragraph(
            "The same graph is looked at from far and from near. A number of clusters that is really there stays the "
            "same over a wide range, and its clusters come back when rows are drawn anew: that share is called "
            "agreement. Numbers that are only passed through persist over no range."
        ),
    )
    return Section("How many clusters", facts.verdict or "", join(figure(drawn), _numbers(path), explained))


def _numbers(path: Any) -> Any:
    """Return a table of the numbers that were looked at closely, best first."""
    looked = np.flatnonzero(np.isfinite(path["score"]))
    order = looked[np.argsort(-path["score"][looked], kind="stable")]
    rows: list[list[Any]] = []
    seen: set[int] = set()
    for place in order.tolist():
        clusters = int(path["n_clusters"][place])
        if clusters not in seen:
            same = looked[path["n_clusters"][looked] == clusters]
            agrees = path["agreement"][same]
            best = float(np.nanmax(agrees)) if np.isfinite(agrees).any() else None
            rows.append([clusters, number(float(path["score"][place]), 2), "" if best is None else percent(best)])
            seen.add(clusters)
    if not rows:
        return None
    head = ["Clusters", "Score", "Agreement"]
    return table(head, rows[:MOST_NUMBERS], label="Numbers of clusters that were looked at closely")
