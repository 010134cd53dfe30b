"""A campaign for labels: the same rows give the same labels, in any form and on any engine.

``export PYTHONPATH=tests``, then ``python tests/fuzz/fuzz_labels.py --cases 100000 --jobs 16 --log log.jsonl`` runs the
cases 0 to 99999 in 16 processes; ``--minutes 5`` runs as many as time allows. Each is made from the seed and its number
alone. The log has a line for every case; the same command with the same log runs those cases that are missing there. A
failure is printed with the law that broke, the call, and what repeats it: ``--seed 0 --only 1234``. Where a process
hangs or crashes, that case is a failure, and another process continues behind it.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from fuzz.fuzz_log import Log, Share
from support.bounded_process import environment

ONE_SHARE = Path(__file__).with_name("fuzz_share.py")


def campaign(share: Share, log: Log, jobs: int, minutes: float | None) -> None:
    """Run a share of the cases in processes, to which they are dealt in turn."""
    end = time.monotonic() + 60 * minutes if minutes else None
    running = {part: _process(part, log, end) for part in share.parts(jobs)}
    while running:
        for part, process in list(running.items()):
            if process.poll() is None:
                continue
            del running[part]
            if process.returncode != 0:
                number = next(log.missing(part))
                print(
                    f"case {number} of seed {part.seed}: the process ended with {process.returncode}",
                    flush=True,
                )
                log.write(part.seed, number, [f"the process ended with {process.returncode}"])
                running[part] = _process(part, log, end)
        time.sleep(0.2)


def _process(part: Share, log: Log, end: float | None) -> subprocess.Popen[bytes]:
    left = [] if end is None else ["--minutes", str(max(0.0, end - time.monotonic()) / 60)]
    command = [sys.executable, str(ONE_SHARE), *part.arguments(), *left, "--log", str(log.path)]
    return subprocess.Popen(command, env=environment())


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int)
    parser.add_argument("--minutes", type=float)
    parser.add_argument("--jobs", type=int, default=1, help="number of processes")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--log", type=Path)
    parser.add_argument("--only", type=int, help="run this one case and show what it is")
    return parser.parse_args()


def main() -> int:
    """Run what the command line asks for, tell what was found, and return the exit status."""
    given = _arguments()
    first, cases = (given.first, given.cases) if given.only is None else (given.only, 1)
    share = Share(given.seed, first, None if cases is None else first + cases)
    minutes = given.minutes or (None if cases else 1.0)
    with tempfile.TemporaryDirectory() as folder:
        log = Log(given.log or Path(folder) / "log.jsonl")
        campaign(share, log, given.jobs, minutes)
        found = log.outcome(share)
    print(f"{found.cases} cases: {len(found.failures)} failures; {found.refused} were refused")
    return int(bool(found.failures))


if __name__ == "__main__":
    sys.exit(main())
