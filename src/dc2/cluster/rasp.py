"""RASP: signatures by one random projection tree, Gaussian kernel, spectral clustering."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dc2.cluster.base import Seeds, SignatureClusterer
from dc2.compress.compress import Compression, compress
from dc2.compress.compressor import make_plan
from dc2.engines import DEFAULT_BLOCK_BYTES, Verbose
from dc2.engines.base import Engine
from dc2.engines.threads import usable_threads
from dc2.kernels import GaussianKernel
from dc2.model_file import saved_model
from dc2.parameters import check_positive
from dc2.random import RandomStateLike
from dc2.sources import Source
from dc2.spectral import Assign, SpectralResult, spectral_clustering


@saved_model
class RASP(SignatureClusterer):
    """Fast approximate spectral clustering with a random projection tree; one of the paper's rivals.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.
    n_signatures : int, default=1000
        Leaves of the tree.
    sigma : float or None, default=None
        The Gaussian kernel is exp(-||x - y||^2 / sigma); None takes the median squared distance.
    assign : {"ncut", "kmeans"}, default="ncut"
        From eigenvectors to clusters, as in `RPFCluster`.
    weighted, n_jobs, block_bytes, random_state, verbose
        As in `RPFCluster`.

    Attributes
    ----------
    labels_, signatures_, signature_labels_, embedding_, eigenvalues_, distortion_, stage_seconds_
        As in `RPFCluster`.

    References
    ----------
    Yan, Huang, Jordan: Fast approximate spectral clustering. KDD 2009.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> X, _ = make_blobs(5_000, centers=2, random_state=0)
    >>> RASP(n_clusters=2, n_signatures=100, random_state=0).fit_predict(X).shape
    (5000,)
    """

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        n_signatures: int = 1000,
        sigma: float | None = None,
        assign: Assign = "ncut",
        weighted: bool = False,
        n_jobs: int | None = None,
        block_bytes: int = DEFAULT_BLOCK_BYTES,
        random_state: RandomStateLike = None,
        verbose: Verbose = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.n_signatures = n_signatures
        self.sigma = sigma
        self.assign = assign
        self.weighted = weighted
        self.n_jobs = n_jobs
        self.block_bytes = block_bytes
        self.random_state = random_state
        self.verbose = verbose

    def _check_parameters(self) -> None:
        self._check_common_parameters()
        if self.sigma is not None:
            check_positive("sigma", self.sigma)

    def _compress(self, source: Source, engine: Engine, seeds: Seeds) -> Compression:
        plan = make_plan(self.n_signatures, None, 1, "projection", "median", 0, "centroid", "leaf", 0, None)
        return compress(source, engine, plan, seeds.compress, usable_threads(self.n_jobs))

    def _cluster(
        self, points: NDArray[Any], weights: NDArray[np.float64] | None, seeds: Seeds
    ) -> SpectralResult:
        similarity = GaussianKernel(self.sigma).fit(points).similarity_
        result = spectral_clustering(
            similarity,
            min(self.n_clusters, len(points)),
            assign=self.assign,
            weights=weights,
            random_state=seeds.assign,
        )
        self.n_clusters_ = self._clusters_found(result, self.n_clusters)
        return result
