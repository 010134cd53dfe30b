"""Campaigns in separate processes: memory is limited, a hang ends the process, and a crash is reported.

A campaign's file says how a case is run and calls :func:`main`; the same file is what the processes run.
"""

import argparse
import json
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HANG_SECONDS = 60
TESTS = Path(__file__).parents[1]

Case = Callable[[int, random.Random], bool]


def environment() -> dict[str, str]:
    """Return this environment for another Python process: one thread each, and the modules of the tests importable."""
    path = os.pathsep.join(filter(None, [str(TESTS), os.environ.get("PYTHONPATH")]))
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    return threads | os.environ | {"PYTHONPATH": path}


@dataclass
class Outcome:
    """What a campaign found."""

    cases: int = 0
    accepted: int = 0
    peak_bytes: int = 0
    failures: list[str] = field(default_factory=list)


def campaign(script: str, cases: int, seed: int = 0, first: int = 0) -> Outcome:
    """Run cases in a separate process; if it dies, report that and go on with the next case in another one."""
    outcome, case, last = Outcome(cases), first, first + cases
    with tempfile.TemporaryDirectory() as folder:
        while case < last:
            case = 1 + _run([script, "--work", folder], case, last, seed, outcome)
    return outcome


def _run(script: list[str], first: int, last: int, seed: int, outcome: Outcome) -> int:
    """Run a process until it is done or dies, and return the last case that it began."""
    command = [sys.executable, *script, "--first", str(first), "--seed", str(seed), str(last)]
    begun, done = first, False
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment(), text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            news = json.loads(line)
            begun = news.get("case", begun)
            done = done or "peak_bytes" in news
            outcome.accepted += news.get("accepted", 0)
            outcome.peak_bytes = max(outcome.peak_bytes, news.get("peak_bytes", 0))
            if "failure" in news:
                outcome.failures.append(f"case {begun} of seed {seed}: {news['failure']}")
    if not done:
        outcome.failures.append(f"case {begun} of seed {seed}: the process ended with {process.returncode}")
        return begun
    return last


def main(what: str, description: str | None, memory_bytes: int, prepare: Callable[[Path], Case]) -> None:
    """Run a campaign, or, in one of its processes, the cases; ``prepare`` returns what runs one.

    Whatever is imported late has to be imported by ``prepare``: memory is bounded from there on.
    """
    given = _arguments(description)
    if given.work is not None:
        _work(prepare(given.work), memory_bytes, given)
        return
    found = campaign(sys.argv[0], given.cases, given.seed, given.first)
    print(*found.failures, sep="\n")
    print(
        f"{found.cases} {what}: {len(found.failures)} failures; {found.accepted} were accepted; "
        f"peak memory {found.peak_bytes / 2**20:.0f} MB"
    )
    sys.exit(bool(found.failures))


def _work(run: Case, memory_bytes: int, given: argparse.Namespace) -> None:
    limit = _status_bytes("VmSize") + memory_bytes
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    signal.signal(signal.SIGALRM, signal.SIG_DFL)  # which ends the process, wherever it hangs
    for case in range(given.first, given.cases):
        _tell(case=case)
        signal.alarm(HANG_SECONDS)
        try:
            accepted = run(case, random.Random(f"{given.seed} {case}"))
        except Exception as error:  # whatever it is, it is reported
            _tell(failure=f"{type(error).__name__}: {error}"[:500])
        else:
            _tell(accepted=int(accepted))
        signal.alarm(0)
    # getrusage would count what the process that started this one held as well
    _tell(peak_bytes=_status_bytes("VmHWM"))


def _status_bytes(name: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(name)) * 1024


def _tell(**news: Any) -> None:
    print(json.dumps(news), flush=True)


def _arguments(description: str | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("cases", type=int)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--work", type=Path, help=argparse.SUPPRESS)
    return parser.parse_args()
