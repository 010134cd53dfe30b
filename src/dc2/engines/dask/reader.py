"""From a computed piece to a block of rows, checking everything that Dask takes on trust."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from dc2.errors import InputError, SourceError
from dc2.sources.arrays import ArrayLayout
from dc2.sources.base import Block
from dc2.sources.checks import check_weights
from dc2.sources.frames import FrameLayout

__all__ = ["Reader"]


@dataclass(frozen=True, eq=False)
class Reader:
    """Turns pieces into blocks; small, so that it travels to the workers.

    Attributes
    ----------
    layout : ArrayLayout or FrameLayout
        The columns and their parts.
    weighed : bool
        Whether each piece comes as a pair with its weights.
    """

    layout: ArrayLayout | FrameLayout
    weighed: bool = False

    def block(self, piece: Any, number: int, start: int = 0, rows: int | None = None) -> Block:
        """Return the rows of chunk `number`, of which there should be so many, the first being row `start`."""
        where = f"chunk {number}"
        piece, weights = piece if self.weighed else (piece, None)
        layout: Any = self.layout
        block: Block = layout.block(layout.checked(piece, where, start), start)
        if rows is not None and block.n_rows != rows:
            raise SourceError(
                f"{where} has {block.n_rows} rows, but {rows} were expected from its declared size or from the pass "
                "before. Every pass must give the same rows; for arrays, compute_chunk_sizes() sets wrong sizes right."
            )
        if weights is None:
            return block
        try:
            return replace(block, weights=check_weights(weights, block.n_rows, start))
        except InputError as error:
            raise InputError(f"{where}: {error}") from error
