"""RASP: signatures by one random projection tree, Gaussian kernel, spectral clustering."""

from __future__ import annotations

from typing import Any

from dc2.cluster.base import SignatureClusterer
from dc2.cluster.compressing import compress_by
from dc2.cluster.fit import ClusterPlan, Compress
from dc2.compress import Compressor
from dc2.compress.plan import plan_of
from dc2.conquer import SpectralConqueror, Wish
from dc2.conquer.checks import check_enough_signatures
from dc2.engines import DEFAULT_BLOCK_BYTES, RunOptions, Verbose
from dc2.kernels import similarity_recipe
from dc2.model_file import saved_model
from dc2.parameters import check_choice, check_integer
from dc2.random import RandomStateLike, seed_sequence
from dc2.spectral import Assign

__all__ = ["RASP"]


@saved_model
class RASP(SignatureClusterer):
    """Fast approximate spectral clustering with a random projection tree, a method the paper compares itself with.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.
    n_signatures : int, default=1000
        Leaves of the tree.
    similarity : {"gaussian", "rpf", "ties"} or an object such as ``Gaussian(sigma=0.5)``, default="gaussian"
        What makes two signatures alike. The Gaussian kernel is exp(-||x - y||^2 / sigma); sigma is the median squared
        distance unless given.
    assign : {"ncut", "kmeans"}, default="ncut"
        From eigenvectors to clusters: recursive normalized cuts, or K-means on normalized rows.
    weighted : bool, default=False
        Whether spectral clustering takes into account how many rows a signature stands for.
    n_jobs : int, optional
        Number of threads; None takes all cores. The result does not depend on it.
    block_bytes : int, default=16 MiB
        Budget for a block of rows, in bytes. The result does not depend on it.
    random_state : int, RandomState, Generator or None, default=None
        Seed of everything.
    verbose : int or callable, default=0
        1 shows the stages, as bars or, in a log, as lines; a callable is called with
        ``(stage, rows_done, rows_total)``.

    Attributes
    ----------
    labels_ : ndarray of shape (n_rows,), int32
        The cluster of each training row; for rows in memory only. Cluster 0 is the heaviest.
    n_clusters_, signatures_, signature_labels_, similarity_, embedding_, eigenvalues_, bandwidth_, distortion_,\
 stage_seconds_, n_rows_in_, n_features_in_, feature_names_in_
        As in `RPFCluster`; the bandwidth is sigma.

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
        similarity: Any = "gaussian",
        assign: Assign = "ncut",
        weighted: bool = False,
        n_jobs: int | None = None,
        block_bytes: int = DEFAULT_BLOCK_BYTES,
        random_state: RandomStateLike = None,
        verbose: Verbose = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.n_signatures = n_signatures
        self.similarity = similarity
        self.assign = assign
        self.weighted = weighted
        self.n_jobs = n_jobs
        self.block_bytes = block_bytes
        self.random_state = random_state
        self.verbose = verbose

    def _plan(self) -> ClusterPlan:
        wish = Wish.of(check_integer("n_clusters", self.n_clusters, low=1))
        check_enough_signatures(self.n_signatures, wish)
        check_choice("assign", self.assign, ("kmeans", "ncut"))
        return ClusterPlan(
            owner=type(self).__name__,
            compress=self._compress(),
            similarity=similarity_recipe(self.similarity),
            conqueror=SpectralConqueror(self.assign, self.weighted),
            wish=wish,
            options=RunOptions.of(self),
            seeds=seed_sequence(self.random_state),
        )

    def _compress(self) -> Compress:
        tree = Compressor(self.n_signatures, cut="median", sharpen=0, populate="leaf", sample_size=None)
        return compress_by(plan_of(tree))
