"""The whole evaluation: every piece of work that is not done yet, then figures and reports."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from dc2.errors import ParameterError
from dc2.parameters import check_integer
from evaluation.data.location import DataNotFoundError, Folder
from evaluation.experiment import stopwatch
from evaluation.figures import draw_all
from evaluation.machine import machine
from evaluation.plan import EXPERIMENTS, Piece, pieces
from evaluation.report import write_docs, write_reports
from evaluation.sets import TITLES, DataSet, load
from evaluation.settings import FULL, QUICK, Settings
from evaluation.store import Store, versions

__all__ = ["run"]

Tell = Callable[[str], None]
Load = Callable[[str], DataSet | None]

# A slow fit is tried on a twentieth of the rows, but on at least 25,000.
FEWEST_TRIED, SHARE_TRIED = 25_000, 20


def run(
    output: Folder,
    *,
    quick: bool = False,
    runs: int | None = None,
    data_home: Folder | None = None,
    download: bool = False,
    only: Collection[str] | None = None,
    sets: Collection[str] | None = None,
    skip: Collection[str] = (),
    skip_longer: float | None = None,
    minutes: float | None = None,
    n_jobs: int | None = None,
    docs: Folder | None = None,
    settings: Settings | None = None,
    tell: Tell = print,
) -> Path:
    """Repeat the paper's evaluation and write results, figures and reports.

    Seeds run one after the other, so a run that ends early has whole seeds; KASP, by far the slowest, comes last.

    Parameters
    ----------
    output : path
        Folder of the results. Results that it holds are not computed again: a run that was broken off continues where
        it was, and loses at most the piece it was working on. A quick and a full run cannot share a folder.
    quick : bool, default=False
        Fewer rows, signatures and trees: a few minutes instead of hours.
    runs : int, optional
        Seeds per experiment; 5 by default, 1 for a quick run. The paper has 100.
    data_home : path, optional
        Folder of UCI's files; None looks where `evaluation.data` looks.
    download : bool, default=False
        Fetch missing files from UCI.
    only : collection of str, optional
        Experiments to run: "distortion", "accuracy", "partitions", "theorem", "radius", "ours". All by default.
    sets : collection of str, optional
        Data sets to run on, such as "covertype". All by default.
    skip : collection of str, optional
        Variants to leave out, such as "KASP", which takes hours on the largest set.
    skip_longer : float, optional
        Leave KASP out if one fit takes more seconds, judged by an earlier seed or by a fit to a part of the rows.
    minutes : float, optional
        Begin nothing that would end later than this many minutes from now, and report what is done; 0 only writes the
        reports.
    n_jobs : int, optional
        Threads of the methods and processes of a sweep; None takes all cores.
    docs : path, optional
        A Markdown file to write the report to as well, its figures in a folder of the same name.
    settings : Settings, optional
        All parameters, instead of `quick`.
    tell : callable, default=print
        Called with each line of progress.

    Returns
    -------
    Path
        The report, ``report.html`` in the output folder.
    """
    end = None if minutes is None else time.monotonic() + 60 * minutes
    settings = settings or (QUICK if quick else FULL)
    settings = replace(settings, runs=settings.runs if runs is None else runs, n_jobs=n_jobs)
    check_integer("runs", settings.runs, low=1)
    chosen = _known(only, "only", [one.name for one in EXPERIMENTS])
    names = _known(sets, "sets", list(TITLES))
    skipped = _known(skip, "skip", [variant for one in EXPERIMENTS for variant in one.variants])
    store = Store(Path(output).expanduser())
    store.open_for(settings)

    experiments = [one for one in EXPERIMENTS if one.name in chosen]
    planned = pieces(settings.runs, experiments=experiments, sets=names, skip=skipped)
    pending = [piece for piece in planned if not piece.is_done(store)]
    tell(f"{len(pending)} pieces of work to do; results go to {os.fspath(store.folder)!r}.")
    loaded = _loader(settings, data_home, download, tell)
    for done, piece in enumerate(pending):
        if end is not None and time.monotonic() >= end:
            tell(f"Time is up; {len(pending) - done} pieces are left for the next call.")
            break
        data = loaded(piece.data_set)
        if data is None:
            continue
        fit_seconds, all_seconds = _expected(piece, data, store, settings, skip_longer is not None)
        if skip_longer is not None and fit_seconds > skip_longer:
            tell(f"[{done + 1}/{len(pending)}] {piece}: left out, one fit would take about {fit_seconds:.0f} s")
            continue
        if end is not None and time.monotonic() + all_seconds > end:
            tell(f"Time is up; {len(pending) - done} pieces are left for the next call.")
            break
        seconds = _do(piece, data, store, settings)
        tell(f"[{done + 1}/{len(pending)}] {piece} ({data.origin}): {seconds:.1f} s")
    draw_all(store)
    if docs is not None:
        write_docs(store, Path(docs), settings)
    return write_reports(store, settings)


def _known(names: Collection[str] | None, parameter: str, known: list[str]) -> list[str]:
    unknown = [name for name in names or () if name not in known]
    if unknown:
        raise ParameterError(f"{parameter}: {unknown[0]!r} is unknown; choose from {', '.join(known)}.")
    return known if names is None else [name for name in known if name in names]


def _loader(settings: Settings, data_home: Folder | None, download: bool, tell: Tell) -> Load:
    """Return a function that loads a data set once and keeps it for every seed; it gives None if there is none."""
    held: dict[str, DataSet | None] = {}

    def loaded(name: str) -> DataSet | None:
        if name not in held:
            try:
                held[name] = load(name, settings, data_home, download=download)
            except DataNotFoundError as error:
                held[name] = None
                tell(f"{TITLES[name]} is left out: {error}")
        return held[name]

    return loaded


def _expected(piece: Piece, data: DataSet, store: Store, settings: Settings, is_limited: bool) -> tuple[float, float]:
    """Return the seconds that one fit, and the whole piece, will take; 0 if nothing is known yet."""
    fit_seconds = piece.seconds_of_others(store, "seconds") or 0.0
    if not fit_seconds and piece.is_slow and is_limited:
        fit_seconds = _estimate(piece, data, store, settings)
    return fit_seconds, piece.seconds_of_others(store, "work_seconds") or fit_seconds


def _estimate(piece: Piece, data: DataSet, store: Store, settings: Settings) -> float:
    """Estimate the seconds of one fit to all rows from a fit to some; kept for the next call."""
    table = store.table("estimates")
    if not table.holds(piece.data_set, piece.variant, 0):
        assert piece.experiment.seconds is not None
        part = data.part(max(FEWEST_TRIED, len(data.X) // SHARE_TRIED))
        seconds = piece.experiment.seconds(part, piece.variant, 0, settings) * len(data.X) / len(part.X)
        row = {"data_set": piece.data_set, "variant": piece.variant, "seed": 0}
        table.put([row | {"n_rows": len(part.X), "seconds": seconds}])
    return next(
        float(row["seconds"])
        for row in table.rows
        if (row["data_set"], row["variant"]) == (piece.data_set, piece.variant)
    )


def _do(piece: Piece, data: DataSet, store: Store, settings: Settings) -> float:
    """Do a piece of work and store its rows, with the machine and versions; return its seconds."""
    about = {
        "load": os.getloadavg()[0] if hasattr(os, "getloadavg") else None,
        "versions": versions(),
        "machine": machine(settings.n_jobs),
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M"),
    }
    with stopwatch() as watch:
        results = piece.experiment.work(data, piece.variant, piece.seed, settings)
    about["work_seconds"] = watch.seconds
    # The main table comes last: its rows say that the work is done.
    for table in sorted(results, key=lambda table: table == piece.experiment.name):
        store.table(table).put({**row, **about} for row in results[table])
    return watch.seconds
