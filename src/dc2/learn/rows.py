"""Rows on their way through an estimator: some of them, their weights, or all at once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dc2.engines.answers import stacked
from dc2.errors import InputError
from dc2.sources import Block, Source
from dc2.trees.tree import raise_unusable, values_usable

__all__ = ["SelectedRows", "check_length", "weights_of", "whole"]


class SelectedRows:
    """The rows of a source that a mask selects, numbered anew.

    Parameters
    ----------
    source : Source
        The rows.
    selected : ndarray of shape (n_rows,), bool
        Which of them.
    """

    def __init__(self, source: Source, selected: NDArray[np.bool_]) -> None:
        self._source, self._selected = source, selected
        self.n_features: int = source.n_features
        self.feature_names: tuple[str, ...] | None = source.feature_names
        self.n_rows: int = int(np.count_nonzero(selected))
        self.dtype: np.dtype[Any] = source.dtype
        self.in_memory: bool = source.in_memory

    def blocks(self, block_bytes: int) -> Iterator[Block]:
        """Start a fresh pass over the source."""
        start = stop = 0
        for block in self._source.blocks(block_bytes):
            stop = block.stop
            check_length(len(self._selected), stop, at_least=True)
            selected = self._selected[block.start : stop]
            if selected.any():
                X = block.X[selected]
                if not values_usable(X):  # raised here, where rows still have the numbers that the user knows
                    raise_unusable(block.X, self.feature_names, block.start)
                weights = None if block.weights is None else block.weights[selected]
                yield Block(start, X, weights)
                start += int(np.count_nonzero(selected))
        check_length(len(self._selected), stop)


def check_length(n_targets: int, n_rows: int | None, at_least: bool = False) -> None:
    """Raise if there is not one target for each row."""
    if n_rows is None or n_targets == n_rows or (at_least and n_rows < n_targets):
        return
    raise InputError(f"y has {n_targets} values but X has {n_rows} rows: give one each.")


def weights_of(source: Source, block_bytes: int) -> NDArray[np.float64] | None:
    """Return the weights of all rows of a source, or None if it has none."""
    parts = []
    for block in source.blocks(block_bytes):
        if block.weights is None:
            return None
        parts.append(block.weights)
    return np.concatenate(parts)


def whole(source: Source) -> Any:
    """Return all rows of a source in memory as one array; a view where they are one."""
    return stacked([block.X for block in source.blocks(2**62)])
