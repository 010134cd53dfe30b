"""``dc2 info``: what is in a model or in data files."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from dc2.cli import options

__all__ = ["info"]

SHOWN = 40


def info(
    paths: Annotated[
        list[str],
        typer.Argument(metavar="MODEL|DATA", show_default=False, help="A model (.dc2), or data files."),
    ],
    json: options.Json = False,
    debug: options.Debug = False,
) -> None:
    """Show what a model holds, or the rows and columns of data files.

    Example: dc2 info model.dc2
    """
    from dc2.cli import summary
    from dc2.cli.data_facts import data_facts
    from dc2.cli.model_facts import model_facts

    is_model = len(paths) == 1 and paths[0].lower().endswith(".dc2")
    told = model_facts(Path(paths[0]).expanduser()) if is_model else data_facts(paths)
    if json:
        summary.print_json(told)
        return
    sizes = told.pop("cluster_sizes", None)
    facts = {name.replace("_", " "): _in_words(fact) for name, fact in told.items()}
    summary.print_lines([*summary.fact_lines(facts), *(["", *summary.cluster_lines(sizes)] if sizes else [])])


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
