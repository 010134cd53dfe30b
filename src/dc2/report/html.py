"""A small HTML builder: elements, tables and figures; everything is escaped unless it is `Html` already."""

from __future__ import annotations

import base64
import html
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from dc2.plots.palette import N_COLOURS, shape
from dc2.report.numbers import number

__all__ = [
    "Cell",
    "Content",
    "Html",
    "Row",
    "bar",
    "code_block",
    "figure",
    "image",
    "join",
    "more",
    "paragraph",
    "swatch",
    "table",
    "tag",
    "tiles",
]


class Html(str):
    """Text that is HTML already and is not escaped again."""

    __slots__ = ()


Content: TypeAlias = Html | str | float | None
Row: TypeAlias = "Sequence[Content | Cell]"

_VOID = {"br", "hr", "img", "input", "meta"}


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
        What the table shows, for those who cannot see it.
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
    return tag("dl", *(tag("div", tag("dt", what), tag("dd", figure)) for figure, what in facts), class_="tiles")


def swatch(cluster: int) -> Html:
    """Return a cluster's number beside its colour and shape."""
    dot = tag("i", class_=f"dot {shape(cluster)}", style=f"background:var(--c{cluster % N_COLOURS})")
    return tag("span", dot, str(cluster), class_="swatch")


def code_block(text: str, label: str) -> Html:
    """Return text to copy, with a button that copies it."""
    button = tag("button", "Copy", type="button", class_="copy", aria_label=f"Copy {label}")
    return tag("div", button, tag("pre", tag("code", text), tabindex="0", aria_label=label), class_="code")


def figure(drawing: Html, caption: Content = None) -> Html:
    """Return a drawing with words under it."""
    return tag("figure", drawing, None if caption is None else tag("figcaption", caption))


def image(png: bytes, alt: str, **attributes: Any) -> Html:
    """Return a picture that is part of the page."""
    source = "data:image/png;base64," + base64.b64encode(png).decode("ascii")
    return tag("img", src=source, alt=alt, **attributes)


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
