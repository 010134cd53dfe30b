"""What went wrong on a cluster, in words, with the number of the chunk."""

from __future__ import annotations

import asyncio
import concurrent.futures
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from dc2.engines.dask.work import Batch, Key, chunk_failed
from dc2.errors import InputError, InputTypeError, ParameterError, SourceError
from dc2.sources.checks import listed

__all__ = ["KINDS", "explain"]

KINDS = (Exception, asyncio.CancelledError)
"""What may come out of a cluster; to be cancelled is not an Exception everywhere."""

CANCELLED = (asyncio.CancelledError, concurrent.futures.CancelledError)
IN_WORDS_ALREADY = (InputError, InputTypeError, ParameterError)


class Tasks(Protocol):
    """The tasks of a pass, and the batches they work on; see `dc2.engines.dask.gather.Work`."""

    @property
    def made(self) -> Mapping[Key, Any]: ...

    @property
    def worked(self) -> Mapping[Key, Any]: ...

    @property
    def batches(self) -> Sequence[Batch]: ...


def explain(
    error: BaseException, tasks: Tasks, stage: str, first_failed: Callable[[Sequence[Key]], Key | None]
) -> None:
    """Raise the error that says what happened to which chunk, unless `error` does so itself.

    Parameters
    ----------
    error : exception
        What a scheduler raised.
    tasks : Tasks
        What it worked on.
    stage : str
        Name of the stage.
    first_failed : callable
        Returns the first of some keys that cannot be computed, or None.
    """
    if isinstance(error, IN_WORDS_ALREADY):
        return
    if isinstance(error, CANCELLED):
        raise SourceError(
            f"the work on the chunks ({stage}) was cancelled, or the Dask client was closed before it was done. "
            "Connect a client and start again."
        ) from error
    if type(error).__name__ == "KilledWorker":
        raise _killed(error, tasks, stage) from error
    # Chunks that Dask computes fail outside our tasks, and the error does not say which it was.
    suspects = {key: batch.chunks[0] for key, batch in _pairs(tasks) if not batch.chunks[0].graph}
    failed = first_failed(list(suspects)) if suspects else None
    if failed is not None:
        raise chunk_failed(suspects[failed].number, error) from error


def _killed(error: BaseException, tasks: Tasks, stage: str) -> SourceError:
    task = getattr(error, "task", None)
    numbers = [
        chunk.number
        for key, batch in _pairs(tasks)
        if task == key or _needs(batch, task, tasks.made)
        for chunk in batch.chunks
    ]
    what = "chunk" if len(numbers) == 1 else "one of the chunks"
    return SourceError(
        f"every worker that took up {what} {listed(numbers)} ({stage}) died: {error} Most often a chunk is too large "
        "for the memory of a worker: use smaller chunks, fewer threads per worker, or more memory."
    )


def _needs(batch: Batch, task: Key, made: Mapping[Key, Any]) -> bool:
    """Return whether a task makes an input of a batch, or a part of one."""
    seen: set[Key] = set()
    stack = list(batch.inputs)
    while stack:
        key = stack.pop()
        if key == task:
            return True
        if key in made and key not in seen:
            seen.add(key)
            stack.extend(made[key].dependencies)
    return False


def _pairs(tasks: Tasks) -> list[tuple[Key, Batch]]:
    return list(zip(tasks.worked, tasks.batches, strict=True))
