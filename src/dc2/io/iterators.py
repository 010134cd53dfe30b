"""Rows that a callable makes: each call gives a fresh iterator of arrays or data frames."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from dc2.errors import InputError, InputTypeError
from dc2.io.arrays import ArrayLayout, check_numeric_array
from dc2.io.frames import FrameLayout, as_frame
from dc2.io.source import Source
from dc2.io.streams import StreamSource
from dc2.io.unchanged import Unchanged


def callable_source(
    make_blocks: Callable[[], Iterable[Any]],
    columns: Sequence[Any] | None = None,
    drop: Sequence[Any] | None = None,
    weight: str | None = None,
    extra: Sequence[str] = (),
) -> Source:
    """Return the source for a callable; it is called now, to see its first block, and once per pass.

    Examples
    --------
    >>> import numpy as np
    >>> source = callable_source(lambda: (np.full((2, 1), i, np.float32) for i in range(3)))
    >>> [block.X.ravel().tolist() for block in source.blocks(block_bytes=16)]
    [[0.0, 0.0, 1.0, 1.0], [2.0, 2.0]]
    """
    opened, unchanged = _Opened(make_blocks), Unchanged()
    first = next(opened(), None)
    if first is None:
        raise InputError("The callable gave no blocks: Found array with 0 sample(s) while a minimum of 1 is required.")
    frame = as_frame(first)
    layout: FrameLayout | ArrayLayout
    if frame is not None:
        layout = FrameLayout(frame.schema, columns, drop, weight, extra, "the first block", first_rows=frame.select)
    elif weight is not None or extra:
        raise InputTypeError("The blocks are arrays without column names: none can be taken for weights or ids.")
    else:
        layout = ArrayLayout(check_numeric_array(first), columns, drop)

    def pieces() -> Iterator[Any]:
        for number, block in enumerate(opened()):
            where = f"block {number}"
            if isinstance(layout, FrameLayout):
                yield layout.checked(block, where).select(layout.needed_columns)
            elif as_frame(block) is not None:
                raise InputTypeError(f"{where} is {type(block).__name__}, but the first is an array.")
            else:
                yield layout.checked(block, where)

    return StreamSource(layout, lambda rows: unchanged.watched(None, "X", pieces(), layout.values))


class _Opened:
    """Starts passes: calls the callable, skips empty blocks, and checks that each iterator is a fresh one."""

    def __init__(self, make_blocks: Callable[[], Iterable[Any]]) -> None:
        self._make_blocks = make_blocks
        self._first_iterator: Iterator[Any] | None = None

    def __call__(self) -> Iterator[Any]:
        made = self._make_blocks()
        if not isinstance(made, Iterable):
            raise InputTypeError(
                f"The callable returned {type(made).__name__}; it must return an iterator of blocks of rows."
            )
        iterator = iter(made)
        if iterator is self._first_iterator:
            raise InputError(
                "The callable returned the same iterator again, which is used up. It must make a fresh one at "
                "each call, since the rows are passed over more than once."
            )
        if self._first_iterator is None:
            self._first_iterator = iterator
        return (block for block in iterator if np.shape(block)[:1] != (0,))
