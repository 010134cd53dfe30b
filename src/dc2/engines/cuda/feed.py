"""Blocks on their way to a card: while it works on one, the next is copied there and the one after put together."""

from __future__ import annotations

import queue
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np

from dc2.core.gpu.rows import DeviceRows
from dc2.sources.base import Block

__all__ = ["fed"]

BUFFERS = 3  # one is worked on, one is on its way, one is being filled
COPY_ROWS_AT_LEAST = 2**12  # by one thread


def fed(card: Any, blocks: Iterator[Block], n_threads: int) -> Iterator[Block]:
    """Yield the same blocks with their rows on the card; a block is gone when the next one is asked for.

    Parameters
    ----------
    card : Card
    blocks : iterator of Block
        On the host; read in this thread.
    n_threads : int
        Threads that copy rows to where the card can fetch them.
    """
    free: queue.SimpleQueue[_Buffer] = queue.SimpleQueue()
    for _ in range(BUFFERS):
        free.put(card.buffers.pop() if card.buffers else _Buffer(card))
    with (
        ThreadPoolExecutor(1, thread_name_prefix="dc2-feed") as feeder,
        ThreadPoolExecutor(n_threads, thread_name_prefix="dc2-copy") as copiers,
    ):
        waiting: list[Future[tuple[Block, _Buffer]]] = []

        def send(block: Block) -> tuple[Block, _Buffer]:
            buffer = free.get()
            return replace(block, rows=buffer.send(block, copiers, n_threads)), buffer

        try:
            for block in blocks:
                waiting.append(feeder.submit(send, block))
                del block
                if len(waiting) == BUFFERS - 1:
                    yield from _worked_on(waiting.pop(0).result(), free)
            while waiting:
                yield from _worked_on(waiting.pop(0).result(), free)
        finally:
            for sent in waiting:  # broken off: nothing may wait for a buffer that never comes back
                sent.cancel()
                free.put(_Buffer(card))
    card.buffers += [free.get() for _ in range(BUFFERS)]  # memory that a card can fetch takes long to get


def _worked_on(sent: tuple[Block, _Buffer], free: queue.SimpleQueue[_Buffer]) -> Iterator[Block]:
    block, buffer = sent
    buffer.wait_for_rows()
    try:
        yield block
    finally:
        buffer.wait_for_work()
        free.put(buffer)


class _Buffer:
    """Memory for one block: on the host, where the card can fetch it, and on the card."""

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
        return DeviceRows(card, on_card, X.dtype, card.asnumpy)

    def wait_for_rows(self) -> None:
        """Let the card's work begin when the rows are there."""
        with self._card.use():
            self._card.wait_for(self._stream)

    def wait_for_work(self) -> None:
        """Wait until the card is done with the rows."""
        with self._card.use():
            self._card.finish()
