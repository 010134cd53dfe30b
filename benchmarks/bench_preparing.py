"""What preparing a table of mixed columns costs beside reading it, into docs/measured/preparing.md.

Run as ``python benchmarks/bench_preparing.py [--rows 300000]``. Seconds are processor time, the best of several runs,
which depends less on other work on the machine.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from common import ROOT, machine, ratio, table, write_page

from dc2.engines import RunOptions, engine_for
from dc2.io.resolve import as_table
from dc2.tables.column_types import sample_table
from dc2.tables.decide import decide

sys.path.append(str(ROOT / "tests"))
from table_data import customers

RUNS = 5


def cost_of(path: Path) -> list[str]:
    """Return the seconds of reading a file, of preparing its rows, and of deciding how."""
    opened = as_table(path)
    assert opened is not None

    def read() -> list[Any]:
        return [block.rows.frame for block in opened.blocks(RunOptions().block_bytes)]

    frames = read()
    sample = sample_table(opened, engine_for(opened, RunOptions()))
    parts = decide(sample)

    def prepare() -> None:
        for frame in frames:
            parts.apply(frame)

    reading, preparing, deciding = (best_of(job) for job in (read, prepare, lambda: decide(sample)))
    shown = [f"{seconds:.3f}" for seconds in (reading, preparing, deciding)]
    return [path.suffix[1:], *shown[:2], ratio(preparing / reading), shown[2]]


def best_of(job: Any) -> float:
    """Return the processor seconds of the best run."""
    times = []
    for _ in range(RUNS):
        since = time.process_time()
        job()
        times.append(time.process_time() - since)
    return min(times)


def main() -> None:
    parser = argparse.ArgumentParser(description="What preparing a table costs.")
    parser.add_argument("--rows", type=int, default=300_000)
    n_rows = parser.parse_args().rows
    by = machine()
    frame, _ = customers(n_rows)
    with tempfile.TemporaryDirectory(prefix="dc2-bench-") as folder:
        csv, parquet = Path(folder) / "rows.csv", Path(folder) / "rows.parquet"
        frame.to_csv(csv, index=False)
        frame.to_parquet(parquet)
        lines = [cost_of(csv), cost_of(parquet)]
    for line in lines:
        print(*line, sep=" | ", flush=True)
    found = [
        f"The customer table of [tables](tables.md), {n_rows:,} rows, in processor seconds, the best of {RUNS} runs. "
        "Deciding looks at a sample of 16,384 rows, so that it does not grow with the table.",
        table(["file", "reading", "preparing", "beside reading", "deciding, once"], lines),
    ]
    write_page("preparing", "What preparing a table costs, measured", found, by, f" --rows {n_rows}")


if __name__ == "__main__":
    main()
