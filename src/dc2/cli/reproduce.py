"""``dc2 reproduce``: the paper's evaluation."""

from pathlib import Path
from typing import Annotated

import typer

from dc2.cli import options

__all__ = ["reproduce"]


def reproduce(
    folder: Annotated[
        Path | None,
        typer.Option(
            "--folder",
            metavar="FOLDER",
            help="Where to write results, figures and reports: results, or results-quick. A run that was interrupted "
            "goes on where it was.",
        ),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Fewer rows, signatures and trees: minutes instead of hours.")
    ] = False,
    runs: Annotated[
        int | None,
        typer.Option("--runs", min=1, metavar="NUMBER", help="Seeds per experiment. The paper has 100."),
    ] = None,
    data_home: Annotated[
        Path | None,
        typer.Option(
            "--data-home", metavar="FOLDER", help="Folder of UCI's files; else DC2_DATA, then a cache."
        ),
    ] = None,
    download: Annotated[bool, typer.Option("--download", help="Fetch missing files from UCI.")] = False,
    only: Annotated[
        list[str],
        typer.Option(
            "--only", metavar="NAMES", help="Experiments to run, separated by commas; all, if not given."
        ),
    ] = [],  # noqa: B006 - typer copies it
    sets: Annotated[
        list[str],
        typer.Option(
            "--sets", metavar="NAMES", help="Data sets to use, separated by commas; all, if not given."
        ),
    ] = [],  # noqa: B006
    skip: Annotated[
        list[str],
        typer.Option(
            "--skip", metavar="NAMES", help="Methods to leave out, separated by commas, such as KASP."
        ),
    ] = [],  # noqa: B006
    jobs: options.Jobs = None,
    debug: options.Debug = False,
) -> None:
    """Repeat the paper's evaluation, and report on its claims.

    Example: dc2 reproduce --quick
    """
    from dc2.experiments import run

    page = run(
        folder or Path("results-quick" if quick else "results"),
        quick=quick,
        runs=runs,
        data_home=data_home,
        download=download,
        only=options.split_names(only) or None,
        sets=options.split_names(sets) or None,
        skip=options.split_names(skip),
        n_jobs=jobs,
        tell=lambda line: print(line, flush=True),
    )
    print(f"Open {page} in a browser.")
