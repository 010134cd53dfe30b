"""KASP: signatures by K-means, Gaussian kernel, spectral clustering."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import SeedSequence
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import pairwise_distances_argmin_min

from dc2.cluster.base import SignatureClusterer
from dc2.cluster.dc2_clustering import similarity_recipe
from dc2.cluster.fit import ClusterPlan, Compress, compress_by
from dc2.compress.compression import Compression
from dc2.compress.compressor import Compressor
from dc2.compress.divide import plan_of, sampled_rows
from dc2.compress.neighbor_lists import EdgesPerRow
from dc2.compress.sampling import Sample
from dc2.compress.scaling import Scaling, learn_scaling
from dc2.compress.signatures import Signatures
from dc2.engines.engine import DEFAULT_BLOCK_BYTES, Engine
from dc2.engines.map_rows import RunOptions, Verbose
from dc2.errors import InputError, InputTypeError
from dc2.graph.n_clusters import RequestedClusters
from dc2.io.model_file import saved_model, saved_record
from dc2.io.source import Source, raise_if_not_finite
from dc2.parameters import check_choice, check_integer
from dc2.random import RandomStateLike, seed_sequence
from dc2.spectral.assignment import Assign
from dc2.spectral.conquer import SpectralConqueror, check_enough_signatures
from dc2.trees.tree import NO_LIMIT


@saved_model
class RASP(SignatureClusterer):
    """Fast approximate spectral clustering with a random projection tree, a method the paper compares itself with.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.
    n_signatures : int, default=1000
        Leaves of the tree.
    similarity : {"gaussian", "rpf", "graph"} or an object such as ``Gaussian(sigma=0.5)``, default="gaussian"
        What makes two signatures alike. The Gaussian kernel is exp(-||x - y||^2 / sigma); sigma is the median squared
        distance unless given.
    assign : {"ncut", "kmeans"}, default="ncut"
        From eigenvectors to clusters: recursive normalized cuts, or K-means on normalized rows.
    weighted : bool, default=False
        Whether spectral clustering takes into account how many rows a signature represents.
    n_jobs, block_bytes, random_state, verbose
        As in `DC2Clustering`.

    Attributes
    ----------
    labels_ : ndarray of shape (n_rows,), int32
        The cluster of each training row; for rows in memory only. Cluster 0 is the heaviest.
    n_clusters_, signatures_, signature_labels_, similarity_, embedding_, eigenvalues_, bandwidth_, distortion_,\
 stage_seconds_, n_rows_in_, n_features_in_, feature_names_in_
        As in `RPFCluster`; the bandwidth is sigma.

    Notes
    -----
    For the usual form exp(-||x - y||^2 / (2 s^2)) take ``similarity=Gaussian(sigma=2 * s**2)``.

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
        requested = RequestedClusters.of(check_integer("n_clusters", self.n_clusters, low=1))
        check_enough_signatures(self.n_signatures, requested)
        check_choice("assign", self.assign, ("kmeans", "ncut"))
        similarity, conqueror = similarity_recipe(self.similarity), SpectralConqueror(self.assign, self.weighted)
        return ClusterPlan(
            owner=type(self).__name__, compress=self._compress(), similarity=similarity, conqueror=conqueror,
            requested=requested, options=RunOptions.of(self), seeds=seed_sequence(self.random_state),
        )  # fmt: skip

    def _compress(self) -> Compress:
        tree = Compressor(self.n_signatures, cut="median", sharpen=0, populate="leaf", sample_size=None)
        return compress_by(plan_of(tree))


TWO_STAGES_ABOVE = 20_000
FIRST_SHARE, FIRST_RESTARTS = 0.1, 20


@saved_record
@dataclass(frozen=True, eq=False)
class CentreRouter:
    """Sends a row to the nearest of all centres."""

    centres: NDArray[Any]
    scaling: Scaling | None = None  # divides values whose squares would overflow
    neighbor_lists: bool = True  # unused: every centre is compared

    def describe(self) -> str:
        """Say what divides the rows."""
        return "K-means"

    def check(self) -> None:
        """Raise unless there are finite centres; called when read from a model file."""
        if self.centres.ndim != 2 or self.centres.dtype.kind != "f" or not np.isfinite(self.centres).all():
            raise InputError("a CentreRouter has no finite centres.")

    def assign(self, X: NDArray[Any], names: tuple[str, ...] | None = None, start: int = 0) -> NDArray[np.int32]:
        """Return the nearest centre of each row."""
        raise_if_not_finite(X, names, start)
        nearest, _ = pairwise_distances_argmin_min(self._taken(X), self._centred)
        ids: NDArray[np.int32] = nearest.astype(np.int32)
        return ids

    def nearest_few(self, X: NDArray[Any], few: int) -> tuple[NDArray[np.int32], NDArray[Any]]:
        """Return the few nearest centres of each row and their squared distances, nearest first."""
        few = min(few, len(self.centres))
        from sklearn.neighbors import NearestNeighbors

        search = NearestNeighbors(n_neighbors=few, algorithm="brute").fit(self._centred)
        distances, ids = search.kneighbors(self._taken(X))
        return ids.astype(np.int32), distances**2

    @property
    def _centred(self) -> NDArray[Any]:
        """The centres about their mean: squares of a large offset would drown the distances."""
        centred: NDArray[Any] = self.centres - self.centres.mean(axis=0)
        return centred

    def _taken(self, X: NDArray[Any]) -> NDArray[Any]:
        X = X.astype(self.centres.dtype, copy=False)
        X = X if self.scaling is None else self.scaling.apply(X)
        # Squares of very distant rows would overflow; beyond all centres a smaller distance gives the same order.
        largest = np.finfo(X.dtype).max ** 0.5 / (8 * X.shape[1])
        # In one order in memory, on which the last bit of a distance depends.
        clipped: NDArray[Any] = np.clip(np.ascontiguousarray(X) - self.centres.mean(axis=0), -largest, largest)
        return clipped


@saved_model
class KASP(RASP):
    """Fast approximate spectral clustering with K-means, a method that the paper compares itself with.

    Above 20,000 rows the signatures are found in two stages, as its authors do: 20 restarts on a tenth of the rows,
    then one run on all rows from the best centres. Rows must be in memory.

    Parameters
    ----------
    n_signatures : int, default=1000
        Centres of K-means.
    n_clusters, similarity, assign, weighted, n_jobs, block_bytes, random_state, verbose
        As in `RASP`.

    Attributes
    ----------
    labels_ : ndarray of shape (n_rows,), int32
        The cluster of each training row. Cluster 0 is the heaviest.
    n_clusters_, signatures_, signature_labels_, similarity_, embedding_, eigenvalues_, bandwidth_, distortion_,\
 stage_seconds_, n_rows_in_, n_features_in_, feature_names_in_
        As in `RASP`.

    References
    ----------
    Yan, Huang, Jordan: Fast approximate spectral clustering. KDD 2009.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> X, _ = make_blobs(5_000, centers=2, random_state=0)
    >>> KASP(n_clusters=2, n_signatures=100, random_state=0).fit_predict(X).shape
    (5000,)
    """

    def _compress(self) -> Compress:
        n_signatures = int(self.n_signatures)

        def compress(
            source: Source, engine: Engine, seeds: SeedSequence, n_threads: int, per_row: EdgesPerRow | None
        ) -> Compression:
            return compress_by_kmeans(source, engine, seeds, n_signatures)

        return compress


def compress_by_kmeans(source: Source, engine: Engine, seeds: SeedSequence, n_centres: int) -> Compression:
    """Return the means of rows around the centres of K-means."""
    if not source.in_memory:
        raise InputTypeError(
            "X is not in memory, but KASP passes over the rows many times. Load them, or use DC2Clustering for files "
            "and streams."
        )
    block = next(source.blocks(NO_LIMIT))
    raise_if_not_finite(block.X, source.feature_names)
    weights = np.ones(len(block.X)) if block.weights is None else block.weights
    kept = np.flatnonzero(weights > 0)
    scaling = learn_scaling(None, "euclidean", block.X[kept], None)
    rows = block.X if scaling is None else scaling.apply(block.X)
    X = rows if len(kept) == len(weights) else rows[kept]
    distinct = np.unique(X, axis=0) if len(X) <= TWO_STAGES_ABOVE else X
    few = len(distinct) <= n_centres
    centres = distinct if few else kmeans_centres(X, weights[kept], n_centres, seeds)
    router = CentreRouter(centres, scaling)
    ids = np.concatenate(list(engine.map(lambda block: router.assign(block.X), source, stage="compress")))
    signatures = means_of(rows, weights, ids, centres)
    sample = _every_few(X, None if block.weights is None else weights[kept], n_centres, len(ids))
    return Compression(router, signatures, len(ids), ids, sample)


def _every_few(X: NDArray[Any], weights: NDArray[np.float64] | None, n_centres: int, n_rows: int) -> Sample:
    """Return rows taken at even steps, as many per centre as a sample has."""
    rows = np.arange(0, len(X), -(-len(X) // sampled_rows(n_centres)))
    total = float(len(X) if weights is None else weights.sum())
    return Sample(rows, X[rows], None if weights is None else weights[rows], n_rows, total)


def kmeans_centres(X: NDArray[Any], weights: NDArray[np.float64], n_centres: int, seeds: SeedSequence) -> NDArray[Any]:
    """Return the centres of K-means, in two stages if the rows are many."""
    from sklearn.cluster import KMeans  # here, since the import takes a fifth of a second

    first_seed, second_seed, sample_seed = (int(seed) for seed in seeds.generate_state(3))
    with warnings.catch_warnings():
        # Whether there are fewer distinct rows than centres is checked elsewhere.
        warnings.simplefilter("ignore", ConvergenceWarning)
        first = KMeans(n_centres, n_init=FIRST_RESTARTS, random_state=first_seed)
        if len(X) <= TWO_STAGES_ABOVE:
            return np.asarray(first.fit(X, sample_weight=weights).cluster_centers_)
        size = max(n_centres, int(FIRST_SHARE * len(X)))
        sampled = np.sort(np.random.default_rng(sample_seed).choice(len(X), size, replace=False))
        first.fit(X[sampled], sample_weight=weights[sampled])
        second = KMeans(n_centres, init=first.cluster_centers_, n_init=1, random_state=second_seed)
        return np.asarray(second.fit(X, sample_weight=weights).cluster_centers_)


def means_of(
    X: NDArray[Any], weights: NDArray[np.float64], ids: NDArray[np.int32], centres: NDArray[Any]
) -> Signatures:
    """Return the means of rows assigned to centres, as signatures."""
    total = np.bincount(ids, weights, minlength=len(centres)).astype(np.float64)
    safe = np.where(total > 0, total, 1.0)
    means = np.stack([np.bincount(ids, weights * column, minlength=len(centres)) for column in X.T], axis=1)
    points = np.where(total[:, None] > 0, means / safe[:, None], centres).astype(centres.dtype)
    spread = np.zeros(len(centres))
    for start in range(0, len(X), 100_000):
        rows = slice(start, start + 100_000)
        off = np.ascontiguousarray(X[rows], np.float64) - points[ids[rows]]  # sums depend on the order in memory
        spread += np.bincount(ids[rows], weights[rows] * np.einsum("ij,ij->i", off, off), minlength=len(centres))
    return Signatures(points, total, spread / safe)
