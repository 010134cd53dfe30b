"""Files as chunks for a cluster: every worker reads its own parts, with the readers that one machine uses."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import cloudpickle
import dask
import dask.array as da
import numpy as np
from dask.array.utils import meta_from_array
from dask.utils import is_dataframe_like
from numpy.typing import NDArray

from dc2.engines.dask_engine import Chunks, DaskEngine, Job, run_job
from dc2.engines.engine import Progress
from dc2.errors import InputError, InputTypeError, SourceError
from dc2.io.arrays import ArrayLayout, check_numeric_array
from dc2.io.csv_files import CsvOptions
from dc2.io.files import file_source
from dc2.io.frames import FrameLayout, as_frame, has_text_names
from dc2.io.source import Block, check_weights, rows_per_block

OBJECTS = np.empty(0, object)
"""What Dask believes the pieces to be; it never looks inside."""


def pieces_of_array(array: da.Array) -> da.Array:
    """Return the row blocks of an array; columns that are cut up are joined."""
    if array.ndim != 2:
        raise InputError(
            f"Expected 2D array, got {array.ndim}D array instead (shape {array.shape}). Reshape your data: rows and "
            "columns are needed."
        )
    kind = type(meta_from_array(array))
    if not issubclass(kind, np.ndarray):
        raise InputTypeError(
            f"X is a dask array of {kind.__module__}.{kind.__name__} chunks, but NumPy "
            "chunks are needed. Convert them, for instance with X.map_blocks(numpy.asarray)."
        )
    if array.numblocks[1] != 1:
        array = array.rechunk({1: -1})
    return da.blockwise(_only, "i", array, "ij", concatenate=False, meta=OBJECTS)


def pieces_of_frame(frame: Any) -> da.Array:
    """Return the partitions of a data frame."""
    return frame.map_partitions(_itself, meta=OBJECTS, enforce_metadata=False)


def weighed_pieces(pieces: da.Array, weights: Any) -> da.Array:
    """Put the weights of its rows (an array or a series) beside every piece, as a pair.

    Chunk sizes of the pieces may be unknown if the weights come in as many chunks.
    """
    if not isinstance(weights, da.Array):
        weights = weights.to_dask_array()
    if weights.ndim != 1:
        raise InputError(f"sample_weight must be 1-dimensional, one number per row; got shape {weights.shape}.")
    rows, given = rows_of_chunks(pieces), rows_of_chunks(weights)
    if rows is not None and given is not None and rows != given:
        if sum(rows) != sum(given):
            raise InputError(f"sample_weight has {sum(given)} values but X has {sum(rows)} rows: give one each.")
        weights = weights.rechunk((rows,))
    if weights.numblocks != pieces.numblocks:
        raise InputError(
            f"sample_weight has {weights.numblocks[0]} chunks but X has {pieces.numblocks[0]}, and rows cannot be "
            "matched to weights while their chunk sizes are unknown. Call compute_chunk_sizes() on both first."
        )
    sizes = weights.chunks[0] if rows is None else rows
    return da.blockwise(
        _pair, "i", pieces, "i", weights, "i", align_arrays=False, adjust_chunks={"i": sizes}, meta=OBJECTS
    )


def rows_of_chunks(array: da.Array) -> tuple[int, ...] | None:
    """Return the number of rows of each chunk, or None where one is unknown."""
    sizes = array.chunks[0]
    return None if any(np.isnan(size) for size in sizes) else tuple(int(size) for size in sizes)


def _only(blocks: list[Any]) -> Any:
    (block,) = blocks
    return block


def _itself(piece: Any) -> Any:
    return piece


def _pair(piece: Any, weights: Any) -> tuple[Any, Any]:
    return piece, weights


@dataclass(frozen=True, eq=False)
class Reader:
    """Turns pieces into blocks; small, so that it travels to the workers. Weighed pieces are pairs with weights."""

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


def _count_rows(piece: Any) -> int:
    return len(piece[0]) if isinstance(piece, tuple) else len(piece)


class DaskSource:
    """Chunks of a Dask collection."""

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
            counted = run_job(Job(_count_rows, None, None), self.chunks, None, "count")
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
        """Return what the function makes of every row, as a Dask array in the chunks of the data."""
        worker = dask.delayed(cloudpickle.loads)(cloudpickle.dumps(_LazyFunction(function, self.reader, like[:0])))
        results: da.Array = self._pieces.map_blocks(
            _result,
            worker=worker,
            meta=like[:0],
            dtype=like.dtype,
            chunks=(self._pieces.chunks[0], *((width,) for width in like.shape[1:])),
            new_axis=list(range(1, like.ndim)) or None,
        )
        return results

    def own_engine(self, progress: Progress | None) -> DaskEngine:
        """Return the engine that works where the rows are."""
        return DaskEngine(progress)

    def __getstate__(self) -> dict[str, Any]:
        # Functions refer to their source for column names; the rows must not travel with them.
        return {name: getattr(self, name) for name in ("reader", "n_features", "feature_names", "dtype")}


class _LazyFunction:
    def __init__(self, function: Callable[[Block], Any], reader: Reader, none: NDArray[Any]) -> None:
        self.function, self.reader, self.none = function, reader, none

    def __call__(self, piece: Any, number: int) -> Any:
        block = self.reader.block(piece, number)
        return self.function(block) if block.n_rows else self.none


def _result(piece: Any, worker: _LazyFunction, block_id: tuple[int, ...] = (0,)) -> Any:
    return worker(piece, block_id[0])


def dask_source(
    data: Any,
    *,
    columns: Sequence[Any] | None = None,
    drop: Sequence[Any] | None = None,
    sample_weight: Any = None,
    extra: Sequence[str] = (),
) -> DaskSource:
    """Return the source for a Dask array or data frame.

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


CHUNK_BYTES = 64 * 2**20


def dask_files(
    paths: Any,
    *,
    columns: Sequence[Any] | None = None,
    drop: Sequence[Any] | None = None,
    sample_weight: str | None = None,
    extra: Sequence[str] = (),
    csv: CsvOptions | None = None,
) -> DaskSource:
    """Return files as a source whose chunks the workers read; they must see the files under the same names."""
    source = file_source(paths, columns, drop, sample_weight, extra, csv)
    layout: Any = source.layout
    parts = list(source.parts(CHUNK_BYTES))
    sizes = tuple(np.nan if part.rows is None else part.rows for part in parts)
    to_read = np.empty(len(parts), object)
    to_read[:] = parts
    pieces = da.from_array(to_read, chunks=1, name=f"dc2-parts-{uuid.uuid4().hex}").map_blocks(
        _read, dtype=object, chunks=(sizes,), meta=OBJECTS
    )
    return DaskSource(pieces, Reader(layout))


def _read(parts: Any) -> Any:
    (part,) = parts
    return part.read()
