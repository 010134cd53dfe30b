"""Which chunk kills the workers: those that dead workers had been given are tried once more, one at a time.

Dask blames every task that a dead worker had been given, also those that waited there or ran beside the deadly one.
A chunk that is alone on the cluster and kills again has no neighbour that could have done it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from dc2.engines.dask.work import Chunk, Key

if TYPE_CHECKING:
    from dc2.engines.dask.passes import Pass

__all__ = ["deadly_chunk", "suspects"]

SECONDS_FOR_A_WORKER = 60
"""How long a dead worker may take to come back before we give up."""
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
