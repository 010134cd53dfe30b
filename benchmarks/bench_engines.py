"""The same Parquet files on threads, Dask, Spark and Ray, beside Spark's own K-means, which is given k.

`python benchmarks/bench_engines.py --rows 100000000`; needs `pip install "dc2[all,spark,ray]"`, a JRE and psutil. Every
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

K, WIDTH, PART_ROWS = 10, 10, 2_500_000
CONTENDERS = ("threads", "dask", "spark", "mllib", "ray")


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
            top = psutil.Process(process.pid)
            for one in [top, *top.children(recursive=True)]:
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


def print_model(rows: int, workers: int, ns_per_row: float) -> None:
    """Print where time and bytes of a fit go on a cluster: sizes from the code, the work per row as measured."""
    from dc2.compress.divide import sampled_rows
    from dc2.compress.signatures import bytes_of_sums
    from dc2.engines.spark_engine import GROUPS
    from dc2.graph.neighbor_graph import signatures_for

    signatures = signatures_for(rows, WIDTH, None) or 0
    sample = sampled_rows(signatures) * (WIDTH * 4 + 16)
    sums = bytes_of_sums(signatures, WIDTH)
    tasks = rows * WIDTH * 4 / 128e6
    lines = [
        ("divide", "read once, hash, sample", sample, sample),
        ("compress", "read once, route, add up", tasks * sums, GROUPS * sums),
    ]
    print(
        f"{rows:,} x {WIDTH} float32 on {workers} workers of a thread: {signatures:,} signatures, {tasks:,.0f} tasks\n"
    )
    print("| pass | work | between workers, MB | to the driver, MB |\n| --- | --- | --: | --: |")
    for name, work, between, driver in lines:
        print(f"| {name} | {work} | {between / 1e6:,.0f} | {driver / 1e6:,.1f} |")
    seconds = rows * ns_per_row * 1e-9 / workers
    print(
        f"\n{ns_per_row:g} ns per row: {seconds:,.0f} s on {workers} workers, {seconds / 10:,.0f} s on {10 * workers}."
    )


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--contender")
    parser.add_argument("--folder")
    parser.add_argument("--model", type=float, metavar="NS", help="only 10^10 rows on 100 workers, by ns per row")
    given = parser.parse_args()
    if given.model is not None:
        print_model(10**10, 100, given.model)
        return
    if given.contender:
        print(json.dumps(run(given.contender, given.folder)))
        return
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder), given.rows)
        print(f"{given.rows:,} x {WIDTH} float32, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}\n", flush=True)
        print("|  | clusters | seconds | processor seconds | driver, MB | Java, MB | workers, MB |")
        print("| --- | --: | --: | --: | --: | --: | --: |", flush=True)
        for contender in CONTENDERS:
            row = watched(contender, folder)
            numbers = [row.get(name, "-") for name in ("clusters", "seconds", "processor", "driver", "java", "workers")]
            cells = " | ".join(
                f"{number:,.0f}" if isinstance(number, int | float) else str(number) for number in numbers
            )
            print(f"| {contender} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
