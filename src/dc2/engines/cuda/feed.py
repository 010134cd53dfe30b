"""Blocks on their way through a card: while it works on some, others are copied there or put together."""

from __future__ import annotations

import queue
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from dc2.core.gpu.rows import DeviceRows
from dc2.sources.base import Block

__all__ = ["fed"]

R = TypeVar("R")

BUFFERS = 4  # one is filled, one is on its way, two are worked on
WORKERS = 2  # threads that start the card's work, and wait for it
COPY_ROWS_AT_LEAST = 2**12  # by one thread


def fed(
    card: Any, function: Callable[[Block], R], blocks: Iterator[Block], n_threads: int
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
    """
    free: queue.SimpleQueue[_Buffer | None] = queue.SimpleQueue()
    for _ in range(BUFFERS):
        free.put(card.buffers.pop() if card.buffers else _Buffer(card))
    with (
        ThreadPoolExecutor(1, thread_name_prefix="dc2-feed") as feeder,
        ThreadPoolExecutor(WORKERS, thread_name_prefix="dc2-card") as workers,
        ThreadPoolExecutor(n_threads, thread_name_prefix="dc2-copy") as copiers,
    ):

        def send(block: Block) -> tuple[_Buffer, Block]:
            buffer = free.get()
            if buffer is None:  # broken off
                raise RuntimeError("no more blocks are wanted.")
            return buffer, replace(block, rows=buffer.send(block, copiers, n_threads))

        def work(sending: Future[tuple[_Buffer, Block]]) -> tuple[int, R]:
            buffer, block = sending.result()
            try:
                return block.n_rows, buffer.work(function, block)
            finally:
                free.put(buffer)

        working: deque[Future[tuple[int, R]]] = deque()
        try:
            for block in blocks:
                working.append(workers.submit(work, feeder.submit(send, block)))
                del block
                if len(working) > BUFFERS:
                    yield working.popleft().result()
            while working:
                yield working.popleft().result()
        finally:
            if working:  # broken off: nothing may wait for a buffer that never comes back
                for _ in working:
                    free.put(None)
                for job in working:
                    job.cancel()
    # Memory that a card can fetch takes long to get.
    card.buffers += [buffer for buffer in (free.get() for _ in range(BUFFERS)) if buffer is not None]


class _Buffer:
    """Memory for one block: on the host, where the card can fetch it, and on the card; and its own stream of work."""

    def __init__(self, card: Any) -> None:
        self._card = card
        self._fetchable: Any = None
        self._on_card: Any = None
        self._stream: Any = None

    def send(self, block: Block, copiers: ThreadPoolExecutor, n_threads: int) -> DeviceRows:
        """Copy a block, and start it on its way to the card."""
        X, card = block.X, self._card
        with card.use():
            if self._on_card is None or self._on_card.dtype != X.dtype or self._on_card.size < X.size:
                self._stream = card.new_stream()
                self._fetchable = card.fetchable(X.size, X.dtype)
                self._on_card = card.xp.empty(X.size, X.dtype)
            fetchable = self._fetchable[: X.size].reshape(X.shape)
            on_card = self._on_card[: X.size].reshape(X.shape)
            step = max(COPY_ROWS_AT_LEAST, -(-len(X) // n_threads))
            starts = range(0, len(X), step)
            list(copiers.map(lambda i: np.copyto(fetchable[i : i + step], X[i : i + step]), starts))
            card.fetch(fetchable, on_card, self._stream)
        return DeviceRows(card, on_card, X.dtype, lambda array: card.fetched(array).copy())

    def work(self, function: Callable[[Block], R], block: Block) -> R:
        """Do some work on the card, as soon as the rows are there and beside that on other blocks."""
        with self._card.use(), self._card.on(self._stream):
            try:
                return function(block)
            finally:
                self._card.finish()
