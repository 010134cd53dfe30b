"""Rows that come only once, or not twice in the same order, are kept: few in memory, many in a temporary file."""

from __future__ import annotations

import atexit
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from dc2.errors import InputError, InputTypeError, SourceError
from dc2.io.frame_columns import arrow_table, import_pyarrow
from dc2.io.source import Block, check_weights_sum, rows_per_block


class Piece(Protocol):
    """Consecutive rows: an array or a frame."""

    def __len__(self) -> int: ...

    def __getitem__(self, rows: slice, /) -> Any: ...


P = TypeVar("P", bound=Piece)


class BlockLayout(Protocol[P]):
    """How the pieces of a source turn into blocks."""

    @property
    def n_features(self) -> int:
        """Number of columns of a block."""

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        """Names of these columns."""

    @property
    def width(self) -> int:
        """Numbers in a row: more than columns if lists are kept as single columns."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """Dtype of a block."""

    def join(self, pieces: Sequence[P]) -> P:
        """Stack pieces."""

    def values(self, piece: P) -> list[NDArray[Any]]:
        """Return the numbers of a piece, which must be the same in every pass."""

    def block(self, piece: P, start: int) -> Block:
        """Turn a piece into the block whose first row has the global index `start`."""


class StreamSource(Generic[P]):
    """Rows that come in pieces of any length, given out in blocks that do not depend on the pieces.

    Parameters
    ----------
    layout : Layout
        Turns pieces into blocks.
    open_pieces : callable
        Starts a fresh pass over the pieces. It is called with the number of rows in a block, and need not read more
        at a time.
    n_rows : int, optional
        Number of rows if known; otherwise the first complete pass finds it.
    in_memory : bool, default=False
        Whether the rows are in memory.
    """

    def __init__(
        self,
        layout: BlockLayout[P],
        open_pieces: Callable[[int], Iterator[P]],
        n_rows: int | None = None,
        in_memory: bool = False,
    ) -> None:
        self.layout = layout
        self._open_pieces = open_pieces
        self.n_features: int = layout.n_features
        self.feature_names: tuple[str, ...] | None = layout.feature_names
        self.dtype: np.dtype[Any] = layout.dtype
        self.n_rows: int | None = n_rows
        self.in_memory: bool = in_memory
        if self.n_features == 0:
            raise InputError(
                f"Found array with 0 feature(s) (shape=({'n' if n_rows is None else n_rows}, 0)) "
                "while a minimum of 1 is required."
            )
        if n_rows == 0:
            self._raise_no_rows()

    def blocks(self, block_bytes: int) -> Iterator[Block]:
        """Start a fresh pass: blocks of at most `block_bytes` bytes (but at least one row), in row order."""
        rows = rows_per_block(block_bytes, self.layout.width, self.dtype)
        start, total_weight, weighted = 0, 0.0, False
        for piece in recut(self._open_pieces(rows), rows, self.layout.join):
            block = self.layout.block(piece, start)
            start = block.stop
            if block.weights is not None:
                weighted = True
                total_weight += float(block.weights.sum())
            del piece
            yield block
            del block
        if start == 0:
            self._raise_no_rows()
        if weighted:
            check_weights_sum(total_weight, start)
        if self.n_rows is None:
            self.n_rows = start
        elif start != self.n_rows:
            raise SourceError(
                f"This pass over the data gave {start} rows, but there were {self.n_rows} before. "
                "Every pass must give the same rows: the data must not change while it is read."
            )

    def _raise_no_rows(self) -> None:
        raise InputError(
            f"Found array with 0 sample(s) (shape=(0, {self.n_features})) while a minimum of 1 is required."
        )


def recut(pieces: Iterable[P], rows: int, join: Callable[[Sequence[P]], P]) -> Iterator[P]:
    """Yield the same rows in pieces of exactly `rows` rows; only the last may be shorter.

    Examples
    --------
    >>> pieces = [np.arange(2), np.arange(2, 3), np.arange(3, 8)]
    >>> [piece.tolist() for piece in recut(pieces, 3, np.concatenate)]
    [[0, 1, 2], [3, 4, 5], [6, 7]]
    """
    held: list[P] = []
    wanted = rows
    for piece in pieces:
        taken = 0
        while taken < len(piece):
            held.append(piece[taken : taken + wanted])
            taken += len(held[-1])
            wanted -= len(held[-1])
            if wanted == 0:
                full = held[0] if len(held) == 1 else join(held)
                held, wanted = [], rows
                yield full
                del full
    if held:
        yield held[0] if len(held) == 1 else join(held)


MOST_IN_MEMORY = 2**26
"""Bytes held in memory; larger data go to a file, whose pages the system loads and drops as needed."""


def spilled_table(data: Any) -> Any:
    """Return the rows of a stream or a query as an Arrow table."""
    arrow = import_pyarrow()
    try:
        if hasattr(data, "sink_ipc"):
            return arrow_table(_sunk(data))
        reader = arrow.RecordBatchReader.from_stream(data)
        table = arrow_table(_kept(reader.schema, reader))
    except (arrow.lib.ArrowException, OSError) as error:
        raise SourceError(f"The {_kind(data)} broke while it was read: {error}") from error
    if table.num_rows == 0:
        raise InputError(
            f"The {_kind(data)} gave no rows: Found array with 0 sample(s) while a minimum of 1 is required. If it can "
            "be read only once, it was used up before: read it into a table first, as read_all() of a reader does, and "
            "pass that."
        )
    return table


def _kind(data: Any) -> str:
    return f"{type(data).__module__.partition('.')[0]}.{type(data).__name__}"


def _kept(schema: Any, batches: Iterable[Any]) -> Any:
    arrow = import_pyarrow()
    held: list[Any] = []
    size = 0
    remaining = iter(batches)
    for batch in remaining:
        held.append(batch)
        size += batch.get_total_buffer_size()  # which an older pyarrow knows of views too
        if size > MOST_IN_MEMORY:
            break
    else:
        return arrow.Table.from_batches(held, schema)
    with _temporary_file() as path:
        with import_pyarrow("ipc").new_file(path, schema) as writer:
            while held:
                writer.write_batch(held.pop(0))
            for batch in remaining:
                writer.write_batch(batch)
        return _mapped(path)


def _sunk(query: Any) -> Any:
    with _temporary_file() as path:
        try:
            query.sink_ipc(path, compression="uncompressed")
        except Exception as error:
            raise InputTypeError(f"The {_kind(query)} could not be computed: {error}") from error
        return _mapped(path)


def _mapped(path: str) -> Any:
    return import_pyarrow("ipc").open_file(import_pyarrow().memory_map(path)).read_all()


@contextmanager
def _temporary_file() -> Iterator[str]:
    """Yield the path of a file that is removed at the end; memory maps of it stay valid."""
    handle, path = tempfile.mkstemp(prefix="dc2-", suffix=".arrow")
    os.close(handle)
    try:
        yield path
    finally:
        try:
            os.unlink(path)
        except PermissionError:  # on Windows a mapped file cannot be removed
            atexit.register(Path(path).unlink, missing_ok=True)
