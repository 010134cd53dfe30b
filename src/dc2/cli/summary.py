"""What a command did, for people (a few lines) and for machines (JSON)."""

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape

from dc2.engines.engine import Progress, StageBars, short_number
from dc2.errors import printable


@contextmanager
def stage_bars() -> Iterator[Progress]:
    """Give a progress callback that draws on standard error if that is a terminal."""
    if not sys.stderr.isatty():
        yield lambda stage, rows_done, rows_total: None
        return
    with closing(StageBars()) as bars:
        yield bars


CLUSTERS_SHOWN = 20
BAR_WIDTH = 30
NAME_WIDTH, WIDEST_NAME = 13, 32


@dataclass(frozen=True)
class ClusterSizes:
    """Rows of each cluster and, if noise was asked for, of none; the clusters are counted from 0 without `numbers`."""

    sizes: Sequence[float]
    noise: float | None = None
    numbers: Sequence[int] = ()

    @property
    def total(self) -> float:
        """All rows."""
        return sum(self.sizes) + (self.noise or 0)

    def by_label(self) -> list[tuple[int, float]]:
        """Return labels and their rows, noise last."""
        return [*self.numbered(), *([] if self.noise is None else [(-1, self.noise)])]

    def numbered(self) -> list[tuple[int, float]]:
        """Return the numbers of clusters and their rows."""
        return list(zip(self.numbers or range(len(self.sizes)), self.sizes, strict=True))


def print_summary(
    heading: str,
    facts: Mapping[str, str],
    machine: Mapping[str, Any],
    *,
    seconds: Mapping[str, float],
    files: Mapping[str, Path],
    as_json: bool,
    sizes: ClusterSizes | None = None,
    described: Mapping[int, Sequence[str]] | None = None,
) -> None:
    """Print what was done: facts for people, or `machine` as JSON; `described` are lines on each cluster."""
    peak = _peak_memory_bytes()
    if as_json:
        clusters = [] if sizes is None else [{"label": label, "rows": size} for label, size in sizes.by_label()]
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
        "peak memory": "" if peak is None else format_size(peak),
        **{what: f"{path} ({format_size(path.stat().st_size)})" for what, path in files.items()},
    }
    clusters_shown = [] if sizes is None else [*cluster_lines(sizes, described), ""]
    print_lines([f"[bold green]{_shown(heading)}[/]", "", *clusters_shown, *fact_lines({**facts, **common})])


def print_json(summary: Mapping[str, Any]) -> None:
    """Print a summary for machines."""
    print(json.dumps(summary, indent=2))


def print_lines(lines: Sequence[str]) -> None:
    """Print lines with rich markup, which is left out where there is no terminal; long lines are not broken."""
    console = Console(highlight=False)
    for line in lines:
        console.print(line, soft_wrap=True)


def print_changes(changes: Any, *, as_json: bool) -> None:
    """Print what changed between two models."""
    if as_json:
        print(changes.to_json())
        return
    print_lines([f"  {_shown(said)}" for said in changes.sentences()])


def cluster_lines(sizes: ClusterSizes, described: Mapping[int, Sequence[str]] | None = None) -> list[str]:
    """Return a line per cluster: its number, its rows, its share as a bar; and lines that describe it.

    Examples
    --------
    >>> for line in cluster_lines(ClusterSizes([70, 20], noise=10)):
    ...     print(line)
    [bold]  cluster            rows   share[/]
      0                    70   70.0%  [cyan]█████████████████████[/]
      1                    20   20.0%  [cyan]██████[/]
      none                 10   10.0%  [dim]███[/]
    """
    lines = ["[bold]  cluster            rows   share[/]"]
    total = sizes.total or 1
    for number, size in sizes.numbered()[:CLUSTERS_SHOWN]:
        lines.append(_size_line(str(number), size, size / total, "cyan"))
        lines += [f"          {_shown(line)}" for line in (described or {}).get(number, ())]
    if len(sizes.sizes) > CLUSTERS_SHOWN:
        lines.append(f"  and {len(sizes.sizes) - CLUSTERS_SHOWN} more clusters")
    if sizes.noise is not None:
        lines.append(_size_line("none", sizes.noise, sizes.noise / total, "dim"))
    return lines


def _size_line(name: str, size: float, share: float, look: str) -> str:
    bar = "█" * (max(1, round(BAR_WIDTH * share)) if share else 0)
    return f"  {name:<7} {size:>15,.0f} {share:>7.1%}  [{look}]{bar}[/]"


def fact_lines(facts: Mapping[str, str]) -> list[str]:
    r"""Return a line per fact that is known: its name, and what it is.

    Examples
    --------
    >>> for line in fact_lines({"rows": "7", "columns": "", "column [year]": "left out"}):
    ...     print(line)
      [bold]rows         [/] 7
      [bold]column \[year][/] left out
    """
    known = {name: fact for name, fact in facts.items() if fact}
    width = min(max([NAME_WIDTH, *map(len, known)]), WIDEST_NAME)
    return [f"  [bold]{_shown(f'{name:<{width}}')}[/] {_shown(fact)}" for name, fact in known.items()]


def _shown(text: str) -> str:
    """Return a text in which nothing is read as markup or as a command to the terminal."""
    return escape(printable(text))


def format_size(n_bytes: float) -> str:
    """Write a number of bytes.

    Examples
    --------
    >>> format_size(345), format_size(1_500_000)
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
