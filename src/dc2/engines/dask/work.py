"""What runs on the workers: compute a chunk, turn it into a block, call the function; and join results."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import dask

from dc2 import versions
from dc2.engines.dask.reader import Reader
from dc2.errors import SourceError

__all__ = ["Batch", "Chunk", "Job", "Key", "chunk_failed", "count_rows", "join_results", "run_batch"]

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

    Dask looks into dataclasses for things to compute, so this is none: its graphs are for the task itself.
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
                f"comes from dc2 {self.version}. Install the same version everywhere and start the workers anew."
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
