"""The engine for Dask: the function goes to the chunks, small results come back."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from dc2.engines.base import Progress
from dc2.engines.dask.chunks import Chunks
from dc2.engines.dask.gather import active_client, n_threads, results_in_order
from dc2.engines.dask.passes import Pass
from dc2.engines.dask.work import Job
from dc2.engines.progress import reported
from dc2.sources.base import Block

if TYPE_CHECKING:
    from dc2.engines.dask.source import DaskSource

__all__ = ["DaskEngine", "run_job"]

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
        """
        job = Job(function, merge, source.reader)
        results = run_job(job, source.chunks, source.row_counts, stage)
        for part in reported(results, self.progress, stage, source.n_rows):
            yield from part


def run_job(job: Job, chunks: Chunks, row_counts: Sequence[int] | None, stage: str) -> Iterator[tuple[int, list[Any]]]:
    """Yield numbers of rows and their results, in chunk order."""
    batches = chunks.batches(row_counts, max(FEWEST_TASKS, TASKS_PER_THREAD * n_threads(stage)))
    work = Pass(job, chunks, batches, stage, active_client())
    for (_, rows), result in zip(work.wanted, results_in_order(work), strict=True):
        yield rows, result
