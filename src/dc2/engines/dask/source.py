"""Rows of Dask collections: described here, computed where they live."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any

import cloudpickle
import dask
import dask.array as da
import numpy as np
from dask.utils import is_dataframe_like
from numpy.typing import NDArray

from dc2.engines.base import Progress
from dc2.engines.dask.chunks import Chunks
from dc2.engines.dask.engine import DaskEngine, run_job
from dc2.engines.dask.pieces import pieces_of_array, pieces_of_frame, rows_of_chunks, weighed_pieces
from dc2.engines.dask.reader import Reader
from dc2.engines.dask.work import Job, count_rows
from dc2.errors import InputError, InputTypeError
from dc2.sources.arrays import ArrayLayout, check_numeric_array
from dc2.sources.base import Block, rows_per_block
from dc2.sources.checks import check_weights
from dc2.sources.frames import FrameLayout, as_frame, has_text_names

__all__ = ["DaskSource", "dask_source"]


class DaskSource:
    """Chunks of a Dask collection.

    Parameters
    ----------
    pieces : dask.array.Array of one dimension
        The chunks, as made by `dc2.engines.dask.pieces`.
    reader : Reader
        Turns a chunk into a block.
    named : bool, default=True
        Whether columns have names; False where they were only numbered.

    Notes
    -----
    Where chunk sizes are unknown, `row_counts` and `n_rows` take a pass over the data when first asked.
    """

    in_memory = False

    def __init__(self, pieces: da.Array, reader: Reader, named: bool = True) -> None:
        self._pieces = pieces
        self.reader = reader
        self.n_features: int = reader.layout.n_features
        self.feature_names: tuple[str, ...] | None = reader.layout.feature_names if named else None
        self.dtype: np.dtype[Any] = reader.layout.dtype
        if self.n_features == 0:
            raise InputError("Found array with 0 feature(s) (shape=(n, 0)) while a minimum of 1 is required.")

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return sum(self.row_counts)

    @cached_property
    def row_counts(self) -> tuple[int, ...]:
        """Number of rows of each chunk."""
        counts = rows_of_chunks(self._pieces)
        if counts is None:
            counted = run_job(Job(count_rows, None, None), self.chunks, None, "count")
            counts = tuple(count for _, results in counted for count in results)
        if sum(counts) == 0:
            raise InputError(
                f"Found array with 0 sample(s) (shape=(0, {self.n_features})) while a minimum of 1 is required."
            )
        return counts

    @cached_property
    def chunks(self) -> Chunks:
        """How chunks are computed; made once for all passes."""
        return Chunks(self._pieces)

    def blocks(self, block_bytes: int) -> Iterator[Block]:
        """Bring the rows here, chunk by chunk, and cut them into blocks."""
        rows = rows_per_block(block_bytes, self.n_features, self.dtype)
        start = 0
        for number, chunk in enumerate(self._pieces.to_delayed()):
            block = self.reader.block(chunk.compute(), number, start)
            for first in range(0, block.n_rows, rows):
                part = slice(first, first + rows)
                yield Block(
                    start + first,
                    block.X[part],
                    None if block.weights is None else block.weights[part],
                    None if block.extra is None else block.extra.slice(first, rows),
                )
            start = block.stop

    def lazy(self, function: Callable[[Block], NDArray[Any]], like: NDArray[Any]) -> da.Array:
        """Return what the function makes of every row, as a Dask array in the chunks of the data.

        Parameters
        ----------
        function : callable
            Takes a block and returns a row of answers for each of its rows.
        like : ndarray
            An array of such answers; only its dtype and width are looked at.
        """
        answerer = dask.delayed(cloudpickle.loads)(cloudpickle.dumps(_Answerer(function, self.reader, like[:0])))
        answers: da.Array = self._pieces.map_blocks(
            _answer,
            answerer=answerer,
            meta=like[:0],
            dtype=like.dtype,
            chunks=(self._pieces.chunks[0], *((width,) for width in like.shape[1:])),
            new_axis=list(range(1, like.ndim)) or None,
        )
        return answers

    def own_engine(self, progress: Progress | None) -> DaskEngine:
        """Return the engine that works where the rows are."""
        return DaskEngine(progress)

    def __getstate__(self) -> dict[str, Any]:
        # Functions refer to their source for column names; the rows must not travel with them.
        return {name: getattr(self, name) for name in ("reader", "n_features", "feature_names", "dtype")}


class _Answerer:
    def __init__(self, function: Callable[[Block], Any], reader: Reader, none: NDArray[Any]) -> None:
        self.function, self.reader, self.none = function, reader, none

    def __call__(self, piece: Any, number: int) -> Any:
        block = self.reader.block(piece, number)
        return self.function(block) if block.n_rows else self.none


def _answer(piece: Any, answerer: _Answerer, block_id: tuple[int, ...] = (0,)) -> Any:
    return answerer(piece, block_id[0])


def dask_source(
    data: Any,
    *,
    columns: Sequence[Any] | None = None,
    drop: Sequence[Any] | None = None,
    sample_weight: Any = None,
    extra: Sequence[str] = (),
) -> DaskSource:
    """Return the source for a Dask array or data frame.

    Parameters
    ----------
    data : dask.array.Array or dask.dataframe.DataFrame
        The rows.
    columns, drop, extra
        As for `dc2.sources.as_source`.
    sample_weight : str, dask array, dask series or array-like, optional
        Weights of the rows, or the name of the column that holds them.

    Examples
    --------
    >>> import dask.array as da
    >>> source = dask_source(da.ones((1_000, 3), chunks=(400, 3), dtype="float32"))
    >>> source.row_counts, source.dtype
    ((400, 400, 200), dtype('float32'))
    """
    name = sample_weight if isinstance(sample_weight, str) else None
    if isinstance(data, da.Array):
        if name is not None or extra:
            raise InputTypeError(
                f"X is a dask array without column names, so {name or extra!r} cannot be taken from it. Give "
                "sample_weight as an array, or X as a dask data frame."
            )
        pieces, named = pieces_of_array(data), True
        layout: Any = ArrayLayout(check_numeric_array(np.empty((0, data.shape[1]), data.dtype), 0), columns, drop)
    elif is_dataframe_like(data):
        from dask.dataframe.dispatch import make_meta  # which loads pandas

        empty = make_meta(data)
        named = has_text_names(empty)
        frame = as_frame(empty)
        assert frame is not None
        layout = FrameLayout(
            frame.schema,
            columns,
            drop,
            name,
            extra,
            first_rows=lambda names: as_frame(data[list(names)].head(1)),  # which costs a chunk
        )
        needed = [column for column in data.columns if str(column) in layout.needed_columns]
        pieces = pieces_of_frame(data[needed])
    else:
        raise InputTypeError(
            f"X is a {type(data).__module__}.{type(data).__name__}; of Dask's collections only arrays and data frames "
            "have rows and columns. A bag or delayed values become one with to_dataframe or dask.array.from_delayed."
        )
    source = DaskSource(pieces, Reader(layout), named)
    if sample_weight is None or name is not None:
        return source
    if not dask.is_dask_collection(sample_weight):
        weights = check_weights(sample_weight, source.n_rows)
        sample_weight = da.from_array(weights, chunks=(source.row_counts,))
    return DaskSource(weighed_pieces(pieces, sample_weight), Reader(layout, weighed=True), named)
