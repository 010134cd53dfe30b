"""``dc2 report``: a model as a page to be read in a browser."""

from pathlib import Path
from typing import Annotated

import typer

from dc2.cli import options

__all__ = ["report"]


def report(
    model: options.ModelFile,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="The page; beside the model, if not given."),
    ] = None,
    force: options.Force = False,
    debug: options.Debug = False,
) -> None:
    """Write a report of a model: one HTML file that needs no network.

    Example: dc2 report model.dc2 -o report.html
    """
    from dc2.cli.failures import writing
    from dc2.cli.model_facts import load_clusterer
    from dc2.cli.outputs import check_outputs
    from dc2.report import write_report

    clusterer = load_clusterer(model)
    page = output or model.with_suffix(".html")
    files = check_outputs({"report": page}, force=force, inputs=[str(model)])
    with writing(files["report"]):
        write_report(clusterer, files["report"], source_description=f"the model {model.name}")
    print(f"Open {page} in a browser.")
