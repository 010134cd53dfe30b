"""Hand work to whichever scheduler is active and take results in order."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from itertools import islice, takewhile
from typing import Any

import dask.threaded
from dask.base import get_scheduler
from dask.system import CPU_COUNT

from dc2.engines.dask.faults import KINDS, explain, workers_died
from dc2.engines.dask.suspects import deadly_chunk, suspects
from dc2.engines.dask.tasks import Work
from dc2.engines.dask.work import Key

__all__ = ["active_client", "n_threads", "results_in_order"]

GATHERED_AT_ONCE = 16
"""Results that are ready travel together; each way takes some milliseconds."""


def active_client() -> Any | None:
    """Return the `distributed.Client` that Dask would use now; None where it would use threads or processes."""
    owner = getattr(get_scheduler(), "__self__", None)
    return owner if hasattr(owner, "scheduler_info") else None


def n_threads() -> int:
    """Return how many tasks run at a time."""
    client = active_client()
    threads: int = CPU_COUNT if client is None else sum(client.nthreads().values())
    return max(1, threads)


def results_in_order(work: Work, keys: Sequence[Key], stage: str) -> Iterator[Any]:
    """Yield the values of `keys` in order, as they become known; an error or an early close stops all work.

    Parameters
    ----------
    work : Work
        The tasks.
    keys : sequence
        What is asked of them.
    stage : str
        For errors.
    """
    client = active_client()
    return _computed(work, keys, stage) if client is None else _gathered(client, work, keys, stage)


def _computed(work: Work, keys: Sequence[Key], stage: str) -> Iterator[Any]:
    get = get_scheduler() or dask.threaded.get
    graph = work.graph

    def fails(key: Key) -> bool:
        try:
            get(graph, [key])
        except Exception:
            return True
        return False

    try:
        results = deque(get(graph, list(keys)))
    except Exception as error:
        explain(error, work, stage, lambda some: next(filter(fails, some), None))
        raise
    while results:
        yield results.popleft()


def _gathered(client: Any, work: Work, keys: Sequence[Key], stage: str) -> Iterator[Any]:
    from distributed import KilledWorker, as_completed, wait

    graph = work.placed(client)

    def first_failed(some: Sequence[Key]) -> Key | None:
        # The scheduler remembers what failed as long as our futures live, so this answers at once.
        asked = client.get(graph, list(some), sync=False)
        return next((future.key for future in as_completed(asked) if future.status == "error"), None)

    futures = deque(client.get(graph, list(keys), sync=False))
    try:
        while futures:
            wait(futures[0])
            finished = takewhile(
                lambda future: future.status == "finished", islice(futures, GATHERED_AT_ONCE)
            )
            ready = list(finished) or [futures[0]]
            try:
                results = client.gather(ready)
            except KilledWorker as error:
                tried = suspects(client, work)
                client.cancel(list(futures))
                raise workers_died(deadly_chunk(client, work, tried), stage) from error
            for _ in ready:
                futures.popleft()
            yield from results
    except KINDS as error:
        explain(error, work, stage, first_failed)
        raise
    finally:
        if futures and client.status == "running":
            client.cancel(list(futures))
