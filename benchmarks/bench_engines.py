"""The same Parquet files on threads, Dask, Spark and Ray, beside Spark's own K-means, which is given k.

`python benchmarks/bench_engines.py`; needs `pip install "dc2[all,spark,ray]"`, a JRE and psutil. Every
contender runs in a process of its own; a thread beside it adds up the memory of its processes four times a second.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
from common import GOAL_HEAD, Goal, machine, table, write_page

K, WIDTH, PART_ROWS = 10, 10, 2_500_000
TASK_BYTES, NETWORK_BYTES = 128e6, 1.25e9
CONTENDERS = {
    "threads": "threads",
    "dask": "Dask, 2 workers",
    "spark": "Spark, `local[2]`",
    "ray": "Ray, 2 workers",
    "mllib": "Spark's own K-means, k given",
}


def write(folder: Path, rows: int) -> None:
    """Write ten overlapping clouds as Parquet files of float32."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    centres = np.random.default_rng(0).normal(size=(K, WIDTH)) * 3
    for number, start in enumerate(range(0, rows, PART_ROWS)):
        rng = np.random.default_rng([1, number])
        n = min(PART_ROWS, rows - start)
        X = (centres[rng.integers(0, K, n)] + rng.normal(size=(n, WIDTH))).astype(np.float32)
        names = [f"x{column}" for column in range(WIDTH)]
        pq.write_table(
            pa.table(dict(zip(names, X.T, strict=True))), folder / f"part{number:03}.parquet", row_group_size=250_000
        )


def run(contender: str, folder: str) -> dict[str, object]:
    """Fit; return what was found, and the seconds from the moment on at which the system had started."""
    from dc2 import DC2Clustering

    paths = sorted(str(path) for path in Path(folder).glob("*.parquet"))
    model = DC2Clustering(random_state=0, n_jobs=2)
    if contender == "threads":
        rows = paths
    elif contender == "dask":
        import distributed

        from dc2.engines.dask_engine import local_cluster
        from dc2.engines.dask_source import dask_files

        distributed.Client(local_cluster(2))
        rows = dask_files(paths)
    elif contender == "ray":
        import ray

        from dc2.engines.ray_engine import ray_files

        ray.init(
            num_cpus=2, include_dashboard=False, object_store_memory=2**31, logging_level="ERROR", log_to_driver=False
        )
        rows = ray_files(paths, None)
    else:
        from dc2.engines.spark_engine import spark_files

        os.environ["PYSPARK_SUBMIT_ARGS"] = "--driver-memory 4g pyspark-shell"  # or MLlib writes its cache to disk
        rows = spark_files(paths, "local[2]")
        rows.count()
    began = time.perf_counter()
    if contender == "mllib":
        from pyspark.ml.clustering import KMeans
        from pyspark.ml.feature import VectorAssembler

        vectors = VectorAssembler(inputCols=rows.columns, outputCol="features").transform(rows)
        found = len(KMeans(k=K, seed=0).fit(vectors.select("features")).clusterCenters())
        stages = {}
    else:
        found, stages = model.fit(rows).n_clusters_, model.stage_seconds_
    return {"clusters": found, "seconds": time.perf_counter() - began, "stages": stages}


def watched(contender: str, folder: str) -> dict[str, object]:
    """Run a contender in a process of its own; return what it says, its processor time and its peaks of memory."""
    import psutil

    peaks = {"driver": 0, "java": 0, "workers": 0}
    used: dict[int, float] = {}
    process = subprocess.Popen(
        [sys.executable, __file__, "--contender", contender, "--folder", folder], stdout=subprocess.PIPE, text=True
    )

    def watch() -> None:
        while process.poll() is None:
            now = dict.fromkeys(peaks, 0)
            try:
                top = psutil.Process(process.pid)
                family = [top, *top.children(recursive=True)]
            except psutil.NoSuchProcess:
                return
            for one in family:
                try:
                    name, memory, times = one.name(), one.memory_full_info(), one.cpu_times()
                except psutil.Error:
                    continue
                used[one.pid] = times.user + times.system
                now["driver" if one.pid == process.pid else "java" if "java" in name else "workers"] += memory.pss
            for role, size in now.items():
                peaks[role] = max(peaks[role], size)
            time.sleep(0.25)

    thread = threading.Thread(target=watch)
    thread.start()
    said, _ = process.communicate()
    thread.join()
    found = json.loads(said.strip().splitlines()[-1]) if process.returncode == 0 else {"failed": process.returncode}
    return {**found, "processor": sum(used.values()), **{role: size / 2**20 for role, size in peaks.items()}}


def model(rows: int, seconds: dict[str, float], measured_rows: int) -> list[str]:
    """Return where time and bytes of a fit go on a cluster: sizes from the code, the work per row as measured."""
    from dc2.compress.divide import sampled_rows
    from dc2.compress.signatures import bytes_of_sums
    from dc2.engines.spark_engine import GROUPS
    from dc2.graph.neighbor_graph import signatures_for

    signatures = signatures_for(rows, WIDTH, None) or 0
    sample, sums = sampled_rows(signatures) * (WIDTH * 4 + 16), bytes_of_sums(signatures, WIDTH)
    tasks = round(rows * WIDTH * 4 / TASK_BYTES)
    moved = [["divide", sample, sample], ["compress", tasks * sums, GROUPS * sums]]
    per_row = 1e9 * seconds["processor"] / measured_rows
    lines = []
    for workers in (10, 100, 1_000, 10_000):
        work = rows * per_row * 1e-9 / min(workers, tasks)
        merged = tasks * sums / min(GROUPS, workers) / NETWORK_BYTES
        alone = seconds["conquer"]
        lines.append(f"{workers:,} {work:,.0f} {merged:,.1f} {alone:,.1f} {work + merged + alone:,.0f}".split())
    return [
        f"**A model of {rows:,} rows.** {WIDTH} columns of float32, {signatures:,} signatures, {tasks:,} tasks of "
        f"{TASK_BYTES / 1e6:.0f} MB on workers of one thread, a network of 10 Gbit/s. Work per row as measured above "
        f"on Spark, start included: {per_row:,.0f} ns.",
        table(
            ["pass", "between workers, MB", "to the driver, MB"],
            [[name, f"{between / 1e6:,.0f}", f"{driver / 1e6:,.1f}"] for name, between, driver in moved],
        ),
        table(["workers", "work, s", f"merging in {GROUPS} groups, s", "conquer on the driver, s", "total, s"], lines),
        "Work is shared out as long as there are tasks. Merging and conquering are not: beyond some thousand workers "
        "they are most of the time.",
    ]


def main() -> None:
    """Write a page."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--contender")
    parser.add_argument("--folder")
    parser.add_argument("--no-page", action="store_true")
    given = parser.parse_args()
    if given.contender:
        print(json.dumps(run(given.contender, given.folder)))
        return
    about, rows, found = machine(), [], {}
    numbers = ("clusters", "seconds", "processor", "driver", "java", "workers")
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder), given.rows)
        for contender in CONTENDERS:
            found[contender] = watched(contender, folder)
            values = [found[contender].get(name, 0) for name in numbers]
            rows.append([CONTENDERS[contender], *(f"{value:,.0f}" if value else "" for value in values)])
            print(rows[-1], flush=True)
    most = max(float(found[name]["driver"]) for name in ("spark", "ray"))  # type: ignore[arg-type]
    ours, theirs = (float(found[name]["processor"]) for name in ("spark", "mllib"))  # type: ignore[arg-type]
    goals = [
        Goal("memory of the driver on Spark and Ray", "500 MB", f"{most:,.0f} MB", most < 500),
        Goal("processor time on Spark by that of its own K-means", "1", f"{ours / theirs:.2f}", ours <= theirs),
    ]
    parts = [
        f"{given.rows:,} x {WIDTH} float32 in Parquet, {K} overlapping clouds. All run on this machine, with two "
        "threads or workers. Seconds begin when the system has started; processor seconds include the start. Memory "
        "is the sum over processes, shared pages counted once.",
        table(["", "clusters", "s", "processor s", "driver, MB", "Java, MB", "workers, MB"], rows),
        table(GOAL_HEAD, [goal.row() for goal in goals]),
    ]
    spark = {"processor": ours, "conquer": float(found["spark"]["stages"]["conquer"])}  # type: ignore[index, call-overload]
    parts += model(10**10, spark, given.rows)
    print("\n\n".join(parts))
    if not given.no_page:
        options = "" if given.rows == parser.get_default("rows") else f" --rows {given.rows}"
        write_page("engines", "Engines, measured", parts, about, options)


if __name__ == "__main__":
    main()
