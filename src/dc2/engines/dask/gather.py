"""Hand work to whichever scheduler is active and take results in order."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, takewhile
from typing import Any

import dask.threaded
from dask.base import get_scheduler
from dask.highlevelgraph import HighLevelGraph, MaterializedLayer
from dask.system import CPU_COUNT

from dc2.engines.dask.faults import KINDS, explain
from dc2.engines.dask.work import Batch, Key

__all__ = ["Work", "active_client", "n_threads", "results_in_order"]

GATHERED_AT_ONCE = 16
"""Results that are ready travel together; each way takes some milliseconds."""


@dataclass(frozen=True, eq=False)
class Work:
    """One pass over the chunks.

    Attributes
    ----------
    made : dict
        The part of the graph that makes inputs.
    worked : dict
        A task per batch.
    merged : dict
        Tasks that join results.
    batches : sequence of Batch
        The batches, in the order of `worked`.
    """

    made: dict[Key, Any]
    worked: dict[Key, Any]
    merged: dict[Key, Any]
    batches: Sequence[Batch]

    @property
    def graph(self) -> dict[Key, Any]:
        """All tasks."""
        return {**self.made, **self.worked, **self.merged}

    def placed(self, client: Any) -> Any:
        """Return the graph, with tasks on data that workers hold tied to these workers as long as they live."""
        held = {key for batch in self.batches if batch.held for key in batch.inputs}
        if not held:
            return self.graph
        holders = {key: workers for key, workers in client.who_has().items() if key in held}
        layers: dict[tuple[str, ...], dict[Key, Any]] = defaultdict(dict)
        for (key, task), batch in zip(self.worked.items(), self.batches, strict=True):
            first, *others = [set(holders.get(name, ())) for name in batch.inputs] if batch.held else [set()]
            layers[tuple(sorted(first.intersection(*others)))][key] = task
        named = {
            f"worked-{number}": MaterializedLayer(tasks, annotations=_tied_to(workers))
            for number, (workers, tasks) in enumerate(layers.items())
        }
        return HighLevelGraph(
            {"made": MaterializedLayer(self.made), **named, "merged": MaterializedLayer(self.merged)},
            {"made": set(), **{name: {"made"} for name in named}, "merged": {"made", *named}},
        )


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
        explain(error, work, stage, lambda suspects: next(filter(fails, suspects), None))
        raise
    while results:
        yield results.popleft()


def _gathered(client: Any, work: Work, keys: Sequence[Key], stage: str) -> Iterator[Any]:
    from distributed import as_completed, wait

    graph = work.placed(client)

    def first_failed(suspects: Sequence[Key]) -> Key | None:
        # The scheduler remembers what failed as long as our futures live, so this answers at once.
        asked = client.get(graph, list(suspects), sync=False)
        return next((future.key for future in as_completed(asked) if future.status == "error"), None)

    futures = deque(client.get(graph, list(keys), sync=False))
    try:
        while futures:
            wait(futures[0])
            finished = takewhile(
                lambda future: future.status == "finished", islice(futures, GATHERED_AT_ONCE)
            )
            ready = list(finished) or [futures[0]]
            results = client.gather(ready)
            for _ in ready:
                futures.popleft()
            yield from results
    except KINDS as error:
        explain(error, work, stage, first_failed)
        raise
    finally:
        if futures and client.status == "running":
            client.cancel(list(futures))


def _tied_to(workers: Sequence[str]) -> dict[str, Any] | None:
    return {"workers": list(workers), "allow_other_workers": True} if workers else None
