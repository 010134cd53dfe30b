"""RPFCluster: the paper's clusterer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Self

from dc2.cluster.base import SignatureClusterer
from dc2.cluster.dc2_clustering import similarity_recipe
from dc2.cluster.fit import ClusterPlan, checked_plan, compress_by
from dc2.compress.compressor import Compressor
from dc2.engines.engine import DEFAULT_BLOCK_BYTES
from dc2.engines.map_rows import RunOptions, Verbose
from dc2.graph.n_clusters import RequestedClusters
from dc2.io.model_file import saved_model
from dc2.parameters import check_choice
from dc2.random import RandomStateLike, seed_sequence
from dc2.spectral.assignment import Assign
from dc2.spectral.conquer import SpectralConqueror, check_enough_signatures, check_has_rows
from dc2.spectral.rpf import RPF

PAPER_BANDWIDTHS = tuple(beta / 800 for beta in range(10, 81))


@saved_model
class RPFCluster(SignatureClusterer):
    """Spectral clustering of millions of rows, with the rpf-kernel of about 1000 signatures (rpfCluster+).

    Rows are divided by random projections and compressed to signatures. A forest of random trees says how alike two
    signatures are, and spectral clustering of that similarity finds clusters of any shape. Every row takes the cluster
    of its signature. With no more rows than signatures each row is its own signature: plain rpfCluster.

    Parameters
    ----------
    n_clusters : int, "auto" or (low, high), default=8
        Number of clusters. "auto" chooses one, from 1 to 50 (fewer if signatures are few); a pair or a range limits
        the choice.
    n_signatures : int or None, default=1000
        Number of signatures; None if `leaf_size` is given. More of them show finer shapes; the time of spectral
        clustering grows with their cube, its memory with their square.
    leaf_size : float or None, default=None
        Instead of `n_signatures`, the paper's n_s: a leaf with fewer rows than this is not divided further.
    similarity : {"rpf", "gaussian", "graph"} or an object such as ``RPF(n_trees=400)``, default="rpf"
        What makes two signatures alike. See `dc2.spectral.RPF` for the parameters of the rpf-kernel, such as its
        bandwidth. A dense similarity is clustered by spectral clustering, the graph of "graph" by communities.
    assign : {"kmeans", "ncut"}, default="kmeans"
        From eigenvectors to clusters: K-means on normalized rows (Ng, Jordan, Weiss), or recursive normalized cuts
        (Shi, Malik), as the paper's authors do.
    weighted : bool, default=False
        Whether spectral clustering takes into account how many rows a signature represents. The paper does not.
    scale : {None, "standard", "robust"}, default=None
        Scaling of columns: by mean and standard deviation, or by median and quartile distance.
    metric : {"euclidean", "cosine", "haversine"}, default="euclidean"
        With "cosine" only the direction of a row counts. With "haversine" rows are latitude and longitude in degrees,
        and distances are in kilometres.
    compressor : Compressor or None, default=None
        How rows become signatures; None is ``Compressor()``. Parameters that it shares with this class are set here.
    n_jobs, block_bytes, random_state, verbose
        As in `DC2Clustering`.

    Attributes
    ----------
    labels_ : ndarray of shape (n_rows,), int32
        The cluster of each training row; for rows in memory only. Cluster 0 is the heaviest.
    n_clusters_ : int
        The number of clusters found.
    signatures_ : Signatures
        Points, weights and spread.
    signature_labels_ : ndarray of shape (n_signatures,), int32
        The cluster of each signature.
    similarity_ : RPFSimilarity
        How alike signatures are: ``similarity_.matrix()``.
    embedding_ : ndarray of shape (n_signatures, n_clusters)
        Its spectral embedding.
    eigenvalues_ : ndarray
        Leading eigenvalues of the normalized similarity, descending; a gap after the k-th suggests k clusters.
    bandwidth_ : float
        The bandwidth in use.
    bandwidth_path_ : dict of two arrays
        "bandwidth" and "score": what was considered, and its relative eigengap; exists if the bandwidth was chosen.
    n_clusters_path_ : dict of two arrays
        "n_clusters" and "score": what was considered; exists if the number was chosen. One cluster scores what data
        without clusters would reach.
    distortion_ : float
        Mean squared distance of a row to its signature.
    stage_seconds_ : dict
        Seconds spent to divide, compress, conquer and populate.
    n_features_in_, feature_names_in_, n_rows_in_

    Notes
    -----
    A fit takes two passes over the rows (one and a sample if they are in memory): O(n d log s) time for s signatures,
    then O(s^3). Besides the rows it needs memory for a sample, s^2 numbers and the labels. The labels are the same for
    any number of threads and size of blocks. `RPFCluster.paper` gives the paper's settings exactly.

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
        n_clusters: int | Literal["auto"] | tuple[int, int] | range = 8,
        *,
        n_signatures: int | None = 1000,
        leaf_size: float | None = None,
        similarity: Any = "rpf",
        assign: Assign = "kmeans",
        weighted: bool = False,
        scale: Literal["standard", "robust"] | None = None,
        metric: Literal["euclidean", "cosine", "haversine"] = "euclidean",
        compressor: Compressor | None = None,
        n_jobs: int | None = None,
        block_bytes: int = DEFAULT_BLOCK_BYTES,
        random_state: RandomStateLike = None,
        verbose: Verbose = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.n_signatures = n_signatures
        self.leaf_size = leaf_size
        self.similarity = similarity
        self.assign = assign
        self.weighted = weighted
        self.scale = scale
        self.metric = metric
        self.compressor = compressor
        self.n_jobs = n_jobs
        self.block_bytes = block_bytes
        self.random_state = random_state
        self.verbose = verbose

    @classmethod
    def paper(
        cls,
        n_clusters: int = 8,
        *,
        n_partitions: int = 1,
        divide: Literal["projection", "sampling"] = "projection",
        bandwidth: float | Sequence[float] | Literal["auto"] = PAPER_BANDWIDTHS,
        **parameters: Any,
    ) -> Self:
        """Return a clusterer with the paper's settings exactly.

        Trees are grown on all rows and cut at the median, along directions that are purely random; a row belongs to its
        leaf. The forest has leaves of 30 and cuts at the median. Clusters come from recursive normalized cuts.

        Parameters
        ----------
        n_clusters : int, default=8
        n_partitions : int, default=1
            Number of partitions, each with a tree of its own; rpfCluster+(2) has two.
        divide : {"projection", "sampling"}, default="projection"
            How partitions are made: by projection, or by dealing rows at random.
        bandwidth : float, sequence of float or "auto", default=(10 / 800, 11 / 800, ..., 80 / 800)
            The paper's beta divided by the number of trees, 800. The paper searches 10 to 80 but does not say by what;
            dc2 chooses by the eigengap, as in `RPF`, without labels.
        **parameters
            Any other parameter of this class: ``n_signatures=None, leaf_size=n_s`` is the paper's n_s.

        Examples
        --------
        >>> RPFCluster.paper(3, n_partitions=2, n_signatures=None, leaf_size=200).assign
        'ncut'
        """
        compressor = Compressor(
            n_partitions=n_partitions, divide=divide, cut="median", sharpen=0, populate="leaf", sample_size=None
        )
        similarity = RPF(leaf_size=30, cut="median", bandwidth=bandwidth)
        return cls(n_clusters, similarity=similarity, assign="ncut", compressor=compressor, **parameters)

    def _plan(self) -> ClusterPlan:
        requested = RequestedClusters.of(self.n_clusters)
        if self.leaf_size is None:
            check_enough_signatures(self.n_signatures, requested)
        check_choice("assign", self.assign, ("kmeans", "ncut"))
        compress_plan = checked_plan(self)
        similarity = similarity_recipe(self.similarity)
        check_has_rows(similarity, compress_plan.one_tree)
        conqueror = SpectralConqueror(self.assign, self.weighted)
        return ClusterPlan(
            owner=type(self).__name__, compress=compress_by(compress_plan), similarity=similarity,
            conqueror=conqueror, requested=requested, options=RunOptions.of(self),
            seeds=seed_sequence(self.random_state),
        )  # fmt: skip

    def recluster(
        self,
        n_clusters: int | Literal["auto"] | tuple[int, int] | range | None = None,
        bandwidth: float | Literal["auto"] | None = None,
    ) -> Self:
        """Cluster the signatures again, without the rows; takes a fraction of a second, and works on a loaded model.

        Parameters
        ----------
        n_clusters, bandwidth
            As in the constructor and in `RPF`; None keeps what was asked for last.

        Returns
        -------
        self
            ``labels_``, `predict` and everything else now give the new clusters; parameters stay as they are.
        """
        return self._reconquer(n_clusters, bandwidth)
