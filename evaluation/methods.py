"""The methods compared. All that the evaluation asks of dc2's estimators is in this file."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans

from dc2 import KASP, RASP, Compressor, GaussianKernel, RPFCluster
from dc2.kernels.rpf import rpf_similarity
from dc2.random import seed_sequence
from dc2.trees import RPForest
from evaluation.sets import DataSet
from evaluation.settings import Settings

__all__ = [
    "FIXED_BANDWIDTH",
    "Similarity",
    "compressor",
    "default_rpf",
    "gaussian_similarity",
    "kmeans",
    "paper_rival",
    "paper_rpf",
    "rpf_similarity_of",
    "signature_of_rows",
    "similarity_of",
    "with_compression",
]

Divide = Literal["projection", "sampling"]
Similarity = Callable[[float], NDArray[np.float64]]

FIXED_BANDWIDTH = 0.05  # beta = 40, the middle of the paper's range; what the fits that are timed use
_PAPER_COMPRESSION: dict[str, Any] = {
    "cut": "median", "sharpen": 0, "sample_size": None, "populate": "leaf"
}  # fmt: skip


def kmeans(data: DataSet, seed: int, n_init: int) -> KMeans:
    """Return K-means: Lloyd's steps from k-means++. The paper's is R's: Hartigan and Wong's from random rows."""
    return KMeans(data.n_clusters, n_init=n_init, max_iter=200, algorithm="lloyd", random_state=seed)


def compressor(
    n_signatures: int,
    seed: int,
    *,
    n_partitions: int = 1,
    divide: Divide = "projection",
    n_jobs: int | None = None,
) -> Compressor:
    """Return the paper's divide and compress."""
    return Compressor(
        n_signatures,
        n_partitions=n_partitions,
        divide=divide,
        **_PAPER_COMPRESSION,
        n_jobs=n_jobs,
        random_state=seed,
    )


def paper_rpf(
    data: DataSet,
    seed: int,
    settings: Settings,
    *,
    n_partitions: int,
    divide: Divide = "projection",
    n_jobs: int | None = None,
) -> RPFCluster:
    """Return rpfCluster+ with the paper's parameters."""
    return RPFCluster(
        data.n_clusters,
        n_signatures=settings.n_signatures,
        n_partitions=n_partitions,
        divide=divide,
        **_PAPER_COMPRESSION,
        n_trees=settings.n_trees,
        forest_leaf_size=settings.forest_leaf_size,
        forest_cut="median",
        bandwidth=FIXED_BANDWIDTH,
        assign="ncut",
        n_jobs=n_jobs,
        random_state=seed,
    )


def paper_rival(name: str, data: DataSet, seed: int, settings: Settings) -> Any:
    """Return RASP or KASP with the paper's parameters; sigma is the median squared distance until it is searched."""
    return {"RASP": RASP, "KASP": KASP}[name](
        data.n_clusters,
        n_signatures=settings.n_signatures,
        assign="ncut",
        n_jobs=settings.n_jobs,
        random_state=seed,
    )


def default_rpf(data: DataSet, seed: int, settings: Settings) -> RPFCluster:
    """Return our clusterer as a user gets it, but for what the settings make smaller."""
    return RPFCluster(
        data.n_clusters,
        n_signatures=settings.n_signatures,
        n_trees=settings.n_trees,
        n_jobs=settings.n_jobs,
        random_state=seed,
    )


def with_compression(data: DataSet, seed: int, settings: Settings, **compression: Any) -> RPFCluster:
    """Return our clusterer with other cuts and directions, and a fixed bandwidth: only compression differs."""
    chosen = {"populate": "leaf", "sample_size": None, "bandwidth": FIXED_BANDWIDTH} | compression
    model = default_rpf(data, seed, settings)
    model.set_params(**chosen)
    return model


def signature_of_rows(model: Any) -> NDArray[np.int32]:
    """Return the signature of every row that a model was fitted to."""
    ids: NDArray[np.int32] = model._ids
    return ids


def similarity_of(model: Any) -> Similarity:
    """Return the kernel of a fitted model's signatures, for any bandwidth: b of the rpf-kernel, sigma of others."""
    if isinstance(model, RPFCluster):
        return model._signature_similarity
    return gaussian_similarity(model.signatures_.points)


def rpf_similarity_of(points: NDArray[Any], seed: int, settings: Settings) -> Similarity:
    """Return the rpf-kernel of points; the forest, with the paper's cuts, is grown once."""
    forest = RPForest.grow(
        points, settings.n_trees, settings.forest_leaf_size, cut="median", rng=seed_sequence(seed)
    )
    counts = forest.counts()
    return lambda bandwidth: rpf_similarity(counts, settings.n_trees, bandwidth)


def gaussian_similarity(points: NDArray[Any]) -> Similarity:
    """Return the Gaussian kernel of points."""

    def similarity(sigma: float) -> NDArray[np.float64]:
        matrix: NDArray[np.float64] = GaussianKernel(sigma).fit(points).similarity_
        return matrix

    return similarity
