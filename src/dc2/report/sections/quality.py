"""How tight the clusters are and how far apart: spread and silhouette."""

from __future__ import annotations

from dc2.facts.facts import Facts
from dc2.facts.quality import Silhouette
from dc2.plots.palette import N_COLOURS
from dc2.report.html import Cell, Content, bar, join, more, paragraph, swatch, table
from dc2.report.numbers import number
from dc2.report.page import Section

__all__ = ["section"]

WORDS = (
    (0.5, "well apart"),
    (0.25, "apart"),
    (0.0, "close to its neighbour"),
    (-1.0, "mixed with its neighbour"),
)


KERNEL_WORDS = (
    "The silhouette by the kernel measures along the ties between signatures instead, and so sees such shapes; it is "
    "the more lenient of the two. "
)


def section(facts: Facts) -> Section:
    """Return the section."""
    straight, kernel, radii = facts.silhouette, facts.kernel_silhouette, facts.radii
    head: list[Content] = ["Cluster", "Spread"]
    if straight is not None:
        by_kernel = [] if kernel is None else ["Silhouette, by the kernel"]
        head += ["Silhouette", *by_kernel, "Closest", "In a word"]
    rows = []
    for k in range(facts.told):
        row: list[Content | Cell] = [
            Cell(swatch(k), sort=k),
            Cell(bar(radii[k] / (radii.max() or 1.0), number(radii[k]), "var(--muted)"), sort=float(radii[k])),
        ]
        if straight is not None:
            closest = int(straight.closest[k])
            row += [
                _score(straight, k),
                *([] if kernel is None else [_score(kernel, k)]),
                Cell(swatch(closest), sort=closest),
                _word(straight, k),
            ]
        rows.append(row)
    explained = more(
        "What these numbers mean",
        paragraph(
            "Spread is the typical distance of a row from the middle of its cluster (root mean square), in the scale "
            "in which rows were clustered."
        ),
        paragraph(
            "The silhouette compares how far a signature is from its own cluster and from the next one: 1 is far "
            "apart, 0 is on the border, below 0 is nearer to the other cluster. It measures in straight lines, so "
            "long, bent or ring-shaped clusters score low even where they are right. "
            + KERNEL_WORDS * (kernel is not None)
            + "Signatures count by the rows they stand for."
        ),
    )
    drawn = table(head, rows, label="Spread and silhouette of clusters", text_columns=(0, len(head) - 2, len(head) - 1))
    return Section("How well they hold together", _lead(straight, kernel), join(drawn, explained))


def _lead(straight: Silhouette | None, kernel: Silhouette | None) -> str:
    if straight is None:
        return "There is only one cluster, so there is nothing to compare it with."
    by_kernel = "" if kernel is None else f" in straight lines and {kernel.overall:.2f} by the kernel"
    return f"The mean silhouette is {straight.overall:.2f}{by_kernel}: 1 is far apart, 0 is touching."


def _score(silhouette: Silhouette, k: int) -> Cell:
    value = float(silhouette.per_cluster[k])
    return Cell(bar(value, f"{value:.2f}".replace("-", "−"), f"var(--c{k % N_COLOURS})"), sort=value)


def _word(silhouette: Silhouette, k: int) -> Cell:
    value = float(silhouette.per_cluster[k])
    return Cell(next(word for least, word in WORDS if value >= least), sort=value)
