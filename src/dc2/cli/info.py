"""``dc2 info``: what is in a model or in data files."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from dc2.cli import options

__all__ = ["InfoOptions", "info"]

SHOWN = 40


@dataclass(frozen=True, kw_only=True)
class InfoOptions:
    """The options of ``dc2 info``."""

    paths: Annotated[
        list[str],
        typer.Argument(metavar="MODEL|DATA", show_default=False, help="A model (.dc2), or data files."),
    ]
    delimiter: options.Delimiter = None
    no_header: options.NoHeader = False
    encoding: options.Encoding = "utf-8"
    json: options.Json = False
    debug: options.Debug = False


def info(wanted: InfoOptions) -> None:
    """Show what a model holds, or the rows and columns of data files.

    Example: dc2 info model.dc2
    """
    from dc2.cli import summary

    told = _told(wanted)
    if wanted.json:
        summary.print_json(told)
        return
    sizes = told.pop("cluster_sizes", None)
    clusters = summary.ClusterSizes(sizes, told.pop("noise", None)) if sizes else None
    facts = {name.replace("_", " "): _in_words(fact) for name, fact in told.items()}
    summary.print_lines([*summary.fact_lines(facts), *(["", *summary.cluster_lines(clusters)] if clusters else [])])


def _told(wanted: InfoOptions) -> dict[str, Any]:
    from dc2.cli.data_facts import data_facts
    from dc2.cli.model_facts import model_facts
    from dc2.cli.rows import csv_options
    from dc2.cli.standard_input import with_standard_input

    if len(wanted.paths) == 1 and wanted.paths[0].lower().endswith(".dc2"):
        return model_facts(Path(wanted.paths[0]).expanduser())
    with with_standard_input(wanted.paths) as paths:
        return data_facts(paths, csv_options(wanted))


def _in_words(fact: Any) -> str:
    if isinstance(fact, Mapping):
        fact = [f"{name}={value}" for name, value in fact.items()]
    if isinstance(fact, list):
        more = f" and {len(fact) - SHOWN} more" if len(fact) > SHOWN else ""
        return ", ".join(map(str, fact[:SHOWN])) + more
    if fact is None:
        return "not known without reading"
    if isinstance(fact, str):
        return fact
    return f"{fact:,}" if isinstance(fact, int) else f"{fact:.4g}"
