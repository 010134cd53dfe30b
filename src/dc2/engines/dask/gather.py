"""Hand a graph to whichever scheduler is active and take results in order."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any

import dask.threaded
from dask.base import get_scheduler
from dask.system import CPU_COUNT

from dc2.engines.dask.faults import Fault
from dc2.engines.dask.work import Graph, Key

__all__ = ["active_client", "n_threads", "results_in_order"]


def active_client() -> Any | None:
    """Return the `distributed.Client` that Dask would use now; None where it would use threads or processes."""
    owner = getattr(get_scheduler(), "__self__", None)
    return owner if hasattr(owner, "scheduler_info") else None


def n_threads() -> int:
    """Return how many tasks run at a time."""
    client = active_client()
    threads: int = CPU_COUNT if client is None else sum(client.nthreads().values())
    return max(1, threads)


def results_in_order(graph: Graph, keys: Sequence[Key], fault: Fault) -> Iterator[Any]:
    """Yield the values of `keys` in order, as they become known; stop all work on an error or an early close.

    Parameters
    ----------
    graph : mapping
        A Dask graph.
    keys : sequence
        What is asked of it.
    fault : Fault
        Puts errors into words.
    """
    client = active_client()
    if client is None:
        yield from _computed(graph, keys, fault)
    else:
        yield from _gathered(client, graph, keys, fault)


def _computed(graph: Graph, keys: Sequence[Key], fault: Fault) -> Iterator[Any]:
    get = get_scheduler() or dask.threaded.get

    def fails(key: Key) -> bool:
        try:
            get(graph, [key])
        except Exception:
            return True
        return False

    try:
        results = deque(get(graph, list(keys)))
    except Exception as error:
        fault.explain(error, lambda candidates: next(filter(fails, candidates), None))
        raise
    while results:
        yield results.popleft()


def _gathered(client: Any, graph: Graph, keys: Sequence[Key], fault: Fault) -> Iterator[Any]:
    from distributed import as_completed

    def first_failed(candidates: Sequence[Key]) -> Key | None:
        # The scheduler remembers what failed as long as our futures live, so this answers at once.
        asked = client.get(graph, list(candidates), sync=False)
        failed = (future.key for future in as_completed(asked) if future.status == "error")
        return next(failed, None)

    futures = deque(client.get(graph, list(keys), sync=False))
    try:
        while futures:
            result = futures[0].result()
            futures.popleft()
            yield result
    except fault.kinds as error:
        fault.explain(error, first_failed)
        raise
    finally:
        if futures and client.status == "running":
            client.cancel(list(futures))
