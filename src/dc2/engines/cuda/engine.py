"""The engine for one card: rows that lie there are one block, others are sent there while it works."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from numpy.typing import NDArray

from dc2.core.gpu.card import own_card
from dc2.core.gpu.rows import DeviceRows
from dc2.engines.base import DEFAULT_BLOCK_BYTES, Progress
from dc2.engines.cuda.feed import fed
from dc2.engines.progress import reported
from dc2.engines.threads import ThreadEngine, usable_threads
from dc2.sources.base import Block, Source

__all__ = ["CudaEngine"]

R = TypeVar("R")

WHOLE = 2**62  # bytes
SENT_BYTES = 128 * 2**20  # at least, at a time: a card works on many rows at once
MOST_HELD_BYTES = 2**30  # of rows that are sent there for several passes


class CudaEngine:
    """Map a function over the blocks of a source, on a card.

    Parameters
    ----------
    n_jobs : int, optional
        Threads that put rows together on the host.
    block_bytes : int, default=16 MiB
        Budget for one block of rows that is sent to the card, in bytes; 128 MiB at least.
    progress : callable, optional
        Called as ``progress(stage, rows_done, rows_total)``.

    Notes
    -----
    The function gets blocks whose rows lie on the card (`dc2.core.gpu.DeviceRows`). A sample of rows that lie on the
    host is taken there: sending all of them to take a few would be slower.
    """

    def __init__(
        self,
        n_jobs: int | None = None,
        block_bytes: int = DEFAULT_BLOCK_BYTES,
        progress: Progress | None = None,
        *,
        card: Any = None,
    ) -> None:
        self.n_jobs, self.block_bytes, self.progress = n_jobs, block_bytes, progress
        self._card = card

    def on_card(self, X: NDArray[Any]) -> DeviceRows | None:
        """Return rows of the host on the card, for several passes over them; None where they are too many."""
        if X.nbytes > MOST_HELD_BYTES:
            return None
        card = self._own_card()
        with card.use():
            return DeviceRows(card, card.array(X), X.dtype, card.asnumpy)

    def map(
        self,
        function: Callable[[Block], R],
        source: Source,
        *,
        stage: str,
        merge: Callable[[Sequence[R]], R] | None = None,
        result_bytes: int = 0,
    ) -> Iterator[R]:
        """Yield ``function(block)`` for every block of the source, in block order.

        Parameters
        ----------
        function : callable
            Takes a block.
        source : Source
            The rows.
        stage : str
            Name of the stage, for the progress callback.
        merge : callable, optional
        result_bytes : int, default=0
            Not needed here.
        """
        results: Iterator[tuple[int, R]]
        if hasattr(source, "own_engine"):
            results = ((block.n_rows, function(block)) for block in source.blocks(WHOLE))
        elif stage == "divide":
            yield from ThreadEngine(self.n_jobs, self.block_bytes, self.progress).map(function, source, stage=stage)
            return
        else:
            results = self._sent(function, source)
        yield from reported(results, self.progress, stage, source.n_rows)

    def _sent(self, function: Callable[[Block], R], source: Source) -> Iterator[tuple[int, R]]:
        card = self._own_card()
        blocks = source.blocks(max(self.block_bytes, SENT_BYTES))
        # Answers that are put together at once stay where the card wrote them until then.
        form = card.fetched if source.in_memory else card.asnumpy
        return fed(card, function, blocks, usable_threads(self.n_jobs), form)

    def _own_card(self) -> Any:
        return own_card() if self._card is None else self._card
