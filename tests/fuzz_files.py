"""A campaign against the readers: damaged data files are refused in a sentence that names them, or read.

``python tests/fuzz_files.py 5000`` damages that many files of all formats (flipped bits, missing ends, bytes moved or
doubled), seeded and so repeatable, and reads them in a process whose memory is bounded; ``--first 1234 --seed 7`` goes
on there. A crash, a hang, more memory than the bound or an error that is not dc2's is a failure.
"""

import argparse
import gzip
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
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet

from dc2 import Compressor, as_source
from dc2.errors import InputError, InputTypeError

MEMORY_BYTES = 600 * 2**20  # beyond what the process holds when all is imported
HANG_SECONDS = 60
RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
IDS = [f"row {number}" for number in range(len(X))]


@dataclass
class Outcome:
    """What a campaign found."""

    cases: int = 0
    read: int = 0
    peak_bytes: int = 0
    failures: list[str] = field(default_factory=list)


def campaign(cases: int, seed: int = 0, first: int = 0) -> Outcome:
    """Run cases in a process of their own; where it dies, say so and go on with the next case in another."""
    outcome, case, last = Outcome(), first, first + cases
    with tempfile.TemporaryDirectory() as folder:
        while case < last:
            case = 1 + _run(Path(folder), case, last, seed, outcome)
    outcome.cases = cases
    return outcome


def _run(folder: Path, first: int, last: int, seed: int, outcome: Outcome) -> int:
    """Run a process until it is done or dies, and return the last case that it began."""
    options = ["--work", str(folder), "--first", str(first), "--seed", str(seed)]
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    begun, done = first, False
    command = [sys.executable, __file__, *options, str(last)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            news = json.loads(line)
            begun = news.get("case", begun)
            done = done or "peak_bytes" in news
            outcome.read += news.get("read", 0)
            outcome.peak_bytes = max(outcome.peak_bytes, news.get("peak_bytes", 0))
            if "failure" in news:
                outcome.failures.append(f"case {begun} of seed {seed}: {news['failure']}")
    if not done:
        outcome.failures.append(f"case {begun} of seed {seed}: the process ended with {process.returncode}")
        return begun
    return last


def honest_files(folder: Path) -> dict[str, bytes]:
    """Write a sound file of each format, and return their bytes by suffix."""
    table = pa.table({"id": IDS} | {f"c{column}": X[:, column] for column in range(3)})
    dictionary = table.set_column(0, "id", pa.array(IDS).dictionary_encode())
    pa.csv.write_csv(table, folder / "a.csv")
    pa.parquet.write_table(table, folder / "a.parquet", row_group_size=20)
    pa.parquet.write_table(table, folder / "b.parquet", compression="zstd", write_page_checksum=False)
    pa.feather.write_feather(table, folder / "a.arrow", compression="uncompressed", chunksize=20)
    pa.feather.write_feather(dictionary, folder / "b.arrow", compression="lz4")
    np.save(folder / "a.npy", X)
    np.save(folder / "b.npy", np.asfortranarray(X.astype(np.float32)))
    (folder / "a.csv.gz").write_bytes(gzip.compress((folder / "a.csv").read_bytes()))
    lines = [json.dumps({"id": name, "a": row[0], "b": row[1]}) for name, row in zip(IDS, X, strict=True)]
    (folder / "a.jsonl").write_text("\n".join(lines))
    files = {path.name: path.read_bytes() for path in sorted(folder.iterdir()) if path.name[1] == "."}
    (folder / "damaged").mkdir(exist_ok=True)
    return files


def damaged(content: bytes, chance: random.Random) -> bytes:
    """Damage a file once or a few times."""
    harmed = bytearray(content)
    for _ in range(chance.choice((1, 1, 2, 5))):
        at = chance.randrange(len(harmed)) if harmed else 0
        kind = chance.randrange(6)
        if not harmed:
            break
        if kind <= 1:
            harmed[at] ^= 1 << chance.randrange(8)
        elif kind == 2:
            harmed[at] = chance.choice((0, 0x7F, 0x80, 0xFF))
        elif kind == 3:
            del harmed[at:]
        elif kind == 4:
            del harmed[at : at + chance.randrange(1, 9)]
        else:
            harmed[at:at] = harmed[at : at + chance.randrange(1, 64)]
    return bytes(harmed)


# --- the process that does the work -----------------------------------------------------------------------------------


def _work(folder: Path, first: int, last: int, seed: int) -> None:
    files = honest_files(folder)
    for name, content in files.items():  # whatever is imported late is imported now, before memory is bounded
        assert _use(folder, name, content)
    held = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (held + MEMORY_BYTES, held + MEMORY_BYTES))
    signal.signal(signal.SIGALRM, signal.SIG_DFL)  # which ends the process, wherever it hangs
    for case in range(first, last):
        _tell(case=case)
        chance = random.Random(f"{seed} {case}")
        name = chance.choice(sorted(files))
        signal.alarm(HANG_SECONDS)
        try:
            read = _use(folder, name, damaged(files[name], chance))
        except Exception as error:  # whatever it is, it is told
            _tell(failure=f"{name}: {type(error).__name__}: {error}"[:500])
        else:
            _tell(read=int(read))
        signal.alarm(0)
    _tell(peak_bytes=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)


def _use(folder: Path, name: str, content: bytes) -> bool:
    """Read a file as a fit and an output do, ids included; return whether it could be read."""
    path = folder / "damaged" / name
    path.write_bytes(content)
    drop = None if name.endswith(".npy") else ["id"]
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            Compressor(5, random_state=0, n_jobs=1, block_bytes=1024).fit(as_source(path, drop=drop))
            for _ in as_source(path, drop=drop, extra=drop or ()).blocks(1024):
                pass
        except (InputError, InputTypeError):
            return False
        finally:
            path.unlink()
    return True


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
            f"{found.cases} damaged data files: {len(found.failures)} failures; {found.read} could be read; "
            f"peak memory {found.peak_bytes / 2**20:.0f} MB"
        )
        sys.exit(bool(found.failures))
