"""How the bandwidth and the number of clusters were chosen, where the model chose them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dc2.report.facts import Facts
from dc2.report.html import Html, Section, figure, join
from dc2.report.numbers import number
from dc2.report.svg import Mark, Series, chart

__all__ = ["section"]


def section(facts: Facts) -> Section | None:
    """Return the section, if anything was chosen."""
    bandwidths = getattr(facts.model, "bandwidth_path_", None)
    numbers = getattr(facts.model, "n_clusters_path_", None)
    if bandwidths is None and numbers is None:
        return None
    drawn = [
        _curve(bandwidths, "bandwidth", "bandwidth", getattr(facts.model, "bandwidth_", None), log=True),
        _curve(numbers, "n_clusters", "number of clusters", facts.clusters.n_clusters, log=False),
    ]
    lead = "Several values were tried, and the one with the best score was taken."
    return Section("What was tried", lead, join(*drawn))


def _curve(
    path: Mapping[str, Any] | None, key: str, title: str, chosen: float | None, log: bool
) -> Html | None:
    if path is None:
        return None
    tried, score = np.asarray(path[key], float), np.asarray(path["score"], float)
    order = np.argsort(tried)
    taken = tried[np.nanargmax(score)] if chosen is None else float(chosen)
    drawn = chart(
        [Series(tried[order], score[order], title)],
        alt=f"Score over the {title}; {number(taken)} was taken.",
        x_title=title,
        y_title="score (higher is better)",
        x_log=log,
        whole_x=not log,
        marks=[Mark(taken, f"taken: {number(taken)}")],
    )
    return figure(drawn)
