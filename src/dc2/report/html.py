"""A small HTML builder: everything is escaped unless it is `Html` already, and a page needs nothing but itself."""

from __future__ import annotations

import base64
import html
import json
import os
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any, TypeAlias

from dc2.errors import ParameterError
from dc2.output import renamed_at_the_end
from dc2.plots.palette import DARK_COLOURS, LIGHT_COLOURS, N_COLOURS, shape
from dc2.report.numbers import number

__all__ = [
    "Cell",
    "Content",
    "Html",
    "Row",
    "Section",
    "bar",
    "check_page_path",
    "code_block",
    "figure",
    "image",
    "join",
    "more",
    "page",
    "paragraph",
    "swatch",
    "table",
    "tag",
    "tiles",
    "write_page",
]


class Html(str):
    """Text that is HTML already and is not escaped again."""

    __slots__ = ()


Content: TypeAlias = Html | str | float | None
Row: TypeAlias = "Sequence[Content | Cell]"

_VOID = {"br", "hr", "img", "meta"}
# A report opens without any network, and a name in the data that looks like code stays a name.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"


def tag(name: str, /, *children: Content, **attributes: Any) -> Html:
    """Return an element.

    Parameters
    ----------
    name : str
        Such as "p".
    *children : Html, str, number or None
        What is in it: text is escaped, numbers are written for people, None is left out.
    **attributes
        ``class_`` stands for class and ``data_sort`` for data-sort; None and False are left out.

    Examples
    --------
    >>> tag("p", "2 < 3", class_="note")
    '<p class="note">2 &lt; 3</p>'
    """
    written = "".join(_attribute(key, value) for key, value in attributes.items())
    opening = f"<{name}{written}>"
    return Html(opening if name in _VOID else f"{opening}{join(*children)}</{name}>")


def join(*children: Content) -> Html:
    """Return contents one after another, as HTML.

    Examples
    --------
    >>> join("a & b", tag("br"), 1234567)
    'a &amp; b<br>1,234,567'
    """
    return Html("".join(_escaped(child) for child in children))


def paragraph(*children: Content, **attributes: Any) -> Html:
    """Return a paragraph."""
    return tag("p", *children, **attributes)


def more(summary: str, *children: Content) -> Html:
    """Return contents that open with a click on the summary."""
    return tag("details", tag("summary", summary), *children)


@dataclass(frozen=True)
class Cell:
    """A cell of a table that is sorted by something other than what it shows.

    Attributes
    ----------
    content : Html, str, number or None
    sort : float, str or None
        What it is sorted by; None takes the content.
    tip : str or None
        Shown while the pointer is over it.
    class_, style : str or None
        Of the element.
    """

    content: Content
    sort: float | str | None = None
    tip: str | None = None
    class_: str | None = None
    style: str | None = None


def table(
    head: Sequence[Content],
    rows: Iterable[Row],
    *,
    label: str,
    text_columns: Collection[int] = (0,),
    sortable: bool = True,
    class_: str | None = None,
) -> Html:
    """Return a table whose columns sort at a click; the first column stays in sight when it scrolls.

    Parameters
    ----------
    head : sequence
        Titles of columns.
    rows : iterable of sequences
        Cells: contents, or `Cell` where sorting or looks need more. The first one names the row.
    label : str
        What the table shows, for those who do not see it.
    text_columns : collection of int, default=(0,)
        Columns that hold text and stand left; numbers stand right.
    sortable : bool, default=True
    class_ : str, optional

    Examples
    --------
    >>> table(["k", "v"], [["a", 5]], label="An example").count("data-sort=")
    2
    """
    titles = [
        tag(
            "th",
            tag("button", title, type="button") if sortable else title,
            scope="col",
            class_=None if column in text_columns else "number",
        )
        for column, title in enumerate(head)
    ]
    body = [tag("tr", *(_cell(cell, i, i in text_columns) for i, cell in enumerate(row))) for row in rows]
    classes = " ".join(part for part in ("sortable" if sortable else "", class_ or "") if part)
    drawn = tag(
        "table",
        tag("thead", tag("tr", *titles)),
        tag("tbody", *body),
        class_=classes or None,
        aria_label=label,
    )
    return tag("div", drawn, class_="scroll", tabindex="0", role="region", aria_label=label)


def bar(share: float, content: Content, colour: str = "var(--accent)") -> Html:
    """Return a number over a bar that fills a share (0 to 1) of its cell."""
    width = f"width:{100 * min(max(share, 0.0), 1.0):.1f}%;background:{colour}"
    return tag("span", tag("span", content), tag("i", tag("b", style=width)), class_="bar")


def tiles(facts: Iterable[Sequence[Content]]) -> Html:
    """Return the main figures, each with what it is."""
    return tag(
        "dl", *(tag("div", tag("dt", what), tag("dd", figure)) for figure, what in facts), class_="tiles"
    )


def swatch(cluster: int) -> Html:
    """Return a cluster's number beside its colour and shape."""
    dot = tag("i", class_=f"dot {shape(cluster)}", style=f"background:var(--c{cluster % N_COLOURS})")
    return tag("span", dot, str(cluster), class_="swatch")


def code_block(text: str, label: str) -> Html:
    """Return text to copy, with a button that copies it."""
    button = tag("button", "Copy", type="button", class_="copy", aria_label=f"Copy {label}")
    return tag("div", button, tag("pre", tag("code", text), tabindex="0", aria_label=label), class_="code")


def figure(drawing: Html, caption: Content = None, class_: str | None = None) -> Html:
    """Return a drawing with words under it."""
    return tag("figure", drawing, None if caption is None else tag("figcaption", caption), class_=class_)


def image(png: bytes, alt: str, **attributes: Any) -> Html:
    """Return a picture that is part of the page."""
    source = "data:image/png;base64," + base64.b64encode(png).decode("ascii")
    return tag("img", src=source, alt=alt, **attributes)


@dataclass(frozen=True)
class Section:
    """A chapter of a page.

    Attributes
    ----------
    title : str
        Its heading; also its place in the contents.
    lead : str or Html
        One or two plain sentences that say what is to be seen.
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
        tag("section", tag("h2", s.title), paragraph(s.lead, class_="lead"), s.body, id=s.anchor)
        for s in sections
    ]
    scripts = [
        tag("script", _json(value), type="application/json", id=f"data-{key}")
        for key, value in (data or {}).items()
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
        tag("main", *chapters, id="contents"),
        None if footer is None else tag("footer", footer),
        tag("div", id="tip", role="status", hidden=True),
        *scripts,
        tag("script", Html(_asset("report.js"))),
    )
    return Html(f"<!DOCTYPE html>\n{tag('html', head, body, lang='en')}\n")


def check_page_path(path: str | os.PathLike[str]) -> Path:
    """Return the path if a page can be written there, else raise; call it before any work."""
    target = Path(path).expanduser()
    if target.is_dir():
        raise ParameterError(
            f"A report cannot be written to {str(target)!r}: it is a folder; add a file name."
        )
    if not target.parent.is_dir():
        raise ParameterError(f"A report cannot be written to {str(target)!r}: there is no such folder.")
    return target


def write_page(path: str | os.PathLike[str], content: Html) -> Path:
    """Write a page; the file appears whole or not at all."""
    target = check_page_path(path)
    with renamed_at_the_end(target) as temporary:
        temporary.write_text(content, encoding="utf-8", newline="\n")
    return target


def _cell(cell: Content | Cell, column: int, is_text: bool) -> Html:
    cell = cell if isinstance(cell, Cell) else Cell(cell)
    by = cell.sort if cell.sort is not None else cell.content
    key = by if isinstance(by, int | float) else None if isinstance(by, Html) else by
    classes = " ".join(part for part in ("" if is_text else "number", cell.class_ or "") if part)
    name, scope = ("th", "row") if column == 0 else ("td", None)
    return tag(
        name,
        cell.content,
        scope=scope,
        class_=classes or None,
        style=cell.style,
        data_sort=None if key is None else repr(float(key)) if isinstance(key, float) else str(key),
        data_tip=cell.tip,
    )


def _attribute(key: str, value: Any) -> str:
    if value is None or value is False:
        return ""
    name = key.rstrip("_").replace("_", "-")
    return f" {name}" if value is True else f' {name}="{html.escape(str(value))}"'


def _escaped(child: Content) -> str:
    if child is None:
        return ""
    if isinstance(child, Html):
        return child
    return html.escape(child if isinstance(child, str) else number(child), quote=False)


def _json(value: object) -> Html:
    """Return JSON that cannot end the script element it stands in."""
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return Html(text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"))


def _asset(name: str) -> str:
    return resources.files("dc2.report").joinpath("assets", name).read_text("utf-8")


def _colours() -> str:
    """Return the colours of clusters as CSS variables, for a white and a dark page."""
    light, dark = (
        "".join(f"--c{i}:{colour};" for i, colour in enumerate(colours))
        for colours in (LIGHT_COLOURS, DARK_COLOURS)
    )
    return f":root{{{light}}}@media(prefers-color-scheme:dark){{:root{{{dark}}}}}"
