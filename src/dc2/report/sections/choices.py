"""How the bandwidth and the number of clusters were chosen, where the model chose them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dc2.facts.facts import Facts
from dc2.report.html import Html, figure, join, paragraph
from dc2.report.numbers import number
from dc2.report.page import Section
from dc2.report.svg import Mark, Series, chart

__all__ = ["section"]

RUNNERS_UP = 2
BANDWIDTH_WORDS = paragraph(
    "The bandwidth says how alike signatures must be: a small one sees finer structure, a wide one depends less on "
    "single rows. The widest with a good score was taken."
)


def section(facts: Facts) -> Section | None:
    """Return the section, if anything was chosen."""
    numbers = getattr(facts.model, "n_clusters_path_", None)
    bandwidths = getattr(facts.model, "bandwidth_path_", None)
    if bandwidths is None and numbers is None:
        return None
    parts: list[Html] = []
    if numbers is not None:
        taken = facts.clusters.n_clusters
        parts += [
            _numbers_words(facts, numbers),
            _curve(numbers, "n_clusters", "number of clusters", taken, whole_x=True),
        ]
    if bandwidths is not None:
        parts += [
            BANDWIDTH_WORDS,
            _curve(bandwidths, "bandwidth", "bandwidth", facts.model.bandwidth_, x_log=True),
        ]
    lead = "Several values were tried. The score says how clearly the clusters stand apart with each."
    return Section("What was tried", lead, join(*parts))


def _numbers_words(facts: Facts, path: Mapping[str, Any]) -> Html:
    """Return the number of clusters that was taken, the runners-up, ."""
    numbers, score = np.asarray(path["n_clusters"]), np.asarray(path["score"], float)
    best_first = [n for n in numbers[np.argsort(-score, kind="stable")].tolist() if n != facts.clusters.n_clusters]
    next_best = " and ".join(str(n) for n in best_first[:RUNNERS_UP])
    then = f" Next come {next_best}." if len(best_first) > 1 else ""
    return paragraph(f"The number of clusters with the best score was taken: {facts.clusters.n_clusters}.{then}")


def _curve(path: Mapping[str, Any], key: str, name: str, taken: Any, **axis: bool) -> Html:
    """Return the score of every value that was tried, with a mark at the one taken."""
    return figure(
        chart(
            [Series(path[key], path["score"], name)],
            alt=f"Score of each {name}; {number(taken)} was taken.",
            x_title=name,
            y_title="score (higher is better)",
            marks=[Mark(taken, f"taken: {number(taken)}")],
            **axis,
        )
    )
