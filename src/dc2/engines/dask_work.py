"""What runs on the workers: compute a chunk, turn it into a block, call the function; and join results."""

from __future__ import annotations

import asyncio
import concurrent.futures
import os
import platform
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import dask

from dc2 import versions
from dc2.errors import InputError, InputTypeError, ParameterError, SourceError
from dc2.io.arrays import ArrayLayout
from dc2.io.frames import FrameLayout
from dc2.io.source import Block, check_weights

if TYPE_CHECKING:
    from dc2.engines.dask_engine import Pass


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


KINDS = (Exception, asyncio.CancelledError)
"""What may come out of a cluster; to be cancelled is not an Exception everywhere."""

CANCELLED = (asyncio.CancelledError, concurrent.futures.CancelledError)
IN_WORDS_ALREADY = (InputError, InputTypeError, ParameterError)


def explain(error: BaseException, work: Pass, first_failed: Callable[[Sequence[Any]], Any | None]) -> None:
    """Raise the error that says what happened to which chunk, unless what the scheduler raised does so itself.

    `first_failed` returns the first of some delayed calls that cannot be computed, or None.
    """
    if isinstance(error, IN_WORDS_ALREADY):
        return
    if isinstance(error, CANCELLED):
        raise SourceError(
            f"the work on the chunks ({work.stage}) was cancelled, or the Dask client was closed before it was done. "
            "Connect a client and start again."
        ) from error
    # Chunks that Dask computes fail outside our tasks, and the error does not say which it was.
    suspects = {call.key: batch.chunks[0] for call, batch in work.pairs if batch.left_to_dask}
    failed = first_failed([call for call, _ in work.pairs if call.key in suspects]) if suspects else None
    if failed is not None:
        raise chunk_failed(suspects[failed.key].number, error) from error


def no_workers(stage: str, seconds: float) -> SourceError:
    """Return the error that says that no worker is left."""
    return SourceError(
        f"the cluster has had no worker for {seconds:g} seconds, and the chunks ({stage}) are not done. "
        "Start workers and fit again."
    )


def no_scheduler(stage: str) -> SourceError:
    """Return the error that says that the cluster cannot be reached any more."""
    return SourceError(
        f"the scheduler of the Dask cluster cannot be reached any more, and the chunks ({stage}) are not done. "
        "Connect a client to a cluster and fit again."
    )


def workers_died(deadly: int | None, stage: str) -> SourceError:
    """Return the error that says why workers died again and again; `deadly` is the chunk that kills even alone."""
    if deadly is None:
        return SourceError(
            f"workers died again and again ({stage}), and no chunk was found to kill a worker that works on it alone. "
            "So they may be too large to be worked on side by side: use smaller chunks, fewer threads per worker, or "
            "more memory."
        )
    return SourceError(
        f"every worker that took up chunk {deadly} ({stage}) died, also when nothing ran beside it. Most often a chunk "
        "is too large for the memory of a worker: use smaller chunks, fewer threads per worker, or more memory."
    )


SECONDS_FOR_A_WORKER = 60
"""How long a dead worker may take to restart before we give up."""
SECONDS_BETWEEN_LOOKS = 5
MOST_SUSPECTS = 32
"""Batches that are tried. The deadly one was there at every death, so it is among the first; this bounds the time."""


def suspects(client: Any, work: Pass) -> list[Chunk]:
    """Return the chunks that workers which died had been given, those with most deaths first.

    The scheduler counts the deaths as long as it knows the tasks: they must not be cancelled yet.
    """
    deaths = _deaths_by_task(client)
    involved = []
    for call, batch in work.pairs:
        tasks = {call.key} | (work.chunks.needed(batch.chunks[0].key) if batch.left_to_dask else set())
        involved.append((max(deaths.get(task, 0) for task in tasks), batch))
    involved.sort(key=lambda pair: -pair[0])
    return [chunk for count, batch in involved[:MOST_SUSPECTS] if count for chunk in batch.chunks]


def deadly_chunk(client: Any, work: Pass, tried: Sequence[Chunk]) -> int | None:
    """Return the number of the first suspect that kills the workers though nothing of ours runs beside it, or None.

    The futures of the pass must be cancelled before. An innocent chunk takes as long as in the pass; the deadly one as
    many deaths as the cluster allows.
    """
    try:
        client.wait_for_workers(1, timeout=SECONDS_FOR_A_WORKER)
    except TimeoutError:
        return None
    return next((chunk.number for chunk in tried if _kills(client, work, chunk)), None)


def _deaths_by_task(client: Any) -> dict[Key, int]:
    def counted(dask_scheduler: Any) -> dict[Key, int]:
        return {key: task.suspicious for key, task in dask_scheduler.tasks.items() if task.suspicious}

    deaths: dict[Key, int] = client.run_on_scheduler(counted)
    return deaths


def _kills(client: Any, work: Pass, chunk: Chunk) -> bool:
    from distributed import KilledWorker, wait

    future = client.compute(work.alone(chunk))
    while True:
        try:
            wait(future, timeout=SECONDS_BETWEEN_LOOKS)
        except TimeoutError:
            if not client.nthreads():  # nothing else ran that could have killed the last one
                return True
        else:
            return future.status == "error" and isinstance(future.exception(), KilledWorker)
