"""Rows from Parquet files on disk: speed against bare scans, memory for any number of rows, growth with rows."""

from __future__ import annotations

import os
import tempfile
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from common import MB, Report, Timing, best_of, in_new_process, megabytes, ratio, with_memory

from dc2 import DC2Clustering
from dc2.datasets import make_rank
from dc2.engines import DEFAULT_BLOCK_BYTES

N_FEATURES = 10
ROWS_PER_FILE = 1_000_000
BATCH_ROWS = DEFAULT_BLOCK_BYTES // (4 * N_FEATURES)


def write_files(folder: Path, count: int) -> list[str]:
    """Write files of a million rows each, near a four-dimensional plane, one at a time."""
    paths = []
    for number in range(count):
        X = make_rank(ROWS_PER_FILE, number, n_features=N_FEATURES)
        columns = {f"x{column}": X[:, column] for column in range(N_FEATURES)}
        paths.append(str(folder / f"rows{number:03}.parquet"))
        pq.write_table(pa.table(columns), paths[-1])
    return paths


def bare_scan(paths: list[str]) -> int:
    """Read every batch of every file and do nothing with it."""
    rows = 0
    for path in paths:
        with pq.ParquetFile(path, pre_buffer=False, buffer_size=MB) as file:
            for batch in file.iter_batches(BATCH_ROWS):
                rows += batch.num_rows
    return rows


def forget(paths: list[str]) -> None:
    """Drop the files from the system's cache: the next read must go to the disk."""
    for path in paths:
        file = os.open(path, os.O_RDONLY)
        os.fsync(file)
        os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(file)


def scan_and_fit(paths: list[str], runs: int, cold: bool) -> tuple[Timing, Timing]:
    """Time two bare scans, and a fit, which contains two; `cold` drops the files from the cache first."""
    if cold:
        forget(paths)
    scans = best_of(lambda: (bare_scan(paths), bare_scan(paths)), runs)
    if cold:
        forget(paths)
    return scans, best_of(lambda: fitted(paths), runs)


def fitted(paths: list[str]) -> DC2Clustering:
    """Fit with a fixed number of clusters and defaults otherwise."""
    return DC2Clustering(10, random_state=0).fit(paths)


def peak_of_fit(paths: list[str]) -> int:
    """Return the peak of resident memory of a process that only fits."""
    _, memory = with_memory(lambda: fitted(paths))
    return memory.peak


def main() -> None:
    report = Report("streaming", "Rows larger than memory")
    counts = [1, 4] if report.quick else [1, 10, 100]
    cases = [(count, False) for count in counts] + [(counts[-1], True)]
    measured = {}
    rows = []
    with tempfile.TemporaryDirectory(prefix="dc2-bench-") as folder:
        paths = write_files(Path(folder), counts[-1])
        size = sum(Path(path).stat().st_size for path in paths)
        for count, cold in cases:
            scans, fit = scan_and_fit(paths[:count], 1 if cold else 3 if count < 100 else 2, cold)
            n, stages = count * ROWS_PER_FILE, fit.result.stage_seconds_
            measured[count, cold] = (scans.seconds, fit.seconds)
            rows.append(
                [
                    f"{n:,}", "disk" if cold else "cache", f"{scans.seconds:.2f}", f"{fit.seconds:.2f}",
                    f"{fit.cpu_seconds:.2f}", *(f"{stages[stage]:.2f}" for stage in ("divide", "compress", "conquer")),
                    ratio(fit.seconds / scans.seconds), f"{n / fit.seconds / 1e6:.1f} M",
                ]
            )  # fmt: skip
            print(rows[-1], flush=True)
        peaks = {count: in_new_process(peak_of_fit, paths[:count]) for count in counts}
    report.say(
        f"{rows[-1][0]} rows x {N_FEATURES} float32 in {counts[-1]} Parquet files as pyarrow writes them, "
        f"{size / 1e9:.1f} GB. A fit reads them twice: once to draw the sample, once to route every row; the limit is "
        'what two scans by pyarrow take that throw away what they read. "disk": the files were dropped from the cache '
        "before the two scans, and before the fit; the second pass of each finds what the cache kept. "
        "`DC2Clustering(10)`, all else as it comes."
    )
    report.table(
        "Fit from Parquet",
        [
            "rows",
            "from",
            "two scans, s",
            "fit, s",
            "CPU, s",
            "divide",
            "compress",
            "conquer",
            "fit / scans",
            "rows/s",
        ],
        rows,
    )
    report.say("Peak of memory: " + ", ".join(f"{n} M rows {megabytes(peak)}" for n, peak in peaks.items()) + ".")
    for cold in (True, False):
        scan, fit_seconds = measured[counts[-1], cold]
        report.goal(
            f"fit {rows[-1][0]} x {N_FEATURES} from Parquet, {'disk' if cold else 'cache'}",
            "<= 2.5 x the scans it contains", ratio(fit_seconds / scan), fit_seconds <= 2.5 * scan,
        )  # fmt: skip
    peak = peaks[counts[-1]]
    report.goal("its peak of memory", "<= 1.5 GB", megabytes(peak), peak <= 1.5e9)
    for small, large in pairwise(counts):
        grown, times = measured[large, False][1] / measured[small, False][1], large // small
        report.goal(
            f"growth from {small} to {large} million rows", f"<= {1.1 * times:.0f} x time for {times} x rows",
            ratio(grown), grown <= 1.1 * times,
        )  # fmt: skip
    report.write()


if __name__ == "__main__":
    main()
