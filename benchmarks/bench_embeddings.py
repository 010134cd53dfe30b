"""Embeddings from a Parquet list column of half-precision numbers: time and memory of a fit.

Run as ``python benchmarks/bench_embeddings.py [ROWS]``; without a number it writes docs/measured/embeddings.md.
"""

import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from common import in_new_process, machine, megabytes, with_memory, write_page
from sklearn.metrics import adjusted_rand_score

from dc2 import DC2Clustering, as_source

WIDTH = 384
N_GROUPS = 20
ROWS_AT_A_TIME = 50_000


def write(path: Path, n_rows: int) -> np.ndarray:
    """Write rows around random directions, one row group at a time, and return the group of each row."""
    draw = np.random.default_rng(0)
    directions = draw.normal(size=(N_GROUPS, WIDTH))
    groups = draw.integers(0, N_GROUPS, n_rows)
    schema = pa.schema([("id", pa.int64()), ("vec", pa.list_(pa.float16()))])
    with pq.ParquetWriter(path, schema, use_dictionary=False) as writer:
        for start in range(0, n_rows, ROWS_AT_A_TIME):
            own = groups[start : start + ROWS_AT_A_TIME]
            X = directions[own] + draw.normal(0, 1.5, (len(own), WIDTH))
            X = (X / np.linalg.norm(X, axis=1, keepdims=True)).astype(np.float16)
            offsets = pa.array(np.arange(len(own) + 1, dtype=np.int32) * WIDTH)
            lists = pa.ListArray.from_arrays(offsets, pa.array(X.ravel()))
            writer.write_table(pa.table([np.arange(start, start + len(own)), lists], schema=schema))
    return groups


def fit(path: str) -> tuple[float, np.ndarray, int]:
    """Return the seconds, the labels and the peak of memory of a process that only fits and predicts."""
    since = time.perf_counter()

    def labels() -> np.ndarray:
        rows = as_source(path, columns=["vec"])
        model = DC2Clustering(N_GROUPS, metric="cosine", random_state=0)
        return np.concatenate(list(model.fit_predict(rows)))

    found, memory = with_memory(labels)
    return time.perf_counter() - since, found, memory.peak


def main() -> None:
    n_rows = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    by = machine()
    print(by)
    with tempfile.TemporaryDirectory(prefix="dc2-bench-") as folder:
        path = Path(folder) / "rows.parquet"
        groups = write(path, n_rows)
        size = path.stat().st_size
        seconds, labels, peak = in_new_process(fit, str(path))
    found = (
        f"{n_rows:,} x {WIDTH} float16 in a Parquet list column of {megabytes(size)}: fit and labels in {seconds:.0f} "
        f"s, peak of memory {megabytes(peak)}, ARI {adjusted_rand_score(groups, labels):.3f}."
    )
    print(found)
    if len(sys.argv) == 1:
        write_page("embeddings", "Embeddings from a file, measured", [found], by)


if __name__ == "__main__":
    main()
