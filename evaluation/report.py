"""The report: the table of claims, then a chapter for each experiment, as HTML and Markdown."""

from __future__ import annotations

import shutil
from pathlib import Path

from dc2.io.outputs import write_whole
from dc2.report.page import write_page
from evaluation import chapters
from evaluation.claims import judge_all
from evaluation.document import Chapter, Document, Grid, to_html, to_markdown
from evaluation.plan import EXPERIMENTS, missing
from evaluation.settings import Settings
from evaluation.store import Row, Store
from evaluation.summary import Summary

__all__ = ["build", "write_docs", "write_reports"]


def write_reports(store: Store, settings: Settings) -> Path:
    """Write ``report.html`` and ``report.md`` into the folder of a store; return the page."""
    document = build(store, settings)
    write_whole(store.folder / "report.md", to_markdown(document, "figures"))
    return write_page(store.folder / "report.html", to_html(document))


def write_docs(store: Store, path: Path, settings: Settings) -> None:
    """Write the report as a Markdown file, with its figures in a folder of the same name."""
    figures = path.with_suffix("")
    figures.mkdir(parents=True, exist_ok=True)
    for picture in sorted((store.folder / "figures").glob("*.png")):
        shutil.copyfile(picture, figures / picture.name)
    write_whole(path, to_markdown(build(store, settings), figures.name))


def build(store: Store, settings: Settings) -> Document:
    """Put the report together from the tables of a store; experiments that were not run have no chapter."""
    all_chapters = [
        _claims(store),
        _left_out(store, settings),
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
        [chapter for chapter in all_chapters if chapter.parts],
    )


def _intro(store: Store, settings: Settings) -> list[str]:
    tables = {one.name: store.table(one.name).rows for one in EXPERIMENTS}
    runs = {name: Summary(rows).runs() for name, rows in tables.items()}
    size = (
        "All rows of every set"
        if settings.max_rows is None
        else f"At most {settings.max_rows:,} rows of each set (a quick look, not the paper's evaluation)"
    )
    return [
        "Every experiment of the DC² paper, with the paper's parameters, on the data that are available. Written by "
        "`make paper` (`python -m evaluation`).",
        f"{size}; {settings.n_signatures} signatures, {settings.n_trees} trees. At most so many runs (seeds) per "
        f"experiment and set: {', '.join(f'{name} {count}' for name, count in runs.items() if count)}; "
        "the paper has 100. Scores are means over runs, times medians.",
        f"Computed on {_computed_on([row for rows in tables.values() for row in rows])}. Times depend on the machine "
        f"and on what else it did meanwhile ({_load(store)}); compare them with each other only.",
        "Simulated sets have the size and kind of the genuine ones, which were not available; they serve for time and "
        "distortion, and no accuracy is shown for them. Poker Hand, where marked so, is regenerated: uniformly random "
        "deals with the exact rule for the class, as UCI's rows are.",
    ]


def _computed_on(rows: list[Row]) -> str:
    """Say on what and when results were computed; rows hold this, so a report may be written elsewhere and later."""
    found = dict.fromkeys((row.get("machine", ""), row["versions"]) for row in rows)
    dates = sorted(row["date"] for row in rows if row.get("date"))
    machines = "; and ".join(f"{machine or 'a machine not noted'} ({by})" for machine, by in found)
    return f"{machines}, {dates[0]} to {dates[-1]} UTC" if dates else machines or "nothing yet"


def _left_out(store: Store, settings: Settings) -> Chapter:
    rows = [list(line) for line in missing(store, settings.runs)]
    head = ["experiment", "data set", "method", "seeds", "why"]
    lead = f"What there should be and is not, of {settings.runs} seeds for every method of every experiment."
    return Chapter("What was left out", lead, [Grid("Missing", head, rows, n_text=5) if rows else "Nothing."])


def _load(store: Store) -> str:
    """Say how busy the machine was: rows hold how many processes wanted a core when their work began."""
    load = Summary(store.table("accuracy").rows).median("load")
    return "its load was not measured" if load is None else f"median load {load:.1f}, of which about 1 is ours"


def _claims(store: Store) -> Chapter:
    claims = judge_all(store)
    verdicts = ["holds in part" if " only for " in one.verdict else one.verdict for one in claims]
    counted = ", ".join(f"{verdict}: {verdicts.count(verdict)}" for verdict in dict.fromkeys(verdicts))
    rows = [[one.claim.text, one.verdict, one.coverage, one.figure or "–", one.claim.rule] for one in claims]
    grid = Grid("Claims", ["claim", "verdict", "coverage", "our figure", "judged by"], rows, n_text=5)
    lead = (
        "What the paper says and what we measured. A claim is not judged on fewer than half of its data sets. "
        f"{counted}."
    )
    return Chapter("The paper's claims", lead, [grid])
