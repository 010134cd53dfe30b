"""Wide rows that lie in columns: fits of Fortran order and of frames beside C order, into docs/measured/wide.md.

Run as ``python benchmarks/bench_wide.py [--rows 60000] [--runs 5]``. Kinds take turns, seconds are processor time, and
the best run of each counts: this depends less on other work on the machine.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
from common import machine, ratio, table, write_page

from dc2 import Compressor, DC2Clustering

WIDTH, N_GROUPS, MOST = 784, 10, 1.3
JOBS: dict[str, Callable[[], Any]] = {
    "Compressor(1000)": lambda: Compressor(1000, random_state=0),
    "DC2Clustering(10)": lambda: DC2Clustering(N_GROUPS, random_state=0),
}


def rows_in_groups(n_rows: int) -> np.ndarray:
    """Return rows around ten centres, in C order."""
    draw = np.random.default_rng(0)
    X = draw.normal(size=(n_rows, WIDTH)).astype(np.float32)
    X += draw.normal(0, 2, (N_GROUPS, WIDTH)).astype(np.float32)[draw.integers(0, N_GROUPS, n_rows)]
    return X


def kinds_of(X: np.ndarray) -> dict[str, Any]:
    """Return the same rows in the forms that people have."""
    columns = {f"x{number}": np.ascontiguousarray(column) for number, column in enumerate(X.T)}
    return {
        "C order": X,
        "Fortran order": np.asfortranarray(X),
        "pandas, one block": pd.DataFrame(X, columns=list(columns)),
        "pandas, column by column": pd.DataFrame(columns, copy=False),
        "polars": pl.DataFrame(columns),
        "Arrow": pa.table(columns),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description="Wide rows that lie in columns.")
    parser.add_argument("--rows", type=int, default=60_000)
    parser.add_argument("--runs", type=int, default=5)
    wanted = parser.parse_args()
    warnings.simplefilter("ignore")
    about = machine()
    kinds = kinds_of(rows_in_groups(wanted.rows))
    best = {(job, kind): np.inf for job in JOBS for kind in kinds}
    for _ in range(wanted.runs):
        for job, kind in best:
            estimator = JOBS[job]()
            since = time.process_time()
            estimator.fit(kinds[kind])
            best[job, kind] = min(best[job, kind], time.process_time() - since)
    lines = []
    for kind in kinds:
        times = [best[job, kind] / best[job, "C order"] for job in JOBS]
        told = [part for job, one in zip(JOBS, times, strict=True) for part in (f"{best[job, kind]:.2f}", ratio(one))]
        lines.append([kind, *told, "yes" if max(times) <= MOST else "**no**"])
        print(*lines[-1], sep=" | ", flush=True)
    head = [
        "rows",
        *(part for job in JOBS for part in (f"{job}, seconds", "beside C order")),
        f"within {MOST}x",
    ]
    found = [
        f"{wanted.rows:,} x {WIDTH} float32, ten groups; processor seconds, the best of {wanted.runs} fits each.",
        table(head, lines),
    ]
    options = f" --rows {wanted.rows} --runs {wanted.runs}"
    write_page("wide", "Wide rows that lie in columns, measured", found, about, options)


if __name__ == "__main__":
    main()
