"""What the benchmarks share: the machine, times, memory in a process of its own, and the page of results."""

from __future__ import annotations

import argparse
import os
import platform
import re
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import metadata
from multiprocessing import get_context
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "benchmarks.md"
GOALS = "<!-- goals: begin -->"
PEAK_RESET = "/proc/self/clear_refs"
GOAL_HEAD = ["goal", "reach", "measured", "met"]
MB = 2**20


@dataclass(frozen=True)
class Timing:
    """The fastest of several runs.

    Attributes
    ----------
    result : object
        What that run returned.
    seconds : float
        Time on the clock.
    cpu_seconds : float
        Processor time of all threads.
    """

    result: Any
    seconds: float
    cpu_seconds: float


@dataclass(frozen=True)
class Memory:
    """Resident memory of a process, in bytes: before a piece of work, and at its peak."""

    before: int
    peak: int

    @property
    def beyond(self) -> int:
        """What the work needed beyond what was there before."""
        return self.peak - self.before


@dataclass(frozen=True)
class Goal:
    """A number to reach, and whether it was."""

    what: str
    reach: str
    measured: str
    met: bool

    def row(self) -> list[str]:
        """Return it as a row of a table."""
        return [self.what, self.reach, self.measured, "yes" if self.met else "**no**"]


def best_of(function: Callable[[], Any], runs: int = 3) -> Timing:
    """Run several times and keep the fastest, which other work on the machine disturbed least."""
    timings = []
    for _ in range(runs):
        start, cpu_start = time.perf_counter(), time.process_time()
        result = function()
        timings.append(Timing(result, time.perf_counter() - start, time.process_time() - cpu_start))
    return min(timings, key=lambda timing: timing.seconds)


def with_memory(function: Callable[[], Any]) -> tuple[Any, Memory]:
    """Return a result and the memory it took to make, as the kernel saw it (Linux only)."""
    with open(PEAK_RESET, "w") as reset:
        reset.write("5")
    before = _status_bytes("VmRSS")
    result = function()
    return result, Memory(before, _status_bytes("VmHWM"))


def _status_bytes(field: str) -> int:
    status = Path("/proc/self/status").read_text()
    return int(re.search(rf"{field}:\s+(\d+) kB", status)[1]) * 1024


class DidNotFinish(Exception):
    """A process that ran out of time or memory; the message says of which."""


def in_new_process(
    function: Callable[..., Any],
    *arguments: Any,
    time_limit: float | None = None,
    memory_limit: int | None = None,
) -> Any:
    """Call a function in a fresh Python process, so that its memory is its own; raise DidNotFinish past a limit."""
    pool = ProcessPoolExecutor(1, mp_context=get_context("spawn"))
    child = pool.submit(_limited, memory_limit, function, *arguments)
    processes = list(pool._processes.values())
    try:
        return child.result(time_limit)
    except TimeoutError:
        for process in processes:
            process.kill()
        raise DidNotFinish(f"over {time_limit:.0f} s") from None
    except (MemoryError, BrokenProcessPool):
        raise DidNotFinish("out of memory") from None
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _limited(memory_limit: int | None, function: Callable[..., Any], *arguments: Any) -> Any:
    if memory_limit is not None:
        resource.setrlimit(resource.RLIMIT_DATA, (memory_limit, memory_limit))
    return function(*arguments)


def python_seconds(code: str, runs: int = 3) -> float:
    """Return the seconds that a fresh Python needs for some code, start and end of Python included."""
    return best_of(lambda: subprocess.run([sys.executable, "-c", code], check=True), runs).seconds


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table in Markdown, its first column to the left."""
    lines = [head, ["---"] + ["--:"] * (len(head) - 1), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def machine() -> str:
    """Describe the machine, what runs on it and how busy it is, in one paragraph."""
    versions = ", ".join(
        f"{package} {metadata.version(package)}" for package in ("numpy", "scikit-learn", "pyarrow")
    )
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    load = " ".join(f"{value:.1f}" for value in os.getloadavg())
    return (
        f"{_processor()}, {os.cpu_count()} cores, {memory:.0f} GiB; {platform.system()} {platform.release()}; "
        f"Python {platform.python_version()}, {versions}; core: {_core()}; load averages at the start: {load}."
    )


def _processor() -> str:
    found = re.search(r"model name\s*:\s*(.+)", Path("/proc/cpuinfo").read_text())
    return found[1] if found else platform.processor()


def _core() -> str:
    from dc2 import core

    if core.name != "native":
        return core.name
    from dc2.core import _native

    return f"native, {_native.simd_level()}"


class Report:
    """Collects what a benchmark finds, prints it, and puts it into the page as it comes.

    A run that is stopped half-way so leaves what it found, with a word that it is not all.

    Parameters
    ----------
    name : str
        Names the section of the page.
    title : str
        Its heading.
    page : Path, optional
        The page, if it is not that of all benchmarks.
    """

    def __init__(self, name: str, title: str, page: Path = PAGE) -> None:
        self.name = name
        self.page = page
        self.quick = _options(title).quick
        self.goals: list[Goal] = []
        self._parts: list[str] = []
        self._machine = machine()
        self._title = title
        print(f"{title}\n{self._machine}", flush=True)

    def say(self, text: str) -> None:
        """Add a paragraph."""
        print(text, flush=True)
        self._parts.append(text)
        self._put(finished=False)

    def table(self, title: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """Add a table."""
        self.say(f"**{title}**\n\n{table(head, rows)}")

    def goal(self, what: str, reach: str, measured: str, met: bool) -> None:
        """Add a number that was to be reached."""
        self.goals.append(Goal(what, reach, measured, bool(met)))
        print(" | ".join(self.goals[-1].row()), flush=True)
        self._put(finished=False)

    def write(self) -> None:
        """Put the whole section into the page, unless the run was a quick one."""
        if self.quick:
            print("A quick run: the page of results stays as it is.")
        self._put(finished=True)

    def _put(self, finished: bool) -> None:
        if self.quick:
            return
        command = f"python benchmarks/bench_{self.name}.py"
        date = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
        text = [f"## {self._title}", f"`{command}`, {date}. {self._machine}"]
        if not finished:
            text.append("**This run did not reach its end: what is missing below was not measured.**")
        if self.goals:
            text.append(table(GOAL_HEAD, [goal.row() for goal in self.goals]))
        text += self._parts
        page = replaced(self.page.read_text("utf-8"), self.name, "\n\n".join(text))
        if GOALS in page:
            page = replaced(page, "goals", table(GOAL_HEAD, _goals_of(page)))
        unfinished = self.page.with_suffix(".part")
        unfinished.write_text(page, "utf-8")
        unfinished.replace(self.page)


def _options(title: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=title)
    parser.add_argument("--quick", action="store_true", help="small data, in a minute; writes nothing")
    return parser.parse_args()


def _goals_of(page: str) -> list[list[str]]:
    """Collect the goals of all sections, to stand together on top."""
    sections = page.split("<!-- goals: end -->")[1]
    rows = re.findall(r"^\| (.+) \| (.+) \| (.+) \| (yes|\*\*no\*\*) \|$", sections, flags=re.MULTILINE)
    return [list(row) for row in rows]


def replaced(page: str, name: str, text: str) -> str:
    """Replace what stands between the marks of a section."""
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    marks = f"{re.escape(begin)}.*{re.escape(end)}"
    if not re.search(marks, page, flags=re.DOTALL):
        raise ValueError(f"the page has no marks {begin} and {end}.")
    return re.sub(marks, lambda _: f"{begin}\n{text}\n{end}", page, flags=re.DOTALL)


def ratio(value: float) -> str:
    """Write a ratio with three figures."""
    return f"{value:.3g}x"


def megabytes(count: float) -> str:
    """Write bytes as megabytes."""
    return f"{count / MB:,.0f} MB"
