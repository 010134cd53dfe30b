"""Which chunk kills the workers: those that dead workers had been given are tried again, one at a time.

Dask blames every task that a dead worker had been given, also those that waited there or ran beside the deadly one.
A chunk that is alone on the cluster and kills again has no neighbour that could have done it.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from dc2.engines.dask_work import Chunk, Key, chunk_failed
from dc2.errors import InputError, InputTypeError, ParameterError, SourceError

if TYPE_CHECKING:
    from dc2.engines.dask_engine import Pass


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
