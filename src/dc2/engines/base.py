"""What every engine is: a map over the blocks of a source, with results in block order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol, TypeVar

from dc2.sources.base import Block, Source

__all__ = ["DEFAULT_BLOCK_BYTES", "Engine", "Progress"]

R = TypeVar("R")

DEFAULT_BLOCK_BYTES = 16 * 2**20
"""Budget for one block of rows, in bytes. An engine keeps a few blocks alive, its threads plus two."""

Progress = Callable[[str, int, int | None], None]
"""Called as ``progress(stage, rows_done, rows_total)``; ``rows_total`` is None while it is not known."""


class Engine(Protocol):
    """Runs a function over all blocks of a source."""

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

        With `merge`, results of consecutive blocks may come as one, which saves sending each from a remote worker.
        `result_bytes` is the size of one result: blocks are not much smaller, or passing results around would cost more
        than making them.
        """
