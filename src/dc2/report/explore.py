"""Exploring: other numbers of clusters, two clusters side by side, the table as a file. The page's script does it."""

from __future__ import annotations

from typing import Any

import numpy as np

from dc2.facts.facts import MOST_TOLD, Facts
from dc2.facts.views import View
from dc2.plots.palette import N_COLOURS, SHAPES
from dc2.report.html import Html, paragraph, tag
from dc2.report.numbers import number, percent
from dc2.report.page import Section
from dc2.report.sections.profile import MOST_COLUMNS
from dc2.report.sections.sizes import MOST_WORDS

__all__ = ["compare_section", "controls", "explore_data"]


def controls(facts: Facts) -> Html | None:
    """Return the slider for the number of clusters, where there are several to choose from."""
    views = facts.views
    if len(views) < 2:
        return None
    chosen = next(i for i, view in enumerate(views) if view.chosen)
    slider = tag(
        "input",
        type="range",
        id="view",
        min="0",
        max=str(len(views) - 1),
        step="1",
        value=str(chosen),
        aria_describedby="view-note",
    )
    return tag(
        "div",
        tag("label", "Clusters", for_="view"),
        slider,
        tag("output", str(facts.clusters.n_clusters), for_="view", id="view-number"),
        tag("button", "As chosen", type="button", id="view-reset", disabled=True),
        tag("span", _note(views[chosen]), id="view-note", class_="note"),
        id="explore",
        role="group",
        aria_label="Number of clusters",
    )


def compare_section(facts: Facts) -> Section | None:
    """Return the section that puts two clusters side by side."""
    k = facts.told
    if k < 2:
        return None
    pickers = [
        tag(
            "label",
            word,
            " ",
            tag(
                "select",
                *(tag("option", str(i), value=str(i), selected=i == at) for i in range(k)),
                id=name,
            ),
        )
        for word, name, at in (("Cluster", "compare-a", 0), ("with cluster", "compare-b", 1))
    ]
    body = tag(
        "div",
        tag("div", *pickers, class_="pickers"),
        tag("div", id="compare-table", class_="scroll", tabindex="0", role="region", aria_live="polite"),
        tag("noscript", paragraph("This section needs scripts.")),
        id="compare",
    )
    lead = "Two clusters side by side: the columns in which they differ most come first."
    return Section("Compare two clusters", lead, body)


def explore_data(facts: Facts) -> dict[str, Any]:
    """Return what the script reads: for each view the numbers that the sections show."""
    columns = facts.profile.telling_columns(MOST_COLUMNS)
    return {
        "colours": N_COLOURS,
        "shapes": list(SHAPES),
        "unit": facts.unit,
        "columns": [facts.profile.names[column] for column in columns.tolist()],
        "overall": [number(value) for value in facts.profile.overall[columns].tolist()],
        "views": [_view(facts, view, columns) for view in facts.views],
        "noise": _noise(facts),
    }


def _noise(facts: Facts) -> dict[str, Any] | None:
    """Return what is known of rows in no cluster, as the last line of the table."""
    noise = facts.clusters.noise
    if not noise:
        return None
    signatures = int((facts.clusters.labels < 0).sum())
    return {"rows": noise, "share": round(noise / facts.clusters.total, 6), "signatures": signatures}


def _view(facts: Facts, view: View, columns: Any) -> dict[str, Any]:
    clusters, profile = view.clusters, view.profile
    sizes, inside = clusters.sizes, clusters.labels[clusters.in_clusters]
    told = min(clusters.n_clusters, MOST_TOLD)
    stability = facts.stability[: clusters.n_clusters].round(3).tolist() if view.chosen else None
    return {
        "chosen": view.chosen,
        "note": _note(view),
        "cluster": clusters.labels[facts.drawn].tolist(),
        "rows": sizes.tolist(),
        "rowsText": [number(size) for size in sizes.tolist()],
        "share": (sizes / clusters.total).round(6).tolist(),
        "shareText": [percent(share) for share in (sizes / clusters.total).tolist()],
        "signatures": np.bincount(inside, minlength=clusters.n_clusters).tolist(),
        "stability": stability,
        "words": [
            [
                [
                    word,
                    profile.names[column],
                    number(profile.means[k, column]),
                    number(profile.overall[column]),
                ]
                for word, column in profile.words(k, MOST_WORDS)
            ]
            for k in range(told)
        ],
        "difference": profile.difference[:told, columns].round(2).tolist(),
        "means": [[number(value) for value in row] for row in profile.means[:told, columns].tolist()],
    }


def _note(view: View) -> str:
    told = "The number that the model has" if view.chosen else "Not the number that the model has"
    layers = " and ".join(str(layer) for layer in view.layers)
    return f"{told}; layer {layers}." if layers else f"{told}."
