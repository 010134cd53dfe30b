"""Rows of SciPy's sparse matrices: dense only a block at a time, by the thread that works on it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from narwhals.dependencies import is_into_series
from numpy.typing import NDArray
from scipy.sparse import issparse, vstack
from sklearn.utils import check_array

from dc2.errors import InputError, InputTypeError
from dc2.io.source import Block, StridedRows, promoted_dtype
from dc2.io.streams import StreamSource


class ArraySource(StreamSource[NDArray[Any]]):
    """Rows of an array.

    float32 and float64 arrays are not copied, except wide ones whose rows are not contiguous: their blocks are copied
    when they are worked on. Other numbers are converted block by block.

    Parameters
    ----------
    X : array-like of shape (n_rows, n_features)
        Numbers. Anything NumPy can view as an array; text and complex numbers are refused.
    columns : sequence of int, optional
        The columns to use, in this order; all by default.
    drop : sequence of int, optional
        The columns to leave out.

    Examples
    --------
    >>> source = ArraySource(np.arange(6, dtype=np.int16).reshape(3, 2))
    >>> source.dtype
    dtype('float32')
    >>> [block.X.tolist() for block in source.blocks(block_bytes=16)]
    [[[0.0, 1.0], [2.0, 3.0]], [[4.0, 5.0]]]
    """

    def __init__(self, X: Any, columns: Sequence[int] | None = None, drop: Sequence[int] | None = None) -> None:
        X = check_numeric_array(X)
        super().__init__(ArrayLayout(X, columns, drop), lambda rows: iter([X]), len(X), in_memory=True)


class ChosenColumns:
    """Some of the columns of arrays as wide as the first one, by their numbers."""

    feature_names: tuple[str, ...] | None = None

    def __init__(self, first: Any, columns: Sequence[int] | None = None, drop: Sequence[int] | None = None) -> None:
        self._width: int = first.shape[1]
        self._columns = chosen_columns(self._width, columns, drop)
        self.n_features: int = self._width if self._columns is None else len(self._columns)
        self.width: int = self.n_features
        self.dtype: np.dtype[Any] = promoted_dtype([first.dtype])


class ArrayLayout(ChosenColumns):
    """Arrays as wide as the first one, with some of its columns."""

    @property
    def chosen(self) -> list[int] | None:
        """The numbers of the chosen columns; None for all."""
        return self._columns

    def join(self, pieces: Sequence[NDArray[Any]]) -> NDArray[Any]:
        """Stack arrays."""
        return np.concatenate(pieces)

    def checked(self, piece: Any, where: str, start: int = 0) -> NDArray[Any]:
        """Return a later piece as an array, or raise if it cannot follow the first one."""
        try:
            array = check_numeric_array(piece, min_rows=0)
        except (InputError, InputTypeError) as error:
            raise type(error)(f"{where}: {error}") from error
        self.check(array, where)
        return array

    def values(self, piece: NDArray[Any]) -> list[NDArray[Any]]:
        """Return the values that must be the same in every pass."""
        return [piece]

    def block(self, piece: NDArray[Any], start: int) -> Block:
        """Turn an array into a block, as a view if possible."""
        chosen = piece if self._columns is None else piece[:, self._columns]
        # Aligned: in a structured array, the step from value to value need not be a multiple of their size.
        return Block(start, StridedRows.or_itself(np.require(chosen, self.dtype, "A")))

    def check(self, piece: NDArray[Any], where: str) -> None:
        """Raise if an array cannot follow the first one."""
        if piece.shape[1] != self._width:
            raise InputError(f"{where} has {piece.shape[1]} columns, but the first has {self._width}.")
        if not np.can_cast(promoted_dtype([piece.dtype]), self.dtype, casting="safe"):
            raise InputError(
                f"{where} has dtype {piece.dtype}, but the first is worked on as {self.dtype}, which cannot "
                "hold all its values. Give all blocks the same dtype."
            )


def check_numeric_array(X: Any, min_rows: int = 1) -> NDArray[Any]:
    """Return data as a numeric array of rows and columns, without a copy if it is one already, or raise.

    Values are not checked here: see `dc2.io.source.raise_if_not_finite`.
    """
    if issparse(X):
        raise InputTypeError(
            "X is a sparse matrix where an array is needed. Sparse rows are taken whole, as X of fit or predict; the "
            "blocks of a callable are dense: give X.toarray(), or reduce them by sklearn.decomposition.TruncatedSVD."
        )
    if isinstance(X, np.ma.MaskedArray) and np.any(X.mask):
        raise InputError(
            f"X is a masked array with {np.count_nonzero(X.mask)} missing values. Fill them in, for instance with "
            "sklearn.impute.SimpleImputer on X.filled(np.nan), or drop these rows."
        )
    if is_into_series(X):
        raise InputError(_one_column(X))
    try:
        # Only the structure is checked; values are checked when sums are made, which saves a pass.
        checked: NDArray[Any] = check_array(
            X, dtype="numeric", ensure_all_finite=False, ensure_min_samples=min_rows, input_name="X"
        )
    except TypeError as error:
        raise InputTypeError(str(error)) from error
    except ValueError as error:
        raise InputError(_one_line(X) if "got 1D array" in str(error) else str(error)) from error
    if checked.dtype.kind not in "biuf":
        raise InputTypeError(
            f"X has dtype {checked.dtype}, which is not numeric. Convert it to numbers first, for instance "
            "with X.astype('float64')."
        )
    return checked


def _one_column(X: Any) -> str:
    n_values, name, kind = len(X), getattr(X, "name", None), type(X).__module__.partition(".")[0]
    by_name = f"table[[{name!r}]], or " if isinstance(name, str) and name else ""
    return (
        f"X is a {kind} Series of {n_values} values, but rows and columns are needed. Reshape your data: {by_name}"
        f"X.to_frame() has {n_values} rows of one column."
    )


def _one_line(X: Any) -> str:
    n_values = np.shape(X)[0]
    return (
        f"Expected 2D array, got 1D array instead: X has shape ({n_values},). Reshape your data: X.reshape(-1, 1) has "
        f"{n_values} rows of one column, X.reshape(1, -1) one row of {n_values} columns."
    )


def chosen_columns(width: int, columns: Sequence[int] | None, drop: Sequence[int] | None) -> list[int] | None:
    """Return the indices of the chosen columns, or None for all of them."""
    for name, chosen in (("columns", columns), ("drop", drop)):
        for column in chosen or ():
            if not isinstance(column, int | np.integer):
                raise InputTypeError(f"{name} has {column!r}, but an array has no column names: give indices.")
            if not -width <= column < width:
                raise InputError(f"{name} has {column}, but the array has only {width} columns.")
    if columns is not None:
        return [int(column) % width for column in columns]
    if drop is None:
        return None
    dropped = {int(column) % width for column in drop}
    return [column for column in range(width) if column not in dropped]


class SparseSource(StreamSource[Any]):
    """Rows of a sparse matrix or array.

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> source = SparseSource(csr_array([[0, 2], [3, 0], [0, 0]], dtype=np.int16))
    >>> [block.X.tolist() for block in source.blocks(block_bytes=16)]
    [[[0.0, 2.0], [3.0, 0.0]], [[0.0, 0.0]]]
    """

    is_sparse = True

    def __init__(self, X: Any, columns: Sequence[int] | None = None, drop: Sequence[int] | None = None) -> None:
        check_matrix(X)
        rows = X.tocsr()
        layout = _SparseLayout(rows, columns, drop)
        pieces = _Lengthy(rows)
        super().__init__(layout, lambda n_rows: iter([pieces]), rows.shape[0], in_memory=True)


class SparseRows:
    """Rows of a sparse matrix, made dense on demand."""

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


class _SparseLayout(ChosenColumns):
    """Sparse rows with some of the columns."""

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


def check_matrix(X: Any) -> None:
    """Raise if an array of any library is not a matrix of numbers with rows and columns; values are not checked."""
    if X.ndim != 2:
        raise InputError(f"Expected 2D array, got {X.ndim}D array instead: X has shape {X.shape}.")
    if X.dtype.kind not in "biuf":
        raise InputTypeError(
            f"X has dtype {X.dtype}, which is not numeric. Convert it to numbers first, for instance with "
            "X.astype('float32')."
        )
    for size, what in zip(X.shape, ("sample", "feature"), strict=True):
        if size == 0:
            raise InputError(f"Found array with 0 {what}(s) (shape={X.shape}) while a minimum of 1 is required.")


def _dense(rows: Any, dtype: np.dtype[Any]) -> NDArray[Any]:
    # Duplicate entries are added in their own type, as X.toarray() would.
    dense: NDArray[Any] = rows.toarray()
    return dense.astype(dtype, copy=False)
