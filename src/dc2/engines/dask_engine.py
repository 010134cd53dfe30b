"""The engine for Dask: the function goes to the chunks, small results return."""

from __future__ import annotations

import logging
import time
import uuid
from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import accumulate, islice, takewhile
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import cloudpickle
import dask
import dask.array as da
from dask.base import get_scheduler
from dask.core import flatten, istask
from dask.optimization import cull
from dask.sizeof import sizeof
from dask.system import CPU_COUNT

from dc2.engines.dask_work import (
    KINDS,
    Batch,
    Chunk,
    Job,
    Key,
    deadly_chunk,
    explain,
    join_results,
    no_scheduler,
    no_workers,
    run_batch,
    suspects,
    workers_died,
)
from dc2.engines.engine import Progress, reported
from dc2.io.source import Block

if TYPE_CHECKING:
    from dc2.engines.dask_source import DaskSource


GATHERED_AT_ONCE = 16
"""Results that are ready travel together, since each trip takes some milliseconds."""
LOOK_SECONDS = 10.0
NO_WORKER_SECONDS = 600.0
"""How long a cluster may be without any worker, which gives new ones time to come."""


def active_client() -> Any | None:
    """Return the `distributed.Client` that Dask would use now; None where it would use threads or processes."""
    owner = getattr(get_scheduler(), "__self__", None)
    return owner if hasattr(owner, "scheduler_info") else None


def local_cluster(n_workers: int | None) -> Any:
    """Start a Dask cluster on this machine; the scheduler, the workers and the dashboard listen on loopback only."""
    import distributed

    return distributed.LocalCluster(
        n_workers,
        threads_per_worker=1 if n_workers else None,
        host="127.0.0.1",
        dashboard_address="127.0.0.1:0",
        worker_dashboard_address="127.0.0.1:0",
        silence_logs=logging.ERROR,
    )


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
            finished = takewhile(lambda future: future.status == "finished", islice(futures, work.gathered_at_once))
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


SMALL_BYTES = 2**16
"""Values up to this size that several chunks need, such as an open file's name, are copied into their batches."""


class Chunks:
    """The chunks of a row of pieces.

    Parameters
    ----------
    pieces : dask.array.Array of one dimension
        One piece per chunk.

    Attributes
    ----------
    delayed : list of dask.delayed.Delayed
        The chunks, for Dask to compute.
    """

    def __init__(self, pieces: da.Array) -> None:
        (optimized,) = dask.optimize(pieces)
        self.delayed: list[Any] = optimized.to_delayed(optimize_graph=False).tolist()
        self._held = _held_keys(pieces)
        # What Dask makes of data that the cluster holds does not name it any more; the graph before does.
        graph = (pieces if self._held else optimized).__dask_graph__()
        self._keys: list[Key] = list(flatten((pieces if self._held else optimized).__dask_keys__()))
        self._graph, self._needs = cull(dict(graph), self._keys)
        shared = self._shared()
        self._own = [None if self._held else self._needed_alone(key, shared) for key in self._keys]

    def batches(self, row_counts: Sequence[int] | None, n_tasks: int) -> list[Batch]:
        """Return the chunks in order, in about `n_tasks` batches, or one by one where Dask computes them."""
        starts = [0] * len(self._keys) if row_counts is None else [0, *accumulate(row_counts)]
        most = -(-len(self._keys) // n_tasks)
        batches: list[Batch] = []
        waiting: list[Chunk] = []
        for number, (key, own) in enumerate(zip(self._keys, self._own, strict=True)):
            graph = None if own is None else {node: self._graph[node] for node in own}
            rows = None if row_counts is None else row_counts[number]
            chunk = Chunk(number, key, starts[number], rows, graph)
            if waiting and (graph is None or len(waiting) == most):
                batches.append(Batch(waiting))
                waiting = []
            if graph is None:
                batches.append(Batch([chunk]))
            else:
                waiting.append(chunk)
        return [*batches, Batch(waiting)] if waiting else batches

    def holders(self, chunk: Chunk, who_has: dict[Key, Sequence[str]]) -> tuple[str, ...]:
        """Return the workers that hold all that a chunk is made of."""
        holders = [set(who_has.get(key, ())) for key in self.needed(chunk.key) & self._held]
        return tuple(sorted(set.intersection(*holders))) if holders else ()

    def needed(self, first: Key, stop: Collection[Key] = ()) -> set[Key]:
        """Return a task and all that it needs, but not what lies below the tasks of `stop`."""
        found: set[Key] = set()
        stack = [first]
        while stack:
            key = stack.pop()
            if key not in found:
                found.add(key)
                if key not in stop:
                    stack.extend(self._needs[key])
        return found

    def _shared(self) -> set[Key]:
        """Return what is reached from more than one chunk, without what lies only below it."""
        reached_from: dict[Key, int] = {}
        shared = set()
        for number, chunk_key in enumerate(self._keys):
            stack = [chunk_key]
            while stack:
                key = stack.pop()
                if key not in reached_from:
                    reached_from[key] = number
                    stack.extend(self._needs[key])
                elif reached_from[key] != number:
                    shared.add(key)
        return {key for key in shared if istask(self._graph[key]) or self._is_large(key)}

    def _is_large(self, key: Key) -> bool:
        return bool(sizeof(dask.get(self._graph, key)) > SMALL_BYTES)

    def _needed_alone(self, chunk_key: Key, shared: set[Key]) -> set[Key] | None:
        """Return the nodes that serve this chunk, or None if some of them serve others too."""
        own = self.needed(chunk_key, shared)
        return own if own.isdisjoint(shared) else None


def _held_keys(pieces: da.Array) -> set[Key]:
    """Return the names of what the cluster holds for these pieces."""
    if active_client() is None:
        return set()
    from distributed import futures_of

    return {future.key for future in futures_of(pieces)}


JOINED_AT_ONCE = 16
MOST_RESULTS = 64
"""More results than these are joined on the workers before any of them travels."""
RESULTS_BYTES = 2**29
"""Results that are joined or travel together take up no more memory, unless two of them do."""


def fit_together(result_bytes: int, most: int) -> int:
    """Return how many results of this size, between 2 and `most`, may be in one place.

    Examples
    --------
    >>> fit_together(0, most=16), fit_together(2**26, most=16), fit_together(2**30, most=16)
    (16, 8, 2)
    """
    return max(2, min(most, RESULTS_BYTES // max(result_bytes, 1)))


class Pass:
    """One pass over the chunks: a job, done on every batch of them, on a client's workers or in this process.

    Attributes
    ----------
    pairs : list of (Delayed, Batch)
        Each batch with the call that works on it.
    wanted : list of (Delayed, int)
        The calls whose results are wanted, and how many rows each is of.
    gathered_at_once : int
        How many results may travel together.
    """

    def __init__(
        self, job: Job, chunks: Chunks, batches: Sequence[Batch], stage: str, client: Any | None, result_bytes: int = 0
    ) -> None:
        self.chunks, self.stage = chunks, stage
        self.gathered_at_once = fit_together(result_bytes, GATHERED_AT_ONCE)
        self._name = f"dc2-{stage}-{uuid.uuid4().hex}"
        # The job is made by a call and not scattered to the workers: those may die, and then it is made again.
        self._job = dask.delayed(cloudpickle.loads)(
            cloudpickle.dumps(job), dask_key_name=f"{self._name}-job", pure=False
        )
        left = [batch for batch in batches if batch.left_to_dask]
        who_has = client.who_has() if client is not None and left else {}
        self.pairs = [(self._call((self._name, number), batch, who_has), batch) for number, batch in enumerate(batches)]
        self.wanted = [(call, batch.rows) for call, batch in self.pairs]
        if job.merge is not None:
            self._join(fit_together(result_bytes, JOINED_AT_ONCE), fit_together(result_bytes, MOST_RESULTS))

    def alone(self, chunk: Chunk) -> Any:
        """Return the call that works on a single chunk."""
        return self._call(f"dc2-alone-{uuid.uuid4().hex}", Batch([chunk]), {})

    def _call(self, key: Any, batch: Batch, who_has: dict[Any, Any]) -> Any:
        """Return the call for a batch, bound to the workers that hold its data as long as they live."""
        work = dask.delayed(run_batch, pure=False)
        if not batch.left_to_dask:
            return work(self._job, batch, dask_key_name=key)
        (chunk,) = batch.chunks
        holders = self.chunks.holders(chunk, who_has)
        tied = {"workers": list(holders), "allow_other_workers": True} if holders else {}
        with dask.annotate(**tied):
            return work(self._job, batch, self.chunks.delayed[chunk.number], dask_key_name=key)

    def _join(self, at_once: int, most: int) -> None:
        join = dask.delayed(join_results, pure=False)
        number = 0
        while len(self.wanted) > most:
            joined = []
            for first in range(0, len(self.wanted), at_once):
                group = self.wanted[first : first + at_once]
                call = join(self._job, [part for part, _ in group], dask_key_name=(f"{self._name}-merge", number))
                joined.append((call, sum(rows for _, rows in group)))
                number += 1
            self.wanted = joined


R = TypeVar("R")

TASKS_PER_THREAD = 8
FEWEST_TASKS = 64
"""At least so many tasks, if there are so many chunks: a cluster may grow while it works."""


class DaskEngine:
    """Map a function over the chunks of a Dask collection, on the active client or Dask's own threads.

    Parameters
    ----------
    progress : callable, optional
        Called as ``progress(stage, rows_done, rows_total)``.

    Notes
    -----
    A pass computes every chunk once. The function travels to each worker once; chunks do not travel. Results of
    functions that come with a `merge` are merged where they arise, so that what reaches the caller does not grow
    with the number of chunks.
    """

    shares_memory: ClassVar[bool] = False

    def __init__(self, progress: Progress | None = None) -> None:
        self.progress = progress

    def map(
        self,
        function: Callable[[Block], R],
        source: DaskSource,
        *,
        stage: str,
        merge: Callable[[Sequence[R]], R] | None = None,
        result_bytes: int = 0,
    ) -> Iterator[R]:
        """Yield ``function(block)`` for every chunk, in order; with `merge`, for groups of chunks.

        Parameters
        ----------
        function : callable
            Takes a block; is sent to the workers, so that it cannot change anything here.
        source : DaskSource
            The rows.
        stage : str
            Name of the stage, for the progress callback and Dask's dashboard.
        merge : callable, optional
            Makes one result of a sequence of results of consecutive blocks.
        result_bytes : int, default=0
            Size of one result; large ones are joined few at a time.
        """
        job = Job(function, merge, source.reader)
        results = run_job(job, source.chunks, source.row_counts, stage, result_bytes)
        for part in reported(results, self.progress, stage, source.n_rows):
            yield from part


def run_job(
    job: Job, chunks: Chunks, row_counts: Sequence[int] | None, stage: str, result_bytes: int = 0
) -> Iterator[tuple[int, list[Any]]]:
    """Yield numbers of rows and their results, in chunk order."""
    batches = chunks.batches(row_counts, max(FEWEST_TASKS, TASKS_PER_THREAD * n_threads(stage)))
    work = Pass(job, chunks, batches, stage, active_client(), result_bytes)
    for (_, rows), result in zip(work.wanted, results_in_order(work), strict=True):
        yield rows, result
