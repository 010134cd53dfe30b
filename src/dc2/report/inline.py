"""A report that shows itself in a notebook."""

from __future__ import annotations

import html
from typing import Any

from dc2.facts import Facts
from dc2.report.cluster_report import cluster_page
from dc2.report.html import Html

__all__ = ["InlineReport"]

HEIGHT = 800


class InlineReport:
    """The report on a model, shown in a frame of its own by Jupyter.

    Parameters
    ----------
    page : Html
        The whole page.
    """

    def __init__(self, page: Html) -> None:
        self._page = page

    @classmethod
    def of(cls, facts: Facts, **told: Any) -> InlineReport:
        """Make one from the facts of a model."""
        return cls(cluster_page(facts, **told))

    def _repr_html_(self) -> str:
        # The frame keeps the style of the page from that of the notebook; scripts run in it and reach nothing else.
        page = html.escape(self._page, quote=True)
        return (
            f'<iframe srcdoc="{page}" width="100%" height="{HEIGHT}" style="border:0" '
            'sandbox="allow-scripts allow-downloads" title="dc2 report"></iframe>'
        )

    def __repr__(self) -> str:
        return f"InlineReport({len(self._page) // 1000} kB): shown in a notebook; report(path) writes it to a file"
