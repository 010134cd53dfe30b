"""What the benchmarks share: the machine, times, memory in a separate process, and the page of results."""

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

from dc2.versions import __version__

ROOT = Path(__file__).parents[1]
MEASURED = ROOT / "docs" / "measured"
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
        """What the work needed in addition."""
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
    """Return a result and the memory that making it took, as seen by the kernel (Linux only)."""
    with open(PEAK_RESET, "w") as reset:
        reset.write("5")
    before = _status_bytes("VmRSS")
    result = function()
    return result, Memory(before, _status_bytes("VmHWM"))


def _status_bytes(field: str) -> int:
    status = Path("/proc/self/status").read_text()
    return int(re.search(rf"{field}:\s+(\d+) kB", status)[1]) * 1024


class DidNotFinish(Exception):
    """A process ran out of time or memory; the message says which."""


def in_new_process(
    function: Callable[..., Any],
    *arguments: Any,
    time_limit: float | None = None,
    memory_limit: int | None = None,
) -> Any:
    """Call a function in a fresh Python process, to measure its memory alone; raise DidNotFinish beyond a limit."""
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
    versions = ", ".join(f"{package} {metadata.version(package)}" for package in ("numpy", "scikit-learn", "pyarrow"))
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    load = " ".join(f"{value:.1f}" for value in os.getloadavg())
    return (
        f"{_processor()}, {os.cpu_count()} cores, {memory:.0f} GiB; {platform.system()} {platform.release()}; "
        f"dc2 {__version__}, Python {platform.python_version()}, {versions}; core: {_core()}; "
        f"load averages at the start: {load}."
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
    """Collects what a benchmark finds, prints it, and writes it to the benchmark's page as it comes.

    So a run that is stopped half-way leaves what it found, and says that it is incomplete.

    Parameters
    ----------
    name : str
        The name of the benchmark, ``bench_NAME.py``, and of its page, ``docs/measured/NAME.md``.
    title : str
        The heading of the page.
    """

    def __init__(self, name: str, title: str) -> None:
        self.name = name
        self.page = MEASURED / f"{name}.md"
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
        """Add a goal, and whether it was reached."""
        self.goals.append(Goal(what, reach, measured, bool(met)))
        print(" | ".join(self.goals[-1].row()), flush=True)
        self._put(finished=False)

    def memory_goal(self, what: str, X_bytes: int, beyond: int) -> None:
        """Add the goal that work needs little memory besides X."""
        allowed = 0.1 * X_bytes + 400 * MB
        measured = f"{megabytes(beyond)} of {megabytes(allowed)}"
        self.goal(f"memory beyond X, {what}", "<= 10% of X + 400 MB", measured, beyond <= allowed)

    def write(self) -> None:
        """Write the whole page, unless the run was a quick one."""
        if self.quick:
            print("A quick run: the page of results stays as it is.")
        self._put(finished=True)

    def _put(self, finished: bool) -> None:
        if self.quick:
            return
        text = [] if finished else ["**This run did not reach its end: what is missing below was not measured.**"]
        if self.goals:
            text.append(table(GOAL_HEAD, [goal.row() for goal in self.goals]))
        write_page(self.name, self._title, [*text, *self._parts], self._machine)


def write_page(name: str, title: str, parts: Sequence[str], by: str, options: str = "") -> None:
    """Write what a benchmark found to its page, under the command, the date and the machine."""
    command = f"python benchmarks/bench_{name.replace('-', '_')}.py{options}"
    date = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    page = MEASURED / f"{name}.md"
    unfinished = page.with_suffix(".part")
    unfinished.write_text("\n\n".join([f"# {title}", f"`{command}`, {date}. {by}", *parts]) + "\n", "utf-8")
    unfinished.replace(page)


def _options(title: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=title)
    parser.add_argument("--quick", action="store_true", help="small data, in a minute; writes nothing")
    return parser.parse_args()


def ratio(value: float) -> str:
    """Write a ratio with three figures."""
    return f"{value:.3g}x"


def megabytes(count: float) -> str:
    """Write bytes as megabytes."""
    return f"{count / MB:,.0f} MB"
