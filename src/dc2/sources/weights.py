"""A source whose rows take their weights from a separate array."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dc2.errors import InputError
from dc2.sources.base import Block, Source
from dc2.sources.checks import check_weights, check_weights_sum

__all__ = ["WeightedSource"]


class WeightedSource:
    """Rows of any source, each with its weight from an array.

    Parameters
    ----------
    source : Source
        The rows.
    sample_weight : array-like of shape (n_rows,)
        One finite, non-negative weight per row, not all zero.
    """

    def __init__(self, source: Source, sample_weight: ArrayLike) -> None:
        self._source = source
        self._weights = check_weights(sample_weight, source.n_rows)
        check_weights_sum(self._weights.sum(), len(self._weights))
        self.n_features: int = source.n_features
        self.feature_names: tuple[str, ...] | None = source.feature_names
        self.n_rows: int = len(self._weights)
        self.dtype: np.dtype[Any] = source.dtype
        self.in_memory: bool = source.in_memory
        self.is_sparse: bool = getattr(source, "is_sparse", False)

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
