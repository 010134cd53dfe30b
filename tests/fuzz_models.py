"""A campaign against the model loader: mutated files are refused in a sentence, or give models that work.

``python tests/fuzz_models.py 10000`` runs that many cases, seeded and so repeatable, in a process whose memory is
bounded; ``--first 1234 --seed 7`` goes on there. It prints the failures, each with what repeats it, and the figure.
A crash, a hang, more memory than the bound, an error that is not dc2's, a label out of range: each is a failure.
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
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import dc2
from dc2.cli.model_facts import model_facts
from dc2.errors import InputError, InputTypeError, ModelFileError, ParameterError
from dc2.kernels import RPF
from dc2.report import write_report
from model_mutations import mutated

MEMORY_BYTES = 400 * 2**20  # beyond what the process holds when all is imported
HANG_SECONDS = 60
REPORT_EVERY = 3
RNG = np.random.default_rng(0)
X = np.concatenate([RNG.normal(size=(150, 3)), RNG.normal(6.0, 1.0, size=(150, 3))])


@dataclass
class Outcome:
    """What a campaign found."""

    cases: int = 0
    loaded: int = 0
    peak_bytes: int = 0
    failures: list[str] = field(default_factory=list)


def campaign(cases: int, seed: int = 0, first: int = 0) -> Outcome:
    """Run cases in a process of their own; where it dies, say so and go on with the next case in another."""
    outcome = Outcome()
    with tempfile.TemporaryDirectory() as folder:
        _save_models(Path(folder))
        case, last = first, first + cases
        while case < last:
            case = 1 + _run(Path(folder), case, last, seed, outcome)
    outcome.cases = cases
    return outcome


def _run(folder: Path, first: int, last: int, seed: int, outcome: Outcome) -> int:
    """Run a process until it is done or dies, and return the last case that it began."""
    command = [
        sys.executable,
        __file__,
        "--work",
        str(folder),
        "--first",
        str(first),
        "--seed",
        str(seed),
        str(last),
    ]
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    begun, done = first, False
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            news = json.loads(line)
            begun = news.get("case", begun)
            done = done or "peak_bytes" in news
            outcome.loaded += news.get("loaded", 0)
            outcome.peak_bytes = max(outcome.peak_bytes, news.get("peak_bytes", 0))
            if "failure" in news:
                outcome.failures.append(f"case {begun} of seed {seed}: {news['failure']}")
    if not done:
        outcome.failures.append(f"case {begun} of seed {seed}: the process ended with {process.returncode}")
        return begun
    return last


def _save_models(folder: Path) -> None:
    few = RPF(n_trees=20)
    models = [
        dc2.DC2Clustering(n_signatures=40, scale="robust", random_state=0).fit(X),
        dc2.RPFCluster(2, n_signatures=20, similarity=few, scale="standard", random_state=0).fit(X),
        dc2.RPFCluster(
            "auto", n_signatures=20, similarity=few, compressor=dc2.Compressor(populate="leaf")
        ).fit(X),
        dc2.KASP(2, n_signatures=12, random_state=0).fit(X),
        dc2.Compressor(15, n_partitions=2, divide="sampling", random_state=0).fit(X),
    ]
    for number, model in enumerate(models):
        model.save(folder / f"{number}.dc2")


# --- the process that does the work -----------------------------------------------------------------------------------


def _work(folder: Path, first: int, last: int, seed: int) -> None:
    honest = [path.read_bytes() for path in sorted(folder.glob("?.dc2"))]
    path = folder / "mutated.dc2"
    # Whatever is imported late is imported now, before memory is bounded.
    assert all(_use(content, path, report=True) for content in honest)
    held = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (held + MEMORY_BYTES, held + MEMORY_BYTES))
    signal.signal(signal.SIGALRM, signal.SIG_DFL)  # which ends the process, wherever it hangs
    for case in range(first, last):
        _tell(case=case)
        chance = random.Random(f"{seed} {case}")
        signal.alarm(HANG_SECONDS)
        try:
            loaded = _use(mutated(chance.choice(honest), chance), path, report=case % REPORT_EVERY == 0)
        except Exception as error:  # whatever it is, it is told
            _tell(failure=f"{type(error).__name__}: {error}"[:500])
        else:
            _tell(loaded=int(loaded))
        signal.alarm(0)
    _tell(peak_bytes=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)


def _use(content: bytes, path: Path, report: bool) -> bool:
    """Load a model and do with it what people do; return whether it could be loaded."""
    path.write_bytes(content)
    try:
        model = dc2.load(path)
    except ModelFileError as refusal:
        if not str(refusal).isprintable():
            raise AssertionError(f"the refusal is {refusal!s}") from refusal
        return False
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            _ask(model, path)
            if report and hasattr(model, "signature_labels_"):
                write_report(model, path.with_suffix(".html"))
        except (InputError, InputTypeError, ParameterError):
            pass
    return True


def _ask(model: Any, path: Path) -> None:
    json.dumps(model_facts(path))
    rows = np.zeros((5, model.n_features_in_)) if model.n_features_in_ != 3 else X[:20]
    answer = model.predict(rows) if hasattr(model, "predict") else model.apply(rows)
    n_answers = model.n_clusters_ if hasattr(model, "predict") else len(model.signatures_)
    assert len(answer) == len(rows)
    assert ((answer >= 0) & (answer < n_answers)).all(), "a label is out of range"


def _tell(**news: Any) -> None:
    print(json.dumps(news), flush=True)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", type=int)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--work", type=Path, help=argparse.SUPPRESS)
    return parser.parse_args()


if __name__ == "__main__":
    given = _arguments()
    if given.work is not None:
        _work(given.work, given.first, given.cases, given.seed)
    else:
        found = campaign(given.cases, given.seed, given.first)
        print(*found.failures, sep="\n")
        print(
            f"{found.cases} mutated model files: {len(found.failures)} failures; {found.loaded} could be loaded; "
            f"peak memory {found.peak_bytes / 2**20:.0f} MB"
        )
        sys.exit(bool(found.failures))
