"""The engine for one machine: blocks are read in the calling thread and worked on by a few others."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import ClassVar, TypeVar

from dc2.engines.engine import DEFAULT_BLOCK_BYTES, Closable, Progress, reported
from dc2.io.source import Block, Source
from dc2.parameters import check_integer, usable_threads

R = TypeVar("R")

SMALLEST_BLOCK_ROWS = 2**11  # smaller blocks cost more to pass around and merge than to work on
IN_MEMORY_BLOCKS = 64
FEWEST_IN_MEMORY_BLOCKS = 16  # however large results are


class ThreadEngine:
    """Map a function over the blocks of a source, with threads.

    Reading and computing overlap; at most ``n_jobs + 2`` blocks are alive at a time; results come in block
    order. On an error, an interrupt or an early close, what was not begun is cancelled and the source closed.

    Examples
    --------
    >>> import numpy as np
    >>> from dc2.io import as_source
    >>> engine = ThreadEngine(n_jobs=2, block_bytes=8)
    >>> list(engine.map(lambda block: float(block.X.sum()), as_source(np.ones((3, 1))), stage="compress"))
    [1.0, 1.0, 1.0]
    """

    shares_memory: ClassVar[bool] = True

    def __init__(
        self, n_jobs: int | None = None, block_bytes: int = DEFAULT_BLOCK_BYTES, progress: Progress | None = None
    ) -> None:
        check_integer("block_bytes", block_bytes, low=1)
        self.n_jobs: int = usable_threads(n_jobs)
        self.block_bytes = block_bytes
        self.progress = progress

    def map(
        self,
        function: Callable[[Block], R],
        source: Source,
        *,
        stage: str,
        merge: Callable[[Sequence[R]], R] | None = None,
        result_bytes: int = 0,
    ) -> Iterator[R]:
        """Yield ``function(block)`` for every block of the source, in block order."""
        blocks = source.blocks(_block_budget(source, self.block_bytes, result_bytes))
        results = _in_turn(function, blocks) if self.n_jobs == 1 else _threaded(function, blocks, self.n_jobs)
        try:
            yield from reported(results, self.progress, stage, source.n_rows)
        finally:
            for opened in (results, blocks):
                if isinstance(opened, Closable):
                    opened.close()


def _block_budget(source: Source, block_bytes: int, result_bytes: int) -> int:
    """Cut rows in memory finer, so that there are blocks for every core; the same cuts for any n_jobs."""
    if not source.in_memory or source.n_rows is None:
        return max(block_bytes, result_bytes // 2)
    row_bytes = source.n_features * source.dtype.itemsize
    rows = max(SMALLEST_BLOCK_ROWS, source.n_rows // IN_MEMORY_BLOCKS)
    at_least = min(result_bytes // 2, source.n_rows // FEWEST_IN_MEMORY_BLOCKS * row_bytes)
    return max(min(block_bytes, rows * row_bytes), at_least)


def _in_turn(function: Callable[[Block], R], blocks: Iterator[Block]) -> Iterator[tuple[int, R]]:
    for block in blocks:
        yield block.n_rows, function(block)


def _threaded(function: Callable[[Block], R], blocks: Iterator[Block], n_threads: int) -> Iterator[tuple[int, R]]:
    """Read a block ahead of the threads, hand back the oldest result, and so on.

    Alive are at most n_threads blocks at work, one waiting, and one being read.
    """
    pool = ThreadPoolExecutor(n_threads, thread_name_prefix="dc2")
    pending: deque[tuple[int, Future[R]]] = deque()
    broken: Exception | None = None
    try:
        while True:
            try:
                block = next(blocks, None)
            except Exception as error:  # raised below, after the results of the blocks before it
                broken = error
                break
            if block is None:
                break
            pending.append((block.n_rows, pool.submit(function, block)))
            del block
            if len(pending) > n_threads:
                rows, future = pending.popleft()
                yield rows, future.result()
        while pending:
            rows, future = pending.popleft()
            yield rows, future.result()
        if broken is not None:
            raise broken
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
