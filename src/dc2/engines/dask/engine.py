"""The engine for Dask: the function goes to the chunks, small results come back."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import cloudpickle
from dask._task_spec import Task

from dc2.engines.base import Progress
from dc2.engines.dask.gather import n_threads, results_in_order
from dc2.engines.dask.graph import ChunkGraph
from dc2.engines.dask.tasks import Work, batch_task, join_task
from dc2.engines.dask.work import Job, Key
from dc2.engines.progress import reported
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
        results = run_job(job, source.graph, source.row_counts, stage)
        for part in reported(results, self.progress, stage, source.n_rows):
            yield from part


def run_job(
    job: Job, chunks: ChunkGraph, row_counts: Sequence[int] | None, stage: str
) -> Iterator[tuple[int, list[Any]]]:
    """Yield numbers of rows and their results, in chunk order."""
    name = f"dc2-{stage}-{uuid.uuid4().hex}"
    batches = chunks.batches(row_counts, max(FEWEST_TASKS, TASKS_PER_THREAD * n_threads()))
    made = chunks.left_to_dask(batches)
    # The job is a task and not data scattered to the workers: those may die, and then it is made again.
    job_key = f"{name}-job"
    made[job_key] = Task(job_key, cloudpickle.loads, cloudpickle.dumps(job))
    worked: dict[Key, Any] = {
        (name, number): batch_task((name, number), job_key, batch) for number, batch in enumerate(batches)
    }
    wanted = [(key, batch.rows) for key, batch in zip(worked, batches, strict=True)]
    merged: dict[Key, Any] = {}
    while job.merge is not None and len(wanted) > MOST_RESULTS:
        groups = [wanted[first : first + JOINED_AT_ONCE] for first in range(0, len(wanted), JOINED_AT_ONCE)]
        wanted = []
        for group in groups:
            key = (f"{name}-merge", len(merged))
            merged[key] = join_task(key, job_key, [part for part, _ in group])
            wanted.append((key, sum(rows for _, rows in group)))
    keys = [key for key, _ in wanted]
    results = results_in_order(Work(job_key, made, worked, merged, batches), keys, stage)
    for (_, rows), result in zip(wanted, results, strict=True):
        yield rows, result
