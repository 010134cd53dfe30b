"""Rows of SciPy's sparse matrices: dense only a block at a time, by the thread that works on it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import vstack

from dc2.errors import InputError, InputTypeError
from dc2.sources.arrays import chosen_columns
from dc2.sources.base import Block
from dc2.sources.promotion import promoted_dtype
from dc2.sources.streams import StreamSource

__all__ = ["SparseRows", "SparseSource"]


class SparseSource(StreamSource[Any]):
    """Rows of a sparse matrix or array.

    Parameters
    ----------
    X : SciPy sparse matrix or array of shape (n_rows, n_features)
        Numbers. Compressed rows (CSR) are not copied; other formats are converted.
    columns : sequence of int, optional
        The columns to use, in this order; all by default.
    drop : sequence of int, optional
        The columns to leave out.

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> source = SparseSource(csr_array([[0, 2], [3, 0], [0, 0]], dtype=np.int16))
    >>> [block.X.tolist() for block in source.blocks(block_bytes=16)]
    [[[0.0, 2.0], [3.0, 0.0]], [[0.0, 0.0]]]
    """

    is_sparse = True

    def __init__(self, X: Any, columns: Sequence[int] | None = None, drop: Sequence[int] | None = None) -> None:
        rows = _checked(X)
        layout = _SparseLayout(rows, columns, drop)
        pieces = _Lengthy(rows)
        super().__init__(layout, lambda n_rows: iter([pieces]), rows.shape[0], in_memory=True)


class SparseRows:
    """Rows of a sparse matrix, made dense on demand.

    Attributes
    ----------
    sparse : SciPy sparse matrix or array
        The rows as they are, compressed (CSR).
    """

    def __init__(self, rows: Any, dtype: np.dtype[Any]) -> None:
        self.sparse = rows
        self._dtype = dtype
        self._dense: NDArray[Any] | None = None

    def __len__(self) -> int:
        n_rows: int = self.sparse.shape[0]
        return n_rows

    def matrix(self) -> NDArray[Any]:
        """Return all rows."""
        if self._dense is None:
            self._dense = _dense(self.sparse, self._dtype)
        return self._dense

    def take(self, places: NDArray[np.integer[Any]]) -> NDArray[Any]:
        """Return the rows at some places."""
        return _dense(self.sparse[places], self._dtype)


class _Lengthy:
    """A sparse matrix with a length, which SciPy's do not have."""

    def __init__(self, rows: Any) -> None:
        self.rows = rows

    def __len__(self) -> int:
        n_rows: int = self.rows.shape[0]
        return n_rows

    def __getitem__(self, part: slice) -> _Lengthy:
        return _Lengthy(self.rows[part])


class _SparseLayout:
    """Sparse rows with some of the columns."""

    feature_names: tuple[str, ...] | None = None

    def __init__(self, X: Any, columns: Sequence[int] | None, drop: Sequence[int] | None) -> None:
        self._columns = chosen_columns(X.shape[1], columns, drop)
        self.n_features: int = X.shape[1] if self._columns is None else len(self._columns)
        self.width: int = self.n_features
        self.dtype: np.dtype[Any] = promoted_dtype([X.dtype])

    def join(self, pieces: Sequence[_Lengthy]) -> _Lengthy:
        """Stack pieces."""
        return _Lengthy(vstack([piece.rows for piece in pieces], format="csr"))

    def values(self, piece: _Lengthy) -> list[NDArray[Any]]:
        """Return nothing: rows in memory are not checked for changes."""
        return []

    def block(self, piece: _Lengthy, start: int) -> Block:
        """Turn a piece into a block."""
        rows = piece.rows if self._columns is None else piece.rows[:, self._columns]
        return Block(start, SparseRows(rows, self.dtype))


def _checked(X: Any) -> Any:
    """Return a sparse matrix as compressed rows of numbers, or raise; values are not checked."""
    if X.ndim != 2:
        raise InputError(f"Expected 2D array, got {X.ndim}D array instead: X has shape {X.shape}.")
    if X.dtype.kind not in "biuf":
        raise InputTypeError(
            f"X has dtype {X.dtype}, which is not numeric. Convert it to numbers first, for instance with "
            "X.astype('float64')."
        )
    for size, what in zip(X.shape, ("sample", "feature"), strict=True):
        if size == 0:
            raise InputError(f"Found array with 0 {what}(s) (shape={X.shape}) while a minimum of 1 is required.")
    return X.tocsr()


def _dense(rows: Any, dtype: np.dtype[Any]) -> NDArray[Any]:
    # Duplicate entries are added in their own type, as X.toarray() would.
    dense: NDArray[Any] = rows.toarray()
    return dense.astype(dtype, copy=False)
