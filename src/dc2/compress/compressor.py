"""The estimator Compressor: signatures of all rows, from one fit or from a stream of blocks."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.random import SeedSequence
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, OneToOneFeatureMixin
from sklearn.utils.validation import check_is_fitted

from dc2.compress.compression import Compression, CompressSeeds, ScaledSample, compress, place_cuts, signatures_of
from dc2.compress.divide import Plan, plan_of
from dc2.compress.places import Sphere
from dc2.compress.populate import populated
from dc2.compress.routing import Router
from dc2.compress.sampling import Sample
from dc2.compress.signatures import Signatures, Sums, grids
from dc2.engines.engine import DEFAULT_BLOCK_BYTES
from dc2.engines.map_rows import RunOptions, Verbose, engine_for
from dc2.errors import InputError
from dc2.io.columns import Columns, KnowsItsColumns, fitted_source
from dc2.io.containers import SourceTransformer, in_container
from dc2.io.model_file import SaveMixin, saved_model, saved_record
from dc2.io.resolve import as_source
from dc2.io.source import Block, Source
from dc2.parameters import check_integer, usable_threads
from dc2.random import RandomStateLike, seed_sequence
from dc2.trees.tree import NO_LIMIT, Cut, raise_unusable


@saved_record
@dataclass(frozen=True, eq=False)
class CompressorRecord:
    """The result of a fit: a compression of all rows, or a stream that may continue."""

    columns: Columns
    compression: Compression | None = None
    stream: Stream | None = None

    def check(self) -> None:
        """Raise if it is empty or its columns do not match; called when a record is read from a model file."""
        width = self.columns.width
        if self.compression is None or self.compression.signatures.points.shape[1] != width:
            raise InputError("the parts of a CompressorRecord do not fit together.")

    @property
    def signed(self) -> Compression:
        """The compression of all rows so far."""
        if self.stream is not None:
            return self.stream.compression()
        assert self.compression is not None
        return self.compression


@saved_model
class Compressor(SaveMixin, KnowsItsColumns, OneToOneFeatureMixin, SourceTransformer, BaseEstimator):
    """Compress rows to signatures by recursive random projections.

    A tree of random cuts divides the rows; the rows of each leaf become one point, their mean. About 1000 signatures
    keep what a kernel learner needs from millions of rows.

    Parameters
    ----------
    n_signatures : int or None, default=1000
        Number of signatures, or one per distinct row if there are fewer. None if `leaf_size` is given.
    leaf_size : float or None, default=None
        Instead of `n_signatures`: a leaf with fewer rows (of the full data) than this is not divided further.
    n_partitions : int, default=1
        Number of partitions, each with a tree of its own; trees grow in parallel.
    divide : {"projection", "sampling"}, default="projection"
        How rows are partitioned: by splitting the largest node at a random projection, or at random; then a new row
        takes the nearest of the signatures that the trees of all partitions find.
    cut : {"mean", "median", "uniform", "quantile"}, default="mean"
        Where a node is cut along its direction. The median keeps leaves even, the mean has less distortion.
    sharpen : int, default=2
        How often a direction is multiplied by the covariance of its node. 0 is the paper's; 2 halves its distortion.
    n_candidates : int, default=1
        Directions drawn for each split, of which the one with the largest spread is taken, as in rpForests.
    signature : {"centroid", "member"}, default="centroid"
        The mean of a leaf's rows, or a random one of them.
    populate : {"nearest", "leaf"}, default="nearest"
        "leaf": a row belongs to the signature of its leaf, as in the paper. "nearest": a graph search from there finds
        the nearest signature, and `refine` steps of K-means on the sample refine the signatures; less distortion for
        more time. With several partitions and ``divide="sampling"`` rows keep their leaves.
    refine : int, default=2
        K-means steps on the sample with ``populate="nearest"``.
    scale : {None, "standard", "robust"}, default=None
        Scaling of columns, learned from the sample: by mean and standard deviation, or by median and quartile
        distance. Signatures, spread and distortion are then in scaled units.
    metric : {"euclidean", "cosine", "haversine"}, default="euclidean"
        With "cosine" rows are scaled to length 1 first, so only their direction matters. A row of zeros
        raises. With "haversine" rows are latitude and longitude in degrees; signatures are points on a sphere of the
        Earth's radius, and their spread and distortion are in square kilometres.
    sample_size : "auto", int or None, default="auto"
        Rows that place the cuts; all rows are then routed. "auto" takes 256 per signature, at most 256 MB; None takes
        all rows, as the paper does.
    n_jobs : int, optional
        Number of threads; None takes all cores. The result depends neither on it nor on the next two.
    block_bytes : int, default=16 MiB
        Budget for a block of rows, in bytes; a few blocks are in memory at a time.
    device : "cuda" or None, default=None
        "cuda" sends rows in host memory through a GPU; rows already on a GPU are processed there anyway.
    random_state : int, RandomState, Generator or None, default=None
        Seed of the directions and the sample.
    verbose : int or callable, default=0
        1 shows the stages; a callable is called with ``(stage, rows_done, rows_total)``.

    Attributes
    ----------
    signatures_ : Signatures
        Points, weights and spread.
    distortion_ : float
        Mean squared distance of a row to its signature.
    labels_ : ndarray of shape (n_rows,), int32
        The signature of each training row; for rows in memory only.
    router_ : Router
        The trees and centres that send rows to signatures.
    n_features_in_, feature_names_in_
        As everywhere in scikit-learn.

    Notes
    -----
    With s signatures, a fit takes O(n d log s) time, in two passes over the rows (one if they are in memory). Besides
    the rows it needs memory for the sample and 16 s d bytes per thread, but no more than 512 MB for all threads unless
    16 s d is more. ``cut="median", sharpen=0, populate="leaf", sample_size=None`` is one rpTree of the paper; the same
    with more partitions is exactly its DC².

    References
    ----------
    Wang, Bian, Liu, Yan: DC²: A Divide-and-conquer Algorithm for Large-scale Kernel Learning with Application to
    Clustering.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(10_000, 5)).astype(np.float32)
    >>> compressor = Compressor(n_signatures=100, random_state=0).fit(X)
    >>> compressor.signatures_.points.shape, compressor.signatures_.weights.sum()
    ((100, 5), np.float64(10000.0))
    >>> bool(np.array_equal(compressor.labels_, compressor.apply(X)))
    True

    With fewer distinct rows than signatures, each is its own signature:

    >>> Compressor(100).fit([[0.0], [0.0], [1.0]]).distortion_
    0.0
    """

    def __init__(
        self,
        n_signatures: int | None = 1000,
        *,
        leaf_size: float | None = None,
        n_partitions: int = 1,
        divide: Literal["projection", "sampling"] = "projection",
        cut: Cut = "mean",
        sharpen: int = 2,
        n_candidates: int = 1,
        signature: Literal["centroid", "member"] = "centroid",
        populate: Literal["nearest", "leaf"] = "nearest",
        refine: int = 2,
        scale: Literal["standard", "robust"] | None = None,
        metric: Literal["euclidean", "cosine", "haversine"] = "euclidean",
        sample_size: int | Literal["auto"] | None = "auto",
        n_jobs: int | None = None,
        block_bytes: int = DEFAULT_BLOCK_BYTES,
        device: Literal["cuda"] | None = None,
        random_state: RandomStateLike = None,
        verbose: Verbose = 0,
    ) -> None:
        self.n_signatures = n_signatures
        self.leaf_size = leaf_size
        self.n_partitions = n_partitions
        self.divide = divide
        self.cut = cut
        self.sharpen = sharpen
        self.n_candidates = n_candidates
        self.signature = signature
        self.populate = populate
        self.refine = refine
        self.scale = scale
        self.metric = metric
        self.sample_size = sample_size
        self.n_jobs = n_jobs
        self.block_bytes = block_bytes
        self.device = device
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None, sample_weight: ArrayLike | str | None = None) -> Compressor:
        """Compress rows.

        Parameters
        ----------
        X : array-like, data frame, path, list of paths, glob, callable, Dask array or data frame, or Source
            The rows.
        y : ignored
        sample_weight : array-like of shape (n_rows,), str or None
            Weights, or the name of the column that holds them. Integer weights equal repeated rows.
        """
        plan, options = plan_of(self), RunOptions.of(self)
        source, columns = fitted_source(X, sample_weight, type(self).__name__)
        engine = engine_for(source, options)
        compressed = compress(source, engine, plan, seed_sequence(self.random_state), usable_threads(self.n_jobs))
        self._record = CompressorRecord(columns, replace(compressed, sample=None))
        return self

    def partial_fit(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> Compressor:
        """Add rows of a stream.

        dc2 buffers the first rows until there are as many as the sample of `fit` would have. These place the cuts;
        later rows are routed and added up. The result does not depend on how calls divide the stream. But since
        its first rows place the cuts, the result differs from that of `fit` on all rows. `leaf_size` counts rows among
        those held. After `fit` it raises: the rows of `fit` would be lost.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features) or data frame
            The next rows.
        y : ignored
        sample_weight : array-like of shape (n_rows,), optional
            Their weights.
        """
        plan = plan_of(self)
        check_integer("block_bytes", self.block_bytes, low=1)
        before = getattr(self, "_record", None)
        if before is not None and before.stream is None:
            raise InputError(
                "partial_fit after fit would lose the rows of fit. Give all rows to partial_fit, or compress the new "
                "ones by another Compressor and join both: Signatures.merge(old.signatures_, new.signatures_)."
            )
        if before is None:
            source, columns = fitted_source(X, sample_weight, type(self).__name__)
            stream = Stream(plan, source.feature_names, seed_sequence(self.random_state), usable_threads(self.n_jobs))
        else:
            columns, stream = before.columns, before.stream.copy()
            source = self._source(X)
            if sample_weight is not None:
                source = as_source(source, sample_weight=sample_weight)
        # Rows are added to a copy: a call that fails adds none of them.
        for block in source.blocks(NO_LIMIT if source.in_memory else self.block_bytes):
            stream.add(block, source)
        self._record = CompressorRecord(columns, stream=stream)
        return self

    def apply(self, X: Any) -> Any:
        """Return the number of each row's signature.

        Parameters
        ----------
        X : array-like, data frame, path, ... as in `fit`
            The rows.

        Returns
        -------
        ndarray of shape (n_rows,), int32
            For a source that is not in memory, an iterator of such arrays, one per block; for a Dask collection, a
            lazy Dask array with the same chunks.
        """
        return self.look_up(X, None)

    def transform(self, X: Any) -> Any:
        """Return the signature point of each row, in the same form as `apply` returns numbers."""
        check_is_fitted(self)
        return in_container(self.look_up(X, self.signatures_.points), X, self)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Return the names of the columns that `transform` gives: those of the rows, or of their projection."""
        check_is_fitted(self)
        projection, scaling = self._record.columns.projection, self.router_.scaling
        if isinstance(scaling, Sphere):
            return np.array(scaling.axes, dtype=object)
        if projection is not None:
            return np.array(projection.names_out, dtype=object)
        names: NDArray[np.object_] = super().get_feature_names_out(input_features)
        return names

    def look_up(self, X: Any, table: NDArray[Any] | None) -> Any:
        """Return, for each row, the table's entry for its signature or, without a table, its signature's number.

        Parameters
        ----------
        X : array-like, data frame, path, ... as in `fit`
            The rows.
        table : ndarray of shape (n_signatures, ...) or None
            Anything known about the signatures, such as their labels.
        """
        check_is_fitted(self)
        return populated(self._source(X), self.router_, table, RunOptions.of(self))

    @property
    def signatures_(self) -> Signatures:
        """Points, weights and spread of the signatures."""
        return self._compression().signatures

    @property
    def distortion_(self) -> float:
        """Mean squared distance of a row to its signature."""
        return self.signatures_.distortion

    @property
    def router_(self) -> Any:
        """The trees and centres that send rows to signatures."""
        return self._compression().router

    @property
    def labels_(self) -> NDArray[np.int32]:
        """The signature of each training row."""
        ids = self._compression().ids
        if ids is None:
            raise AttributeError(
                "labels_ exists only after a fit on rows in memory. Compressor.apply(source) returns the signature of "
                "each row, block by block."
            )
        return ids

    def _compression(self) -> Compression:
        if not hasattr(self, "_record"):
            raise AttributeError(f"this {type(self).__name__} is not fitted yet; call fit first.")
        record: CompressorRecord = self._record
        return record.signed

    def _saved_state(self) -> dict[str, Any]:
        """Return the record to save; a stream is saved in its current state and cannot continue after loading."""
        return {"_record": CompressorRecord(self._record.columns, replace(self._compression(), ids=None))}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        tags.non_deterministic = False
        return tags


# Beyond this weight the sums of a stream are still correct, but their last bits may depend on its blocks.
EXPECTED_WEIGHT = 2.0**27


@dataclass(frozen=True, eq=False)
class _Rows:
    """Rows with a weight above 0, and their numbers in the stream."""

    rows: NDArray[np.int64]
    X: NDArray[Any]
    weights: NDArray[np.float64] | None

    def __len__(self) -> int:
        return len(self.rows)

    def part(self, which: Any) -> _Rows:
        weights = None if self.weights is None else self.weights[which]
        return _Rows(self.rows[which], self.X[which], weights)


class Stream:
    """The state of `Compressor.partial_fit`."""

    def __init__(self, plan: Plan, names: tuple[str, ...] | None, seeds: SeedSequence, n_threads: int) -> None:
        self.plan, self.names, self.n_threads = plan, names, n_threads
        self.seeds = CompressSeeds.of(seeds)
        self.wanted: int | None = None
        self.held: list[_Rows] = []
        self.n_rows = 0
        self.router: Router | None = None
        self.sample: Sample | None = None
        self.sums: Sums | None = None
        self.magic: NDArray[np.float64] | None = None
        self.cached: Compression | None = None

    def copy(self) -> Stream:
        """Return a copy that can continue without changing this stream."""
        other = copy(self)
        other.held = list(self.held)
        other.sums = None if self.sums is None else self.sums.copy()
        return other

    def add(self, block: Block, source: Source) -> None:
        """Add the next rows."""
        if not np.isfinite(block.X).all():
            raise_unusable(block.X, source.feature_names, self.n_rows)
        if self.wanted is None:
            self.wanted = self.plan.sample_rows_wanted(source.n_features, source.dtype, n_rows=None)
        new = _Rows(np.arange(self.n_rows, self.n_rows + len(block.X)), block.X, block.weights)
        if new.weights is not None:
            new = new.part(new.weights > 0)
        if self.router is None:
            # Exactly this many rows place the cuts, whatever the blocks of the stream are.
            missing = self.wanted - sum(map(len, self.held))
            first = new.part(slice(missing))
            self.held.append(replace(first, X=first.X.copy(), weights=copy(first.weights)))
            if len(first) == missing:
                self._place(forget=True)
            new = new.part(slice(missing, None))
        if len(new):
            assert self.router is not None
            assert self.sums is not None
            assert self.magic is not None
            added = Sums.zeros(*self.sums.shape)  # separately: rows that are refused must leave no trace
            self.router.add_up(new.X, new.rows, new.weights, self.magic, added)
            self.sums.add(added)
        self.n_rows += len(block.X)
        self.cached = None

    def compression(self) -> Compression:
        """Return the signatures of all rows so far; if rows are still buffered, as if the stream ended here."""
        if self.cached is None:
            router, sums, sample = self.router, self.sums, self.sample
            if router is None:
                router, sums, sample = self._place(forget=False)
            assert sums is not None
            assert sample is not None
            signatures = signatures_of(router, sums, sample, self.plan, self.seeds.sample, self.n_threads)
            self.cached = Compression(router, signatures, self.n_rows)
        return self.cached

    def _place(self, forget: bool) -> tuple[Router, Sums, Sample]:
        rows = np.concatenate([part.rows for part in self.held])
        X = np.concatenate([part.X for part in self.held])
        weights: NDArray[np.float64] | None = None
        if any(part.weights is not None for part in self.held):
            weights = np.concatenate(
                [np.ones(len(part)) if part.weights is None else part.weights for part in self.held]
            )
        weight = float(len(rows)) if weights is None else float(weights.sum())
        sample = Sample(rows, X, weights, len(rows), weight)
        scaled = ScaledSample.of(sample, self.plan, self.names)
        router, reach, _ = place_cuts(scaled, self.plan, self.seeds, self.n_threads)
        magic = grids(reach, EXPECTED_WEIGHT)
        sums = Sums.zeros(*router.centres.shape)
        router.add_up(X, rows, weights, magic, sums)
        if forget:
            self.held = []
            self.router, self.sums, self.sample, self.magic = router, sums, scaled.sample, magic
        return router, sums, scaled.sample
