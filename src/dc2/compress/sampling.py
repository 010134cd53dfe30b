"""Samples of rows, and distinct rows: equal ones become one, with their weights added."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dc2.compress.signatures import weights_on_grids
from dc2.core.reference import hash_at, smallest_hashes
from dc2.engines.engine import Engine
from dc2.errors import InputError
from dc2.io.source import Block, Source, check_weights_sum, row_hashes
from dc2.trees.neighbours import distinct_rows
from dc2.trees.tree import NO_LIMIT, raise_unusable

ALL = 2**64 - 1
MARGIN = 6.0  # standard deviations: slightly more rows are kept than asked for, then cut to size


@dataclass(frozen=True, eq=False)
class Sample:
    """Rows of a source, none of weight 0, and what one pass over it found."""

    rows: NDArray[np.int64]  # global row numbers or, where rows have keys, these; ascending
    X: NDArray[Any]
    weights: NDArray[np.float64] | None
    n_rows: int  # of the source
    total_weight: float  # theirs
    on_device: Any = None  # the same rows on a GPU, where the engine has one
    copies: int | None = None  # how many rows were sampled, where equal ones became one with their weights added

    @property
    def n_sampled(self) -> int:
        """Number of sampled rows, equal ones counted."""
        return len(self.rows) if self.copies is None else self.copies

    def sent_to(self, engine: Engine) -> Sample:
        """Return the sample with its rows on the GPU of an engine that has one."""
        send = getattr(engine, "on_device", None)
        return self if send is None else replace(self, on_device=send(self.X))

    @property
    def weight(self) -> float:
        """Weight of the sampled rows."""
        return float(len(self.rows)) if self.weights is None else float(self.weights.sum())


@dataclass(frozen=True, eq=False)
class _Part:
    rows: NDArray[np.int64]
    X: NDArray[Any]
    weights: NDArray[np.float64] | None
    n_rows: int
    total_weight: float
    copies: NDArray[np.int64] | None = None  # of each row with a key


def take_sample(source: Source, engine: Engine, size: int, seed: int, *, limited: bool = True) -> Sample:
    """Return the `size` rows with the smallest hash, in one pass that keeps about twice as many at a time.

    Rows with keys are in no order, so equal ones cannot be numbered: they are one row, with their weights added.
    """
    if source.in_memory and source.n_rows is not None and size >= source.n_rows:
        return _everything(source)
    limit = first_limit(size, source.n_rows) if limited else ALL
    picker = _Picker(seed, limit, size, source.feature_names)
    parts: list[_Part] = []
    held = n_rows = 0
    total_weight = 0.0
    merge = partial(_smallest, size=size, seed=seed)
    for part in engine.map(picker, source, stage="divide", merge=merge):
        parts.append(part)
        held += len(part.rows)
        n_rows += part.n_rows
        total_weight += part.total_weight
        if held > 2 * size:
            parts = [merge(parts)]
            held = size
            picker.limit = int(hash_at(seed, parts[0].rows).max())
    if n_rows == 0:
        raise InputError("Found array with 0 sample(s): the source holds no rows, and at least 1 is required.")
    check_weights_sum(total_weight, n_rows)
    chosen = merge(parts)
    if len(chosen.rows) < size and picker.limit < ALL and len(chosen.rows) < n_rows:
        # There were fewer small hashes, or more zero weights, than expected: read again without a limit.
        return take_sample(source, engine, size, seed, limited=False)
    weights, copies = chosen.weights, None
    if chosen.copies is not None:
        copies = int(chosen.copies.sum())
        if weights is None and copies > len(chosen.rows):
            weights = chosen.copies.astype(np.float64)
    return Sample(chosen.rows, chosen.X, weights, n_rows, total_weight, copies=copies)


class _Picker:
    """Keeps the rows of a block whose hash is at most a limit, but never more than the whole sample needs.

    The limit may fall during the pass.
    """

    def __init__(self, seed: int, limit: int, size: int, feature_names: tuple[str, ...] | None) -> None:
        self.seed, self.limit, self.size, self.feature_names = seed, limit, size, feature_names

    def __call__(self, block: Block) -> _Part:
        places = block.sampled(self.seed, self.limit)
        if block.weights is not None:
            places = places[block.weights[places] > 0]
        if block.keys is None:
            places = places[smallest_hashes(self.seed, block.start + places, self.size)]
        X = block.take(places)
        if not np.isfinite(X).all():
            raise_unusable(block.X, self.feature_names, block.start)
        weights = None if block.weights is None else block.weights[places]
        total = float(block.n_rows) if block.weights is None else float(block.weights.sum())
        part = _Part(block.identities(places), X, weights, block.n_rows, total)
        return part if block.keys is None else _smallest_keyed([part], self.size, self.seed)


def first_limit(size: int, n_rows: int | None) -> int:
    """Return the hash below which `size` of `n_rows` rows are expected, with a margin."""
    wanted = size + MARGIN * np.sqrt(size) + MARGIN**2
    return ALL if n_rows is None or size >= n_rows else min(ALL, int(wanted / n_rows * 2.0**64))


def _smallest(parts: Sequence[_Part], size: int, seed: int) -> _Part:
    """Return the `size` rows with the smallest hash among several parts, copied once: a sample may be large."""
    if len(parts) == 1 and len(parts[0].rows) <= size:
        return parts[0]
    if parts[0].copies is not None:
        return _smallest_keyed(parts, size, seed)
    rows = np.concatenate([part.rows for part in parts])
    places = smallest_hashes(seed, rows, size)
    X = np.empty((len(places), parts[0].X.shape[1]), parts[0].X.dtype)
    starts = np.cumsum([0, *(len(part.rows) for part in parts)])
    cuts = np.searchsorted(places, starts)
    for part, start, first, last in zip(parts, starts, cuts, cuts[1:], strict=False):
        X[first:last] = part.X[places[first:last] - start]
    weights = None
    if parts[0].weights is not None:
        weights = np.concatenate([part.weights for part in parts if part.weights is not None])[places]
    return _Part(rows[places], X, weights, *_totals(parts))


def _totals(parts: Sequence[_Part]) -> tuple[int, float]:
    """Return the number of rows that were read, and their weight."""
    return sum(part.n_rows for part in parts), sum(part.total_weight for part in parts)


def _smallest_keyed(parts: Sequence[_Part], size: int, seed: int) -> _Part:
    """Return the `size` distinct rows with the smallest hash of their key, by key, whatever order they come in."""
    rows, X = np.concatenate([part.rows for part in parts]), np.concatenate([part.X for part in parts])
    ones = [np.ones(len(part.rows), np.int64) if part.copies is None else part.copies for part in parts]
    weights = None if parts[0].weights is None else np.concatenate([part.weights for part in parts])
    contents, hashes = row_hashes(X), hash_at(seed, rows)
    order = np.lexsort((contents, hashes))
    differs = np.ones(len(order), bool)
    differs[1:] = (np.diff(hashes[order]) != 0) | (np.diff(contents[order]) != 0)
    starts = np.flatnonzero(differs)
    chosen = order[starts[:size]]
    by_key = np.lexsort((contents[chosen], rows[chosen]))

    def added(counts: NDArray[Any]) -> NDArray[Any]:
        return np.add.reduceat(counts[order], starts)[:size][by_key] if len(starts) else counts

    chosen = chosen[by_key]
    weights = None if weights is None else added(weights)
    return _Part(rows[chosen], X[chosen], weights, *_totals(parts), added(np.concatenate(ones)))


def _everything(source: Source) -> Sample:
    """Take all rows that are in memory, without a copy unless some have weight 0."""
    block = next(source.blocks(NO_LIMIT))
    if not np.isfinite(block.X).all():
        raise_unusable(block.X, source.feature_names, 0)
    rows, X, weights = np.arange(len(block.X), dtype=np.int64), block.X, block.weights
    n_rows, total = len(rows), float(len(rows) if weights is None else weights.sum())
    check_weights_sum(total, n_rows)
    if weights is not None and not weights.all():
        kept = weights > 0
        rows, X, weights = rows[kept], X[kept], weights[kept]
    return Sample(rows, X, None if weights is None else np.ascontiguousarray(weights), n_rows, total)


def has_distinct_rows(X: NDArray[Any], count: int) -> bool:
    """Tell whether at least so many rows differ from each other; repeats of rows make no difference.

    Examples
    --------
    >>> X = np.array([[1.0, 2.0], [0.0, 1.0], [1.0, 2.0]])
    >>> has_distinct_rows(X, 2), has_distinct_rows(X, 3)
    (True, False)
    """
    some = X[: 2 * count]  # mostly enough
    return len(X) >= count and any(len(np.unique(row_hashes(rows))) >= count for rows in (some, X))


@dataclass(frozen=True, eq=False)
class _Counted:
    """Distinct rows of some blocks in the order in which they come first."""

    rows: NDArray[np.int64]  # the number of the first row equal to each
    X: NDArray[Any]
    weights: NDArray[np.float64]  # (2, n_distinct): coarse and fine part, each exact, so that blocks make no difference
    n_rows: int  # of the blocks
    too_many: bool = False  # more distinct rows than allowed; then none are kept


def count_repeated_rows(source: Source, engine: Engine, sample: Sample, most: int) -> Sample | None:
    """Return the distinct rows of a source with a weight above 0, weighed; None if they are more than `most`.

    `sample` is what an earlier pass found; it tells the number of rows and their weight.
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
