"""What was done with each column of a table that was prepared."""

from __future__ import annotations

from dc2.facts.facts import Facts
from dc2.report.html import join, more, paragraph, table
from dc2.report.page import Section

__all__ = ["section"]

LEFT_OUT = "left out"


def section(facts: Facts) -> Section | None:
    """Return the section; None where rows were taken as they are."""
    preparer = getattr(facts.model, "preparer_", None)
    if preparer is None:
        return None
    decisions = preparer.decisions_
    used = {name: words for name, words in decisions.items() if not words.startswith(LEFT_OUT)}
    unused = {name: words.removeprefix(f"{LEFT_OUT}: ") for name, words in decisions.items() if name not in used}
    body = join(
        table(
            ["Column", "What was done"],
            list(used.items()),
            label="Columns that were used",
            text_columns=(0, 1),
            sortable=False,
        ),
        paragraph(f"Left out: {'; '.join(f'{name} ({words})' for name, words in unused.items())}.", class_="note")
        if unused
        else None,
        more(
            "How to read the other sections",
            paragraph(
                "Averages are in the units of your table. Points in time are years; the column of a level, such as "
                "plan=gold, is the share of rows that have it. Averages of columns on a bent scale lie nearer to the "
                "median than plain averages do."
            ),
        ),
    )
    lead = (
        f"The table was prepared: {len(used)} of {len(decisions)} columns are used. A sample of the rows decided how; "
        "use a TablePreparer to decide otherwise."
    )
    return Section("What was done with the columns", lead, body)
