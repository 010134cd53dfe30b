"""DC2Clustering by the clock: whole fits against K-means, compressing against the bare minimum, the first import."""

from __future__ import annotations

import copy
import os
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from common import Report, best_of, python_seconds, ratio
from sklearn.cluster import KMeans
from sklearn.datasets import make_blobs

from dc2 import Compressor, DC2Clustering
from dc2.datasets import make_rank
from dc2.errors import ClustersDoNotShowWarning

CONQUER = {1000: 0.1, 10_000: 1.5, 100_000: 20.0}  # seconds to reach
SMALL = {1000: (0.05, 0.15), 10_000: (0.3, 2.0), 100_000: (0.5, 1.0)}  # seconds to reach, k given and not


def small_fits(report: Report) -> None:
    """Time fits of few rows, k given and not, beside K-means."""
    rows = []
    for n, reach in SMALL.items():
        X = make_blobs(n, n_features=5, centers=5, cluster_std=2.0, random_state=0)[0].astype(np.float32)
        rival = _seconds(lambda X=X: KMeans(5, n_init=1, random_state=0).fit(X), 5)
        told = _seconds(lambda X=X: DC2Clustering(5, random_state=0).fit(X), 5)
        found = _seconds(lambda X=X: DC2Clustering(random_state=0).fit(X), 3)
        rows.append([f"{n:,} x 5", f"{rival:.3f}", f"{told:.3f}", f"{found:.3f}"])
        for what, seconds, most in (("given", told, reach[0]), ("not given", found, reach[1])):
            report.goal(f"fit {n:,} x 5, k {what}", f"<= {most} s", f"{seconds:.3f} s", seconds <= most)
    report.table("Few rows, seconds", ["rows", "KMeans(5, n_init=1)", "DC2Clustering(5)", "DC2Clustering()"], rows)


def large_fits(X: np.ndarray, report: Report) -> None:
    """Time the default fit of many rows beside K-means, and what the automatic number of signatures costs."""
    rows = []
    for k, least in ((2, 6), (10, 20)):
        rival = best_of(lambda k=k: KMeans(k, n_init=1, random_state=0).fit(X), 2)
        fit = best_of(lambda k=k: DC2Clustering(k, random_state=0).fit(X))
        times = rival.seconds / fit.seconds
        report.goal(f"fit {_shape(X)}, k = {k}, against K-means", f"1/{least}", f"1/{times:.1f}", times >= least)
        rows.append(
            [
                str(k),
                f"{rival.seconds:.2f} ({rival.result.n_iter_} steps)",
                f"{fit.seconds:.2f}",
                *(f"{seconds:.2f}" for seconds in fit.result.stage_seconds_.values()),
            ]
        )
    stages = list(fit.result.stage_seconds_)
    report.table(f"{_shape(X)}, seconds", ["k", "KMeans(n_init=1)", "DC2Clustering", *stages], rows)
    few = _seconds(lambda: DC2Clustering(2, n_signatures=1000, random_state=0).fit(X), 3)
    auto = _seconds(lambda: DC2Clustering(2, random_state=0).fit(X), 3)
    report.goal("the same with automatic signatures, against 1000", "<= 1.5x", ratio(auto / few), auto <= 1.5 * few)


def compressing(X: np.ndarray, report: Report) -> None:
    """Time compressing by leaf and by nearest signature, and with many signatures."""
    by_sum = _seconds(lambda: X.ravel().sum(), 5)
    leaf = _seconds(lambda: Compressor(1024, populate="leaf", refine=0, random_state=0).fit(X), 3)
    report.goal(
        f"compress {_shape(X)} to 1024, leaf, against X.ravel().sum()",
        "<= 12x",
        ratio(leaf / by_sum),
        leaf <= 12 * by_sum,
    )
    _nearest_against_leaf(X, 1.6, report)
    half = X[: len(X) // 2]
    few = _seconds(lambda: Compressor(1000, random_state=0).fit(half), 3)
    for m, most in ((16_000, 4), (64_000, 10)):
        many = _seconds(lambda m=m: Compressor(m, random_state=0).fit(half), 2)
        report.goal(
            f"compress {_shape(half)} to {m:,}, against 1000",
            f"<= {most}x",
            ratio(many / few),
            many <= most * few,
        )


def _nearest_against_leaf(X: np.ndarray, most: float, report: Report) -> None:
    leaf = _seconds(lambda: Compressor(1000, populate="leaf", random_state=0).fit(X), 2)
    nearest = _seconds(lambda: Compressor(1000, populate="nearest", random_state=0).fit(X), 2)
    report.goal(
        f"compress {_shape(X)} to 1000, nearest, against leaf",
        f"<= {most}x",
        ratio(nearest / leaf),
        nearest <= most * leaf,
    )


def conquering(report: Report) -> None:
    """Time conquering alone, k not given, and clustering anew with another number of clusters."""
    rows = []
    n = 20_000 if report.quick else 400_000
    X = make_blobs(n, n_features=5, centers=5, cluster_std=2.0, random_state=0)[0].astype(np.float32)
    for m, most in CONQUER.items():
        if m > n // 2:
            continue
        fits = [DC2Clustering(n_signatures=m, random_state=0).fit(X) for _ in range(3 if m < 100_000 else 1)]
        fit = min(fits, key=lambda fit: fit.stage_seconds_["conquer"])
        seconds = fit.stage_seconds_["conquer"]
        bootstrap = _seconds(lambda fit=fit: copy.deepcopy(fit).recluster(n_clusters=7), 2)
        bootstrap -= _seconds(lambda fit=fit: copy.deepcopy(fit), 2)
        rows.append([f"{m:,}", f"{seconds:.3f}", f"{bootstrap:.3f}", f"{bootstrap / seconds:.2f}"])
        report.goal(f"conquer {m:,} signatures, k not given", f"<= {most} s", f"{seconds:.3f} s", seconds <= most)
        report.goal(
            f"recluster(n_clusters=7) of {m:,} signatures, against conquer", "<= 0.1x", ratio(bootstrap / seconds),
            bootstrap <= seconds / 10,
        )  # fmt: skip
    report.table("Conquering, seconds", ["signatures", "conquer", "recluster(n_clusters=7)", "against conquer"], rows)


def images(report: Report) -> None:
    """Time compressing MNIST beside faiss's exact assignment of its rows to the same signatures."""
    if not os.environ.get("DC2_DATA") or report.quick:
        return
    import faiss
    from public_data import load_mnist

    X = load_mnist(download=False).data.astype(np.float32)
    fit = best_of(lambda: Compressor(4000, random_state=0).fit(X), 3)
    index = faiss.IndexFlatL2(X.shape[1])
    index.add(fit.result.signatures_.points)
    exact = best_of(lambda: index.search(X, 1), 3)
    found = np.mean(exact.result[1][:, 0] == fit.result.labels_)
    report.goal(
        "compress MNIST to 4000, against faiss's exact assignment", "<= 0.8x", ratio(fit.seconds / exact.seconds),
        fit.seconds <= 0.8 * exact.seconds,
    )  # fmt: skip
    report.say(
        f"MNIST to 4000 signatures: {fit.seconds:.2f} s from rows to labels; faiss takes {exact.seconds:.2f} s to find "
        f"the exact nearest of them for all rows, which {100 * found:.0f}% of our rows have."
    )


def first_import(report: Report) -> None:
    """Time what a user waits for first."""
    seconds = python_seconds("from dc2 import DC2Clustering") - python_seconds("pass")
    report.goal("first import of a clusterer", "<= 1.0 s", f"{seconds:.2f} s", seconds <= 1.0)


def _seconds(function: Callable[[], Any], runs: int) -> float:
    return best_of(function, runs).seconds


def _shape(X: np.ndarray) -> str:
    return f"{len(X):,} x {X.shape[1]}"


def main() -> None:
    warnings.simplefilter("ignore", ClustersDoNotShowWarning)  # rank-4 rows have no clusters
    report = Report("speed", "DC2Clustering by the clock")
    small_fits(report)
    conquering(report)
    images(report)
    first_import(report)
    X = make_rank(200_000 if report.quick else 8_000_000)
    large_fits(X, report)
    compressing(X, report)
    del X
    wide = np.random.default_rng(0).standard_normal((20_000 if report.quick else 1_000_000, 768), np.float32)
    _nearest_against_leaf(wide, 1.5, report)
    report.write()


if __name__ == "__main__":
    main()
