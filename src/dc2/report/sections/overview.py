"""The head of the report: what was clustered, and how, in the user's numbers."""

from __future__ import annotations

from dc2.facts.facts import Facts
from dc2.report.html import Html, join, paragraph, tag, tiles
from dc2.report.numbers import count, number, percent, seconds

__all__ = ["intro"]


def intro(facts: Facts, described: str | None = None) -> Html:
    """Return the main numbers and the four steps."""
    counted = [
        (int(facts.n_rows), "row"),
        (len(facts.clusters.names), "column"),
        (len(facts.clusters.points), "signature"),
        (facts.clusters.n_clusters, "cluster"),
    ]
    return join(
        None if described is None else paragraph(described, class_="source"),
        tiles(
            [
                *(count(many, thing).split(" ") for many, thing in counted),
                (percent(facts.variance_kept), "of the variation kept"),
            ]
        ),
        tag("ol", *(_step(facts, stage, text) for stage, text in _steps(facts).items()), class_="steps"),
    )


def _steps(facts: Facts) -> dict[str, str]:
    """Return what each stage did, in one plain sentence."""
    signatures, k = number(len(facts.clusters.points)), facts.clusters.n_clusters
    groups = f"{k} groups" if k > 1 else "one group"
    if facts.each_row_is_a_signature:
        divide = f"The {signatures} rows are few: each was kept as it is."
        compress = "No row had to stand in for others."
    else:
        how = facts.model.router_.in_words()
        divide = f"{how} split the rows into {signatures} small pieces of rows that are alike."
        compress = f"Each piece became one point, its signature: the average of its {facts.unit}."
    conquer = f"{facts.similarity_in_words.neighbours}; their ties form {groups}."
    return {
        "divide": divide,
        "compress": compress,
        "conquer": conquer,
        "populate": "Every row takes the cluster of its signature. New rows do the same.",
    }


def _step(facts: Facts, stage: str, text: str) -> Html:
    spent = getattr(facts.model, "stage_seconds_", {}).get(stage)
    time = None if spent is None else tag("small", seconds(spent))
    return tag("li", tag("strong", stage.capitalize()), time, paragraph(text))
