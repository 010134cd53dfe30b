"""Given graphs: lists of neighbours from a matrix of distances or similarities, and places for their rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array, issparse, tril, triu
from scipy.sparse.csgraph import connected_components, dijkstra

from dc2.errors import InputError, ParameterError
from dc2.graph.nodes import NearRows, Nodes, nodes_at
from dc2.io.model_file import saved_record
from dc2.parameters import one_blas_thread

FEWEST = 4  # rows of a cluster
KINDS = ("distances", "similarities")
MOST_DENSE = 20_000  # rows of a dense matrix: 3.2 GB in float64
LANDMARKS, WIDTH = 48, 8  # rows that paths start from; columns of the places
SAME = 1e-5  # relative difference of two directions that is rounding
HALF_OUT = 2.0  # the outlier score is one half at this many typical distances


@dataclass(frozen=True, eq=False)
class NeighbourLists:
    """The nearest neighbours of each row of a matrix and their distances; -1 and infinite where there are none."""

    ids: NDArray[np.int32]
    lengths: NDArray[np.float64]

    @property
    def reach(self) -> NDArray[np.float64]:
        """The mean distance of each row to its neighbours; infinite without any."""
        known = self.ids >= 0
        total = np.where(known, self.lengths, 0.0).sum(axis=1)
        return np.where(known.any(axis=1), total / np.maximum(known.sum(axis=1), 1), np.inf)

    @property
    def graph(self) -> csr_array:
        """The neighbours as a graph; zero distances are tiny ones, since a zero means no edge."""
        n, known = len(self.ids), self.ids >= 0
        lengths = np.maximum(self.lengths[known], np.finfo(np.float64).tiny ** 0.25)
        return csr_array((lengths, (np.nonzero(known)[0], self.ids[known])), shape=(n, n))

    def without_fragments(self) -> NeighbourLists:
        """Return the same without the neighbours of rows that only a few others can be reached from, or raise."""
        part = connected_components(self.graph, directed=False)[1]
        sizes = np.bincount(part)
        if sizes.max() < FEWEST:
            raise InputError(
                f"metric='precomputed': the largest group of connected rows has {sizes.max()}, but {FEWEST} are "
                "needed for a cluster. Give more neighbours of each row."
            )
        few = (sizes < FEWEST)[part][:, None]
        return NeighbourLists(np.where(few, np.int32(-1), self.ids), np.where(few, np.inf, self.lengths))


def checked_matrix(X: Any, kind: str, n_columns: int | None = None) -> csr_array:
    """Return a matrix of distances or similarities in compressed rows, or raise.

    `n_columns` are the rows of the fit, if X holds neighbours of new rows among these; otherwise X must be square.
    """
    word = f"metric='precomputed' with {kind}"
    if not issparse(X):
        X = np.asarray(X)
        if X.dtype.kind not in "fiub" or X.ndim != 2:
            raise InputError(f"{word}: X must be a matrix of numbers; got shape {X.shape} of {X.dtype}.")
        if len(X) > MOST_DENSE:
            raise InputError(
                f"{word}: a dense matrix of {len(X):,} rows; at most {MOST_DENSE:,} are taken. Give a sparse matrix of "
                "neighbours, such as that of KNeighborsTransformer."
            )
    if X.shape[0] == 0 or X.shape[1] != (X.shape[0] if n_columns is None else n_columns):
        needed = "as many columns as rows" if n_columns is None else f"{n_columns:,} columns, the rows of the fit"
        raise InputError(f"{word}: X has shape {X.shape}, but must have {needed}.")
    dense = not issparse(X)
    matrix = _all_entries(X) if dense else _in_rows(X, word)
    if len(matrix.data) and not (np.isfinite(matrix.data).all() and matrix.data.min() >= 0):
        place = int(np.flatnonzero(~(np.isfinite(matrix.data) & (matrix.data >= 0)))[0])
        row, column, value = _entry(matrix, place)
        raise InputError(f"{word}: X[{row}, {column}] is {value:g}. Every entry must be finite and not negative.")
    if kind == "similarities":
        matrix.eliminate_zeros()
    if n_columns is None:
        if not dense:
            matrix = _both_halves(matrix)
        if dense or kind == "distances":
            _check_symmetric(matrix, word)
    return matrix


def _all_entries(X: NDArray[Any]) -> csr_array:
    """Return every entry of a dense matrix, zeros too: they are distances of equal rows."""
    n, width = X.shape
    columns = np.tile(np.arange(width, dtype=np.int32), n)
    return csr_array((X.astype(np.float64).ravel(), columns, np.arange(n + 1, dtype=np.int64) * width), shape=X.shape)


def _in_rows(X: Any, word: str) -> csr_array:
    try:
        if hasattr(X, "check_format"):
            X.check_format(full_check=True)
        matrix = csr_array(X, dtype=np.float64, copy=True)
        matrix.check_format(full_check=True)
    except ValueError as error:
        raise InputError(f"{word}: X is not a sound sparse matrix ({error}).") from error
    matrix.sum_duplicates()
    return matrix


def _both_halves(matrix: csr_array) -> csr_array:
    """Return a matrix of which only one half was stored with both."""
    upper, lower = triu(matrix, k=1).nnz, tril(matrix, k=-1).nnz
    return csr_array(matrix + matrix.T) if (upper == 0) != (lower == 0) else matrix


def _check_symmetric(matrix: csr_array, word: str) -> None:
    """Raise if a pair has two different values; a pair that only one of the two lists is fine."""
    other = csr_array(matrix.T)
    there = csr_array((np.ones_like(matrix.data), matrix.indices, matrix.indptr), shape=matrix.shape)
    apart = csr_array(matrix.multiply(there.T.tocsr()) - other.multiply(there))
    apart.sum_duplicates()
    wrong = np.flatnonzero(np.abs(apart.data) > SAME * max(float(matrix.data.max(initial=0.0)), 1e-300))
    if len(wrong):
        row, column, _ = _entry(apart, int(wrong[0]))
        raise InputError(
            f"{word}: X[{row}, {column}] is {matrix[row, column]:g}, but X[{column}, {row}] is "
            f"{matrix[column, row]:g}. The same pair must have one value."
        )


def _entry(matrix: csr_array, place: int) -> tuple[int, int, float]:
    row = int(np.searchsorted(matrix.indptr, place, side="right")) - 1
    return row, int(matrix.indices[place]), float(matrix.data[place])


def neighbour_lists(matrix: csr_array, kind: str, most: int, own: bool) -> NeighbourLists:
    """Return at most so many nearest neighbours of each row, the smaller column first among equally near ones.

    If the columns are the rows' own, an entry on the diagonal is no neighbour.
    """
    n = matrix.shape[0]
    row = np.repeat(np.arange(n), np.diff(matrix.indptr))
    kept = row != matrix.indices if own else np.ones(len(row), bool)
    row, column, value = row[kept], matrix.indices[kept], matrix.data[kept]
    length = value if kind == "distances" else _length_of(value)
    order = np.lexsort((column, length, row))
    row, column, length = row[order], column[order], length[order]
    rank = np.arange(len(row)) - np.searchsorted(row, row)
    width = max(1, min(most, int(rank.max(initial=0)) + 1))
    near = rank < width
    ids, lengths = np.full((n, width), -1, np.int32), np.full((n, width), np.inf)
    ids[row[near], rank[near]], lengths[row[near], rank[near]] = column[near], length[near]
    if own and len(length) and length.min() == length.max() > 0:
        lengths = _by_overlap(ids)
    return NeighbourLists(ids, lengths)


def _by_overlap(ids: NDArray[np.int32]) -> NDArray[np.float64]:
    """Return distances for neighbours that were given without any: nearer if more of their neighbours are the same."""
    with_own = np.column_stack([np.arange(len(ids), dtype=np.int32), ids])
    lengths = np.full(ids.shape, np.inf)
    for rank in range(ids.shape[1]):
        known = np.flatnonzero(ids[:, rank] >= 0)
        theirs = with_own[ids[known, rank]]
        same = (with_own[known][:, :, None] == theirs[:, None, :]) & (theirs >= 0)[:, None, :]
        lengths[known, rank] = np.sqrt(2.0 * np.log((with_own.shape[1] + 1) / np.maximum(same.sum(axis=(1, 2)), 0.5)))
    return lengths


def _length_of(similarity: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the distances at which a Gaussian kernel would give these similarities; cosines near 1 give them too."""
    if not len(similarity):
        return similarity
    largest = max(1.0, float(similarity.max()))
    lengths: NDArray[np.float64] = np.sqrt(np.maximum(-2.0 * np.log(similarity / largest), 0.0))
    least = lengths[lengths > 0].min(initial=np.inf)
    return np.maximum(lengths, least if np.isfinite(least) else 1.0)


def graph_nodes(lists: NeighbourLists, weights: NDArray[np.float64]) -> tuple[Nodes, NDArray[np.float32]]:
    """Return the rows of a given graph as nodes, each the first on its own list, and their places."""
    n = len(lists.ids)
    ids = np.column_stack([np.arange(n, dtype=np.int32), lists.ids])
    lengths = np.column_stack([np.zeros(n), lists.lengths])
    points = places(lists)
    near = NearRows(np.ascontiguousarray(ids), weights, lengths)
    return Nodes(nodes_at(points, weights).points, weights, are_rows=True, near=near), points


def places(lists: NeighbourLists) -> NDArray[np.float32]:
    """Return coordinates whose distances are about those of the shortest paths through the graph (landmark Isomap).

    They place rows without a path to each other: these are twice as far apart as the longest path.
    """
    n, graph = len(lists.ids), lists.graph
    landmarks = _landmarks(graph)
    paths = np.asarray(dijkstra(graph, directed=False, indices=landmarks))
    there = np.isfinite(paths)
    squared = np.where(there, paths, 2.0 * (float(paths[there].max()) or 1.0)) ** 2
    between = squared[:, landmarks]
    mean = between.mean(axis=0)
    centred = -0.5 * (between - mean - mean[:, None] + mean.mean())
    with one_blas_thread():
        values, vectors = np.linalg.eigh((centred + centred.T) / 2)
    largest = np.flatnonzero(values > 1e-9 * max(values[-1], 1e-300))[::-1][:WIDTH]
    if not len(largest):
        return np.zeros((n, 1), np.float32)
    axes = vectors[:, largest] * np.sign(vectors[np.abs(vectors[:, largest]).argmax(axis=0), largest])
    return np.asarray(0.5 * (mean[:, None] - squared).T @ (axes / np.sqrt(values[largest])), np.float32)


def _landmarks(graph: csr_array) -> NDArray[np.intp]:
    """Return the first rows of the largest connected parts, and others at even steps."""
    n = graph.shape[0]
    part = connected_components(graph, directed=False)[1]
    parts, first = np.unique(part, return_index=True)
    by_size = np.argsort(-np.bincount(part)[parts], kind="stable")
    spread = np.linspace(0, n - 1, min(n, LANDMARKS)).astype(np.intp)
    return np.unique(np.concatenate([first[by_size[: LANDMARKS // 2]], spread]))


@saved_record
@dataclass(frozen=True, eq=False)
class GivenGraph:
    """Stands where other models have a router: a graph has no coordinates by which to find the nearest signature.

    Its centres are the places of rows on maps; the typical distance of a row to its neighbours is the unit of outlier
    scores.
    """

    centres: NDArray[np.float32]
    kind: str
    n_neighbors: int
    typical: float

    scaling: ClassVar[None] = None

    def check(self) -> None:
        """Raise if the parts do not fit together; called when read from a model file."""
        if (
            self.kind not in KINDS
            or self.centres.ndim != 2
            or type(self.n_neighbors) is not int
            or self.n_neighbors < 1
            or not 0 < self.typical < np.inf
        ):
            raise InputError("the parts of a GivenGraph do not fit together.")

    def describe(self) -> str:
        """Return what divides the rows, for reports."""
        return "a given graph"

    def scores(self, lists: NeighbourLists) -> NDArray[np.float64]:
        """Return the outlier score of rows: r / (2 + r) for r times the typical distance; 1 without neighbours."""
        ratio = np.minimum(lists.reach / self.typical, 1e300)
        return np.where(np.isfinite(lists.reach), ratio / (HALF_OUT + ratio), 1.0)

    def labels_of(self, X: Any, labels: NDArray[np.int32], threshold: float | None) -> NDArray[np.int32]:
        """Return for new rows the cluster of their nearest neighbour; -1 without one, or for noise."""
        lists = neighbour_lists(checked_matrix(X, self.kind, len(self.centres)), self.kind, self.n_neighbors, False)
        nearest = lists.ids[:, 0]
        noise = (nearest < 0) | (self.scores(lists) > (1.0 if threshold is None else threshold))
        return np.where(noise, np.int32(-1), labels[np.maximum(nearest, 0)])

    def assign(self, X: Any, names: Any = None, start: int = 0) -> NDArray[np.int32]:
        """Raise: rows of a graph have no coordinates."""
        raise needs_coordinates()

    def nearest_few(self, X: Any, few: int) -> tuple[NDArray[np.int32], NDArray[Any]]:
        """Raise: rows of a graph have no coordinates."""
        raise needs_coordinates()


def needs_coordinates() -> ParameterError:
    """Return the error of everything that needs coordinates."""
    return ParameterError(
        "metric='precomputed': this needs the coordinates of rows, and a graph has none. Use labels_, layers_, "
        "recluster, summary, report or predict(neighbours of new rows), or fit the rows themselves."
    )


def typical_reach(reach: NDArray[np.float64], weights: NDArray[np.float64]) -> float:
    """Return the median of the mean distances to neighbours, by weight; 1 if all rows are equal."""
    known = np.isfinite(reach) & (reach > 0) & (weights > 0)
    if not known.any():
        return 1.0
    order = np.argsort(reach[known], kind="stable")
    heavier = np.cumsum(weights[known][order])
    return float(reach[known][order[np.searchsorted(heavier, heavier[-1] / 2)]])


def checked_weights(sample_weight: ArrayLike | str | None, n: int) -> NDArray[np.float64]:
    """Return the weight of each row of a graph, or raise."""
    if sample_weight is None:
        return np.ones(n)
    weights = None if isinstance(sample_weight, str) else np.asarray(sample_weight, dtype=np.float64)
    if weights is None or weights.shape != (n,) or not (np.isfinite(weights).all() and (weights >= 0).all()):
        raise InputError(f"sample_weight: a graph of {n:,} rows needs {n:,} finite weights that are not negative.")
    if not weights.any():
        raise InputError("sample_weight: all weights are 0.")
    return weights
