"""What every source of rows is: a width, a dtype, and blocks of rows in order, as often as asked."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from dc2.parameters import check_integer

__all__ = ["Block", "DeferredRows", "Source", "StridedRows", "in_rows", "rows_per_block"]

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
    """

    start: int
    rows: NDArray[Any] | DeferredRows
    weights: NDArray[np.float64] | None = None
    extra: Any | None = None

    @property
    def X(self) -> NDArray[Any]:
        """All rows as a matrix."""
        return self.rows if isinstance(self.rows, np.ndarray) else self.rows.matrix()

    @property
    def where_they_lie(self) -> Any:
        """All rows as the core takes them: a matrix, or rows on a graphics card, which stay there."""
        return self.rows if hasattr(self.rows, "scan") else self.X

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
        """Whether the rows lie in memory; then a result for each row may be kept too."""

    def blocks(self, block_bytes: int) -> Iterator[Block]:
        """Start a fresh pass: blocks of at most `block_bytes` bytes (but at least one row), in row order."""


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
