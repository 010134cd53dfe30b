"""RPFCluster: the headline clusterer."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from dc2.cluster.base import Seeds, SignatureClusterer
from dc2.compress.compress import Compression, Plan, compress
from dc2.compress.compressor import make_plan
from dc2.engines import DEFAULT_BLOCK_BYTES, Verbose
from dc2.engines.base import Engine
from dc2.engines.threads import usable_threads
from dc2.kernels.rpf import rpf_similarity
from dc2.parameters import check_integer, check_positive
from dc2.random import RandomStateLike
from dc2.sources import Source
from dc2.spectral import Assign
from dc2.trees import RPForest
from dc2.trees.forest import forest_leaf_size
from dc2.trees.tree import Cut


class RPFCluster(SignatureClusterer):
    """Spectral clustering of millions of rows, by the rpf-kernel of about 1000 signatures (rpfCluster+).

    Rows are divided by random projections and compressed to signatures; a forest of random trees says how alike two
    signatures are; spectral clustering of that similarity finds clusters of any shape; every row takes the cluster of
    its signature. With no more rows than signatures each row is its own signature: plain rpfCluster.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.
    n_signatures : int, default=1000
        Number of signatures. More see finer shapes; time and memory of conquer grow with the cube and the square.
    n_partitions, divide, cut, sharpen, populate, refine, scale, sample_size
        How rows become signatures; see `Compressor`. ``cut="median", sharpen=0, sample_size=None, populate="leaf"``
        is the paper.
    n_trees : int, default=800
        Trees of the forest over the signatures.
    forest_leaf_size : float or "auto", default="auto"
        A node of the forest with fewer signatures is not split. "auto" is a twentieth of the signatures within 5 and
        30; the paper has 30.
    bandwidth : float, default=0.05
        The b of the similarity exp((s - 1) / b), s being the share of trees in which two signatures share a leaf.
        Smaller sees finer structure. The paper's beta is b * n_trees.
    assign : {"kmeans", "ncut"}, default="kmeans"
        From eigenvectors to clusters: K-means on normalized rows (Ng, Jordan, Weiss), or recursive normalized cuts
        (Shi, Malik), as the paper's authors do.
    weighted : bool, default=False
        Whether conquer regards how many rows a signature stands for. The paper does not.
    n_jobs : int, optional
        Number of threads; None takes all cores. The result does not depend on it.
    block_bytes : int, default=16 MiB
        Budget for a block of rows, in bytes; a few blocks are in memory at a time. The result does not depend on it.
    random_state : int, RandomState, Generator or None, default=None
        Seed of everything.
    verbose : int or callable, default=0
        1 shows the stages as a bar on a terminal; a callable is told ``(stage, rows_done, rows_total)``.

    Attributes
    ----------
    labels_ : ndarray of shape (n_rows,), int32
        The cluster of each training row; for rows in memory only.
    signatures_ : Signatures
        Points, weights and spread.
    signature_labels_ : ndarray of shape (n_signatures,), int32
        The cluster of each signature.
    embedding_ : ndarray of shape (n_signatures, n_clusters)
        Its spectral embedding.
    eigenvalues_ : ndarray
        Leading eigenvalues of the normalized similarity, descending; a gap after the k-th speaks for k clusters.
    distortion_ : float
        Mean squared distance of a row to its signature.
    stage_seconds_ : dict
        Seconds spent to divide, compress, conquer and populate.
    n_features_in_, feature_names_in_, n_rows_in_

    Notes
    -----
    Two passes over the rows (one and a sample if they lie in memory), O(n d log s) time for s signatures, then
    O(s^3). Beyond the rows it needs memory for a sample, s^2 numbers and the labels. The same labels for any number
    of threads and size of blocks.

    References
    ----------
    Wang, Bian, Liu, Yan: DC²: A Divide-and-conquer Algorithm for Large-scale Kernel Learning with Application to
    Clustering.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from dc2 import RPFCluster, clustering_accuracy
    >>> X, y = make_moons(20_000, noise=0.05, random_state=0)
    >>> model = RPFCluster(n_clusters=2, n_signatures=300, random_state=0).fit(X)
    >>> clustering_accuracy(y, model.labels_) > 0.99
    True
    >>> model.predict([[0.0, 1.0], [1.0, -0.5]]).tolist() == model.predict([[0.1, 1.0], [0.9, -0.5]]).tolist()
    True
    """

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        n_signatures: int = 1000,
        n_partitions: int = 1,
        divide: Literal["projection", "sampling"] = "projection",
        cut: Cut = "mean",
        sharpen: int = 2,
        populate: Literal["leaf", "nearest"] = "leaf",
        refine: int = 5,
        scale: Literal["standard", "robust", "unit"] | None = None,
        n_trees: int = 800,
        forest_leaf_size: float | Literal["auto"] = "auto",
        bandwidth: float = 0.05,
        assign: Assign = "kmeans",
        weighted: bool = False,
        sample_size: int | Literal["auto"] | None = "auto",
        n_jobs: int | None = None,
        block_bytes: int = DEFAULT_BLOCK_BYTES,
        random_state: RandomStateLike = None,
        verbose: Verbose = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.n_signatures = n_signatures
        self.n_partitions = n_partitions
        self.divide = divide
        self.cut = cut
        self.sharpen = sharpen
        self.populate = populate
        self.refine = refine
        self.scale = scale
        self.n_trees = n_trees
        self.forest_leaf_size = forest_leaf_size
        self.bandwidth = bandwidth
        self.assign = assign
        self.weighted = weighted
        self.sample_size = sample_size
        self.n_jobs = n_jobs
        self.block_bytes = block_bytes
        self.random_state = random_state
        self.verbose = verbose

    def _check_parameters(self) -> None:
        self._check_common_parameters()
        self._plan()
        check_integer("n_trees", self.n_trees, low=1)
        check_positive("bandwidth", self.bandwidth)
        forest_leaf_size(self.forest_leaf_size, 1)

    def _plan(self) -> Plan:
        return make_plan(
            self.n_signatures,
            None,
            self.n_partitions,
            self.divide,
            self.cut,
            self.sharpen,
            "centroid",
            self.populate,
            self.refine,
            self.sample_size,
            self.scale,
        )

    def _compress(self, source: Source, engine: Engine, seeds: Seeds) -> Compression:
        return compress(source, engine, self._plan(), seeds.compress, usable_threads(self.n_jobs))

    def _similarity(
        self, points: NDArray[Any], weights: NDArray[np.float64] | None, seeds: Seeds
    ) -> NDArray[np.float64]:
        forest = RPForest.grow(
            points,
            self.n_trees,
            self.forest_leaf_size,
            sample_weight=weights,
            n_jobs=self.n_jobs,
            rng=seeds.kernel,
        )
        return rpf_similarity(forest.counts(n_jobs=self.n_jobs), self.n_trees, self.bandwidth)
