"""What sets each cluster apart, as a heat map of standardised differences."""

from __future__ import annotations

from dc2.facts.facts import Facts
from dc2.facts.profile import LEVELS, level_word
from dc2.report.html import Cell, Html, join, more, paragraph, swatch, table, tag
from dc2.report.numbers import number
from dc2.report.page import Section

__all__ = ["section"]

MOST_COLUMNS = 30
STRONGEST = 2.0


def section(facts: Facts) -> Section:
    """Return the section."""
    profile, k = facts.profile, facts.told
    shown = profile.telling_columns(MOST_COLUMNS).tolist()
    rows = [
        [
            profile.names[column],
            *(_cell(facts, cluster, column) for cluster in range(k)),
            profile.overall[column],
        ]
        for column in shown
    ]
    head = ["Column", *(swatch(cluster) for cluster in range(k)), "Mean of all"]
    heat = table(head, rows, label="How far the mean of each cluster lies from the mean of all rows", class_="heat")
    left_out = len(profile.names) - len(shown)
    body = join(
        _key(),
        tag("div", heat, id="heat"),
        paragraph(
            f"{len(shown)} of {number(len(profile.names))} columns are shown: those in which clusters differ most.",
            class_="note",
        )
        if left_out
        else None,
        more(
            "How to read this table",
            paragraph(
                "A number says how far the cluster's average lies from the average of all rows, counted in standard "
                f"deviations of the signatures. {_level_words()} Point at a number to see the averages themselves."
            ),
            _scaling_words(facts),
        ),
    )
    lead = "Orange: the cluster lies above the average of all rows in this column. Violet: below it. Pale: near it."
    return Section("What sets clusters apart", lead, body)


def _cell(facts: Facts, cluster: int, column: int) -> Cell:
    profile = facts.profile
    difference = float(profile.difference[cluster, column])
    strength = min(abs(difference) / STRONGEST, 1.0)
    word = f", {level_word(difference)}" if level_word(difference) else ""
    mean, overall = number(profile.means[cluster, column]), number(profile.overall[column])
    return Cell(
        f"{difference:+.1f}".replace("-", "−").replace("+0.0", "0.0").replace("−0.0", "0.0"),
        sort=difference,
        tip=f"Cluster {cluster}, {profile.names[column]}: {mean} on average{word}; all: {overall}",
        class_=("high" if difference > 0 else "low") + (" strong" if strength > 0.6 else ""),
        style=f"--s:{100 * strength:.0f}%",
    )


def _level_words() -> str:
    named = [f"from {number(least)} on {high} or {low}" for least, high, low in reversed(LEVELS)]
    return f"A difference is called {', '.join(named)}."


def _key() -> Html:
    ends = [tag("span", "below"), tag("i", class_="scale diverging"), tag("span", "above the average")]
    return tag("div", *ends, class_="key", aria_hidden="true")


def _scaling_words(facts: Facts) -> Html | None:
    scaling = facts.model.router_.scaling
    if scaling is None:
        return None
    if scaling.unit:
        return paragraph("Rows were brought to length 1 to be clustered, and values are shown so scaled.")
    return paragraph(f"Columns were scaled ({scaling.kind}) to be clustered; values are shown in their own units.")
