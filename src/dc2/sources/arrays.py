"""Rows of an array in memory, or of a memory map: blocks are views, only foreign dtypes are converted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.utils import check_array

from dc2.errors import InputError, InputTypeError
from dc2.sources.base import Block, rows_per_block
from dc2.sources.promotion import promoted_dtype

__all__ = ["ArraySource", "check_numeric_array"]


class ArraySource:
    """Rows of an array.

    float32 and float64 arrays of any layout are never copied; other numbers are converted block by block.

    Parameters
    ----------
    X : array-like of shape (n_rows, n_features)
        Numbers. Anything NumPy can view as an array; sparse matrices, text and complex numbers are refused.
    feature_names : sequence of str, optional
        Names of the columns.

    Examples
    --------
    >>> source = ArraySource(np.arange(6, dtype=np.int16).reshape(3, 2))
    >>> source.dtype
    dtype('float32')
    >>> [block.X.tolist() for block in source.blocks(block_bytes=16)]
    [[[0.0, 1.0], [2.0, 3.0]], [[4.0, 5.0]]]
    """

    in_memory: bool = True

    def __init__(self, X: Any, feature_names: Sequence[str] | None = None) -> None:
        self._X = check_numeric_array(X)
        self.n_rows: int = self._X.shape[0]
        self.n_features: int = self._X.shape[1]
        self.feature_names: tuple[str, ...] | None = None if feature_names is None else tuple(feature_names)
        self.dtype: np.dtype[Any] = promoted_dtype([self._X.dtype])

    def blocks(self, block_bytes: int) -> Iterator[Block]:
        """Start a fresh pass."""
        rows = rows_per_block(block_bytes, self.n_features, self.dtype)
        for start in range(0, self.n_rows, rows):
            yield Block(start, self._X[start : start + rows].astype(self.dtype, copy=False))


def check_numeric_array(X: Any) -> NDArray[Any]:
    """Return data as a numeric array of rows and columns, without a copy where it is one; else raise.

    Values are not looked at: see `dc2.sources.checks.raise_if_not_finite`.
    """
    if issparse(X):
        raise InputTypeError(
            "X is a sparse matrix, and sparse data is not supported: projections need dense rows. Reduce it "
            "first with sklearn.decomposition.TruncatedSVD, or pass X.toarray() if that fits into memory."
        )
    try:
        # Structure only: finite values are checked where the sums are made, which saves a pass.
        checked: NDArray[Any] = check_array(X, dtype="numeric", ensure_all_finite=False, input_name="X")
    except TypeError as error:
        raise InputTypeError(str(error)) from error
    except ValueError as error:
        raise InputError(str(error)) from error
    if checked.dtype.kind not in "biuf":
        raise InputTypeError(
            f"X has dtype {checked.dtype}, which is not numeric. Convert it to numbers first, for instance "
            "with X.astype('float64')."
        )
    return checked
