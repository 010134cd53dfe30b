"""The contract of sources and blocks, and checks of their values that name what they found and where."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dc2 import core
from dc2.core.reference import hash_at, hash_contents
from dc2.errors import InputError, InputTypeError, MissingValuesError
from dc2.parameters import check_integer


def promoted_dtype(dtypes: Iterable[np.dtype[Any]]) -> np.dtype[Any]:
    """Return float32 if it holds every value of every column exactly, else float64.

    float32 takes float32, float16, booleans and integers up to 16 bits; anything wider makes all float64.

    Examples
    --------
    >>> promoted_dtype([np.dtype("float32"), np.dtype("int16"), np.dtype("bool")])
    dtype('float32')
    >>> promoted_dtype([np.dtype("float32"), np.dtype("int32")])
    dtype('float64')
    """
    fits = all(np.can_cast(dtype, np.float32, casting="safe") for dtype in dtypes)
    return np.dtype(np.float32) if fits else np.dtype(np.float64)


WIDE = 32
"""Rows with more columns than this are made contiguous first; narrower ones are read as fast as they lie."""
TILE_ROWS = 256


class DeferredRows(Protocol):
    """Rows that become a matrix only when they are needed; often that is only a few of them."""

    def __len__(self) -> int: ...

    def matrix(self) -> NDArray[Any]:
        """Return all rows."""

    def take(self, places: NDArray[np.integer[Any]]) -> NDArray[Any]:
        """Return the rows at some places."""


@runtime_checkable
class RowsOnDevice(DeferredRows, Protocol):
    """Rows on a GPU, where the core works on them."""

    def scan(self, tree: Any, table: Any) -> Any:
        """Route all rows, as `dc2.core.scan` does."""

    def sample_rows(self, seed: int, start: int, limit: int) -> NDArray[np.int64]:
        """Return the numbers of the rows whose hash is at most `limit`."""


def is_on_cuda(data: Any) -> bool:
    """Return whether data is an array on a CUDA device, of CuPy, torch, JAX or any other library with DLPack.

    Examples
    --------
    >>> is_on_cuda(np.zeros(3))
    False
    """
    device = None if isinstance(data, type) else getattr(data, "__dlpack_device__", None)
    if device is None:
        return False
    try:
        return int(device()[0]) in CUDA_MEMORY
    except (BufferError, RuntimeError, TypeError, ValueError):  # memory of a kind that DLPack does not know
        return False


CUDA_MEMORY = (2, 13)
"""DLPack's numbers for memory of a CUDA device, and for memory that CUDA manages."""


def in_rows(X: NDArray[Any]) -> NDArray[Any]:
    """Return wide rows with each row contiguous; narrow rows, and those that are contiguous, as they are.

    Examples
    --------
    >>> in_rows(np.zeros((5, 100), order="F")).flags.c_contiguous
    True
    """
    if _lies_in_rows(X):
        return X
    rows = np.empty(X.shape, X.dtype)
    for start in range(0, len(X), TILE_ROWS):  # one tile at a time stays in the cache
        rows[start : start + TILE_ROWS] = X[start : start + TILE_ROWS]
    return rows


def _lies_in_rows(X: NDArray[Any]) -> bool:
    return X.shape[1] <= WIDE or X.strides[1] == X.itemsize


class StridedRows:
    """Wide rows that are not contiguous, as in Fortran order; copied by the thread that needs them."""

    def __init__(self, X: NDArray[Any]) -> None:
        self._X = X

    @staticmethod
    def or_itself(X: NDArray[Any]) -> NDArray[Any] | StridedRows:
        """Return an array itself if its rows can be worked on as they lie, else its rows deferred."""
        return X if _lies_in_rows(X) else StridedRows(X)

    def __len__(self) -> int:
        return len(self._X)

    def matrix(self) -> NDArray[Any]:
        """Return all rows."""
        self._X = in_rows(self._X)
        return self._X

    def take(self, places: NDArray[np.integer[Any]]) -> NDArray[Any]:
        """Return the rows at some places."""
        taken: NDArray[Any] = self._X[places]
        return taken


@dataclass(frozen=True)
class Block:
    """Consecutive rows of a source.

    Attributes
    ----------
    start : int
        Global index of the block's first row.
    rows : ndarray of shape (n_rows, n_features), float32 or float64, or DeferredRows
        The rows; an array may be a read-only or strided view.
    weights : ndarray of shape (n_rows,), float64, or None
        The weights of the rows, if the source has any.
    extra : pyarrow.Table or None
        Columns that travel with the rows but are not features, such as ids to be written beside labels.
    keys : ndarray of shape (n_rows,), int64, or None
        What identifies each row instead of its global index, where rows have no order.
    """

    start: int
    rows: NDArray[Any] | DeferredRows
    weights: NDArray[np.float64] | None = None
    extra: Any | None = None
    keys: NDArray[np.int64] | None = None

    @property
    def X(self) -> NDArray[Any]:
        """All rows as a matrix."""
        return self.rows if isinstance(self.rows, np.ndarray) else self.rows.matrix()

    @property
    def native_rows(self) -> Any:
        """All rows as the core takes them: a matrix, or rows on a GPU, which stay there."""
        return self.rows if isinstance(self.rows, RowsOnDevice) else self.X

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.rows)

    @property
    def stop(self) -> int:
        """Global index after the block's last row."""
        return self.start + self.n_rows

    def take(self, places: NDArray[np.integer[Any]]) -> NDArray[Any]:
        """Return the rows at some places of the block."""
        return self.rows[places] if isinstance(self.rows, np.ndarray) else self.rows.take(places)

    def sampled(self, seed: int, limit: int) -> NDArray[np.int64]:
        """Return the places of the rows whose hash of (seed, identity) is at most a limit, found where the rows are."""
        if self.keys is not None:
            return np.flatnonzero(hash_at(seed, self.keys) <= np.uint64(limit))
        on_device = getattr(self.rows, "sample_rows", None)
        numbers: NDArray[np.int64] = (
            core.sample_rows(seed, self.start, self.stop, limit)
            if on_device is None
            else on_device(seed, self.start, limit)
        )
        return numbers - self.start

    def identities(self, places: NDArray[np.integer[Any]]) -> NDArray[np.int64]:
        """Return what identifies the rows at some places: their keys or global indices."""
        return (self.start + places).astype(np.int64, copy=False) if self.keys is None else self.keys[places]


def row_hashes(X: NDArray[Any]) -> NDArray[np.uint64]:
    """Return a 64-bit hash of each row; 0 and -0 are the same number."""
    return core.hash_contents(X) if X.dtype in (np.float32, np.float64) else hash_contents(X)


@runtime_checkable
class Source(Protocol):
    """Rows that can be read block by block, any number of times."""

    @property
    def n_features(self) -> int:
        """Number of columns of every block."""

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        """Names of the columns, if they have any."""

    @property
    def n_rows(self) -> int | None:
        """Number of rows, or None if it is not known without a pass."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """float32 or float64: the dtype of every block."""

    @property
    def in_memory(self) -> bool:
        """Whether the rows are in memory; then a result for each row may be kept too."""

    def blocks(self, block_bytes: int) -> Iterator[Block]:
        """Start a fresh pass: blocks of at most `block_bytes` bytes (but at least one row), in row order."""


@runtime_checkable
class MaybeSparse(Protocol):
    """Optional ability of a source: to say whether its rows are sparse, and made dense block by block."""

    is_sparse: bool


def has_sparse_rows(source: Source) -> bool:
    """Return whether the rows of a source are sparse."""
    return isinstance(source, MaybeSparse) and source.is_sparse


def rows_per_block(block_bytes: int, n_features: int, dtype: np.dtype[Any]) -> int:
    """Return how many rows fit into a budget of bytes, at least one.

    Examples
    --------
    >>> rows_per_block(1_000, n_features=10, dtype=np.dtype("float32"))
    25
    >>> rows_per_block(1, n_features=10, dtype=np.dtype("float32"))
    1
    """
    check_integer("block_bytes", block_bytes, low=1)
    return max(1, block_bytes // max(1, n_features * dtype.itemsize))


class SourceOver:
    """The facts of a source that gives the rows of another one in another form."""

    def __init__(self, source: Any) -> None:
        self._source = source
        self.n_features: int = source.n_features
        self.feature_names: tuple[str, ...] | None = source.feature_names
        self.dtype: np.dtype[Any] = source.dtype
        self.in_memory: bool = source.in_memory

    @property
    def n_rows(self) -> int | None:
        """Number of rows, or None if it is not known without a pass."""
        rows: int | None = self._source.n_rows
        return rows


class WeightedSource(SourceOver):
    """Rows of any source, each with its weight from an array."""

    def __init__(self, source: Source, sample_weight: ArrayLike) -> None:
        super().__init__(source)
        self._weights = check_weights(sample_weight, source.n_rows)
        check_weights_sum(self._weights.sum(), len(self._weights))
        self.is_sparse: bool = has_sparse_rows(source)

    @property
    def n_rows(self) -> int:
        """Number of rows: there is a weight for each."""
        return len(self._weights)

    def blocks(self, block_bytes: int) -> Iterator[Block]:
        """Start a fresh pass over the source, with weights."""
        stop = 0
        for block in self._source.blocks(block_bytes):
            stop = block.stop
            if stop > self.n_rows:
                break
            yield replace(block, weights=self._weights[block.start : stop])
        if stop != self.n_rows:
            more = "at least " if stop > self.n_rows else ""
            raise InputError(f"sample_weight has {self.n_rows} values but X has {more}{stop} rows: give one each.")


NAMES_SHOWN = 5
LARGEST_WEIGHT = 1e100


def listed(names: Sequence[object]) -> str:
    """Write names for a message: all if they are few, otherwise the first ones.

    Examples
    --------
    >>> listed(["a", "b"])
    "'a', 'b'"
    >>> listed(list("abcdefg"))
    "'a', 'b', 'c', 'd', 'e' and 2 more"
    """
    shown = ", ".join(repr(name) for name in names[:NAMES_SHOWN])
    return shown if len(names) <= NAMES_SHOWN else f"{shown} and {len(names) - NAMES_SHOWN} more"


def raise_if_not_finite(X: NDArray[Any], feature_names: Sequence[str] | None = None, start: int = 0) -> None:
    """Raise if a block holds NaN or infinity, saying in which columns, how many, and the first row.

    It reads every value: call it when sums are not finite, for a message that explains why. If all values are
    finite, it returns; then the sums overflowed.

    Examples
    --------
    >>> raise_if_not_finite(np.array([[1.0, 2.0], [3.0, np.nan]]), ["height", "weight"])
    Traceback (most recent call last):
    ...
    dc2.errors.MissingValuesError: Input X contains NaN. In rows 0 to 1: column 'weight' has 1 (first in row 1). \
Fill missing values in, for instance with sklearn.impute.SimpleImputer, or drop these rows.
    """
    missing = np.isnan(X)
    if missing.any():
        raise MissingValuesError(
            f"Input X contains NaN. {_where(missing, feature_names, start)} "
            "Fill missing values in, for instance with sklearn.impute.SimpleImputer, or drop these rows."
        )
    infinite = np.isinf(X)
    if infinite.any():
        raise InputError(
            f"Input X contains infinity or a value too large for {X.dtype!r}. "
            f"{_where(infinite, feature_names, start)} Clip these values or drop these rows."
        )


def _where(found: NDArray[np.bool_], feature_names: Sequence[str] | None, start: int) -> str:
    counts = found.sum(axis=0)
    columns = np.flatnonzero(counts)
    parts = []
    for column in columns[:NAMES_SHOWN]:
        name = repr(feature_names[column]) if feature_names is not None else str(column)
        parts.append(f"column {name} has {counts[column]} (first in row {start + found[:, column].argmax()})")
    more = f", and so {len(columns) - NAMES_SHOWN} more columns" if len(columns) > NAMES_SHOWN else ""
    return f"In rows {start} to {start + len(found) - 1}: {', '.join(parts)}{more}."


def check_weights(weights: ArrayLike, n_rows: int | None = None, start: int = 0) -> NDArray[np.float64]:
    """Return sample weights as float64, or raise: one finite, non-negative number per row."""
    try:
        checked = np.asarray(weights, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputTypeError(f"sample_weight must hold numbers, one per row: {error}") from error
    if checked.ndim != 1:
        raise InputError(f"sample_weight must be 1-dimensional, one number per row; got {checked.shape}.")
    if n_rows is not None and len(checked) != n_rows:
        raise InputError(f"sample_weight has {len(checked)} values but X has {n_rows} rows: give one each.")
    for bad, what in (
        (~np.isfinite(checked), "NaN or infinity"),
        (checked < 0, "negative values"),
        (checked > LARGEST_WEIGHT, f"values above {LARGEST_WEIGHT:g}, whose sum may overflow"),
    ):
        if bad.any():
            first = int(bad.argmax())
            raise InputError(
                f"sample_weight contains {what}: {int(bad.sum())} of {len(checked)}, "
                f"first in row {start + first} ({checked[first]}). A weight must be finite and not negative."
            )
    return checked


def check_weights_sum(total: float, n_rows: int) -> None:
    """Raise if no row weighs anything: nothing would be left to learn from."""
    if not total > 0:
        raise InputError(f"sample_weight is zero for all {n_rows} rows; at least one must weigh something.")
