"""What runs on the workers: compute a chunk, turn it into a block, call the function; and join results."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import dask

from dc2 import versions
from dc2.errors import InputError, SourceError
from dc2.io.arrays import ArrayLayout
from dc2.io.frames import FrameLayout
from dc2.io.source import Block, check_weights


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


Key = Hashable


@dataclass(frozen=True, eq=False)
class Chunk:
    """One chunk, and how to compute it.

    Attributes
    ----------
    number : int
        Its place among the chunks.
    key : hashable
        Its name in Dask's graph.
    start : int
        Global index of its first row.
    rows : int or None
        Number of its rows, where that is known.
    graph : mapping or None
        What is computed for this chunk alone; None where Dask itself computes the chunk and hands it over.
    """

    number: int
    key: Key
    start: int
    rows: int | None
    graph: Mapping[Key, Any] | None


class Batch:
    """Consecutive chunks that one task works on, one after the other; or one chunk that Dask computes.

    Not a dataclass: Dask would search it for things to compute, and its graphs are for the task itself.
    """

    def __init__(self, chunks: Sequence[Chunk]) -> None:
        self.chunks = tuple(chunks)

    @property
    def left_to_dask(self) -> bool:
        """Whether Dask computes the chunk."""
        return self.chunks[0].graph is None

    @property
    def rows(self) -> int:
        """Number of rows, where all are known."""
        return sum(chunk.rows or 0 for chunk in self.chunks)


@dataclass(frozen=True, eq=False)
class Job:
    """What is done with every chunk; travels to each worker once per pass.

    Attributes
    ----------
    function : callable
        Takes a block.
    merge : callable or None
        Makes one result of a list of results.
    reader : Reader or None
        Makes a block of a computed chunk; without it, the function takes the chunk as it is.
    version : str
        The version of dc2 where it was made. Others may compute other bits.
    """

    function: Callable[[Any], Any]
    merge: Callable[[Sequence[Any]], Any] | None
    reader: Reader | None
    version: str = field(default_factory=lambda: versions.__version__)

    def check_version(self) -> None:
        """Raise if this process has another version of dc2."""
        if self.version != versions.__version__:
            raise SourceError(
                f"the worker {platform.node()} (process {os.getpid()}) has dc2 {versions.__version__}, but the work "
                f"comes from dc2 {self.version}. Install the same version everywhere and restart the workers."
            )

    def joined(self, results: list[Any]) -> list[Any]:
        """Return the results, as one where they can be merged."""
        return results if self.merge is None or len(results) < 2 else [self.merge(results)]


def run_batch(job: Job, batch: Batch, piece: Any = None) -> list[Any]:
    """Work on the chunks of a batch, holding one at a time; empty ones are passed over."""
    job.check_version()
    results: list[Any] = []
    for chunk in batch.chunks:
        if chunk.graph is not None:
            try:
                piece = dask.get(chunk.graph, chunk.key)
            except Exception as error:
                raise chunk_failed(chunk.number, error) from error
        if job.reader is None:
            results.append(job.function(piece))
            continue
        block = job.reader.block(piece, chunk.number, chunk.start, chunk.rows)
        piece = None
        if block.n_rows:
            results = job.joined([*results, job.function(block)])
        del block
    return results


def join_results(job: Job, parts: Sequence[list[Any]]) -> list[Any]:
    """Join the results of consecutive batches."""
    return job.joined([result for part in parts for result in part])


def chunk_failed(number: int, error: BaseException) -> SourceError:
    """Return the error that names a chunk which could not be computed."""
    return SourceError(f"chunk {number} could not be computed: {type(error).__name__}: {error}")


def count_rows(piece: Any) -> int:
    """Return the number of rows of a piece, which may come with weights."""
    return len(piece[0]) if isinstance(piece, tuple) else len(piece)
