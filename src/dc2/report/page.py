"""Whole pages: sections, contents, style and scripts in one file that needs nothing else."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from dc2.output import check_target, write_whole
from dc2.plots.palette import DARK_COLOURS, LIGHT_COLOURS
from dc2.report.html import Content, Html, paragraph, tag

__all__ = ["Section", "page", "write_page"]

# A report opens without any network, and a name in the data that looks like code stays a name.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"


@dataclass(frozen=True)
class Section:
    """A chapter of a page.

    Attributes
    ----------
    title : str
        Its heading; also its place in the contents.
    lead : str or Html
        One or two plain sentences that say what the section shows.
    body : Html
        Everything else.
    """

    title: str
    lead: Content
    body: Html

    @property
    def anchor(self) -> str:
        """Its address within the page."""
        return re.sub(r"[^a-z0-9]+", "-", self.title.lower()).strip("-")


def page(
    title: str,
    intro: Html,
    sections: Sequence[Section],
    *,
    controls: Content = None,
    data: Mapping[str, object] | None = None,
    footer: Content = None,
) -> Html:
    """Return a whole page, with style and scripts inside.

    Parameters
    ----------
    title : str
    intro : Html
        Stands under the title.
    sections : sequence of Section
    controls : Html, optional
        What changes several sections; stays in sight while the page scrolls.
    data : mapping, optional
        What scripts read, as JSON; ``data["map"]`` is found under the id "data-map".
    footer : Html or str, optional

    Examples
    --------
    >>> text = page("A <b> title", paragraph("Hello."), [Section("One", "First.", Html())])
    >>> text.startswith("<!DOCTYPE html>"), "A &lt;b&gt; title" in text
    (True, True)
    """
    links = [tag("a", section.title, href=f"#{section.anchor}") for section in sections]
    chapters = [
        tag("section", tag("h2", s.title), paragraph(s.lead, class_="lead"), s.body, id=s.anchor) for s in sections
    ]
    scripts = [
        tag("script", _json(value), type="application/json", id=f"data-{key}") for key, value in (data or {}).items()
    ]
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=_POLICY),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", title),
        tag("style", Html(_asset("report.css") + _colours())),
    )
    body = tag(
        "body",
        tag("a", "Skip to the contents", href="#contents", class_="skip"),
        tag("header", tag("h1", title), intro),
        tag("nav", *links, aria_label="Sections") if links else None,
        tag("main", controls, *chapters, id="contents"),
        None if footer is None else tag("footer", footer),
        tag("div", id="tip", role="status", hidden=True),
        *scripts,
        tag("script", Html(_asset("report.js"))),
    )
    return Html(f"<!DOCTYPE html>\n{tag('html', head, body, lang='en')}\n")


def write_page(path: str | os.PathLike[str], content: Html) -> Path:
    """Write a page; the file appears whole or not at all."""
    target = check_target(path, "A report")
    write_whole(target, content)
    return target


def _json(value: object) -> Html:
    """Return JSON that cannot end the script element it stands in."""
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return Html(text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"))


def _asset(name: str) -> str:
    return resources.files("dc2.report").joinpath("assets", name).read_text("utf-8")


def _colours() -> str:
    """Return the colours of clusters as CSS variables, for a white and a dark page."""
    light, dark = (
        "".join(f"--c{i}:{colour};" for i, colour in enumerate(colours)) for colours in (LIGHT_COLOURS, DARK_COLOURS)
    )
    return f":root{{{light}}}@media(prefers-color-scheme:dark){{:root{{{dark}}}}}"
