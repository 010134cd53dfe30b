"""From a computed piece to a block of rows, with everything checked that Dask takes on trust."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from dc2.errors import InputError, InputTypeError, SourceError
from dc2.sources.arrays import ArrayLayout, check_numeric_array
from dc2.sources.base import Block
from dc2.sources.checks import check_weights
from dc2.sources.frames import FrameLayout, as_frame, check_no_nulls

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
        weights = None
        if self.weighed:
            piece, weights = piece
        block = self._array(piece, where, start) if isinstance(self.layout, ArrayLayout) else self._frame(
            self.layout, piece, where, start
        )  # fmt: skip
        if rows is not None and len(block.X) != rows:
            raise SourceError(
                f"{where} has {len(block.X)} rows, but {rows} were expected from its declared size or from the pass "
                "before. Every pass must give the same rows; for arrays, compute_chunk_sizes() sets wrong sizes right."
            )
        if weights is None:
            return block
        try:
            return replace(block, weights=check_weights(weights, len(block.X), start))
        except InputError as error:
            raise InputError(f"{where}: {error}") from error

    def _array(self, piece: Any, where: str, start: int) -> Block:
        assert isinstance(self.layout, ArrayLayout)
        try:
            array = check_numeric_array(piece, min_rows=0)
        except (InputError, InputTypeError) as error:
            raise type(error)(f"{where}: {error}") from error
        self.layout.check(array, where)
        return self.layout.block(array, start)

    def _frame(self, layout: FrameLayout, piece: Any, where: str, start: int) -> Block:
        frame = as_frame(piece)
        if frame is None:
            raise InputTypeError(f"{where} is {type(piece).__name__}, but a data frame was expected.")
        layout.check_columns(frame.schema, where)
        layout.check_dtype(frame.schema, where)
        check_no_nulls(frame, layout.number_columns, where, start)
        return layout.block(frame, start)
