"""One process of the campaign of labels (`fuzz_labels.py`): runs its share of the cases, one after the other."""

import argparse
import faulthandler
import tempfile
import time
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from fuzz.fuzz_cases import MISSING, Case, made
from fuzz.fuzz_laws import LAWS, REFUSALS, Trial, fitted, refused_too
from fuzz.fuzz_log import Log, Share

HANG_SECONDS = 120
# If there is one; otherwise files are flushed to disk, which takes longer than a fit.
IN_MEMORY_FOLDER = Path("/dev/shm")


def run(share: Share, log: Log, minutes: float | None = None) -> None:
    """Run the cases of a share that the log does not have, until all are done or the time is over."""
    end = time.monotonic() + 60 * (minutes if minutes is not None else 1e9)
    with threadpool_limits(1), strict_warnings():
        for number in log.missing(share):
            if time.monotonic() >= end:
                return
            faulthandler.dump_traceback_later(HANG_SECONDS, exit=True)
            case = made(share.seed, number)
            broken, refused = broken_laws(case)
            if broken:
                tell(case, share.seed, number, broken)
            faulthandler.cancel_dump_traceback_later()
            log.write(share.seed, number, broken, refused)


def broken_laws(case: Case) -> tuple[list[str], bool]:
    """Return the laws that a case breaks, and whether its rows were refused."""
    where = IN_MEMORY_FOLDER if IN_MEMORY_FOLDER.is_dir() else None
    with tempfile.TemporaryDirectory(dir=where) as name:
        folder = Path(name)
        try:
            base = fitted(case, weights=case.weights)
        except REFUSALS:
            return [*_broken("refused_too", refused_too, case, folder)], True
        except Exception as error:
            return [f"fit: {_told(error)}"], False
        trial = Trial(case, base, folder)
        return [line for law in LAWS for line in _broken(law.__name__, law, trial)], False


def _broken(name: str, law: Any, *given: Any) -> Iterator[str]:
    try:
        law(*given)
    except Exception as error:
        yield f"{name}: {_told(error)}"


def _told(error: Exception) -> str:
    where = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__}: {' '.join(str(error).split())[:200]} ({Path(where.filename).name}:{where.lineno})"


@contextmanager
def strict_warnings() -> Iterator[None]:
    """Every warning is a failure, but those that say what a random case may deserve."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.filterwarnings("ignore", "X does not have valid feature names")
        warnings.filterwarnings("ignore", ".*the data do not support")
        yield


def tell(case: Case, seed: int, number: int, broken: list[str]) -> None:
    """Print a failure, with the least case that still shows it and what repeats it."""
    least = smaller(case, broken[0].split(":")[0])
    print(
        f"case {number} of seed {seed}: {'; '.join(broken)}\n  {case.call}\n  still so: {least.call}\n"
        f"  repeat: python tests/fuzz_labels.py --seed {seed} --only {number}",
        flush=True,
    )


def smaller(case: Case, law: str) -> Case:
    """Make the way plainer, and drop rows and columns, while the law stays broken."""

    def still(tried: Case) -> bool:
        return any(line.startswith(f"{law}:") for line in broken_laws(tried)[0])

    plainer = ({"source": "array"}, {"n_jobs": 1}, {"block_bytes": 2**24}, {"weights": None})
    for change in plainer:
        if still(replace(case, **change)):
            case = replace(case, **change)
    while (found := next(filter(still, halves(case)), None)) is not None:
        case = found
    return case


def halves(case: Case) -> Iterator[Case]:
    """The case with half of its rows, or of its columns."""
    n_rows, n_columns = case.X.shape
    if n_rows > 1:
        for half in np.array_split(np.arange(n_rows), 2):
            yield replace(case, X=case.X[half], weights=None if case.weights is None else case.weights[half])
    if n_columns > 1:
        for half in np.array_split(np.arange(n_columns), 2):
            yield replace(case, X=case.X[:, half])


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--first", type=int, required=True)
    parser.add_argument("--step", type=int, required=True)
    parser.add_argument("--end", type=int)
    parser.add_argument("--minutes", type=float)
    parser.add_argument("--log", type=Path, required=True)
    return parser.parse_args()


if __name__ == "__main__":
    faulthandler.enable()
    given = _arguments()
    own = Share(given.seed, given.first, given.end, given.step)
    if MISSING and given.first == 0:
        print(f"not installed, so their sources are not drawn: {', '.join(MISSING)}", flush=True)
    run(own, Log(given.log), given.minutes)
