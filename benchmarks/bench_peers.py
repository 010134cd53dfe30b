"""Peers on the same data: time, memory and quality, from 10^4 to 10^7 rows."""

from __future__ import annotations

import os
import time
from typing import Any

import numpy as np
from common import MEASURED, DidNotFinish, Report, in_new_process, megabytes, with_memory
from public_data import load_covertype
from sklearn.metrics import adjusted_rand_score

from dc2 import RPFCluster
from dc2.datasets import make_bananas, make_rings

TIME_LIMIT = 40.0  # start of the process and making of the rows included
FREE_SHARE = 0.8  # of the memory that is free
WARM_UP_ROWS = 500
PLOT = MEASURED / "peers.svg"


def faiss_kmeans(X: np.ndarray, k: int) -> np.ndarray:
    import faiss

    model = faiss.Kmeans(X.shape[1], k, niter=25, max_points_per_centroid=len(X), seed=0)
    model.train(X)
    return model.index.search(X, 1)[1][:, 0]


def genie(X: np.ndarray, k: int) -> np.ndarray:
    from genieclust import Genie

    return Genie(n_clusters=k).fit_predict(X)


def from_scikit_learn(name: str, **parameters: Any) -> Any:
    """Return a function that clusters with one of scikit-learn's clusterers."""

    def method(X: np.ndarray, k: int) -> np.ndarray:
        from sklearn import cluster

        return getattr(cluster, name)(n_clusters=k, **parameters).fit_predict(X)

    return method


def nystroem_kmeans(X: np.ndarray, k: int) -> np.ndarray:
    from sklearn.cluster import KMeans
    from sklearn.kernel_approximation import Nystroem

    features = Nystroem(n_components=100, random_state=0).fit_transform(X)
    return KMeans(k, n_init=1, random_state=0).fit_predict(features)


METHODS = {
    "RPFCluster": lambda X, k: RPFCluster(k, random_state=0).fit(X).labels_,
    "KMeans, n_init=1": from_scikit_learn("KMeans", n_init=1, random_state=0),
    "KMeans, n_init=10": from_scikit_learn("KMeans", n_init=10, random_state=0),
    "MiniBatchKMeans": from_scikit_learn("MiniBatchKMeans", random_state=0),
    "BisectingKMeans": from_scikit_learn("BisectingKMeans", random_state=0),
    "Birch": from_scikit_learn("Birch"),
    "faiss K-means": faiss_kmeans,
    "Nystroem + KMeans": nystroem_kmeans,
    "SpectralClustering, rbf": from_scikit_learn("SpectralClustering", random_state=0),
    "SpectralClustering, neighbours": from_scikit_learn(
        "SpectralClustering", affinity="nearest_neighbors", random_state=0, n_jobs=-1
    ),
    "Genie": genie,
}

DATA = {
    "bananas": (2, make_bananas),
    "rings": (3, make_rings),
    "Cover Type": (5, lambda n: _cover_type(n)),
}


def _cover_type(n: int) -> tuple[np.ndarray, np.ndarray]:
    data = load_covertype()
    chosen = np.sort(np.random.default_rng(0).permutation(len(data.data))[:n])
    return np.ascontiguousarray(data.data[chosen], np.float32), data.target[chosen]


def measured(method: str, name: str, n: int) -> tuple[float, int, float]:
    """Return seconds, bytes of memory beyond the rows, and the adjusted Rand index."""
    k, make = DATA[name]
    X, y = make(n)
    cluster = METHODS[method]
    few = np.random.default_rng(0).permutation(len(X))[:WARM_UP_ROWS]
    cluster(X[few], k)  # imports and other one-time work

    def timed() -> tuple[float, np.ndarray]:
        start = time.perf_counter()
        labels = cluster(X, k)
        return time.perf_counter() - start, labels

    (seconds, labels), memory = with_memory(timed)
    return seconds, memory.beyond, adjusted_rand_score(y, labels)


def compare(name: str, sizes: list[int]) -> dict[str, dict[int, tuple[float, int, float] | str]]:
    """Measure every method at every size; a method that did not finish is not tried on more rows."""
    found: dict[str, dict[int, tuple[float, int, float] | str]] = {}
    for method in METHODS:
        found[method] = {}
        for n in sizes:
            free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
            try:
                found[method][n] = in_new_process(
                    measured, method, name, n, time_limit=TIME_LIMIT, memory_limit=int(FREE_SHARE * free)
                )
            except DidNotFinish as reason:
                found[method][n] = str(reason)
                break
            finally:
                print(name, method, n, found[method].get(n), flush=True)
    return found


def rows_of(found: dict[str, dict[int, Any]], sizes: list[int]) -> list[list[str]]:
    """Lay the results out: one row per method, one column per size."""
    rows = []
    for method, by_size in found.items():
        cells = []
        for n in sizes:
            result = by_size.get(n, "")
            if not isinstance(result, str):
                seconds, beyond, agreement = result
                result = f"{seconds:.2f} s, {megabytes(beyond)}, **{agreement:.2f}**"
            cells.append(result)
        rows.append([method, *cells])
    return rows


def draw(found: dict[str, dict[int, Any]], path: Any) -> None:
    """Draw time and memory against the number of rows."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 4.5), layout="constrained")
    for axes, index, label in zip(
        figure.subplots(1, 2), (0, 1), ("seconds", "memory beyond the rows, MB"), strict=True
    ):
        for number, (method, by_size) in enumerate(found.items()):
            finished = {n: result for n, result in by_size.items() if not isinstance(result, str)}
            scale = 1.0 if index == 0 else 2**-20
            values = [max(result[index] * scale, 1e-3 if index == 0 else 1.0) for result in finished.values()]
            ours = method == "RPFCluster"
            axes.loglog(
                list(finished), values, marker="o", label=method, color=f"C{number % 10}",
                linewidth=2.5 if ours else 1.0, linestyle="-" if number < 10 else "--",
            )  # fmt: skip
        axes.set(xlabel="rows", ylabel=label)
        axes.grid(alpha=0.3)
    figure.legend(*axes.get_legend_handles_labels(), loc="outside right upper", frameon=False)
    figure.savefig(path, metadata={"Date": None})


def main() -> None:
    report = Report("peers", "Peers")
    sizes = [1_000, 10_000] if report.quick else [10_000, 100_000, 1_000_000, 10_000_000]
    limits = (
        f"at most {TIME_LIMIT:.0f} s (its start and the making of the rows included) and {FREE_SHARE:.0%} of the free "
        "memory a run; a method that did not finish was not tried on more rows"
    )
    report.say(
        "Every run in a process of its own: seconds, memory beyond the rows, and **adjusted Rand index** "
        f"(1 is perfect, 0 is chance); {limits}. True number of clusters, all else as it comes."
    )
    shapes = compare("bananas", sizes)
    report.table("Two bananas, 2 columns", ["method", *(f"{n:,} rows" for n in sizes)], rows_of(shapes, sizes))
    if not report.quick:
        draw(shapes, PLOT)
        report.say(f"![Time and memory against the number of rows, two bananas]({PLOT.name})")
    large = {"rings": sizes[-2]}
    if os.environ.get("DC2_DATA"):
        large["Cover Type"] = min(sizes[-2], 568_772)
    else:
        report.say("DC2_DATA is not set: Cover Type was left out.")
    others = {name: compare(name, [n]) for name, n in large.items()}
    rows = [
        [method, *(rows_of({method: others[name][method]}, [n])[0][1] for name, n in large.items())]
        for method in METHODS
    ]
    report.table(
        "Three rings (2 columns) and Cover Type (54 columns; five classes, which no method finds without labels)",
        ["method", *(f"{name}, {n:,} rows" for name, n in large.items())],
        rows,
    )
    report.write()


if __name__ == "__main__":
    main()
