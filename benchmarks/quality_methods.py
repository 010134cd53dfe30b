"""The clusterers compared, each at settings its documentation recommends, and where each is not run."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import HDBSCAN, Birch, KMeans, MiniBatchKMeans, SpectralClustering
from sklearn.mixture import GaussianMixture

from dc2 import KASP, RASP, RPFCluster

Labels = NDArray[np.int32]
ORACLE_BANDWIDTHS = (0.0125, 0.02, 0.03, 0.04, 0.05, 0.06, 0.08, 0.1, 0.15, 0.2)
OTHER_POPULATE = "nearest" if RPFCluster().populate == "leaf" else "leaf"
RESTARTS_UP_TO = 1_000_000  # numbers in X; beyond, one start of K-means, as is its default


@dataclass(frozen=True)
class Outcome:
    """Labels to score (the best of several is taken), the seconds they took, and the number of clusters found."""

    labels: list[Labels]
    seconds: float
    n_clusters: int


Run = Callable[[NDArray[Any], int, int], Outcome]  # rows, number of clusters, seed


@dataclass(frozen=True)
class Method:
    """A clusterer, and why it is left out for some data (None where it is not)."""

    name: str
    run: Run
    left_out: Callable[[int, int, int], str | None] = lambda n, d, k: None


def methods() -> list[Method]:
    """Ours first."""
    return [
        Method("RPFCluster", fits(lambda X, k, seed: RPFCluster(k, random_state=seed))),
        Method(
            f"RPFCluster, {OTHER_POPULATE}",
            fits(lambda X, k, seed: RPFCluster(k, populate=OTHER_POPULATE, random_state=seed)),
            small_only,
        ),
        Method(
            "RPFCluster, b=0.05",
            fits(lambda X, k, seed: RPFCluster(k, bandwidth=0.05, random_state=seed)),
            small_only,
        ),
        Method(
            "RPFCluster, ties",
            fits(lambda X, k, seed: RPFCluster(k, similarity="ties", random_state=seed)),
            lambda n, d, k: None if n >= 30_000 else "ties need many rows per signature",
        ),
        Method("RPFCluster, auto k", fits(lambda X, k, seed: RPFCluster("auto", random_state=seed))),
        Method("RPFCluster, oracle b", oracle),
        Method("RPFCluster, paper", fits(paper)),
        Method("KMeans", fits(kmeans)),
        Method("MiniBatchKMeans", fits(minibatch), work_below("its steps", 2e6, lambda n, d, k: n)),
        Method(
            "GaussianMixture",
            fits(mixture),
            work_below("EM", 1.0, lambda n, d, k: max(n / 3e5, n * d * d * k / 1e9)),
        ),
        Method("SpectralClustering, rbf", scaled(spectral_rbf), n_by_n(5_500)),
        Method("SpectralClustering, nn", scaled(spectral_nn), n_by_n(20_000)),
        Method("Birch", scaled(birch), work_below("its tree", 2.5e5, lambda n, d, k: n * d)),
        Method("HDBSCAN", scaled(hdbscan), work_below("its distances", 1e9, lambda n, d, k: n * n * d)),
        Method("genieclust", fits(genie), work_below("its distances", 1e11, lambda n, d, k: n * n * d)),
        Method(
            "KASP",
            fits(lambda X, k, seed: KASP(k, random_state=seed)),
            rows_below("K-means of 1000", 20_000),
        ),
        Method("RASP", fits(lambda X, k, seed: RASP(k, random_state=seed))),
    ]


def fits(make: Callable[[NDArray[Any], int, int], Any]) -> Run:
    """Fit a model and take its labels, by the clock."""

    def run(X: NDArray[Any], k: int, seed: int) -> Outcome:
        start = time.perf_counter()
        labels = np.asarray(make(X, k, seed).fit_predict(X), np.int32)
        return Outcome([labels], time.perf_counter() - start, len(np.unique(labels[labels >= 0])))

    return run


def scaled(make: Callable[[NDArray[Any], int, int], Any]) -> Run:
    """Fit to rows whose columns have a spread of 1 on average: peers with a length among their settings need it."""
    run = fits(make)

    def run_scaled(X: NDArray[Any], k: int, seed: int) -> Outcome:
        X = X - X.mean(axis=0)
        return run(X / np.sqrt(X.var(axis=0).mean()), k, seed)

    return run_scaled


def paper(X: NDArray[Any], k: int, seed: int) -> RPFCluster:
    """The paper's compression, kernel and cuts; its bandwidth is chosen by true labels, this is the middle."""
    return RPFCluster(
        k,
        cut="median",
        sharpen=0,
        sample_size=None,
        populate="leaf",
        forest_leaf_size=30,
        forest_cut="median",
        bandwidth=0.05,
        assign="ncut",
        random_state=seed,
    )


def oracle(X: NDArray[Any], k: int, seed: int) -> Outcome:
    """The defaults at every bandwidth: what a perfect choice by true labels would have."""
    start = time.perf_counter()
    model = RPFCluster(k, random_state=seed).fit(X)
    labels = [model.labels_, *(model.recluster(bandwidth=b).labels_ for b in ORACLE_BANDWIDTHS)]
    return Outcome(labels, time.perf_counter() - start, k)


def kmeans(X: NDArray[Any], k: int, seed: int) -> KMeans:
    return KMeans(k, n_init=10 if X.size <= RESTARTS_UP_TO else 1, random_state=seed)


def minibatch(X: NDArray[Any], k: int, seed: int) -> MiniBatchKMeans:
    return MiniBatchKMeans(k, n_init=10, random_state=seed)


def mixture(X: NDArray[Any], k: int, seed: int) -> GaussianMixture:
    return GaussianMixture(k, n_init=3 if X.size <= 100_000 else 1, random_state=seed)


def spectral_rbf(X: NDArray[Any], k: int, seed: int) -> SpectralClustering:
    return SpectralClustering(k, affinity="rbf", gamma=1.0, random_state=seed)


def spectral_nn(X: NDArray[Any], k: int, seed: int) -> SpectralClustering:
    return SpectralClustering(k, affinity="nearest_neighbors", n_neighbors=10, random_state=seed)


def birch(X: NDArray[Any], k: int, seed: int) -> Birch:
    return Birch(n_clusters=k, threshold=0.1)


def hdbscan(X: NDArray[Any], k: int, seed: int) -> HDBSCAN:
    """It is not told k; what it calls noise is scored as a cluster of its own."""
    return HDBSCAN(min_cluster_size=max(5, len(X) // 100), copy=True)


def genie(X: NDArray[Any], k: int, seed: int) -> Any:
    from genieclust import Genie

    return Genie(n_clusters=k)


def small_only(n: int, d: int, k: int) -> str | None:
    """Ours in other settings: to compare on the batteries."""
    return None if n <= 20_000 else "compared on small sets"


def n_by_n(most_rows: int) -> Callable[[int, int, int], str | None]:
    """Leave out where a matrix of rows by rows, or its eigenvectors, would not fit or take minutes."""
    return lambda n, d, k: None if n <= most_rows else f"n x n for {n:,} rows"


def rows_below(what: str, most_rows: int) -> Callable[[int, int, int], str | None]:
    return lambda n, d, k: None if n <= most_rows else f"minutes: {what} centres on {n:,} rows"


def work_below(
    what: str, most: float, work: Callable[[int, int, int], float]
) -> Callable[[int, int, int], str | None]:
    return lambda n, d, k: None if work(n, d, k) <= most else f"minutes: {what} on {n:,} x {d}"
