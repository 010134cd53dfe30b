"""Rows that lie on a graphics card."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dc2.core.gpu.forms import as_cupy, form_like, host_array
from dc2.core.gpu.rows import DeviceRows
from dc2.engines.base import Progress
from dc2.engines.cuda.engine import CudaEngine
from dc2.errors import InputError, InputTypeError
from dc2.foreign import lies_on_cuda
from dc2.sources.arrays import ArrayLayout
from dc2.sources.base import Block, rows_per_block
from dc2.sources.checks import check_weights, check_weights_sum

__all__ = ["CudaSource", "cuda_source"]


class CudaSource:
    """Rows of an array on a card.

    Parameters
    ----------
    card : Card
    X : array on the card, of shape (n_rows, n_features)
    form : callable
        Puts an array of the host or the card into the kind of array that the user gave.
    weights : ndarray of shape (n_rows,), float64, or None
        On the host.
    dtype : dtype
        What rows are worked on as.
    """

    in_memory = True
    feature_names: tuple[str, ...] | None = None

    def __init__(
        self,
        card: Any,
        X: Any,
        form: Callable[[Any], Any],
        weights: NDArray[np.float64] | None,
        dtype: np.dtype[Any],
    ) -> None:
        self._rows = DeviceRows(card, X, dtype, form)
        self.form = form
        self._weights = weights
        self.dtype = dtype
        self.n_rows, self.n_features = (int(size) for size in X.shape)

    def blocks(self, block_bytes: int) -> Iterator[Block]:
        """Start a fresh pass: blocks of at most `block_bytes` bytes (but at least a row), in row order."""
        rows = rows_per_block(block_bytes, self.n_features, self.dtype)
        for start in range(0, self.n_rows, rows):
            weights = None if self._weights is None else self._weights[start : start + rows]
            yield Block(start, self._rows.part(start, start + rows), weights)

    def own_engine(self, progress: Progress | None) -> CudaEngine:
        """Return the engine that works where the rows are."""
        return CudaEngine(progress=progress, card=self._rows.card)


def cuda_source(
    data: Any,
    *,
    columns: Sequence[Any] | None = None,
    drop: Sequence[Any] | None = None,
    sample_weight: Any = None,
    extra: Sequence[str] = (),
) -> CudaSource:
    """Return the source for an array on a CUDA device: of CuPy, torch, JAX, or any other with ``__dlpack__``.

    Parameters
    ----------
    data : array of shape (n_rows, n_features)
        The rows.
    columns, drop, extra
        As for `dc2.sources.as_source`.
    sample_weight : array-like of shape (n_rows,), optional
        Weights of the rows, on the host or on a card.
    """
    if isinstance(sample_weight, str) or extra:
        name = sample_weight if isinstance(sample_weight, str) else extra
        raise InputTypeError(
            f"X is an array without column names, so {name!r} cannot be taken from it. Give sample_weight as an array."
        )
    card, X = as_cupy(data)
    _check_matrix(X)
    layout = ArrayLayout(np.empty((0, X.shape[1]), X.dtype), columns, drop)
    if layout.chosen is not None:
        with card.use():
            X = X[:, card.array(np.array(layout.chosen, np.int64))]
    weights = None
    if sample_weight is not None:
        weights = check_weights(host_array(sample_weight) if lies_on_cuda(sample_weight) else sample_weight, len(X))
        check_weights_sum(float(weights.sum()), len(X))
    return CudaSource(card, X, form_like(data), weights, layout.dtype)


def _check_matrix(X: Any) -> None:
    if X.ndim != 2:
        raise InputError(f"Expected 2D array, got {X.ndim}D array instead: X has shape {X.shape}.")
    if X.dtype.kind not in "biuf":
        raise InputTypeError(f"X has dtype {X.dtype}, which is not numeric. Convert it to float32 first.")
    for size, what in zip(X.shape, ("sample", "feature"), strict=True):
        if size == 0:
            raise InputError(f"Found array with 0 {what}(s) (shape={X.shape}) while a minimum of 1 is required.")
