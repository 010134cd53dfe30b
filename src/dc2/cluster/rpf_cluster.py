"""RPFCluster: the headline clusterer."""

from __future__ import annotations

from dataclasses import replace
from numbers import Integral
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from dc2.cluster.base import Seeds, SignatureClusterer, nearest_with_rows, relative_weights
from dc2.cluster.membership import memberships
from dc2.cluster.solid import first_solid
from dc2.compress.compress import Compression, Plan, compress, near
from dc2.compress.compressor import make_plan
from dc2.engines import DEFAULT_BLOCK_BYTES, RunOptions, Verbose, answered
from dc2.engines.base import Engine
from dc2.engines.threads import usable_threads
from dc2.errors import ParameterError
from dc2.kernels.bandwidth import Choice, choices, most_clusters
from dc2.kernels.rpf import rpf_similarity
from dc2.model_file import saved_model
from dc2.parameters import check_choice, check_integer, check_positive
from dc2.random import RandomStateLike
from dc2.sources import Source
from dc2.sources.estimator import source_for
from dc2.spectral import Assign, SpectralResult, spectral_clustering
from dc2.trees import RPForest
from dc2.trees.forest import FOREST_CUTS, ForestCut, forest_leaf_size
from dc2.trees.tree import Cut


@saved_model
class RPFCluster(SignatureClusterer):
    """Spectral clustering of millions of rows, by the rpf-kernel of about 1000 signatures (rpfCluster+).

    Rows are divided by random projections and compressed to signatures; a forest of random trees says how alike two
    signatures are; spectral clustering of that similarity finds clusters of any shape; every row takes the cluster of
    its signature. With no more rows than signatures each row is its own signature: plain rpfCluster.

    Parameters
    ----------
    n_clusters : int, "auto" or (low, high), default=8
        Number of clusters. "auto" chooses one, also 1, up to 50 (fewer where signatures are few); a pair bounds the
        choice.
    n_signatures : int, default=1000
        Number of signatures. More see finer shapes; time and memory of conquer grow with the cube and the square.
    n_partitions, divide, cut, sharpen, populate, refine, scale, sample_size
        How rows become signatures; see `Compressor`. With the default ``populate="nearest"`` a row belongs to the
        signature nearest to it. ``cut="median", sharpen=0, sample_size=None, populate="leaf", forest_cut="median",
        forest_leaf_size=30, assign="ncut"`` is the paper.
    similarity : {"rpf", "ties"}, default="rpf"
        What makes two signatures alike: the rpf-kernel, or the rpf-kernel times the share of rows that lie near both.
        "ties" is for many columns and many rows per signature (images: MNIST gains .03 of NMI); with less than about
        30 rows per signature it sees holes that are none.
    n_trees : int, default=800
        Trees of the forest over the signatures.
    forest_leaf_size : float or "auto", default="auto"
        A node of the forest with fewer signatures is not split. "auto" is a twentieth of the signatures within 5 and
        30; the paper has 30.
    forest_cut : {"mixed", "quantile", "uniform", "median", "mean"}, default="mixed"
        Where a node of the forest is cut. With "mixed" every other tree cuts anywhere between the quartiles of the
        projections, as the authors' rpForests do, and the others anywhere, which finds small clusters that lie apart.
        The paper's trees cut at the median.
    bandwidth : float or "auto", default="auto"
        The b of the similarity exp((s - 1) / b), s being the share of trees in which two signatures share a leaf.
        Smaller sees finer structure. "auto" takes, of six between 0.02 and 0.1, the largest whose relative
        eigengap after the k-th eigenvalue is at least half of the best (0.04 where no gap shows). The
        paper's beta is b * n_trees.
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
    bandwidth_ : float
        The bandwidth in use.
    bandwidth_path_ : dict of two arrays
        "bandwidth" and "score": what was considered, and its relative eigengap; with ``bandwidth="auto"`` only.
    n_clusters_ : int
        The number of clusters found.
    n_clusters_path_ : dict of two arrays
        "n_clusters" and "score": what was considered; with an automatic number only. One cluster
        scores what data without clusters would reach.
    n_clusters_confidence_ : float
        How far the best number is ahead of the next, 0 to 1: 0 is a tie, above 0.5 the best scores twice as much.
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
        n_clusters: int | Literal["auto"] | tuple[int, int] = 8,
        *,
        n_signatures: int = 1000,
        n_partitions: int = 1,
        divide: Literal["projection", "sampling"] = "projection",
        cut: Cut = "mean",
        sharpen: int = 2,
        populate: Literal["leaf", "nearest"] = "nearest",
        refine: int = 2,
        scale: Literal["standard", "robust", "unit"] | None = None,
        similarity: Literal["rpf", "ties"] = "rpf",
        n_trees: int = 800,
        forest_leaf_size: float | Literal["auto"] = "auto",
        forest_cut: ForestCut = "mixed",
        bandwidth: float | Literal["auto"] = "auto",
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
        self.similarity = similarity
        self.n_trees = n_trees
        self.forest_leaf_size = forest_leaf_size
        self.forest_cut = forest_cut
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
        check_choice("similarity", self.similarity, ("rpf", "ties"))
        if self.similarity == "ties" and self.divide == "sampling" and self.n_partitions > 1:
            raise ParameterError(
                "similarity='ties' needs one tree over all rows, but divide='sampling' makes one per partition. Use "
                "divide='projection'."
            )
        check_integer("n_trees", self.n_trees, low=1)
        if not self._automatic(self.bandwidth):
            check_positive("bandwidth", self.bandwidth)
        forest_leaf_size(self.forest_leaf_size, 1)
        check_choice("forest_cut", self.forest_cut, FOREST_CUTS)

    def _plan(self) -> Plan:
        plan = make_plan(
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
        return replace(plan, ties=self.similarity == "ties")

    def _compress(self, source: Source, engine: Engine, seeds: Seeds) -> Compression:
        compression = compress(source, engine, self._plan(), seeds.compress, usable_threads(self.n_jobs))
        self._shared_rows = compression.shared_rows
        if self._shared_rows is not None:
            alive = nearest_with_rows(compression.signatures)
            self._shared_rows = self._shared_rows[np.ix_(alive, alive)]
        return compression

    def _begin_without_rows(self) -> None:
        if self.similarity == "ties":
            raise ParameterError(
                "similarity='ties' looks at rows, and fit_signatures has none. Use similarity='rpf', or fit(X)."
            )
        self._shared_rows = None

    def _fewest_clusters(self) -> int:
        if self._automatic(self.n_clusters):
            return 1
        if isinstance(self.n_clusters, tuple | list):
            if len(self.n_clusters) != 2:
                raise ParameterError(f"n_clusters as a range is a pair (low, high); got {self.n_clusters!r}.")
            low = check_integer("the first of n_clusters", self.n_clusters[0], low=1)
            check_integer("the second of n_clusters", self.n_clusters[1], low=low)
            return low
        if not isinstance(self.n_clusters, Integral):
            raise ParameterError(
                f'n_clusters must be a whole number of at least 1, "auto", or a pair (low, high); got '
                f"{self.n_clusters!r}."
            )
        return super()._fewest_clusters()

    @staticmethod
    def _automatic(value: Any) -> bool:
        return isinstance(value, str) and value == "auto"

    def _cluster(
        self, points: NDArray[Any], weights: NDArray[np.float64] | None, seeds: Seeds
    ) -> SpectralResult:
        forest = RPForest.grow(
            points,
            self.n_trees,
            self.forest_leaf_size,
            cut=self.forest_cut,
            sample_weight=weights,
            n_jobs=self.n_jobs,
            rng=seeds.kernel,
        )
        # Two bytes a count: kept, so that other numbers of clusters and bandwidths need no new forest.
        self._counts = forest.counts(n_jobs=self.n_jobs).astype(np.min_scalar_type(self.n_trees))
        self._conquer_weights = weights
        return self._spectral(seeds)

    def _spectral(self, seeds: Seeds) -> SpectralResult:
        """Choose what is to be chosen, and cluster the signatures."""
        n_points = len(self._counts)
        considered = choices(
            self._counts,
            self.n_trees,
            self._range(n_points),
            None if self._automatic(self.bandwidth) else float(self.bandwidth),
            np.ones(n_points) if self._conquer_weights is None else self._conquer_weights,
            relative_weights(self.signatures_.weights),
            self.n_jobs,
            self._shared_rows,
        )

        def clustered(choice: Choice) -> SpectralResult:
            return spectral_clustering(
                self._signature_similarity(choice.bandwidth),
                min(choice.n_clusters, n_points),
                assign=self.assign,
                weights=self._conquer_weights,
                random_state=seeds.assign,
            )

        choice, result = first_solid((choice, clustered(choice)) for choice in considered)
        self.bandwidth_ = choice.bandwidth
        self.n_clusters_ = self._clusters_found(result, choice.n_clusters)
        self._set_or_drop("bandwidth_path_", choice.bandwidth_path)
        self._set_or_drop("n_clusters_path_", choice.n_clusters_path)
        self._set_or_drop("n_clusters_confidence_", choice.confidence)
        return result

    def _signature_similarity(self, bandwidth: float) -> NDArray[np.float64]:
        """Return the similarity of every two signatures."""
        similarity = rpf_similarity(self._counts, self.n_trees, bandwidth)
        if self._shared_rows is not None:
            similarity *= self._shared_rows
        return similarity

    def _set_or_drop(self, name: str, value: Any) -> None:
        self.__dict__.pop(name, None)
        if value is not None:
            setattr(self, name, value)

    def _range(self, n_points: int) -> tuple[int, int]:
        if self._automatic(self.n_clusters):
            return 1, most_clusters(n_points)
        if isinstance(self.n_clusters, tuple | list):
            low, high = (int(bound) for bound in self.n_clusters)
            return low, max(low, min(high, n_points // 2))  # beyond, the spectrum is noise
        return int(self.n_clusters), int(self.n_clusters)

    def recluster(self, n_clusters: Any = None, bandwidth: Any = None) -> Self:
        """Cluster the signatures anew, without the rows: in a fraction of a second, also on a loaded model.

        Parameters
        ----------
        n_clusters : int, "auto", (low, high) or None
            None keeps the parameter as it is.
        bandwidth : float, "auto" or None
            None keeps the parameter as it is.

        Returns
        -------
        self
            ``labels_``, `predict` and all else now speak of the new clusters; the parameters are set to what was given.
        """
        check_is_fitted(self)
        before = (self.n_clusters, self.bandwidth)
        self.n_clusters = before[0] if n_clusters is None else n_clusters
        self.bandwidth = before[1] if bandwidth is None else bandwidth
        try:
            self._check_parameters()
            self._check_row_count(len(self.signatures_))
        except ValueError:
            self.n_clusters, self.bandwidth = before
            raise
        self._keep(self._spectral(self._seeds_of_fit()))
        return self

    def predict_proba(self, X: Any) -> Any:
        """Return how much each row belongs to each cluster: shares among its five nearest signatures.

        Nearer signatures count more. The shares tell rows deep inside a cluster (1.0) from those at its border; they
        are not calibrated probabilities, and at a border the largest may differ from `predict`, which goes by the
        nearest signature alone.

        Parameters
        ----------
        X : array-like, data frame, path, ... as in `fit`
            The rows.

        Returns
        -------
        ndarray of shape (n_rows, n_clusters)
            For a source that is not in memory, an iterator of such arrays, block by block.
        """
        check_is_fitted(self)
        if len(self._router.trees) > 1:
            raise ParameterError(
                "predict_proba needs one tree over all rows, but divide='sampling' made one per partition. Fit with "
                "divide='projection'."
            )
        router = near(self._router, usable_threads(self.n_jobs))
        label_of_id = self._label_of_id()
        n_clusters = int(label_of_id.max()) + 1
        return answered(
            source_for(self, X, reset=False),
            lambda block: memberships(router, block.X, label_of_id, n_clusters),
            lambda: np.empty((0, n_clusters)),
            RunOptions.of(self),
        )
