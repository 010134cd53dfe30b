"""The clusterers compared: ours, those that need the number of clusters, and those that find it themselves."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import HDBSCAN, Birch, KMeans, MiniBatchKMeans, SpectralClustering
from sklearn.mixture import GaussianMixture
from sklearn.neighbors import kneighbors_graph

from dc2 import KASP, RASP, RPFCluster

try:
    from dc2 import DC2Clustering
except ImportError:
    DC2Clustering = None

Labels = NDArray[np.int32]  # negative: noise
ORACLE_BANDWIDTHS = (0.0125, 0.02, 0.03, 0.04, 0.05, 0.06, 0.08, 0.1, 0.15, 0.2)
RESTARTS_UP_TO = 1_000_000  # numbers in X; beyond, one start of K-means, as is its default
NEIGHBOURS = 15  # of the graph for Leiden, as UMAP and EVoC have


@dataclass(frozen=True)
class Outcome:
    """Labels to score (the best of several is taken), and the seconds they took."""

    labels: list[Labels]
    seconds: float


Run = Callable[[NDArray[Any], int, int], Outcome]  # rows, number of clusters, seed
Reason = Callable[[int, int, int], str | None]  # of rows, columns, clusters


@dataclass(frozen=True)
class Method:
    """A clusterer.

    Attributes
    ----------
    name : str
    run : callable
        Gives labels from rows, a number of clusters and a seed.
    left_out : callable
        Says why it is not run on so many rows and columns, or None if it is.
    finds_k : bool
        Whether it finds the number of clusters itself.
    random : bool
        Whether its answer depends on the seed.
    compiled : bool
        Whether it is compiled on its first run, which is not timed.
    """

    name: str
    run: Run
    left_out: Reason = lambda n, d, k: None
    finds_k: bool = False
    random: bool = True
    compiled: bool = False


def methods() -> list[Method]:
    """Return all methods, ours first."""
    return [*_ours(), *_told(), *_finding()]


def _ours() -> list[Method]:
    ours = [
        Method("RPFCluster", fits(lambda X, k, seed: RPFCluster(k, random_state=seed))),
        Method(
            "RPFCluster, auto k",
            fits(lambda X, k, seed: RPFCluster("auto", random_state=seed)),
            finds_k=True,
        ),
        Method("RPFCluster, oracle b", oracle, rows_below(1_000_000)),
        Method(
            "RPFCluster, paper",
            fits(lambda X, k, seed: RPFCluster.paper(k, bandwidth=0.05, random_state=seed)),
        ),
    ]
    if DC2Clustering is None:
        return ours
    return [
        Method("DC2Clustering, k given", fits(lambda X, k, seed: DC2Clustering(k, random_state=seed))),
        Method("DC2Clustering", fits(lambda X, k, seed: DC2Clustering("auto", random_state=seed)), finds_k=True),
        *ours,
    ]


def _told() -> list[Method]:
    return [
        Method("KMeans", fits(kmeans)),
        Method(
            "MiniBatchKMeans",
            fits(lambda X, k, seed: MiniBatchKMeans(k, n_init=10, random_state=seed)),
            rows_below(2_000_000),
        ),
        Method(
            "GaussianMixture",
            fits(mixture),
            work_below(1.0, lambda n, d, k: max(n / 3e5, n * d * d * k / 1e9)),
        ),
        Method("SpectralClustering, rbf", scaled(spectral_rbf), rows_below(5_500)),
        Method("SpectralClustering, nn", scaled(spectral_nn), rows_below(20_000)),
        Method(
            "Birch",
            scaled(lambda X, k, seed: Birch(n_clusters=k, threshold=0.1)),
            work_below(2.5e5, lambda n, d, k: n * d),
            random=False,
        ),
        Method("genieclust", fits(genie), work_below(1e11, lambda n, d, k: n * n * d), random=False),
        Method("KASP", fits(lambda X, k, seed: KASP(k, random_state=seed)), rows_below(20_000)),
        Method("RASP", fits(lambda X, k, seed: RASP(k, random_state=seed))),
    ]


def _finding() -> list[Method]:
    return [
        Method(
            "HDBSCAN",
            fits(lambda X, k, seed: HDBSCAN(copy=True)),
            work_below(1e9, lambda n, d, k: n * n * d),
            finds_k=True,
            random=False,
        ),
        Method(
            "fast_hdbscan",
            timed(fast_hdbscan),
            work_below(1.0, lambda n, d, k: n / 1e6 if d <= 16 else n * n * d / 1e11),
            finds_k=True,
            random=False,
            compiled=True,
        ),
        Method("UMAP + HDBSCAN", timed(umap_hdbscan), rows_below(250_000), finds_k=True, compiled=True),
        Method("EVoC", timed(evoc), rows_below(1_000_000), finds_k=True, compiled=True),
        Method("Leiden", timed(leiden), rows_below(300_000), finds_k=True, compiled=True),
    ]


def timed(labels: Callable[[NDArray[Any], int, int], NDArray[Any]]) -> Run:
    """Return labels, and the seconds they took."""

    def run(X: NDArray[Any], k: int, seed: int) -> Outcome:
        start = time.perf_counter()
        found = np.asarray(labels(X, k, seed), np.int32)
        return Outcome([found], time.perf_counter() - start)

    return run


def fits(make: Callable[[NDArray[Any], int, int], Any]) -> Run:
    """Fit a model and return its labels, and the seconds this took."""
    return timed(lambda X, k, seed: make(X, k, seed).fit_predict(X))


def scaled(make: Callable[[NDArray[Any], int, int], Any]) -> Run:
    """Fit to rows scaled to a mean spread of 1: methods with a length among their settings need it."""
    run = fits(make)

    def run_scaled(X: NDArray[Any], k: int, seed: int) -> Outcome:
        X = X - X.mean(axis=0)
        return run(X / np.sqrt(X.var(axis=0).mean()), k, seed)

    return run_scaled


def oracle(X: NDArray[Any], k: int, seed: int) -> Outcome:
    """The defaults at every bandwidth: the best is what a perfect choice by true labels would give."""
    start = time.perf_counter()
    model = RPFCluster(k, random_state=seed).fit(X)
    labels = [model.labels_, *(model.recluster(bandwidth=b).labels_ for b in ORACLE_BANDWIDTHS)]
    return Outcome(labels, time.perf_counter() - start)


def kmeans(X: NDArray[Any], k: int, seed: int) -> KMeans:
    return KMeans(k, n_init=10 if X.size <= RESTARTS_UP_TO else 1, random_state=seed)


def mixture(X: NDArray[Any], k: int, seed: int) -> GaussianMixture:
    return GaussianMixture(k, n_init=3 if X.size <= 100_000 else 1, random_state=seed)


def spectral_rbf(X: NDArray[Any], k: int, seed: int) -> SpectralClustering:
    return SpectralClustering(k, affinity="rbf", gamma=1.0, random_state=seed)


def spectral_nn(X: NDArray[Any], k: int, seed: int) -> SpectralClustering:
    return SpectralClustering(k, affinity="nearest_neighbors", n_neighbors=10, random_state=seed)


def genie(X: NDArray[Any], k: int, seed: int) -> Any:
    from genieclust import Genie

    return Genie(n_clusters=k)


def fast_hdbscan(X: NDArray[Any], k: int, seed: int) -> NDArray[Any]:
    from fast_hdbscan import HDBSCAN as FastHDBSCAN

    return FastHDBSCAN().fit_predict(X)


def umap_hdbscan(X: NDArray[Any], k: int, seed: int) -> NDArray[Any]:
    """The fast HDBSCAN on UMAP's two columns, with fifteen neighbours."""
    from umap import UMAP

    return fast_hdbscan(UMAP(random_state=seed).fit_transform(X).astype(np.float64), k, seed)


def evoc(X: NDArray[Any], k: int, seed: int) -> NDArray[Any]:
    from evoc import EVoC

    return EVoC(random_state=seed).fit_predict(np.ascontiguousarray(X, np.float32))


def leiden(X: NDArray[Any], k: int, seed: int) -> NDArray[Any]:
    """Communities of highest modularity in the graph of fifteen nearest neighbours."""
    import igraph

    if len(X) <= 20_000:
        graph = kneighbors_graph(X, min(NEIGHBOURS, len(X) - 1), n_jobs=-1).tocoo()
        edges = np.column_stack([graph.row, graph.col])
    else:
        from pynndescent import NNDescent

        # Each row is its own first neighbour there.
        near = NNDescent(X, n_neighbors=NEIGHBOURS + 1, random_state=seed).neighbor_graph[0][:, 1:]
        edges = np.column_stack([np.repeat(np.arange(len(X)), near.shape[1]), near.ravel()])
    random.seed(seed)  # what igraph draws from
    found = igraph.Graph(len(X), edges).simplify().community_leiden(objective_function="modularity")
    return np.array(found.membership)


def rows_below(most_rows: int) -> Reason:
    return lambda n, d, k: None if n <= most_rows else f"more than {most_rows:,} rows"


def work_below(most: float, work: Callable[[int, int, int], float]) -> Reason:
    return lambda n, d, k: None if work(n, d, k) <= most else "minutes, or more memory than there is"
