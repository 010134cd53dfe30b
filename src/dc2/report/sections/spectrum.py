"""The eigenvalues: what one more cut would cost."""

from __future__ import annotations

from typing import Any

import numpy as np

from dc2.facts.facts import Facts
from dc2.facts.spectrum import cut_costs, gap_after
from dc2.report.html import figure, join, more, paragraph
from dc2.report.numbers import count
from dc2.report.page import Section
from dc2.report.svg import Mark, Series, chart

__all__ = ["section"]


def section(facts: Facts) -> Section | None:
    """Return the section, if there is more than one eigenvalue to show."""
    eigenvalues: Any = getattr(facts.model, "eigenvalues_", ())
    k = facts.clusters.n_clusters
    if len(eigenvalues) < 2:
        return None
    groups, costs, gap = np.arange(1, len(eigenvalues) + 1), cut_costs(eigenvalues), gap_after(eigenvalues)
    made = (groups > 1) & (groups <= k)
    series = [
        Series(groups[made], costs[made], "cuts that were made", line=False),
        Series(groups[groups > k], costs[groups > k], "further cuts", "var(--muted)", line=False),
    ]
    drawn = chart(
        series,
        alt=f"The price of cutting into 2 to {len(groups)} groups. {_gap_sentence(gap, k)}",
        x_title="number of groups",
        y_title="price of the cut (1 − eigenvalue, logarithmic)",
        y_log=True,
        whole_x=True,
        marks=[] if gap is None else [Mark(gap + 0.5, f"gap after {gap}")],
    )
    explained = more(
        "What is shown here",
        paragraph(
            "Signatures are tied to each other by their similarity. To split them into groups, ties must be cut. The "
            "price of a cut is the share of ties that go with it. Cuts between clusters are cheap; a cut through a "
            "cluster is dear. So where the price jumps, the clusters are used up."
        ),
        paragraph(
            "In technical words: these are the leading eigenvalues of the normalized similarity, drawn as 1 − "
            "eigenvalue. The first is always 1 and is left out. A gap is marked at the first of the widest jumps, if "
            "it is by half or more, or by a fifth and alone."
        ),
    )
    return Section("How many clusters", _gap_sentence(gap, k), join(figure(drawn), explained))


def _gap_sentence(gap: int | None, k: int) -> str:
    if gap is None:
        return (
            "No jump in the price of cuts stands out: the groups shade into one another, and their number is a matter "
            "of how fine one wants to look."
        )
    if gap == k:
        return f"The price of cuts jumps after {gap} groups, and {k} clusters were made: the number fits the data."
    made = f"{count(k, 'cluster')} {'was' if k == 1 else 'were'} made"
    return f"The price of cuts jumps after {gap} groups, while {made}: {gap} may be worth a try."
