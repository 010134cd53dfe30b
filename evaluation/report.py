"""The report: the table of claims, then a chapter for each experiment, as HTML and Markdown."""

from __future__ import annotations

import os
import platform
from pathlib import Path

from dc2.output import write_whole
from dc2.report.page import write_page
from evaluation import chapters
from evaluation.claims import judge_all
from evaluation.document import Chapter, Document, Grid, to_html, to_markdown
from evaluation.settings import Settings
from evaluation.store import Store, versions
from evaluation.summary import Summary

__all__ = ["build", "write_docs", "write_reports"]


def write_reports(store: Store, settings: Settings) -> Path:
    """Write ``report.html`` and ``report.md`` into the folder of a store; return the page."""
    document = build(store, settings)
    write_whole(store.folder / "report.md", to_markdown(document, store.folder))
    return write_page(store.folder / "report.html", to_html(document))


def write_docs(store: Store, path: Path, settings: Settings) -> None:
    """Write the report as one Markdown file without figures."""
    write_whole(path, to_markdown(build(store, settings), None))


def build(store: Store, settings: Settings) -> Document:
    """Put the report together from the tables of a store; experiments that were not run have no chapter."""
    told = [
        _claims(store),
        chapters.data(store),
        chapters.distortion(store),
        chapters.accuracy(store),
        chapters.time(store),
        chapters.partitions(store),
        chapters.theorem(store),
        chapters.ours(store),
    ]
    return Document(
        "The paper's evaluation, repeated",
        _intro(store, settings),
        [chapter for chapter in told if chapter.parts],
    )


def _intro(store: Store, settings: Settings) -> list[str]:
    names = ("distortion", "accuracy", "partitions", "theorem", "radius", "ours")
    runs = {name: Summary(store.table(name).rows).runs() for name in names}
    size = (
        "All rows of every set"
        if settings.max_rows is None
        else f"At most {settings.max_rows:,} rows of each set (a quick look, not the paper's evaluation)"
    )
    return [
        "Every experiment of the DC² paper, with the paper's parameters, on the data that could be had. Written by "
        "`make paper` (`python -m evaluation`), which also draws the figures.",
        f"{size}; {settings.n_signatures} signatures, {settings.n_trees} trees. At most so many runs (seeds) per "
        f"experiment and set: {', '.join(f'{name} {count}' for name, count in runs.items() if count)}; "
        "the paper has 100. Scores are means over runs, times medians.",
        f"Machine: {os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}, {versions()}. "
        f"Times depend on it and on what else it did meanwhile ({_load(store)}); compare them with each other only.",
        "Simulated sets have the size and kind of the genuine ones, which were not to be had; they serve for time and "
        "distortion, and no accuracy is shown for them. Poker Hand, where marked so, is regenerated: uniformly random "
        "deals with the exact rule for the class, as UCI's rows are.",
    ]


def _load(store: Store) -> str:
    """Say how busy the machine was: rows hold the processes that wanted a core when their work began."""
    load = Summary(store.table("accuracy").rows).median("load")
    return (
        "its load was not measured" if load is None else f"median load {load:.1f}, of which about 1 is ours"
    )


def _claims(store: Store) -> Chapter:
    claims = judge_all(store)
    verdicts = [one.verdict for one in claims]
    counted = ", ".join(f"{verdict}: {verdicts.count(verdict)}" for verdict in dict.fromkeys(verdicts))
    rows = [[one.claim.text, one.verdict, one.figure or "–", one.claim.rule] for one in claims]
    grid = Grid("Claims", ["claim", "verdict", "our figure", "judged by"], rows, n_text=4)
    return Chapter("The paper's claims", f"What the paper says and what we measured. {counted}.", [grid])
