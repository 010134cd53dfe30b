"""The methods compared. Everything that the evaluation needs from dc2's estimators is in this file."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans

from dc2 import KASP, RASP, Compressor, DC2Clustering, GaussianKernel, RPFCluster, RPFKernel
from dc2.spectral import RPF
from evaluation.sets import DataSet
from evaluation.settings import Settings

__all__ = [
    "FIXED_BANDWIDTH",
    "Similarity",
    "communities",
    "compressor",
    "default_rpf",
    "gaussian_similarity",
    "kmeans",
    "paper_rival",
    "paper_rpf",
    "rpf_similarity",
    "signature_of_rows",
    "similarity_of",
    "with_compression",
]

Divide = Literal["projection", "sampling"]
Similarity = Callable[[float], NDArray[np.float64]]

FIXED_BANDWIDTH = 0.05  # beta = 40, the middle of the paper's range; used by the fits that are timed
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
    model = RPFCluster.paper(
        data.n_clusters,
        n_partitions=n_partitions,
        divide=divide,
        bandwidth=FIXED_BANDWIDTH,
        n_signatures=settings.n_signatures,
        n_jobs=n_jobs,
        random_state=seed,
    )
    # The paper's own numbers, unless the settings make them smaller.
    model.set_params(similarity__n_trees=settings.n_trees, similarity__leaf_size=settings.forest_leaf_size)
    return model


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
    """Return the paper's method with dc2's defaults, except for sizes that the settings make smaller."""
    return RPFCluster(
        data.n_clusters,
        n_signatures=settings.n_signatures,
        similarity=RPF(n_trees=settings.n_trees),
        n_jobs=settings.n_jobs,
        random_state=seed,
    )


def communities(data: DataSet, seed: int, settings: Settings, *, given: bool) -> DC2Clustering:
    """Return dc2's main clusterer with its defaults, with the number of clusters given or not."""
    return DC2Clustering(data.n_clusters if given else "auto", n_jobs=settings.n_jobs, random_state=seed)


def with_compression(data: DataSet, seed: int, settings: Settings, **compression: Any) -> RPFCluster:
    """Return our clusterer with other cuts and directions, and a fixed bandwidth: only compression differs."""
    compressor = Compressor(**{"populate": "leaf", "sample_size": None} | compression)
    model = default_rpf(data, seed, settings)
    model.set_params(compressor=compressor, similarity__bandwidth=FIXED_BANDWIDTH)
    return model


def signature_of_rows(model: Any) -> NDArray[np.int32]:
    """Return the signature of every row that a model was fitted to."""
    ids: NDArray[np.int32] = model._record.ids
    return ids


def similarity_of(model: Any) -> Similarity:
    """Return the kernel of a fitted model's signatures, for any bandwidth: b of the rpf-kernel, sigma of others."""
    matrix: Similarity = model.similarity_.matrix
    return matrix


def rpf_similarity(points: NDArray[Any], seed: int, settings: Settings) -> NDArray[np.float64]:
    """Return the rpf-kernel of points, with the paper's cuts and a fixed bandwidth."""
    kernel = RPFKernel(settings.n_trees, settings.forest_leaf_size, "median", FIXED_BANDWIDTH, random_state=seed)
    matrix: NDArray[np.float64] = kernel.fit(points).similarity_
    return matrix


def gaussian_similarity(points: NDArray[Any], sigma: float) -> NDArray[np.float64]:
    """Return the Gaussian kernel of points."""
    matrix: NDArray[np.float64] = GaussianKernel(sigma).fit(points).similarity_
    return matrix
