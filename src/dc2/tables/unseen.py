"""Levels unseen in fit: counted block by block, and reported once all rows have been read."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, Generic, TypeVar

from dc2.errors import PreparationNote
from dc2.sources.base import Block
from dc2.tables.prepared import PreparedRows

__all__ = ["CountsUnseen"]

Answer = TypeVar("Answer")


class CountsUnseen(Generic[Answer]):
    """Gives the answers of another callable for blocks of rows, and counts rows with levels unseen in fit.

    Parameters
    ----------
    answer : callable
        Called with each block; it reads all of its rows.
    """

    def __init__(self, answer: Callable[[Block], Answer]) -> None:
        self._answer = answer
        self._counts: list[Counter[str]] = []  # one per block; any thread may append to a list

    def __call__(self, block: Block) -> Answer:
        """Return the answer for a block."""
        answer = self._answer(block)
        if isinstance(block.rows, PreparedRows) and block.rows.unseen:
            self._counts.append(block.rows.unseen)
        return answer

    def told(self, answers: Any) -> Any:
        """Return the answers for all rows, and warn of unseen levels; with an iterator, at its end."""
        if isinstance(answers, Iterator):
            return self._told_at_the_end(answers)
        self._tell()
        return answers

    def _told_at_the_end(self, answers: Iterator[Any]) -> Iterator[Any]:
        yield from answers
        self._tell()

    def _tell(self) -> None:
        counts = sum(self._counts, Counter())
        if not counts:
            return
        words = ", ".join(f"{count:,} in {name!r}" for name, count in sorted(counts.items()))
        warnings.warn(
            f"rows with levels unseen in fit count as 'other': {words}. If there are many, fit again.",
            PreparationNote,
            stacklevel=4,
        )
