"""Compressor: from rows to signatures, as a scikit-learn transformer."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, OneToOneFeatureMixin
from sklearn.utils.validation import check_is_fitted

from dc2.compress.compress import Compression, compress
from dc2.compress.plan import plan_of
from dc2.compress.populate import populated
from dc2.compress.signatures import Signatures
from dc2.compress.stream import Stream
from dc2.engines import DEFAULT_BLOCK_BYTES, RunOptions, Verbose, engine_for
from dc2.engines.threads import usable_threads
from dc2.errors import InputError
from dc2.estimators.columns import Columns, KnowsItsColumns, fitted_source
from dc2.estimators.containers import SourceTransformer, in_container
from dc2.model_file import SaveMixin, saved_model, saved_record
from dc2.parameters import check_integer
from dc2.random import RandomStateLike, seed_sequence
from dc2.sources import as_source
from dc2.trees.tree import NO_LIMIT, Cut


@saved_record
@dataclass(frozen=True, eq=False)
class CompressorRecord:
    """What a fit learned: a compression of all rows, or a stream that may go on.

    Attributes
    ----------
    columns : Columns
    compression : Compression or None
    stream : Stream or None
    """

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
        Number of signatures: exactly this many, or one per distinct row if there are fewer. None if `leaf_size` is
        given.
    leaf_size : float or None, default=None
        Instead of `n_signatures`: a leaf with fewer rows (of the full data) than this is not divided further.
    n_partitions : int, default=1
        Number of partitions, each with a tree of its own. Trees grow in parallel, or one after the other with
        ``n_jobs=1``; the result is the same.
    divide : {"projection", "sampling"}, default="projection"
        How partitions are made: by splitting the largest node at a random projection, or by dealing rows at random.
        With "sampling" a new row is routed through every partition's tree and takes the nearest of the signatures
        found.
    cut : {"mean", "median", "uniform", "quantile"}, default="mean"
        Where a node is cut along its direction. The median keeps leaves even, the mean has less distortion.
    sharpen : int, default=2
        How often a random direction is multiplied by the covariance of its node. 0 is the paper's way; 2 gives about
        half its distortion.
    signature : {"centroid", "member"}, default="centroid"
        The mean of a leaf's rows, or a random one of them.
    populate : {"nearest", "leaf"}, default="nearest"
        "leaf": a row belongs to its leaf's signature, as in the paper. "nearest": it moves on from there to nearer and
        nearer signatures, which have been refined by `refine` steps of K-means on the sample; less distortion for
        more time. Rows that were dealt at random to several partitions keep their leaves.
    refine : int, default=2
        K-means steps on the sample with ``populate="nearest"``.
    scale : {None, "standard", "robust"}, default=None
        Scaling of columns, learned from the sample: by mean and standard deviation, or by median and quartile
        distance. Signatures, spread and distortion are then in scaled units.
    metric : {"euclidean", "cosine"}, default="euclidean"
        With "cosine" rows are scaled to length 1 first, so only their direction counts. A row of zeros has no
        direction and is refused.
    sample_size : "auto", int or None, default="auto"
        Rows that place the cuts; all rows are then routed. "auto" takes 256 per signature, at most 256 MB; None takes
        all rows, as the paper does.
    n_jobs : int, optional
        Number of threads; None takes all cores. The result does not depend on it.
    block_bytes : int, default=16 MiB
        Budget for a block of rows, in bytes; a few blocks are in memory at a time. The result does not depend on it.
    device : "cuda" or None, default=None
        "cuda" sends rows in host memory through a graphics card, block by block. Rows already on a card are worked on
        there anyway. The result does not depend on it.
    random_state : int, RandomState, Generator or None, default=None
        Seed of the directions and the sample.
    verbose : int or callable, default=0
        1 shows the stages, as bars or, in a log, as lines; a callable is called with
        ``(stage, rows_done, rows_total)``.

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
    With s signatures, a fit takes O(n d log s) time, in two passes over the rows (one if they lie in memory). Besides
    the rows it needs memory for the sample and 16 s d bytes per thread. ``cut="median", sharpen=0, populate="leaf",
    sample_size=None`` is one rpTree of the paper; the same with more partitions is its DC² to the letter.

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
        signature: Literal["centroid", "member"] = "centroid",
        populate: Literal["nearest", "leaf"] = "nearest",
        refine: int = 2,
        scale: Literal["standard", "robust"] | None = None,
        metric: Literal["euclidean", "cosine"] = "euclidean",
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
            Weights, or the name of the column that holds them. An integer weight means as many repeats of the row.
        """
        plan, options = plan_of(self), RunOptions.of(self)
        source, columns = fitted_source(X, sample_weight, type(self).__name__)
        engine = engine_for(source, options)
        compressed = compress(source, engine, plan, seed_sequence(self.random_state), usable_threads(self.n_jobs))
        self._record = CompressorRecord(columns, replace(compressed, sample=None))
        return self

    def partial_fit(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> Compressor:
        """Add rows of a stream.

        The first rows are held until there are as many as the sample of `fit` would have; these place the cuts, and
        later rows are routed and added up. Signatures are right at any time, however the stream is cut up. But since
        its first rows place the cuts, the result differs from that of `fit` on all rows. `leaf_size` counts rows among
        those held. A call after `fit` begins a new stream.

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
        if before is None or before.stream is None:
            source, columns = fitted_source(X, sample_weight, type(self).__name__)
            stream = Stream(plan, seed_sequence(self.random_state), usable_threads(self.n_jobs))
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
        projection = self._record.columns.projection
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
                "labels_ is kept for rows in memory only. Compressor.apply(source) gives the signature of each row, "
                "block by block."
            )
        return ids

    def _compression(self) -> Compression:
        if not hasattr(self, "_record"):
            raise AttributeError(f"this {type(self).__name__} is not fitted yet; call fit first.")
        record: CompressorRecord = self._record
        return record.signed

    def _saved_state(self) -> dict[str, Any]:
        """Return what was learned; a stream is saved as it stands, and cannot be continued once loaded."""
        return {"_record": CompressorRecord(self._record.columns, replace(self._compression(), ids=None))}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        tags.non_deterministic = False
        return tags
