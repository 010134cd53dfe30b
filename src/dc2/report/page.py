"""Pages from Jinja2 templates, in one file that loads nothing; and numbers as the templates write them."""

from __future__ import annotations

import json
import math
import os
import re
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from dc2.io.outputs import check_target, write_whole
from dc2.report.displays import DARK_COLOURS, LIGHT_COLOURS, N_COLOURS, shape


def number(value: float, digits: int = 3) -> str:
    """Return a number with separators, or with a few significant digits if it is not whole.

    Examples
    --------
    >>> number(1234567), number(0.012345), number(1234.5), number(2.5e-9), number(float("nan"))
    ('1,234,567', '0.0123', '1,234', '2.5e−9', '–')
    """
    return plain_number(value, digits).replace("-", "−")


def plain_number(value: float, digits: int = 3) -> str:
    """Return a number as `number` does, with an ASCII minus sign."""
    if not math.isfinite(value):
        return "–" if math.isnan(value) else ("∞" if value > 0 else "-∞")
    if value == int(value) and abs(value) < 1e15:
        return f"{int(value):,}"
    size = abs(value)
    if size >= 1e9 or size < 1e-4:
        mantissa, exponent = f"{value:.{digits - 1}e}".split("e")
        plain = mantissa.rstrip("0").rstrip(".") if "." in mantissa else mantissa
        return f"{plain}e{int(exponent)}"
    decimals = max(digits - 1 - math.floor(math.log10(size)), 0)
    text = f"{value:,.{decimals}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def count(many: int, thing: str) -> str:
    """Return a number of things.

    Examples
    --------
    >>> count(1, "cluster"), count(2000, "row")
    ('1 cluster', '2,000 rows')
    """
    return f"{many:,} {thing}" + ("" if many == 1 else "s")


def percent(share: float) -> str:
    """Return a share as per cent, never rounded to none or all.

    Examples
    --------
    >>> percent(0.123), percent(0.0123), percent(0.00001), percent(0.9999), percent(1.0), percent(0.0)
    ('12%', '1.2%', '<0.1%', '99.9%', '100%', '0%')
    """
    if share in (0.0, 1.0) or not math.isfinite(share):
        return f"{number(100 * share)}%"
    if 0 < share < 0.001:
        return "<0.1%"
    if share >= 0.995:
        return f"{min(100 * share, 99.9):.1f}%"
    return f"{100 * share:.0f}%" if share >= 0.0995 else f"{100 * share:.1f}%"


def seconds(value: float) -> str:
    """Return a duration.

    Examples
    --------
    >>> seconds(0.0004), seconds(0.25), seconds(12.3), seconds(125), seconds(7300)
    ('<1 ms', '250 ms', '12.3 s', '2 min 5 s', '2 h 1 min')
    """
    if value < 0.001:
        return "<1 ms"
    if value < 1:
        return f"{1000 * value:.0f} ms"
    if value < 100:
        return f"{value:.1f} s"
    if value < 3600:
        return f"{int(value // 60)} min {int(value % 60)} s"
    return f"{int(value // 3600)} h {int(value % 3600 // 60)} min"


@dataclass(frozen=True)
class Section:
    """A section of a page.

    Attributes
    ----------
    title : str
        Its heading; also its entry in the navigation.
    lead : str
        One or two sentences on what the section shows.
    template : str
        The template of its body.
    content : mapping
        What the template shows.
    """

    title: str
    lead: str
    template: str = "parts.html"
    content: Mapping[str, Any] = field(default_factory=dict)

    @property
    def anchor(self) -> str:
        """Its address within the page."""
        return re.sub(r"[^a-z0-9]+", "-", self.title.lower()).strip("-")


@dataclass(frozen=True)
class Table:
    """A table of texts and numbers, for the template ``parts.html``.

    Attributes
    ----------
    label : str
        What the table shows; its heading.
    head : sequence of str
        Titles of columns.
    rows : sequence of sequences
        Texts and numbers.
    n_text : int, default=1
        The first columns hold text and are aligned to the left; the others hold numbers.
    """

    label: str
    head: Sequence[str]
    rows: Sequence[Sequence[str | float]]
    n_text: int = 1


@dataclass(frozen=True)
class Picture:
    """A PNG picture, for the template ``parts.html``; it becomes part of the page."""

    png: bytes
    caption: str

    @property
    def base64(self) -> str:
        """The file as text."""
        return b64encode(self.png).decode("ascii")


@cache
def environment() -> Any:
    """Return the Jinja2 environment of the templates; what they show is escaped unless it is markup already."""
    try:
        import jinja2
    except ModuleNotFoundError as error:
        raise ImportError('A report needs Jinja2, which is not installed: pip install "dc2[report]"') from error
    templates = jinja2.Environment(
        loader=jinja2.PackageLoader("dc2.report"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    templates.globals.update(
        number=number, count=count, percent=percent, seconds=seconds, shape=shape, n_colours=N_COLOURS
    )
    templates.filters["script_json"] = _script_json
    templates.tests["picture"] = lambda part: isinstance(part, Picture)
    templates.tests["table"] = lambda part: isinstance(part, Table)
    return templates


def render(template: str, /, **content: Any) -> str:
    """Return what a template makes of some content, as markup that is not escaped again.

    Examples
    --------
    >>> str(render("parts.html", parts=["2 < 3"]).strip())
    '<p>2 &lt; 3</p>'
    """
    from markupsafe import Markup

    text = environment().get_template(template).render(**content)
    # A line break between two elements belongs to the template; scripts compare and replace rows without it.
    markup: str = Markup(re.sub(r">\s*\n\s*<", "><", text))
    return markup


def page(
    title: str,
    intro: str,
    sections: Sequence[Section],
    *,
    controls: str | None = None,
    data: Mapping[str, object] | None = None,
    footer: str | None = None,
) -> str:
    """Return a whole page, with style and scripts inside.

    Parameters
    ----------
    title : str
    intro : str
        Under the title; markup of `render` is not escaped.
    sections : sequence of Section
    controls : str, optional
        What changes several sections; stays in sight while the page scrolls.
    data : mapping, optional
        What scripts read, as JSON; ``data["map"]`` is found under the id "data-map".
    footer : str, optional

    Examples
    --------
    >>> text = page("A <b> title", "Hello.", [Section("One", "First.", content={"parts": []})])
    >>> text.startswith("<!DOCTYPE html>"), "A &lt;b&gt; title" in text
    (True, True)
    """
    colours = {"light": enumerate(LIGHT_COLOURS), "dark": enumerate(DARK_COLOURS)}
    return render(
        "page.html",
        title=title,
        intro=intro,
        sections=sections,
        controls=controls,
        data=data or {},
        footer=footer,
        colours=colours,
    )


def write_page(path: str | os.PathLike[str], content: str, *, overwrite: bool = True) -> Path:
    """Write a page; the file appears whole or not at all."""
    target = check_target(path, "A report")
    write_whole(target, content, overwrite=overwrite)
    return target


def _script_json(value: object) -> str:
    """Return JSON that cannot end the script element that holds it."""
    from markupsafe import Markup

    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return Markup(text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"))
