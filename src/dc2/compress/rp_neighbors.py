"""The estimator RPNeighbors: nearest neighbours by random projection trees and graph search."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from numbers import Real
from typing import Any, Literal, Self, cast

import numpy as np
from numpy.random import SeedSequence
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin
from sklearn.utils.validation import check_is_fitted

from dc2 import core
from dc2.compress.neighbor_lists import NEAR, point_router, with_beam_for
from dc2.compress.routing import Router
from dc2.compress.scaling import METRICS, Scaling, learn_scaling
from dc2.core.neighbours_reference import squared_distances_of_pairs
from dc2.core.reference import EMPTY
from dc2.engines.engine import DEFAULT_BLOCK_BYTES
from dc2.engines.map_rows import RunOptions, engine_for
from dc2.errors import InputError, ParameterError
from dc2.io.columns import Columns, KnowsItsColumns, fitted_source
from dc2.io.containers import SourceTransformer, in_container
from dc2.io.model_file import SaveMixin, saved_model, saved_record
from dc2.io.source import Block
from dc2.parameters import check_choice, check_integer, usable_threads
from dc2.random import RandomStateLike, seed_sequence
from dc2.trees.neighbours import distinct_rows, members_of
from dc2.trees.tree import NO_LIMIT, raise_unusable, values_usable

ALL_ON_LISTS = 512  # distinct rows up to which each list holds all others: then the search is exact
MODES = ("distance", "connectivity")

Found = tuple[NDArray[np.int32], NDArray[Any]]
"""Row numbers and squared distances, nearest first."""


@saved_record
@dataclass(frozen=True, eq=False)
class NeighborIndex:
    """The distinct rows with their neighbour lists."""

    columns: Columns
    router: Router  # one leaf for each distinct row
    leaf_of_row: NDArray[np.int32]
    n_near: int  # the first so many entries of each list are the nearest distinct rows, the row itself among them
    recall: float  # share of the neighbours that searches of new rows find

    def check(self) -> None:
        """Raise if a search could leave the arrays; called when read from a model file."""
        lists, leaf, n_leaves = self.router.neighbor_lists, self.leaf_of_row, len(self.router.centres)
        if (
            lists is None
            or len(self.router.trees) != 1
            or self.columns.width != self.router.n_features
            or leaf.dtype != np.int32
            or leaf.ndim != 1
            or not ((leaf >= 0) & (leaf < n_leaves)).all()
            or not np.bincount(leaf, minlength=n_leaves).all()
            or not 1 <= self.n_near <= lists.shape[1]
            or not 0 <= self.recall <= 1
        ):
            raise InputError("the parts of a NeighborIndex do not fit together.")

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.leaf_of_row)

    @cached_property
    def members(self) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """Where the rows of each leaf begin, and the rows in the order of leaves, ascending in each."""
        return members_of(self.leaf_of_row, len(self.router.centres))

    def among_rows(self, few: int, n_threads: int) -> Found:
        """Return the nearest few of each row, from the lists: the row itself, then the others."""
        lists, centres = self.router.neighbor_lists, self.router.centres
        assert lists is not None
        near = np.ascontiguousarray(lists[:, : min(few, self.n_near)])
        own = np.repeat(near[:, 0], near.shape[1])
        squared = squared_distances_of_pairs(centres, near.ravel(), centres, own, n_threads).reshape(near.shape)
        ids = np.full((self.n_rows, few), EMPTY, np.int32)
        of_rows = np.full(ids.shape, np.inf, centres.dtype)
        ids[:, 0], of_rows[:, 0] = np.arange(self.n_rows), 0.0
        core.offer_copies(near, squared.astype(centres.dtype), *self.members, ids, of_rows)
        return ids, of_rows

    def search(self, X: NDArray[Any], few: int) -> Found:
        """Return the nearest few rows of each of other rows, by graph search."""
        starts, rows = self.members
        leaves, squared = self.router.nearest_few(X, min(few, len(self.router.centres)))
        sizes = np.diff(starts)[leaves]
        room = few - (np.cumsum(sizes, axis=1) - sizes)
        taken = np.clip(sizes, 0, room.clip(0)).ravel()
        within = np.arange(taken.sum()) - np.repeat(np.cumsum(taken) - taken, taken)
        ids = rows[np.repeat(starts[leaves].ravel(), taken) + within].reshape(len(X), few)
        of_rows = np.repeat(squared.ravel(), taken).reshape(ids.shape)
        order = np.lexsort((ids, of_rows), axis=1)
        return np.take_along_axis(ids, order, axis=1), np.take_along_axis(of_rows, order, axis=1)


def neighbor_index(
    X: NDArray[Any], columns: Columns, metric: str, few: int, recall: float, seeds: SeedSequence, n_threads: int
) -> NeighborIndex:
    """Return an index that finds the nearest few of each row, itself among them."""
    scaling = learn_scaling(None, metric, X, None)
    scaled = X if scaling is None else scaling.apply(X)
    distinct = distinct_rows(scaled)
    n_distinct = len(distinct)
    n_near = n_distinct if n_distinct <= ALL_ON_LISTS else max(NEAR, few)
    router, point_of_leaf = point_router(scaled[distinct.first], seeds, scaling, n_threads, n_near)
    leaf_of_point = np.empty_like(point_of_leaf)
    leaf_of_point[point_of_leaf] = np.arange(n_distinct, dtype=np.int32)
    router, found = with_beam_for(router, min(few, n_distinct) - 1 or 1, recall, n_threads)
    return NeighborIndex(columns, router, leaf_of_point[distinct.of_row], min(n_near, n_distinct), found)


@saved_model
class RPNeighbors(SaveMixin, KnowsItsColumns, ClassNamePrefixFeaturesOutMixin, SourceTransformer, BaseEstimator):
    """Find nearest neighbours by random projection trees and graph search, as a scikit-learn transformer.

    It is the search that all of dc2 uses. Rows that share a leaf of a few random projection trees are compared, then
    neighbours of neighbours, until little changes. New rows start in the leaf of a tree and follow the neighbour lists
    (beam search). Up to 512 distinct rows all neighbours are exact; up to some thousand, those of the fitted rows.

    Parameters
    ----------
    n_neighbors : int, default=15
        Number of neighbours of a row, not counting the row itself.
    metric : {"euclidean", "cosine"}, default="euclidean"
        Distance. With "cosine" it is 1 - cos, and a row of zeros is refused.
    mode : {"distance", "connectivity"}, default="distance"
        What `transform` returns, as in `sklearn.neighbors.KNeighborsTransformer`: distances, with one neighbour more
        since the first of a fitted row is the row itself; or ones.
    recall : float, default=0.98
        Share of the true neighbours that new rows must find, above 0 and below 1. `fit` measures it on up to 256 of
        the rows and takes the narrowest beam that reaches it; more takes more time.
    n_jobs : int, optional
        Number of threads; None takes all cores. The result does not depend on it.
    random_state : int, RandomState, Generator or None, default=None
        Seed of the trees.

    Attributes
    ----------
    n_samples_fit_ : int
        Number of fitted rows.
    recall_ : float
        Share of the true neighbours found by searches like those of new rows, measured in `fit`.
    beam_ : int
        Candidates that the search of a new row holds.
    n_features_in_, feature_names_in_

    Notes
    -----
    Lists of the fitted rows hold at least 98.5% of the true neighbours of 128 of them, or as many as three rounds with
    larger and larger leaves find. float16 and float32 rows are searched in float32, others in float64.

    The model holds the rows, and per row about 8 * (2 * max(25, n_neighbors + 2) + 8) bytes.

    `fit_transform` returns the neighbours of the fitted rows from the lists; ``fit(X).transform(X)`` searches for them.
    The few that either misses may differ.

    Examples
    --------
    >>> import numpy as np
    >>> from dc2 import RPNeighbors
    >>> X = np.random.default_rng(0).normal(size=(300, 4)).astype(np.float32)
    >>> neighbors = RPNeighbors(n_neighbors=3, random_state=0).fit(X)
    >>> distances, rows = neighbors.kneighbors()
    >>> distances.shape, rows.shape, neighbors.recall_
    ((300, 3), (300, 3), 1.0)
    >>> neighbors.kneighbors(X[:2], n_neighbors=1, return_distance=False).ravel().tolist()
    [0, 1]

    In a pipeline it replaces `KNeighborsTransformer`:

    >>> from sklearn.cluster import DBSCAN
    >>> from sklearn.pipeline import make_pipeline
    >>> X = np.concatenate([X, X + 99])
    >>> pipeline = make_pipeline(RPNeighbors(10, random_state=0), DBSCAN(eps=1.5, metric="precomputed"))
    >>> len(set(pipeline.fit_predict(X).tolist()) - {-1})
    2
    """

    _record: NeighborIndex

    def __init__(
        self,
        n_neighbors: int = 15,
        *,
        metric: Literal["euclidean", "cosine"] = "euclidean",
        mode: Literal["distance", "connectivity"] = "distance",
        recall: float = 0.98,
        n_jobs: int | None = None,
        random_state: RandomStateLike = None,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.metric = metric
        self.mode = mode
        self.recall = recall
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Self:
        """Find the neighbours of rows among themselves, and prepare the search for new rows.

        Parameters
        ----------
        X : array-like, data frame, path, ... as `dc2.as_source` takes
            The rows; all of them are kept in memory.
        y : ignored
        """
        n_neighbors, threads = check_integer("n_neighbors", self.n_neighbors, low=1), usable_threads(self.n_jobs)
        check_choice("metric", self.metric, METRICS)
        check_choice("mode", self.mode, MODES)
        recall = _checked_recall(self.recall)
        seeds = seed_sequence(self.random_state)
        source, columns = fitted_source(X, None, type(self).__name__)
        block_bytes = NO_LIMIT if source.in_memory else DEFAULT_BLOCK_BYTES
        blocks = [block.X for block in source.blocks(block_bytes)]
        rows = np.ascontiguousarray(blocks[0] if len(blocks) == 1 else np.concatenate(blocks))
        if not values_usable(rows):
            raise_unusable(rows, source.feature_names, 0)
        # A row, its neighbours, and one more for `transform`.
        self._record = neighbor_index(rows, columns, self.metric, n_neighbors + 2, recall, seeds, threads)
        return self

    def kneighbors(
        self, X: Any = None, n_neighbors: int | None = None, return_distance: bool = True
    ) -> tuple[NDArray[Any], NDArray[np.int64]] | NDArray[np.int64]:
        """Return the nearest fitted rows of each row, nearest first.

        Parameters
        ----------
        X : array-like, data frame, path, ... as in `fit`, optional
            The rows. None takes the fitted rows; then a row is not its own neighbour.
        n_neighbors : int, optional
            At most one more than the parameter of this name, which is the default.
        return_distance : bool, default=True

        Returns
        -------
        distances : ndarray of shape (n_rows, n_neighbors)
            In float32 for float32 or narrower rows, else float64; only with `return_distance`.
        rows : ndarray of shape (n_rows, n_neighbors), int64
            Numbers of fitted rows.
        """
        check_is_fitted(self)
        ids, squared = self._nearest(X, self._checked_number(n_neighbors, X is None), X is None)
        return (self._distances(squared), ids.astype(np.int64)) if return_distance else ids.astype(np.int64)

    def kneighbors_graph(
        self, X: Any = None, n_neighbors: int | None = None, mode: Literal["connectivity", "distance"] = "connectivity"
    ) -> csr_matrix:
        """Return the neighbours of each row as a sparse matrix, nearest first in each row.

        Parameters
        ----------
        X, n_neighbors
            As in `kneighbors`.
        mode : {"connectivity", "distance"}, default="connectivity"
            Whether entries are ones or distances.

        Returns
        -------
        csr_matrix of shape (n_rows, n_fitted_rows)
        """
        check_is_fitted(self)
        check_choice("mode", mode, MODES)
        return self._graph(*self._nearest(X, self._checked_number(n_neighbors, X is None), X is None), mode)

    def transform(self, X: Any) -> Any:
        """Return the neighbours of each row as a sparse matrix of shape (n_rows, n_fitted_rows), by `mode`.

        Parameters
        ----------
        X : array-like, data frame, path, ... as in `fit`
            The rows. A fitted row is its own first neighbour.
        """
        check_is_fitted(self)
        found = self._nearest(X, self._checked_number(self.n_neighbors + (self.mode == "distance"), False), False)
        return in_container(self._graph(*found, self.mode), X, self)

    def fit_transform(self, X: Any, y: Any = None) -> Any:
        """Fit, and return the neighbours of the same rows: what `transform` gives, without another search."""
        self.fit(X)
        few = self._checked_number(self.n_neighbors + (self.mode == "distance"), False)
        found = self._record.among_rows(few, usable_threads(self.n_jobs))
        return in_container(self._graph(*found, self.mode), X, self)

    @property
    def n_samples_fit_(self) -> int:
        """Number of fitted rows."""
        return self._record.n_rows

    @property
    def recall_(self) -> float:
        """Share of the true neighbours found by searches like those of new rows."""
        return self._record.recall

    @property
    def beam_(self) -> int:
        """Candidates that the search of a new row holds."""
        return self._record.router.beam

    @property
    def _n_features_out(self) -> int:
        return self.n_samples_fit_

    def _nearest(self, X: Any, few: int, among_fitted: bool) -> Found:
        record = self._record
        if among_fitted:
            ids, squared = record.among_rows(few + 1, usable_threads(self.n_jobs))
            return ids[:, 1:], squared[:, 1:]

        def search(block: Block) -> Found:
            return record.search(block.native_rows, few)

        source = self._source(X)
        found = list(engine_for(source, RunOptions(self.n_jobs)).map(search, source, stage="populate"))
        return np.concatenate([ids for ids, _ in found]), np.concatenate([squared for _, squared in found])

    def _distances(self, squared: NDArray[Any]) -> NDArray[Any]:
        scaling = cast(Scaling | None, self._record.router.scaling)
        if scaling is None:
            return np.asarray(np.sqrt(squared))
        if scaling.unit:
            return np.asarray(squared / 2)
        return np.asarray(np.ldexp(np.sqrt(squared), 0 if scaling.exponents is None else int(scaling.exponents[0])))

    def _graph(self, ids: NDArray[np.int32], squared: NDArray[Any], mode: str) -> csr_matrix:
        values = self._distances(squared) if mode == "distance" else np.ones(ids.shape, squared.dtype)
        starts = np.arange(len(ids) + 1) * ids.shape[1]
        return csr_matrix((values.ravel(), ids.ravel(), starts), shape=(len(ids), self.n_samples_fit_))

    def _checked_number(self, n_neighbors: int | None, among_fitted: bool) -> int:
        few = check_integer("n_neighbors", self.n_neighbors if n_neighbors is None else n_neighbors, low=1)
        there, most = self.n_samples_fit_, self._record.n_near
        if few > there - among_fitted:
            others = "other rows" if among_fitted else "rows"
            raise InputError(
                f"n_neighbors={few}: only {there - among_fitted} {others} were fitted. Ask for fewer neighbours."
            )
        if few + among_fitted > most and most < len(self._record.router.centres):
            raise ParameterError(
                f"n_neighbors={few}: the lists hold {most - 1} neighbours of each row. Fit with n_neighbors={few}."
            )
        return few

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _checked_recall(recall: Any) -> float:
    if not isinstance(recall, Real) or isinstance(recall, bool | np.bool_) or not 0 < float(recall) < 1:
        raise ParameterError(f"recall={recall!r}: not a share above 0 and below 1. Use a number such as 0.95.")
    return float(recall)
