"""The engine for Dask: the function goes to the chunks, small results return."""

from __future__ import annotations

import asyncio
import concurrent.futures
import logging
import os
import platform
import time
import uuid
from collections import deque
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
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

from dc2 import versions
from dc2.engines.engine import Progress, reported
from dc2.errors import InputError, InputTypeError, ParameterError, SourceError
from dc2.io.source import Block

if TYPE_CHECKING:
    from dc2.engines.dask_source import DaskSource, Reader

R = TypeVar("R")
Key = Hashable

TASKS_PER_THREAD = 8
FEWEST_TASKS = 64  # if there are so many chunks: a cluster may grow while it works
SMALL_BYTES = 2**16  # values up to this size that several chunks need, such as an open file's name, are copied
GATHERED_AT_ONCE = 16  # results that are ready travel together, since each trip takes some milliseconds
JOINED_AT_ONCE = 16
MOST_RESULTS = 64  # more than these are joined on the workers before any of them travels
RESULTS_BYTES = 2**29  # results that are joined or travel together take up no more, unless two of them do
LOOK_SECONDS = 10.0
NO_WORKER_SECONDS = 600.0  # how long a cluster may be without any worker, which gives new ones time to come
SECONDS_FOR_A_WORKER = 60  # how long a dead worker may take to restart before we give up
SECONDS_BETWEEN_LOOKS = 5
MOST_SUSPECTS = 32  # batches that are tried; the deadly one was there at every death, so it is among the first

KINDS = (Exception, asyncio.CancelledError)  # what may come out of a cluster
CANCELLED = (asyncio.CancelledError, concurrent.futures.CancelledError)


# --- what runs on the workers ---------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Chunk:
    """One chunk: its number and key, its first row, its rows if known, and what is computed for it alone.

    The graph is None where Dask itself computes the chunk and hands it over.
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
        self.left_to_dask = self.chunks[0].graph is None
        self.rows = sum(chunk.rows or 0 for chunk in self.chunks)


@dataclass(frozen=True, eq=False)
class Job:
    """What is done with every chunk: a function of its block or, without a reader, of the chunk as it is."""

    function: Callable[[Any], Any]
    merge: Callable[[Sequence[Any]], Any] | None
    reader: Reader | None
    version: str = field(default_factory=lambda: versions.__version__)

    def joined(self, results: list[Any]) -> list[Any]:
        """Return the results, as one where they can be merged."""
        return results if self.merge is None or len(results) < 2 else [self.merge(results)]


def run_batch(job: Job, batch: Batch, piece: Any = None) -> list[Any]:
    """Work on the chunks of a batch, holding one at a time; empty ones are passed over."""
    if job.version != versions.__version__:
        raise SourceError(
            f"the worker {platform.node()} (process {os.getpid()}) has dc2 {versions.__version__}, but the work "
            f"comes from dc2 {job.version}. Install the same version everywhere and restart the workers."
        )
    results: list[Any] = []
    for chunk in batch.chunks:
        if chunk.graph is not None:
            try:
                piece = dask.get(chunk.graph, chunk.key)
            except Exception as error:
                raise _chunk_failed(chunk, error) from error
        if job.reader is None:
            results.append(job.function(piece))
            continue
        block = job.reader.block(piece, chunk.number, chunk.start, chunk.rows)
        piece = None
        if block.n_rows:
            results = job.joined([*results, job.function(block)])
        del block
    return results


def _join(job: Job, parts: Sequence[list[Any]]) -> list[Any]:
    return job.joined([result for part in parts for result in part])


def _chunk_failed(chunk: Chunk, error: BaseException) -> SourceError:
    return SourceError(f"chunk {chunk.number} could not be computed: {type(error).__name__}: {error}")


# --- chunks and passes ----------------------------------------------------------------------------------------------


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


class Chunks:
    """The chunks of a row of pieces; `delayed` has them for Dask to compute."""

    def __init__(self, pieces: da.Array) -> None:
        (optimized,) = dask.optimize(pieces)
        self.delayed: list[Any] = optimized.to_delayed(optimize_graph=False).tolist()
        self._held = _held_keys(pieces)
        # What Dask makes of data that the cluster holds does not name it any more; the graph before does.
        named = pieces if self._held else optimized
        self._keys: list[Key] = list(flatten(named.__dask_keys__()))
        self._graph, self._needs = cull(dict(named.__dask_graph__()), self._keys)
        shared = self._shared()
        self._own = [None if self._held else self._needed_alone(key, shared) for key in self._keys]

    def batches(self, row_counts: Sequence[int] | None, n_tasks: int) -> list[Batch]:
        """Return the chunks in order, in about `n_tasks` batches, or one by one where Dask computes them."""
        starts = [0] * len(self._keys) if row_counts is None else [0, *accumulate(row_counts)]
        most = -(-len(self._keys) // n_tasks)
        batches: list[list[Chunk]] = []
        for number, (key, own) in enumerate(zip(self._keys, self._own, strict=True)):
            graph = None if own is None else {node: self._graph[node] for node in own}
            chunk = Chunk(number, key, starts[number], None if row_counts is None else row_counts[number], graph)
            if graph is None or not batches or batches[-1][0].graph is None or len(batches[-1]) == most:
                batches.append([])
            batches[-1].append(chunk)
        return [Batch(chunks) for chunks in batches]

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


def fit_together(result_bytes: int, most: int) -> int:
    """Return how many results of this size, between 2 and `most`, may be in one place.

    Examples
    --------
    >>> fit_together(0, most=16), fit_together(2**26, most=16), fit_together(2**30, most=16)
    (16, 8, 2)
    """
    return max(2, min(most, RESULTS_BYTES // max(result_bytes, 1)))


class Pass:
    """One pass over the chunks: `pairs` are calls and their batches, `wanted` the calls for results and their rows."""

    def __init__(
        self, job: Job, chunks: Chunks, batches: Sequence[Batch], stage: str, client: Any | None, result_bytes: int = 0
    ) -> None:
        self.chunks, self.stage = chunks, stage
        self.gathered_at_once = fit_together(result_bytes, GATHERED_AT_ONCE)
        self._name = f"dc2-{stage}-{uuid.uuid4().hex}"
        # The job is made by a call and not scattered to the workers: those may die, and then it is made again.
        loads = dask.delayed(cloudpickle.loads)
        self._job = loads(cloudpickle.dumps(job), dask_key_name=f"{self._name}-job", pure=False)
        left = [batch for batch in batches if batch.left_to_dask]
        who_has = client.who_has() if client is not None and left else {}
        self.pairs = [(self._call((self._name, number), batch, who_has), batch) for number, batch in enumerate(batches)]
        self.wanted = [(call, batch.rows) for call, batch in self.pairs]
        if job.merge is not None:
            self._merge(fit_together(result_bytes, JOINED_AT_ONCE), fit_together(result_bytes, MOST_RESULTS))

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

    def _merge(self, at_once: int, most: int) -> None:
        """Join results, some at a time and again and again, until few are left."""
        join = dask.delayed(_join, pure=False)
        number = 0
        while len(self.wanted) > most:
            groups = [self.wanted[first : first + at_once] for first in range(0, len(self.wanted), at_once)]
            self.wanted = []
            for group in groups:
                call = join(self._job, [part for part, _ in group], dask_key_name=(f"{self._name}-merge", number))
                self.wanted.append((call, sum(rows for _, rows in group)))
                number += 1


# --- results, and what went wrong -----------------------------------------------------------------------------------


def run_job(
    job: Job, chunks: Chunks, row_counts: Sequence[int] | None, stage: str, result_bytes: int = 0
) -> Iterator[tuple[int, list[Any]]]:
    """Yield numbers of rows and their results, in chunk order; an error or an early close stops all work."""
    client = active_client()
    try:
        threads = CPU_COUNT if client is None else max(1, sum(client.nthreads().values()))
    except OSError as error:
        raise _no_scheduler(stage) from error
    batches = chunks.batches(row_counts, max(FEWEST_TASKS, TASKS_PER_THREAD * threads))
    work = Pass(job, chunks, batches, stage, client, result_bytes)
    results = _computed(work) if client is None else _gathered(client, work)
    for (_, rows), result in zip(work.wanted, results, strict=True):
        yield rows, result


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
        _explain(error, work, lambda calls: next(filter(fails, calls), None))
        raise
    while results:
        yield results.popleft()


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
                tried = _suspects(client, work)
                client.cancel(list(futures))
                raise _workers_died(_deadly_chunk(client, work, tried), work.stage) from error
            for _ in ready:
                futures.popleft()
            yield from results
    except KINDS as error:
        if isinstance(error, OSError) and client.status != "running":
            raise _no_scheduler(work.stage) from error
        _explain(error, work, first_failed)
        raise
    finally:
        if futures and client.status == "running":
            client.cancel(list(futures))


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
                raise SourceError(
                    f"the cluster has had no worker for {NO_WORKER_SECONDS:g} seconds, and the chunks ({stage}) are "
                    "not done. Start workers and fit again."
                ) from None


def _explain(error: BaseException, work: Pass, first_failed: Callable[[Sequence[Any]], Any | None]) -> None:
    """Raise the error that says what happened to which chunk, unless what the scheduler raised does so itself."""
    if isinstance(error, InputError | InputTypeError | ParameterError):
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
        raise _chunk_failed(suspects[failed.key], error) from error


def _no_scheduler(stage: str) -> SourceError:
    return SourceError(
        f"the scheduler of the Dask cluster cannot be reached any more, and the chunks ({stage}) are not done. "
        "Connect a client to a cluster and fit again."
    )


def _workers_died(deadly: int | None, stage: str) -> SourceError:
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


def _suspects(client: Any, work: Pass) -> list[Chunk]:
    """Return the chunks that workers which died had been given, those with most deaths first.

    The scheduler counts the deaths as long as it knows the tasks: they must not be cancelled yet.
    """

    def counted(dask_scheduler: Any) -> dict[Key, int]:
        return {key: task.suspicious for key, task in dask_scheduler.tasks.items() if task.suspicious}

    deaths: dict[Key, int] = client.run_on_scheduler(counted)
    involved = []
    for call, batch in work.pairs:
        tasks = {call.key} | (work.chunks.needed(batch.chunks[0].key) if batch.left_to_dask else set())
        involved.append((max(deaths.get(task, 0) for task in tasks), batch))
    involved.sort(key=lambda pair: -pair[0])
    return [chunk for count, batch in involved[:MOST_SUSPECTS] if count for chunk in batch.chunks]


def _deadly_chunk(client: Any, work: Pass, tried: Sequence[Chunk]) -> int | None:
    """Return the number of the first suspect that kills the workers though nothing of ours runs beside it, or None.

    The futures of the pass must be cancelled before. An innocent chunk takes as long as in the pass; the deadly one as
    many deaths as the cluster allows.
    """
    try:
        client.wait_for_workers(1, timeout=SECONDS_FOR_A_WORKER)
    except TimeoutError:
        return None
    return next((chunk.number for chunk in tried if _kills(client, work, chunk)), None)


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


class DaskEngine:
    """Map a function over the chunks of a Dask collection, on the active client or Dask's own threads.

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

        The function is sent to the workers, so it cannot change anything here.
        """
        job = Job(function, merge, source.reader)
        results = run_job(job, source.chunks, source.row_counts, stage, result_bytes)
        for part in reported(results, self.progress, stage, source.n_rows):
            yield from part
