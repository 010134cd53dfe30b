"""Nearest neighbours of new rows: RPNeighbors beside pynndescent, hnswlib and faiss, in one run.

Writes docs/measured/neighbors.md. Takes an hour; DC2_BENCH_ROWS limits the rows of each set. Methods that are not
installed (`pip install ".[bench]"`) and sets that are not here are left out; DC2_DATA names their folder.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from importlib.util import find_spec

os.environ.setdefault("NUMBA_NUM_THREADS", "1")

import numpy as np
from common import Report
from numpy.typing import NDArray
from public_data import load_mnist
from quality_data import unit_vectors
from sklearn.neighbors import NearestNeighbors

from dc2 import RPNeighbors
from dc2.datasets import make_rank

K, QUERIES = 10, 1000
MOST_ROWS = int(os.environ.get("DC2_BENCH_ROWS", 10**9))
GOALS = (0.95, 0.99)
HEAD = ["method", "set", "rows", "build, CPU s", "us at .95", "us at .99", "best"]
BEAMS = (10, 12, 14, 17, 20, 24, 28, 34, 40, 48, 56, 68, 80, 96, 112, 136, 160, 192, 256, 320, 400, 512, 640, 800, 1024)

Rows = NDArray[np.float32]
Found = NDArray[np.int64]
Search = Callable[[Rows], Found]


def sets(quick: bool) -> Iterator[tuple[str, Callable[[], Rows]]]:
    """Name and rows."""
    most = 5000 if quick else MOST_ROWS
    if not quick and "DC2_DATA" in os.environ:
        yield "MNIST", lambda: load_mnist().data[:most]
    yield "unit vectors", lambda: unit_vectors(min(most, 100_000), 128, 0)[0]
    yield "rank 12", lambda: make_rank(min(most, 1_000_000), rank=12, n_features=128)


def ours(X: Rows) -> Iterator[Search]:
    """RPNeighbors; the beam is what its parameter `recall` chooses."""
    model = RPNeighbors(K, recall=0.5, n_jobs=1, random_state=0).fit(X)
    record = model._record
    for beam in BEAMS:
        model._record = replace(record, router=record.router.with_beam(beam))
        yield lambda Q: model.kneighbors(Q, return_distance=False)


def pynndescent(X: Rows) -> Iterator[Search]:
    """PyNNDescent as it is."""
    from pynndescent import NNDescent

    index = NNDescent(X, n_neighbors=30, n_jobs=1, random_state=0)
    index.prepare()
    for epsilon in (*np.arange(0.0, 0.2, 0.02), *np.arange(0.2, 0.6, 0.05)):
        yield lambda Q, epsilon=epsilon: index.query(Q, K, epsilon=epsilon)[0]


def hnswlib(X: Rows) -> Iterator[Search]:
    """The usual settings of hnswlib."""
    import hnswlib as library

    index = library.Index("l2", X.shape[1])
    index.init_index(len(X), M=16, ef_construction=200, random_seed=0)
    index.add_items(X, num_threads=1)
    for ef in (10, 14, 20, 28, 40, 56, 80, 112, 160, 224, 320, 448, 640):
        index.set_ef(ef)
        yield lambda Q: index.knn_query(Q, K, num_threads=1)[0]


def faiss_ivf(X: Rows) -> Iterator[Search]:
    """Faiss: an inverted file, which tries some of its cells."""
    import faiss

    faiss.omp_set_num_threads(1)
    cells = int(4 * np.sqrt(len(X)))
    index = faiss.index_factory(X.shape[1], f"IVF{cells},Flat")
    index.train(X)
    index.add(X)
    for probes in (1, 2, 3, 4, 6, 8, 11, 16, 23, 32, 45, 64, 91, 128, 181, 256, 512):
        index.nprobe = min(probes, cells)
        yield lambda Q: index.search(Q, K)[1]


METHODS = {"RPNeighbors": ours, "pynndescent": pynndescent, "hnswlib": hnswlib, "faiss IVF": faiss_ivf}


def recall(X: Rows, Q: Rows, found: Found, farthest: NDArray[np.float64]) -> float:
    """Return the share of found rows that are no farther than the exact k-th neighbour."""
    off = X[np.maximum(found, 0)].astype(np.float64) - Q[:, None]
    return float(((np.sqrt((off * off).sum(axis=2)) <= farthest[:, None] * (1 + 1e-6)) & (found >= 0)).mean())


def compared(name: str, X: Rows, Q: Rows) -> list[list[str]]:
    """Return a line per method: its cost of building, and of a query at each recall."""
    farthest = NearestNeighbors(n_neighbors=K, algorithm="brute").fit(X).kneighbors(Q)[0][:, -1].astype(np.float64)
    lines = []
    for method, searches in METHODS.items():
        if method != "RPNeighbors" and find_spec(method.split()[0]) is None:
            continue
        if method == "pynndescent":  # compile first
            list(_measured(searches(X[:4000]), X[:4000], Q, farthest))
        curve = list(_measured(searches(X), X, Q, farthest))
        costs = [min((cost for share, cost, _ in curve if share >= goal), default=None) for goal in GOALS]
        told = ["not reached" if cost is None else f"{cost:.0f}" for cost in costs]
        best = max(share for share, _, _ in curve)
        lines.append([method, name, f"{len(X):,} x {X.shape[1]}", f"{curve[0][2]:.1f}", *told, f"{best:.3f}"])
        print(" | ".join(lines[-1]), flush=True)
    return lines


def _measured(
    searches: Iterator[Search], X: Rows, Q: Rows, farthest: NDArray[np.float64]
) -> Iterator[tuple[float, float, float]]:
    """Yield recall, processor microseconds of a query, and processor seconds of building, up to the last goal."""
    start = time.process_time()
    built = None
    for search in searches:
        built = time.process_time() - start if built is None else built
        search(Q[:10])
        start = time.process_time()
        found = np.asarray(search(Q), np.int64)
        cost = (time.process_time() - start) * 1e6 / len(Q)
        share = recall(X, Q, found, farthest)
        yield share, cost, built
        if share >= GOALS[-1]:
            return


def on_curve(lines: Sequence[Sequence[str]]) -> tuple[str, bool]:
    """Return whether RPNeighbors needs no more processor time than pynndescent, for each set and recall."""
    told, met = [], True
    for _, name, *_ in (line for line in lines if line[0] == "RPNeighbors"):
        mine, theirs = ([line for line in lines if line[:2] == [who, name]] for who in ("RPNeighbors", "pynndescent"))
        for place, goal in enumerate(GOALS, start=4):
            if not theirs or theirs[0][place] == "not reached":
                continue
            told.append(f"{name} at {goal}: {mine[0][place]} against {theirs[0][place]}")
            met &= mine[0][place] != "not reached" and float(mine[0][place]) <= float(theirs[0][place])
    return "; ".join(told), met


def main() -> None:
    report = Report("neighbors", "Nearest neighbours of new rows")
    report.say(
        f"The {K} nearest rows of {QUERIES} rows that the index does not hold. Processor time of one thread, of "
        "building and of a query at the cheapest setting that finds the share .95 and .99; *best* is the largest share "
        "of the settings tried. Recall counts rows as near as the exact k-th neighbour. Unit vectors have 40 clusters "
        "that fill all dimensions; *rank 12* is a flat space of 12 dimensions with noise in every column."
    )
    if MOST_ROWS < 1_000_000:
        report.say(f"DC2_BENCH_ROWS={MOST_ROWS} limited the rows of each set; the million rows were not measured.")
    lines: list[list[str]] = []
    for name, load in sets(report.quick):
        X = np.ascontiguousarray(load(), np.float32)
        X = X[np.random.default_rng(0).permutation(len(X))]
        found = compared(name, np.ascontiguousarray(X[QUERIES:]), X[:QUERIES])
        report.table(f"Cost of building, and of a query at a given recall: {name}", HEAD, found)
        lines += found
    told, met = on_curve(lines)
    report.goal("processor microseconds a query", "at most those of pynndescent", told, met)
    report.write()


if __name__ == "__main__":
    main()
