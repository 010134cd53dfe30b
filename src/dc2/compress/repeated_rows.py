"""Distinct rows of a source of any size, if they are few: counted in one pass, with their weights added."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dc2.compress.sampling import Sample, distinct_rows
from dc2.compress.signatures import weights_on_grids
from dc2.engines.engine import Engine
from dc2.io.source import Block, Source, row_hashes
from dc2.trees.tree import raise_unusable


@dataclass(frozen=True, eq=False)
class _Counted:
    """Distinct rows of some blocks in the order in which they come first.

    Attributes
    ----------
    rows : ndarray of shape (n_distinct,), int64
        The number of the first row equal to each.
    X : ndarray of shape (n_distinct, n_features)
    weights : ndarray of shape (2, n_distinct), float64
        Coarse and fine part, each exact, so that blocks make no difference.
    n_rows : int
        Rows of the blocks.
    too_many : bool
        Whether there are more distinct rows than allowed; then none are kept.
    """

    rows: NDArray[np.int64]
    X: NDArray[Any]
    weights: NDArray[np.float64]
    n_rows: int
    too_many: bool = False


def count_repeated_rows(source: Source, engine: Engine, sample: Sample, most: int) -> Sample | None:
    """Return the distinct rows of a source with a weight above 0, weighed; None if they are more than `most`.

    Parameters
    ----------
    source : Source
    engine : Engine
    sample : Sample
        What an earlier pass found; it tells the number of rows and their weight.
    most : int
    """
    merge = partial(_join, most=most)
    counter = _Counter(sample.total_weight, most, source.feature_names)
    parts: list[_Counted] = []
    results = engine.map(counter, source, stage="divide", merge=merge)
    for part in results:
        parts.append(part)
        if part.too_many or sum(len(part.rows) for part in parts) > 2 * most:
            parts = [merge(parts)]
        if parts[0].too_many:
            return None
    counted = merge(parts)
    if counted.too_many:
        return None
    return Sample(counted.rows, counted.X, counted.weights.sum(axis=0), counted.n_rows, sample.total_weight)


@dataclass(frozen=True, eq=False)
class _Counter:
    """Counts the distinct rows of a block; small enough to be sent to where the rows are."""

    total_weight: float
    most: int
    feature_names: tuple[str, ...] | None

    def __call__(self, block: Block) -> _Counted:
        X = block.X
        if not np.isfinite(X).all():
            raise_unusable(X, self.feature_names, block.start)
        weights = np.ones(len(X)) if block.weights is None else block.weights
        kept = np.flatnonzero(weights > 0)
        if len(kept) < len(X):
            X = X[kept]
        part = _Counted(block.identities(kept), X, weights_on_grids(weights[kept], self.total_weight), block.n_rows)
        return _join([part], self.most)


def _join(parts: Sequence[_Counted], most: int) -> _Counted:
    """Return the distinct rows of several parts."""
    n_rows = sum(part.n_rows for part in parts)
    X, weights = np.concatenate([part.X for part in parts]), np.concatenate([part.weights for part in parts], axis=1)
    if any(part.too_many for part in parts):
        return _too_many(X, n_rows)
    rows = np.concatenate([part.rows for part in parts])
    order = np.lexsort((row_hashes(X), rows))  # rows with keys come in any order
    rows, X, weights = rows[order], X[order], weights[:, order]
    distinct = distinct_rows(X)
    if len(distinct) > most:
        return _too_many(X, n_rows)
    added = np.stack([np.bincount(distinct.of_row, part, minlength=len(distinct)) for part in weights])
    return _Counted(rows[distinct.first], X[distinct.first], added.astype(np.float64), n_rows)


def _too_many(X: NDArray[Any], n_rows: int) -> _Counted:
    return _Counted(np.empty(0, np.int64), X[:0], np.empty((2, 0)), n_rows, too_many=True)
