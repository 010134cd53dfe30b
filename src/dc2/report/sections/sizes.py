"""The clusters, their sizes, and what sets each apart, in words."""

from __future__ import annotations

import numpy as np

from dc2.facts.facts import Facts
from dc2.plots.palette import N_COLOURS
from dc2.report.html import Cell, Html, Row, bar, join, more, paragraph, swatch, table, tag
from dc2.report.numbers import number, percent
from dc2.report.page import Section

__all__ = ["section"]

MOST_WORDS = 4


def section(facts: Facts) -> Section:
    """Return the section."""
    largest = float(facts.shares.max()) or 1.0
    labels = facts.clusters.labels[facts.clusters.in_clusters]
    signatures = np.bincount(labels, minlength=facts.clusters.n_clusters).tolist()
    rows: list[Row] = [
        [
            Cell(swatch(k), sort=k),
            Cell(number(facts.clusters.sizes[k]), sort=float(facts.clusters.sizes[k])),
            Cell(bar(share / largest, percent(share), f"var(--c{k % N_COLOURS})"), sort=float(share)),
            Cell(f"{facts.stability[k]:.2f}", sort=float(facts.stability[k])),
            signatures[k],
            Cell(_words(facts, k), sort=facts.profile.sentence(k)),
        ]
        for k, share in enumerate(facts.shares[: facts.told])
    ]
    if facts.clusters.noise is not None:
        rows.append(_noise_row(facts, facts.clusters.noise, largest))
    head = ["Cluster", facts.unit.capitalize(), "Share", "Stability", "Signatures", "What sets it apart"]
    drawn = table(head, rows, label="Sizes of the clusters", text_columns=(0, 5), class_="stacked")
    buttons = [tag("button", "Download as CSV", type="button", id="download")]
    if facts.clusters.noise:
        buttons.append(tag("button", "Hide noise", type="button", id="noise", aria_pressed="false"))
    body = join(
        *(paragraph(remark, class_="remark") for remark in facts.remarks),
        tag("div", drawn, id="sizes"),
        paragraph(
            f"The {facts.told} largest clusters are listed here and below; the file that is downloaded, and summary() "
            "in Python, have all.",
            class_="note",
        )
        if facts.told < facts.clusters.n_clusters
        else None,
        tag("div", *buttons, class_="tools"),
        more(
            "What stability means",
            paragraph(
                "How much of a cluster comes back, 0 to 1, when signatures are drawn anew and clustered again: the "
                "mean of ten times. Clusters that are really there are near 1; parts of one cloud lie well below 0.7."
            ),
        ),
    )
    return Section("Clusters", _lead(facts), body)


def _noise_row(facts: Facts, noise: float, largest: float) -> Row:
    """Return the row of those that are in no cluster."""
    share = noise / facts.clusters.total
    return [
        Cell(tag("span", "−1", class_="noise"), sort=-1),
        Cell(number(noise), sort=noise),
        Cell(bar(min(share / largest, 1.0), percent(share), "var(--muted)"), sort=share),
        Cell("", sort=-1),
        int((facts.clusters.labels < 0).sum()),
        Cell(tag("span", "in no cluster: they lie too far out", class_="muted"), sort=""),
    ]


def _lead(facts: Facts) -> str:
    k, noise = facts.clusters.n_clusters, facts.clusters.noise
    in_none = "" if noise is None else f" {number(noise)} {facts.unit} are in none, and labelled −1."
    if k == 1:
        return f"All {facts.unit} are in one cluster." if not noise else f"There is one cluster.{in_none}"
    big, small = int(facts.shares.argmax()), int(facts.shares.argmin())
    return (
        f"The largest of the {k} clusters is {big}, with {percent(facts.shares[big])} of the {facts.unit}; the "
        f"smallest is {small}, with {percent(facts.shares[small])}. These numbers are the labels in the output."
        f"{in_none}"
    )


def _words(facts: Facts, cluster: int) -> Html:
    """Return words such as "high temperature (31 against 20)"."""
    profile = facts.profile
    found = [
        tag(
            "span",
            tag("b", word),
            " ",
            profile.names[column],
            tag(
                "small",
                f" {number(profile.means[cluster, column])} against {number(profile.overall[column])}",
            ),
            class_="word",
        )
        for word, column in profile.words(cluster, MOST_WORDS)
    ]
    return join(*found) if found else tag("span", "near the average in every column", class_="muted")
