"""The whole evaluation: every piece of work that is not done yet, then figures and reports."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from pathlib import Path

from dc2.errors import ParameterError
from dc2.parameters import check_integer
from evaluation.accuracy import ACCURACY
from evaluation.data.location import DataNotFoundError, Folder
from evaluation.distortion import DISTORTION
from evaluation.experiment import Experiment, stopwatch
from evaluation.figures import draw_all
from evaluation.ours import OURS
from evaluation.partitions import PARTITIONS
from evaluation.radius import RADIUS
from evaluation.report import write_docs, write_reports
from evaluation.sets import TITLES, load
from evaluation.settings import FULL, QUICK, Settings
from evaluation.store import Store, versions
from evaluation.theorem import THEOREM

__all__ = ["EXPERIMENTS", "run"]

EXPERIMENTS = (DISTORTION, ACCURACY, PARTITIONS, THEOREM, RADIUS, OURS)

Tell = Callable[[str], None]
Work = tuple[Experiment, str, int]  # experiment, variant, seed


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
    n_jobs: int | None = None,
    docs: Folder | None = None,
    settings: Settings | None = None,
    tell: Tell = print,
) -> Path:
    """Repeat the paper's evaluation and write results, figures and reports.

    Parameters
    ----------
    output : path
        Folder of the results. What it holds already is not computed again, so an interrupted run goes on where it
        was. A quick and a full run cannot share a folder.
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
    n_jobs : int, optional
        Threads of the methods and processes of a sweep; None takes all cores.
    docs : path, optional
        A Markdown file to write the report to as well, without figures.
    settings : Settings, optional
        All parameters, instead of `quick`.
    tell : callable, default=print
        Is told of progress, line by line.

    Returns
    -------
    Path
        The report, ``report.html`` in the output folder.
    """
    settings = settings or (QUICK if quick else FULL)
    settings = replace(settings, runs=settings.runs if runs is None else runs, n_jobs=n_jobs)
    check_integer("runs", settings.runs, low=1)
    chosen = [one for one in EXPERIMENTS if one.name in _known(only, "only", [e.name for e in EXPERIMENTS])]
    names = _known(sets, "sets", list(TITLES))
    skipped = set(_known(skip, "skip", [variant for one in EXPERIMENTS for variant in one.variants]))
    store = Store(Path(output).expanduser())
    store.open_for(settings)

    wanted = [(name, list(_pending(name, chosen, settings, store, skipped))) for name in names]
    total, done = sum(len(work) for _, work in wanted), 0
    tell(f"{total} pieces of work to do; results go to {os.fspath(store.folder)!r}.")
    for name, work in wanted:
        for pieces, message in _work_on(name, work, settings, store, data_home, download):
            done += pieces
            tell(f"[{done}/{total}] {message}")
    draw_all(store)
    if docs is not None:
        write_docs(store, Path(docs), settings)
    return write_reports(store, settings)


def _known(names: Collection[str] | None, parameter: str, known: list[str]) -> list[str]:
    unknown = [name for name in names or () if name not in known]
    if unknown:
        raise ParameterError(f"{parameter}: {unknown[0]!r} is unknown; choose from {', '.join(known)}.")
    return known if names is None else [name for name in known if name in names]


def _pending(
    data_set: str, experiments: list[Experiment], settings: Settings, store: Store, skipped: set[str]
) -> Iterator[Work]:
    """Find what is not done yet; all variants of a seed before the next seed, so that early results compare."""
    for experiment in experiments:
        if data_set not in experiment.sets:
            continue
        for seed in range(settings.runs):
            for variant in experiment.variants:
                done = store.table(experiment.name).holds(data_set, variant, seed)
                if variant not in skipped and not done:
                    yield experiment, variant, seed


def _work_on(
    name: str,
    work: list[Work],
    settings: Settings,
    store: Store,
    data_home: Folder | None,
    download: bool,
) -> Iterator[tuple[int, str]]:
    """Do the work on one data set; give the number of pieces done, and a line about them."""
    if not work:
        return
    try:
        data = load(name, settings, data_home, download=download)
    except DataNotFoundError as error:
        yield len(work), f"{TITLES[name]} is left out: {error}"
        return
    for experiment, variant, seed in work:
        load_before = os.getloadavg()[0] if hasattr(os, "getloadavg") else None
        with stopwatch() as watch:
            results = experiment.work(data, variant, seed, settings)
        # The main table comes last: its rows say that the work is done.
        for table in sorted(results, key=lambda table: table == experiment.name):
            store.table(table).put(
                {**row, "load": load_before, "versions": versions()} for row in results[table]
            )
        about = f"{TITLES[name]} ({data.origin}), {experiment.name}, {variant}, seed {seed}"
        yield 1, f"{about}: {watch.seconds:.1f} s"
