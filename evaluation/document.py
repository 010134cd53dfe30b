"""A report as chapters of text, tables and figures, written as Markdown or as one HTML page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from dc2.report.page import Picture as InlinePicture
from dc2.report.page import Section, Table, page, render

__all__ = ["Chapter", "Document", "Grid", "Part", "Picture", "to_html", "to_markdown"]


@dataclass(frozen=True)
class Grid:
    """A table: titles of columns and rows of text; the first `n_text` columns hold text, the others numbers."""

    label: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    n_text: int = 1


@dataclass(frozen=True)
class Picture:
    """A figure: its PNG file and what it shows."""

    path: Path
    caption: str


Part: TypeAlias = str | Grid | Picture


@dataclass(frozen=True)
class Chapter:
    """A chapter: a title, a sentence or two, and parts."""

    title: str
    lead: str
    parts: Sequence[Part]


@dataclass(frozen=True)
class Document:
    """A whole report."""

    title: str
    intro: Sequence[str]
    chapters: Sequence[Chapter]


def to_markdown(document: Document, figures: str | None) -> str:
    r"""Return a document as Markdown; figures are linked from a folder beside it, and left out without one.

    Examples
    --------
    >>> grid = Grid("Scores", ["set", "score"], [["a|b", "1"]])
    >>> print(to_markdown(Document("Title", ["Hello."], [Chapter("One", "First.", [grid])]), None))
    # Title
    <BLANKLINE>
    Hello.
    <BLANKLINE>
    ## One
    <BLANKLINE>
    First.
    <BLANKLINE>
    **Scores**
    <BLANKLINE>
    | set | score |
    |---|--:|
    | a\|b | 1 |
    <BLANKLINE>
    """
    blocks = [f"# {document.title}", *document.intro]
    for chapter in document.chapters:
        blocks += [f"## {chapter.title}", chapter.lead]
        blocks += [text for text in (_markdown(part, figures) for part in chapter.parts) if text]
    return "\n\n".join(blocks) + "\n"


def to_html(document: Document) -> str:
    """Return a document as a self-contained page."""
    sections = [
        Section(chapter.title, chapter.lead, content={"parts": [_for_template(part) for part in chapter.parts]})
        for chapter in document.chapters
    ]
    return page(document.title, render("parts.html", parts=document.intro), sections)


def _markdown(part: Part, figures: str | None) -> str:
    if isinstance(part, str):
        return part
    if isinstance(part, Picture):
        return "" if figures is None else f"![{part.caption}]({figures}/{part.path.name})"
    rules = ["---" if column < part.n_text else "--:" for column in range(len(part.head))]
    lines = [part.head, *part.rows]
    written = ["| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines]
    return "\n".join([f"**{part.label}**", "", written[0], f"|{'|'.join(rules)}|", *written[1:]])


def _for_template(part: Part) -> str | Table | InlinePicture:
    if isinstance(part, Picture):
        return InlinePicture(part.path.read_bytes(), part.caption)
    return part if isinstance(part, str) else Table(part.label, part.head, part.rows, part.n_text)
