"""An answer for every row of a source, in the form that suits the source."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from dc2.engines.engine import (
    DEFAULT_BLOCK_BYTES,
    Engine,
    HasOwnEngine,
    KeepsArrayKind,
    MapsLazily,
    Progress,
    progress_for,
)
from dc2.engines.threads import ThreadEngine
from dc2.errors import ParameterError
from dc2.io.source import Block, Source
from dc2.parameters import check_choice

DEVICES = (None, "cuda")

Verbose = int | Progress
"""0 is silent, 1 shows the stages, a callable receives the progress."""


@dataclass(frozen=True)
class RunOptions:
    """The options of a run, which travel as one.

    Examples
    --------
    >>> RunOptions(n_jobs=2).block_bytes
    16777216
    """

    n_jobs: int | None = None
    block_bytes: int = DEFAULT_BLOCK_BYTES
    verbose: Verbose = 0
    device: str | None = None

    @classmethod
    def of(cls, estimator: Any) -> RunOptions:
        """Return the options that are parameters of an estimator."""
        device = getattr(estimator, "device", None)
        check_choice("device", device, DEVICES)
        check_verbose(estimator.verbose)
        return cls(estimator.n_jobs, estimator.block_bytes, estimator.verbose, device)


def check_verbose(verbose: Any) -> None:
    """Raise unless `verbose` is a whole number, True, False or a callable."""
    if not (callable(verbose) or isinstance(verbose, Integral | np.bool_)):
        raise ParameterError(f"verbose={verbose!r}: not a number or a callable. Use 0, 1 or a function.")


def engine_for(source: Source, options: RunOptions) -> Engine:
    """Return the engine that suits a source."""
    verbose = options.verbose
    progress = verbose if callable(verbose) else progress_for(verbose)
    remote = getattr(source, "remote", None)
    if remote is not None:
        own: Engine = remote.own_engine(progress)
        return own
    if isinstance(source, HasOwnEngine):
        return source.own_engine(progress)
    if options.device is not None:
        from dc2.engines.cuda import CudaEngine

        return CudaEngine(options.n_jobs, options.block_bytes, progress)
    return ThreadEngine(options.n_jobs, options.block_bytes, progress)


def mapped_rows(
    source: Source, answer: Callable[[Block], Any], like: Callable[[], Any], options: RunOptions, width: int = 0
) -> Any:
    """Return the answer for every row of a source: an array if rows are in memory, else blocks, or a lazy collection.

    `like` returns answers of no row, for lazy ones. `width` is how many numbers a row takes up while it is answered, if
    more than the row itself, such as its kernel with a thousand signatures: a block's budget must hold it.
    """
    if width:
        rows = max(1, options.block_bytes // (8 * max(width, source.n_features)))
        answer = _InParts(answer, rows)
        options = replace(options, block_bytes=rows * source.n_features * source.dtype.itemsize)
    remote = getattr(source, "remote", None)
    if remote is not None:
        return remote.lazy(answer, like(), source)
    if isinstance(source, MapsLazily):
        return source.lazy(answer, like())
    answers = engine_for(source, options).map(answer, source, stage="populate")
    return in_form_of(source, _in_one(answers, source.n_rows)) if source.in_memory else answers


def in_form_of(source: Source, answers: Any) -> Any:
    """Return answers as the same kind of array as the rows, if these are not in NumPy arrays; not records."""
    plain = isinstance(answers, np.ndarray) and answers.dtype.names is None
    return source.form(answers) if isinstance(source, KeepsArrayKind) and plain else answers


def _in_one(answers: Iterator[Any], n_rows: int | None) -> Any:
    """Put the answers for all rows into one array as they come, while others are being computed."""
    first = next(answers)
    if n_rows is None or not isinstance(first, np.ndarray) or len(first) == n_rows:
        return stacked([first, *answers])
    whole = np.empty((n_rows, *first.shape[1:]), first.dtype)
    stop = len(first)
    whole[:stop] = first
    for answer in answers:
        whole[stop : stop + len(answer)] = answer
        stop += len(answer)
    return whole


def stacked(parts: list[Any]) -> Any:
    """Stack the answers of blocks."""
    if len(parts) == 1:
        return parts[0]
    return sparse.vstack(parts, format="csr") if sparse.issparse(parts[0]) else np.concatenate(parts)


@dataclass(frozen=True, eq=False)
class _InParts:
    """Answers for blocks of any size, since the chunks of a cluster may be large: some rows at a time."""

    answer: Callable[[Block], Any]
    rows: int

    def __call__(self, block: Block) -> Any:
        X: NDArray[Any] = block.X
        parts = range(0, len(X), self.rows)
        return stacked([self.answer(Block(block.start + i, X[i : i + self.rows])) for i in parts])
