"""What it costs to read a model of 100,000 signatures, and what stability costs beside conquering.

Writes docs/measured/reading.md. Takes a few minutes; seconds are processor time, which depends less on other work.
"""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path

import numpy as np
from common import MB, in_new_process, machine, table, with_memory, write_page
from numpy.random import SeedSequence
from numpy.typing import NDArray
from sklearn.datasets import make_moons

import dc2
from dc2 import DC2Clustering
from dc2.cluster import fit

N_ROWS, N_SIGNATURES = 1_000_000, 100_000
NODES = (1000, 4000, 16_000)
READINGS = ("stability_", "summary()", "map(X)", "report(path)", "plots", "save(path)", "dc2 info")


def blobs(n_rows: int, d: int = 5, apart: float = 6.0) -> NDArray[np.float32]:
    rng = np.random.default_rng(0)
    centres = rng.normal(scale=apart, size=(20, d))
    return (rng.normal(size=(n_rows, d)) + centres[rng.integers(20, size=n_rows)]).astype(np.float32)


def fit_and_save(path: str) -> None:
    DC2Clustering(n_signatures=N_SIGNATURES, noise=0.01, random_state=0).fit(blobs(N_ROWS)).save(path)


def read(what: str, path: str) -> tuple[float, float, int]:
    """Return the seconds of reading, the seconds of loading before it, and the peak of memory of both."""
    folder = Path(path).parent

    def plots(model: DC2Clustering) -> None:
        import matplotlib

        matplotlib.use("Agg")
        from dc2.report import ClusterProfileDisplay, SignatureMapDisplay

        SignatureMapDisplay.from_estimator(model)
        ClusterProfileDisplay.from_estimator(model)

    def info(model: DC2Clustering) -> None:
        from dc2.cli.describe import model_facts

        model_facts(Path(path))

    readings = {
        "stability_": lambda model: model.stability_,
        "summary()": lambda model: model.summary(),
        "map(X)": lambda model: model.map(blobs(20_000)),
        "report(path)": lambda model: model.report(folder / "report.html"),
        "plots": plots,
        "save(path)": lambda model: model.save(folder / "again.dc2"),
        "dc2 info": info,
    }

    def both() -> tuple[float, float]:
        start = time.process_time()
        model = dc2.load(path)
        loaded = time.process_time()
        readings[what](model)
        return time.process_time() - loaded, loaded - start

    (seconds, loading), memory = with_memory(both)
    return seconds, loading, memory.peak


def stability_beside_conquering(n_nodes: int, X: NDArray[np.float32]) -> tuple[float, float]:
    """Return the seconds of conquering with the number not given, and of ten resamples; one thread, best of two."""
    model = DC2Clustering(n_signatures=n_nodes, n_jobs=1, random_state=0).fit(X)
    record, plan = model._record, model._plan()
    *_, seeds = fit._spawned(SeedSequence(**record.seed))
    nodes = fit.nodes_at(record.signatures.points, record.signatures.weights)
    conqueror = plan.conqueror_of(record.similarity)

    def seconds(work: object) -> float:
        start = time.process_time()
        work()
        return time.process_time() - start

    conquering = min(
        seconds(lambda: conqueror.conquer(record.similarity, nodes, plan.requested, seeds, 1)) for _ in range(2)
    )
    return conquering, min(seconds(lambda: fit.stability_of(plan, record)) for _ in range(2))


def main() -> None:
    about = machine()
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.dc2")
        in_new_process(fit_and_save, path)
        told = []
        for what in READINGS:
            seconds, loading, peak = in_new_process(read, what, path)
            told.append([f"`{what}`", f"{seconds:.1f}", f"{loading:.1f}", f"{peak / MB:.0f}"])
            print(told[-1], flush=True)
        page_kb = os.path.getsize(os.path.join(folder, "report.html")) / 1000
        file_mb = os.path.getsize(path) / MB
    ratios = []
    for n_nodes in NODES:
        for name, X in (
            ("20 blobs that overlap, 5 columns", blobs(10 * n_nodes, apart=3.0)),
            ("two moons", make_moons(10 * n_nodes, noise=0.06, random_state=0)[0].astype(np.float32)),
        ):
            conquering, bootstrap = stability_beside_conquering(n_nodes, X)
            ratios.append(
                [f"{n_nodes:,}", name, f"{conquering:.2f}", f"{bootstrap:.2f}", f"{bootstrap / conquering:.2f}"]
            )
            print(ratios[-1], flush=True)
    text = [
        f"A model of {N_SIGNATURES:,} signatures ({N_ROWS:,} rows, 5 columns, 20 clusters, `noise=0.01`), whose file "
        f"has {file_mb:.0f} MB and whose report {page_kb:.0f} kB. Each reading in a process of its own; seconds are "
        "processor time, memory is the most that the process held.",
        table(["reading", "seconds", "loading before it, seconds", "memory, MB"], told),
        "`stability_`, ten resamplings, beside conquering with the number of clusters not given; one thread.",
        table(["signatures", "rows", "conquer, seconds", "stability, seconds", "ratio"], ratios),
    ]
    write_page("reading", "Reading a model, measured", text, about)


if __name__ == "__main__":
    main()
