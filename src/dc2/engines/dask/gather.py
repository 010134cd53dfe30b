"""Hand a pass to whichever scheduler is active and take results in order."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator, Sequence
from itertools import islice, takewhile
from typing import TYPE_CHECKING, Any

import dask
from dask.base import get_scheduler
from dask.system import CPU_COUNT

from dc2.engines.dask.faults import KINDS, explain, no_scheduler, no_workers, workers_died
from dc2.engines.dask.suspects import deadly_chunk, suspects

if TYPE_CHECKING:
    from dc2.engines.dask.passes import Pass

__all__ = ["active_client", "n_threads", "results_in_order"]

GATHERED_AT_ONCE = 16
"""Results that are ready travel together, since each trip takes some milliseconds."""
LOOK_SECONDS = 10.0
NO_WORKER_SECONDS = 600.0
"""How long a cluster may be without any worker, which gives new ones time to come."""


def active_client() -> Any | None:
    """Return the `distributed.Client` that Dask would use now; None where it would use threads or processes."""
    owner = getattr(get_scheduler(), "__self__", None)
    return owner if hasattr(owner, "scheduler_info") else None


def n_threads(stage: str) -> int:
    """Return how many tasks of the stage can run at a time."""
    client = active_client()
    try:
        threads: int = CPU_COUNT if client is None else sum(client.nthreads().values())
        return max(1, threads)
    except OSError as error:
        raise no_scheduler(stage) from error


def results_in_order(work: Pass) -> Iterator[Any]:
    """Yield the wanted results in order, as they become known; an error or an early close stops all work."""
    client = active_client()
    return _computed(work) if client is None else _gathered(client, work)


def _computed(work: Pass) -> Iterator[Any]:
    def fails(call: Any) -> bool:
        try:
            call.compute()
        except Exception:
            return True
        return False

    try:
        results = deque(dask.compute(*(call for call, _ in work.wanted)))
    except Exception as error:
        explain(error, work, lambda calls: next(filter(fails, calls), None))
        raise
    while results:
        yield results.popleft()


def _await(client: Any, future: Any, stage: str) -> None:
    """Wait until a result is there or has failed; raise where no worker is left that could make it."""
    from distributed import wait

    seen = time.monotonic()
    while True:
        try:
            wait(future, timeout=LOOK_SECONDS)
            return
        except TimeoutError:
            if client.nthreads():
                seen = time.monotonic()
            elif time.monotonic() - seen > NO_WORKER_SECONDS:
                raise no_workers(stage, NO_WORKER_SECONDS) from None


def _gathered(client: Any, work: Pass) -> Iterator[Any]:
    from distributed import KilledWorker, as_completed

    def first_failed(calls: Sequence[Any]) -> Any | None:
        # The scheduler remembers what failed as long as our futures live, so this answers at once.
        asked = dict(zip(client.compute(list(calls)), calls, strict=True))
        return next((asked[future] for future in as_completed(asked) if future.status == "error"), None)

    futures = deque(client.compute([call for call, _ in work.wanted]))
    try:
        while futures:
            _await(client, futures[0], work.stage)
            finished = takewhile(lambda future: future.status == "finished", islice(futures, GATHERED_AT_ONCE))
            ready = list(finished) or [futures[0]]
            try:
                results = client.gather(ready)
            except KilledWorker as error:
                tried = suspects(client, work)
                client.cancel(list(futures))
                raise workers_died(deadly_chunk(client, work, tried), work.stage) from error
            for _ in ready:
                futures.popleft()
            yield from results
    except KINDS as error:
        if isinstance(error, OSError) and client.status != "running":
            raise no_scheduler(work.stage) from error
        explain(error, work, first_failed)
        raise
    finally:
        if futures and client.status == "running":
            client.cancel(list(futures))
