"""What a command did, for people (a few lines) and for machines (JSON)."""

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape

from dc2.engines.progress import short_number
from dc2.errors import printable

__all__ = ["cluster_lines", "fact_lines", "print_json", "print_lines", "size_in_words", "tell"]

CLUSTERS_SHOWN = 20
BAR_WIDTH = 30


def tell(
    heading: str,
    facts: Mapping[str, str],
    machine: Mapping[str, Any],
    *,
    seconds: Mapping[str, float],
    files: Mapping[str, Path],
    as_json: bool,
    sizes: Sequence[float] | None = None,
) -> None:
    """Print what was done.

    Parameters
    ----------
    heading : str
        What was done, in a few words.
    facts : mapping of str to str
        What people should know.
    machine : mapping
        The same for machines.
    seconds : mapping of str to float
        How long each stage took.
    files : mapping of str to path
        What was written.
    as_json : bool
        Whether a machine asks.
    sizes : sequence of float, optional
        Rows of each cluster.
    """
    peak = _peak_memory_bytes()
    if as_json:
        clusters = [{"label": label, "rows": size} for label, size in enumerate(sizes or ())]
        print_json(
            {
                **machine,
                **({} if sizes is None else {"clusters": clusters}),
                "seconds": dict(seconds),
                "peak_memory_bytes": peak,
                "files": {what: str(path) for what, path in files.items()},
            }
        )
        return
    common = {
        "seconds": ", ".join(f"{stage} {value:.2f}" for stage, value in seconds.items()),
        "peak memory": "" if peak is None else size_in_words(peak),
        **{what: f"{path} ({size_in_words(path.stat().st_size)})" for what, path in files.items()},
    }
    clusters_told = [] if sizes is None else [*cluster_lines(sizes), ""]
    print_lines([f"[bold green]{_shown(heading)}[/]", "", *clusters_told, *fact_lines({**facts, **common})])


def print_json(summary: Mapping[str, Any]) -> None:
    """Print a summary for machines."""
    print(json.dumps(summary, indent=2))


def print_lines(lines: Sequence[str]) -> None:
    """Print lines with rich markup, which is left out where no terminal is; long lines are not broken."""
    console = Console(highlight=False)
    for line in lines:
        console.print(line, soft_wrap=True)


def cluster_lines(sizes: Sequence[float]) -> list[str]:
    """Return a line per cluster: its number, its rows, its share as a bar.

    Examples
    --------
    >>> for line in cluster_lines([80, 20]):
    ...     print(line)
    [bold]  cluster            rows   share[/]
      0                    80   80.0%  [cyan]████████████████████████[/]
      1                    20   20.0%  [cyan]██████[/]
    """
    total = sum(sizes) or 1
    lines = ["[bold]  cluster            rows   share[/]"]
    for number, size in list(enumerate(sizes))[:CLUSTERS_SHOWN]:
        share = size / total
        bar = "█" * max(1, round(BAR_WIDTH * share))
        lines.append(f"  {number:<7} {size:>15,.0f} {share:>7.1%}  [cyan]{bar}[/]")
    if len(sizes) > CLUSTERS_SHOWN:
        lines.append(f"  and {len(sizes) - CLUSTERS_SHOWN} more clusters")
    return lines


def fact_lines(facts: Mapping[str, str]) -> list[str]:
    """Return a line per fact that is known: its name, and what it is."""
    return [f"  [bold]{name:<13}[/] {_shown(fact)}" for name, fact in facts.items() if fact]


def _shown(text: str) -> str:
    """Return a text that is neither markup nor steers the terminal, whatever it holds."""
    return escape(printable(text))


def size_in_words(n_bytes: float) -> str:
    """Write a number of bytes.

    Examples
    --------
    >>> size_in_words(345), size_in_words(1_500_000)
    ('345 B', '1.5 MB')
    """
    number = short_number(n_bytes)
    return f"{number} B" if number[-1].isdigit() else f"{number[:-1]} {number[-1]}B"


def _peak_memory_bytes() -> int | None:
    """Return the most memory this process has held, where the system tells."""
    try:
        import resource
    except ModuleNotFoundError:  # Windows
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return int(peak if sys.platform == "darwin" else peak * 1024)
