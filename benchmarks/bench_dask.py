"""Dask on one machine with two workers: time against threads, bytes on the wire, and what follows for a cluster."""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import numpy as np
from common import Report, best_of, ratio
from distributed import Client, LocalCluster, wait

from dc2 import Compressor, RPFCluster
from dc2.datasets import make_rank
from dc2.engines.dask_engine import JOINED_AT_ONCE, TASKS_PER_THREAD, DaskEngine
from dc2.io import Block, as_source

N_FEATURES = 18
N_CHUNKS = 32
N_WORKERS = 2
CLUSTER_ROWS, CLUSTER_WORKERS = 10**9, 100
NETWORK_BYTES = 1.25e9  # a second: 10 Gbit
DISK_BYTES = 500e6  # a second and worker


@contextmanager
def cluster() -> Iterator[Client]:
    """Start workers of one thread each, with transfer logs long enough to hold everything."""
    settings = {
        "distributed.admin.low-level-log-length": 1_000_000,
        "distributed.scheduler.work-stealing": False,  # it would move chunks to idle workers
    }
    with (
        dask.config.set(settings),
        LocalCluster(N_WORKERS, threads_per_worker=1, dashboard_address=":0", silence_logs=logging.CRITICAL) as local,
        Client(local) as client,
    ):
        yield client


def load(path: str, start: int, stop: int) -> np.ndarray:
    return np.array(np.load(path, mmap_mode="r")[start:stop])


def in_chunks(path: str, n_rows: int, n_chunks: int) -> da.Array:
    """Rows of a .npy file, each chunk read by the task that needs it."""
    ends = np.linspace(0, n_rows, n_chunks + 1).astype(int)
    parts = [
        da.from_delayed(dask.delayed(load)(path, start, stop), (stop - start, N_FEATURES), np.float32)
        for start, stop in zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True)
    ]
    return da.concatenate(parts)


def held(data: da.Array) -> da.Array:
    """Let the workers hold the chunks in memory."""
    data = data.persist()
    wait(data)
    return data


def fit_seconds(data: Any, runs: int) -> dict[str, float]:
    """Return the seconds of the stages of the fastest fit, and of the whole fit."""
    fits = [best_of(lambda: RPFCluster(10, n_jobs=2, random_state=0).fit(data), 1) for _ in range(runs)]
    fastest = min(fits, key=lambda fit: fit.seconds)
    return {**fastest.result.stage_seconds_, "all": fastest.seconds}


def wire_bytes(client: Client, data: da.Array) -> tuple[int, int]:
    """Return the bytes that workers sent to each other and to the client during a fit, from their own logs."""
    client.run(lambda dask_worker: dask_worker.transfer_outgoing_log.clear())
    Compressor(populate="leaf", random_state=0).fit(data)
    logs = client.run(lambda dask_worker: list(dask_worker.transfer_outgoing_log))
    sent = [(entry["who"] in logs, entry["compressed"]) for log in logs.values() for entry in log]
    return sum(size for inside, size in sent if inside), sum(size for inside, size in sent if not inside)


def chunk_seconds(runs: int) -> float:
    """Return the cost of a chunk that workers make themselves: ten thousand chunks of a hundred rows, in two passes."""
    numbers = da.arange(1_000_000, chunks=100, dtype=np.float32)[:, None]
    tiny = numbers * da.ones((1, 4), dtype=np.float32)
    seconds = best_of(lambda: Compressor(100, populate="leaf", random_state=0).fit(tiny), runs).seconds
    return seconds / (2 * tiny.numblocks[0])


def task_seconds(runs: int) -> float:
    """Return the cost of a task: a thousand chunks that workers hold, with next to nothing to do."""
    tiny = held(da.ones((1_000, 4), chunks=(1, 4), dtype=np.float32))
    source = as_source(tiny)
    return best_of(lambda: list(DaskEngine().map(n_rows_of, source, stage="task", merge=sum)), runs).seconds / 1_000


def n_rows_of(block: Block) -> int:
    return len(block.X)


def main() -> None:
    report = Report("dask", "Dask against threads")
    n_rows = 1_000_000 if report.quick else 8_000_000
    runs = 1 if report.quick else 3
    with tempfile.TemporaryDirectory(prefix="dc2-bench-") as folder, cluster() as client:
        path = str(Path(folder) / "rows.npy")
        X = make_rank(n_rows)
        np.save(path, X)
        data = in_chunks(path, n_rows, N_CHUNKS)
        seconds = {
            "threads, rows in memory": fit_seconds(X, runs),
            "Dask, rows held by workers": fit_seconds(held(data), runs),
            "threads, rows from a file": fit_seconds(path, runs),
            "Dask, rows from a file": fit_seconds(data, runs),
            "Dask, an eighth of the file": fit_seconds(in_chunks(path, n_rows // 8, N_CHUNKS), runs),
        }
        del X
        traffic = traffic_table(client, path, n_rows)
        per_chunk, per_task = chunk_seconds(runs), task_seconds(runs)
    overhead_section(report, n_rows, seconds)
    report.say(
        f"A task costs {1e3 * per_task:.1f} ms (1,000 tasks with nothing to do), a chunk in a batch "
        f"{1e3 * per_chunk:.1f} ms (10,000 chunks of 100 rows, two passes)."
    )
    traffic_section(report, traffic)
    estimate_section(report, n_rows, seconds, per_task)
    report.write()


def traffic_table(client: Client, path: str, n_rows: int) -> list[tuple[int, int, str, int, int]]:
    """Measure traffic: rows, chunks, where they are, bytes between workers, bytes to the client."""
    cases = [(n_rows // 8, N_CHUNKS), (n_rows, N_CHUNKS), (n_rows, 8 * N_CHUNKS)]
    found = []
    for where, place in (("held", held), ("read", lambda data: data)):
        for rows, n_chunks in cases:
            data = place(in_chunks(path, rows, n_chunks))
            found.append((rows, n_chunks, where, *wire_bytes(client, data)))
            print(found[-1], flush=True)
    return found


def overhead_section(report: Report, n_rows: int, seconds: dict[str, dict[str, float]]) -> None:
    report.say(
        f"{n_rows:,} x {N_FEATURES} float32 (rank 4 and noise), `RPFCluster(10)`, two threads against two workers of "
        f"one thread each, {N_CHUNKS} chunks, Dask's work stealing off. From a file, both read it twice."
    )
    stages = ("divide", "compress", "conquer", "all")
    report.table(
        "Seconds",
        ["", *stages],
        [[name, *(f"{taken[stage]:.2f}" for stage in stages)] for name, taken in seconds.items()],
    )
    for where, threads, on_dask in (
        ("rows in memory", "threads, rows in memory", "Dask, rows held by workers"),
        ("rows from a file", "threads, rows from a file", "Dask, rows from a file"),
    ):
        passes = [seconds[name]["divide"] + seconds[name]["compress"] for name in (threads, on_dask)]
        report.say(
            f"Overhead, {where}: divide and compress take {ratio(passes[1] / passes[0])} the time of threads "
            f"({passes[1] - passes[0]:+.2f} s), all of the fit "
            f"{ratio(seconds[on_dask]['all'] / seconds[threads]['all'])}."
        )


def traffic_section(report: Report, traffic: list[tuple[int, int, str, int, int]]) -> None:
    report.table(
        "Bytes that workers sent during a fit of `Compressor(populate=\"leaf\")`, from their own transfer logs",
        ["rows", "chunks", "chunks are", "to workers", "to the client", "share of the data"],
        [
            [f"{rows:,}", str(chunks), where, f"{inside / 1e6:.2f} MB", f"{outside / 1e6:.2f} MB",
             f"{(inside + outside) / (4 * N_FEATURES * rows):.1%}"]
            for rows, chunks, where, inside, outside in traffic
        ],
    )  # fmt: skip
    few, many = (sum(entry[3:]) for entry in traffic[3:5])
    report.goal("traffic for 8 x the rows", "<= 1.2 x", ratio(many / few), many <= 1.2 * few)


def estimate_section(report: Report, n_rows: int, seconds: dict[str, dict[str, float]], per_task: float) -> None:
    """Estimate what 10^9 rows on 100 workers would take, from these measurements."""
    whole, part = seconds["Dask, rows from a file"], seconds["Dask, an eighth of the file"]
    two_passes = [taken["divide"] + taken["compress"] for taken in (part, whole)]
    slope = (two_passes[1] - two_passes[0]) / (n_rows - n_rows // 8)
    row_seconds = N_WORKERS * slope
    growing = max(0.0, two_passes[0] - slope * (n_rows // 8) - 2 * N_CHUNKS * per_task)
    data_bytes = 4 * N_FEATURES * CLUSTER_ROWS
    tasks = TASKS_PER_THREAD * CLUSTER_WORKERS
    sums_bytes = 1000 * (8 + 2 * 8 * (N_FEATURES + 2))
    sample_bytes = 256 * 1000 * 4 * N_FEATURES
    to_workers = tasks * sums_bytes + sample_bytes
    to_client = -(-tasks // JOINED_AT_ONCE) * sums_bytes + sample_bytes
    reading = 2 * data_bytes / CLUSTER_WORKERS / DISK_BYTES
    working = CLUSTER_ROWS * row_seconds / CLUSTER_WORKERS
    scheduling = 2 * tasks * per_task
    receiving = to_client / NETWORK_BYTES
    report.table(
        f"{CLUSTER_ROWS:,} x {N_FEATURES} float32, {data_bytes / 1e9:.0f} GB, on {CLUSTER_WORKERS} workers of a thread",
        ["", "from", "seconds"],
        [
            ["read the rows twice", f"{DISK_BYTES / 1e6:.0f} MB/s per worker, assumed", f"{reading:.1f}"],
            [
                "divide and compress",
                f"{1e9 * row_seconds:.0f} ns per row and thread, measured",
                f"{working:.1f}",
            ],
            ["scheduling", f"{2 * tasks:,} tasks of {1e3 * per_task:.1f} ms, measured", f"{scheduling:.1f}"],
            ["to the client", f"{to_client / 1e6:.0f} MB at 10 Gbit/s, assumed", f"{receiving:.2f}"],
            ["grow the tree, on the client", "measured: what is left for no rows", f"{growing:.1f}"],
            ["conquer, on the client", "measured", f"{whole['conquer']:.1f}"],
        ],
    )
    on_one_machine = {
        "the scheduler, with 8 tasks per thread in each pass": scheduling,
        "growing the tree on the client": growing,
        "conquer on the client, which grows with the number of signatures and not of rows": whole["conquer"],
    }
    fixed = receiving + sum(on_one_machine.values())
    equal = CLUSTER_WORKERS * (reading + working) / fixed
    report.say(
        f"Between workers {to_workers / 1e6:.0f} MB would travel at most, to the client {to_client / 1e6:.0f} MB: "
        f"{(to_workers + to_client) / data_bytes:.2%} of the data, and no row but the sample's. Reading and routing "
        f"shrink with more workers; the rest, {fixed:.1f} s, does not, and weighs as much from about {equal:,.0f} "
        f"workers on. The next limit is then {max(on_one_machine, key=on_one_machine.__getitem__)}."
    )


if __name__ == "__main__":
    main()
