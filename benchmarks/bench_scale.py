"""Quality beyond the number of rows that are nodes themselves: the same classes, ever more rows.

Run as ``python benchmarks/bench_scale.py [--rows 70000 140000 280000] [--seeds 3] [--no-peers]``; it writes
docs/measured/scale.md. With other options than these it only prints. Shifted MNIST has ten classes at any size, so
scores should not fall while rows become more. The real embeddings are few enough to be nodes, and stand beside
themselves as signatures, a fifth of the rows.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from common import machine, table, write_page
from numpy.typing import NDArray
from quality_methods import Method, methods
from shifted_mnist import shifted_mnist
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

from dc2 import DC2Clustering

PEERS = ("Leiden", "EVoC", "UMAP + HDBSCAN", "KMeans")
ROWS, SEEDS = (70_000, 140_000, 280_000), 3
EMBEDDINGS = ("cifar", "news20")
ROWS_PER_SIGNATURE = 5
HEAD = ["data", "method", "ARI", "NMI", "clusters", "best ARI of the sweep", "seconds", "CPU seconds"]

Labels = NDArray[np.integer[Any]]


@dataclass(frozen=True)
class Score:
    """How good one answer is, and what it cost."""

    ari: float
    nmi: float
    n_clusters: float
    best: float
    seconds: float
    cpu: float


def scored(y: Labels, labels: Labels, since: tuple[float, float], best: float = np.nan) -> Score:
    """Score labels; noise counts as one cluster."""
    return Score(
        float(adjusted_rand_score(y, labels)),
        float(normalized_mutual_info_score(y, labels)),
        len(np.unique(labels[labels >= 0])),
        best,
        time.perf_counter() - since[0],
        time.process_time() - since[1],
    )


def now() -> tuple[float, float]:
    """Return the time on the clock and that of the processor."""
    return time.perf_counter(), time.process_time()


def ours(X: NDArray[Any], y: Labels, k: int | None, n_signatures: int | str, seed: int) -> Score:
    """Fit with the number of clusters given or not; if not, find the best partition of the sweep too."""
    since = now()
    model = DC2Clustering("auto" if k is None else k, n_signatures=n_signatures, random_state=seed).fit(X)
    found = scored(y, model.labels_, since)
    if k is not None:
        return found
    communities = model._fitted().conquest.communities
    sweep = [model._fitted().labels_of_rows(labels) for labels in communities.sweep.partitions]
    best = max(float(adjusted_rand_score(y, labels)) for labels in sweep)
    return Score(found.ari, found.nmi, found.n_clusters, best, found.seconds, found.cpu)


def peer(method: Method, X: NDArray[Any], y: Labels, seed: int) -> Score | None:
    """Run another method, or return None if it is not installed or does not take so many rows."""
    k = len(np.unique(y))
    if method.left_out(*X.shape, k) is not None:
        return None
    try:
        since = now()
        return scored(y, method.run(X, k, seed).labels[0], since)
    except ImportError:
        return None


def mean(scores: list[Score]) -> list[str]:
    """Return the means over seeds as cells of a table."""
    ari, nmi, n_clusters, best, seconds, cpu = (
        float(np.mean([getattr(score, field.name) for score in scores])) for field in fields(Score)
    )
    told = "" if np.isnan(best) else f"{best:.3f}"
    return [f"{ari:.3f}", f"{nmi:.3f}", f"{n_clusters:.1f}", told, f"{seconds:.1f}", f"{cpu:.1f}"]


def compared(
    name: str, X: NDArray[Any], y: Labels, numbers: dict[str, int | str], seeds: int, peers: bool
) -> Iterator[list[str]]:
    """Yield a line of the table for each way to cluster some rows."""
    k = len(np.unique(y))
    for nodes, n_signatures in numbers.items():
        for how, given in (("k not given", None), ("k given", k)):
            found = [ours(X, y, given, n_signatures, seed) for seed in range(seeds)]
            yield [name, f"DC2Clustering, {nodes}, {how}", *mean(found)]
    for method in methods() if peers else []:
        if method.name in PEERS:
            one = peer(method, X, y, seed=0)
            if one is not None:
                yield [name, method.name, *mean([one])]


def embeddings(name: str) -> tuple[NDArray[np.float32], Labels]:
    """Return real embeddings and their labels."""
    with np.load(Path(os.environ["DC2_DATA"]) / "embeddings" / f"{name}_small.npz") as held:
        return np.asarray(held["X"] * held["scale"], np.float32), held["y"]


def lines(rows: list[int], seeds: int, peers: bool) -> Iterator[list[str]]:
    """Yield all lines of the table."""
    for n_rows in rows:
        X, y = shifted_mnist(n_rows)
        yield from compared(f"shifted MNIST, {n_rows:,}", X, y, {"default": "auto"}, seeds, peers)
    for name in EMBEDDINGS:
        X, y = embeddings(name)
        numbers: dict[str, int | str] = {"rows are nodes": "auto", "n/5 signatures": len(X) // ROWS_PER_SIGNATURE}
        yield from compared(f"{name}, {len(X):,}", X, y, numbers, seeds, peers)


def main() -> None:
    parser = argparse.ArgumentParser(description="Quality beyond the number of rows that are nodes themselves.")
    parser.add_argument("--rows", type=int, nargs="*", default=list(ROWS))
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--no-peers", action="store_true")
    parser.add_argument("--write", action="store_true", help="write the page although some of it is left out")
    wanted = parser.parse_args()
    about = machine()
    print(about, *HEAD, sep=" | ", flush=True)
    found = []
    for line in lines(wanted.rows, wanted.seeds, not wanted.no_peers):
        print(*line, sep=" | ", flush=True)
        found.append(line)
    if not wanted.write and (wanted.rows, wanted.seeds, wanted.no_peers) != (list(ROWS), SEEDS, False):
        return
    note = f"Means over {wanted.seeds} seeds. Best ARI of the sweep: of any resolution, whatever was chosen."
    left_out = [f"shifted MNIST with {n:,} rows" for n in ROWS if n not in wanted.rows]
    left_out += ["other methods"] if wanted.no_peers else []
    notes = [note, *([f"Not run this time: {', '.join(left_out)}."] if left_out else [])]
    write_page("scale", "Quality at scale, measured", [*notes, table(HEAD, found)], about)


if __name__ == "__main__":
    main()
