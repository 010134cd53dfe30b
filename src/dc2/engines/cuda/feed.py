"""Blocks on their way through a card: while it works on some, others are copied there or put together."""

from __future__ import annotations

import queue
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from dc2.core.gpu.rows import DeviceRows
from dc2.sources.base import Block

__all__ = ["fed"]

R = TypeVar("R")

BUFFERS = 5  # two are filled, one is on its way, two are worked on
FEEDERS = 2  # threads that have buffers filled
WORKERS = 2  # threads that start the card's work, and wait for it
COPY_ROWS_AT_LEAST = 2**12  # by one thread


def fed(
    card: Any,
    function: Callable[[Block], R],
    blocks: Iterator[Block],
    n_threads: int,
    form: Callable[[Any], Any],
) -> Iterator[tuple[int, R]]:
    """Yield the number of rows of each block, and what a function makes of it with its rows on the card; in order.

    Parameters
    ----------
    card : Card
    function : callable
        Takes a block; called in threads. The block is gone when it returns.
    blocks : iterator of Block
        On the host; read in this thread.
    n_threads : int
        Threads that copy rows to where the card can fetch them.
    form : callable
        Brings an array of answers from the card.
    """
    free: queue.SimpleQueue[_Buffer] = queue.SimpleQueue()
    for _ in range(BUFFERS):
        free.put(card.buffers.pop() if card.buffers else _Buffer(card))
    working: deque[Future[tuple[int, R]]] = deque()
    try:
        with (
            ThreadPoolExecutor(n_threads, thread_name_prefix="dc2-copy") as copiers,
            ThreadPoolExecutor(FEEDERS, thread_name_prefix="dc2-feed") as feeders,
            ThreadPoolExecutor(WORKERS, thread_name_prefix="dc2-card") as workers,
        ):

            def work(buffer: _Buffer, block: Block, sending: Future[Any]) -> tuple[int, R]:
                try:
                    rows = DeviceRows(card, sending.result(), block.X.dtype, form)
                    return block.n_rows, buffer.work(function, replace(block, rows=rows))
                finally:
                    free.put(buffer)

            for block in blocks:
                if len(working) == BUFFERS:
                    yield working.popleft().result()
                buffer = free.get()
                sending = feeders.submit(buffer.send, block.X, copiers, n_threads)
                working.append(workers.submit(work, buffer, block, sending))
                del block
            while working:
                yield working.popleft().result()
    finally:  # memory that a card can fetch takes long to get
        card.buffers += [free.get() for _ in range(BUFFERS)]


class _Buffer:
    """Memory for one block: on the host, where the card can fetch it, and on the card; and its own stream of work."""

    def __init__(self, card: Any) -> None:
        self._card = card
        self._fetchable: Any = None
        self._on_card: Any = None
        self._stream: Any = None

    def send(self, X: NDArray[Any], copiers: ThreadPoolExecutor, n_threads: int) -> Any:
        """Start rows on their way to the card, and return where they will be there.

        They are copied to where the card can fetch them, unless they lie in such memory already. The caller holds `X`
        until the card has worked on it.
        """
        card = self._card
        with card.use():
            if self._on_card is None or self._on_card.dtype != X.dtype or self._on_card.size < X.size:
                self._stream = card.new_stream()
                self._on_card = card.xp.empty(X.size, X.dtype)
            on_card = self._on_card[: X.size].reshape(X.shape)
            rows = X if card.can_fetch(X) else self._copied(X, copiers, n_threads)
            card.fetch(rows, on_card, self._stream)
        return on_card

    def _copied(self, X: NDArray[Any], copiers: ThreadPoolExecutor, n_threads: int) -> NDArray[Any]:
        """Copy rows, in threads, to where the card can fetch them."""
        if self._fetchable is None or self._fetchable.dtype != X.dtype or self._fetchable.size < X.size:
            self._fetchable = self._card.fetchable(X.size, X.dtype)
        fetchable: NDArray[Any] = self._fetchable[: X.size].reshape(X.shape)
        step = max(COPY_ROWS_AT_LEAST, -(-len(X) // n_threads))
        starts = range(0, len(X), step)
        list(copiers.map(lambda i: np.copyto(fetchable[i : i + step], X[i : i + step]), starts))
        return fetchable

    def work(self, function: Callable[[Block], R], block: Block) -> R:
        """Do some work on the card, as soon as the rows are there and beside that on other blocks."""
        with self._card.use(), self._card.on(self._stream):
            try:
                return function(block)
            finally:
                self._card.finish()
