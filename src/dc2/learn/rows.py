"""Rows on their way through an estimator: some of them, in blocks, and stacked again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from dc2.engines import Verbose, engine_for
from dc2.errors import InputError
from dc2.sources import Block, Source

__all__ = ["SelectedRows", "answered", "check_length", "weights_of", "whole"]


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
                weights = None if block.weights is None else block.weights[selected]
                yield Block(start, block.X[selected], weights)
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


def stacked(parts: list[Any]) -> Any:
    """Put what blocks gave one below the other."""
    if len(parts) == 1:
        return parts[0]
    return sparse.vstack(parts, format="csr") if sparse.issparse(parts[0]) else np.concatenate(parts)


def answered(
    source: Source,
    answer: Callable[[NDArray[Any]], Any],
    example: NDArray[Any],
    width: int,
    n_jobs: int | None,
    budget: int,
    verbose: Verbose,
) -> Any:
    """Return the answer for every row of a source.

    Parameters
    ----------
    source : Source
        The rows.
    answer : callable
        Takes rows and returns an array or a sparse matrix with as many.
    example : ndarray of shape (n, n_features)
        Rows that have an answer: its dtype and width must be known before lazy answers are computed.
    width : int
        How many float64 numbers a row takes up while it is answered. A kernel between a block and a thousand
        signatures is larger than the block: it is what must fit.
    n_jobs, verbose
        As everywhere.
    budget : int
        Bytes that the rows answered at a time may take up.

    Returns
    -------
    ndarray, sparse matrix, iterator over them, or dask.array.Array
        An iterator over blocks where rows are not in memory; an array that is computed when asked where they live on
        a cluster.
    """
    rows = max(1, budget // (8 * max(width, source.n_features)))
    in_parts = _InParts(answer, rows)
    lazy = getattr(source, "lazy", None)
    if lazy is not None:
        return lazy(in_parts, answer(example[:1].astype(source.dtype, copy=False)))
    engine = engine_for(source, n_jobs, rows * source.n_features * source.dtype.itemsize, verbose)
    blocks = engine.map(in_parts, source, stage="populate")
    return stacked(list(blocks)) if source.in_memory else blocks


@dataclass(frozen=True, eq=False)
class _InParts:
    """Answers for blocks of any size, since the chunks of a cluster may be large: some rows at a time."""

    answer: Callable[[NDArray[Any]], Any]
    rows: int

    def __call__(self, block: Block) -> Any:
        parts = range(0, len(block.X), self.rows)
        return stacked([self.answer(block.X[first : first + self.rows]) for first in parts])
