"""The engine for Dask: the function goes to the chunks, small results come back."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import cloudpickle
from dask._task_spec import List, Task, TaskRef

from dc2.engines.base import Progress
from dc2.engines.dask.faults import Fault
from dc2.engines.dask.gather import n_threads, results_in_order
from dc2.engines.dask.graph import ChunkGraph
from dc2.engines.dask.work import Batch, Job, Key, join_results, run_batch
from dc2.sources.base import Block

if TYPE_CHECKING:
    from dc2.engines.dask.source import DaskSource

__all__ = ["DaskEngine", "run_job"]

R = TypeVar("R")

TASKS_PER_THREAD = 8
FEWEST_TASKS = 64
"""So many at least where there are so many chunks: a cluster may grow while it works."""
JOINED_AT_ONCE = 16
MOST_RESULTS = 64
"""More results than these are joined on the workers before any of them travels."""


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

    def __init__(self, progress: Progress | None = None) -> None:
        self.progress = progress

    def map(
        self,
        function: Callable[[Block], R],
        source: DaskSource,
        *,
        stage: str,
        merge: Callable[[Sequence[R]], R] | None = None,
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
        """
        job = Job(function, merge, source.reader)
        report = self.progress or (lambda stage, rows_done, rows_total: None)
        rows_done = 0
        try:
            report(stage, 0, source.n_rows)
            for rows, results in run_job(job, source.graph, source.row_counts, stage):
                rows_done += rows
                report(stage, rows_done, source.n_rows)
                yield from results
        finally:
            close = getattr(self.progress, "close", None)
            if close is not None:
                close()


def run_job(
    job: Job, chunks: ChunkGraph, row_counts: Sequence[int] | None, stage: str
) -> Iterator[tuple[int, list[Any]]]:
    """Yield numbers of rows and their results, in chunk order."""
    name = f"dc2-{stage}-{uuid.uuid4().hex}"
    batches = chunks.batches(row_counts, max(FEWEST_TASKS, TASKS_PER_THREAD * n_threads()))
    job_key = f"{name}-job"
    graph = chunks.left_to_dask(batches)
    # A task, not data scattered to the workers: those may die, and then it is made again.
    graph[job_key] = Task(job_key, cloudpickle.loads, cloudpickle.dumps(job))
    wanted: list[tuple[Key, int]] = []
    for number, batch in enumerate(batches):
        key = (name, number)
        graph[key] = Task(key, run_batch, TaskRef(job_key), batch, _all(batch.shared))
        wanted.append((key, batch.rows))
    fault = _fault(stage, [key for key, _ in wanted], batches)
    level = 0
    while job.merge is not None and len(wanted) > MOST_RESULTS:
        level += 1
        groups = [wanted[start : start + JOINED_AT_ONCE] for start in range(0, len(wanted), JOINED_AT_ONCE)]
        wanted = []
        for number, group in enumerate(groups):
            merged = (f"{name}-merge", level, number)
            graph[merged] = Task(merged, join_results, TaskRef(job_key), _all([key for key, _ in group]))
            wanted.append((merged, sum(rows for _, rows in group)))
    results = results_in_order(graph, [key for key, _ in wanted], fault)
    del graph
    for (_, rows), result in zip(wanted, results, strict=True):
        yield rows, result


def _all(keys: Sequence[Key]) -> Any:
    return List(*map(TaskRef, keys))


def _fault(stage: str, keys: Sequence[Key], batches: Sequence[Batch]) -> Fault:
    chunks_of: dict[Key, range] = {}
    candidates = []
    for key, batch in zip(keys, batches, strict=True):
        first, last = batch.chunks[0], batch.chunks[-1]
        chunks_of[key] = range(first.number, last.number + 1)
        if not first.graph:
            chunks_of[first.key] = chunks_of[key]
            candidates.append(key)
    return Fault(stage, chunks_of, candidates)
