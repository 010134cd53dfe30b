"""What went wrong on a cluster, in words, with the number of the chunk."""

from __future__ import annotations

import asyncio
import concurrent.futures
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from dc2.engines.dask.work import chunk_failed
from dc2.errors import InputError, InputTypeError, ParameterError, SourceError

if TYPE_CHECKING:
    from dc2.engines.dask.passes import Pass

__all__ = ["KINDS", "explain", "no_scheduler", "no_workers", "workers_died"]

KINDS = (Exception, asyncio.CancelledError)
"""What may come out of a cluster; to be cancelled is not an Exception everywhere."""

CANCELLED = (asyncio.CancelledError, concurrent.futures.CancelledError)
IN_WORDS_ALREADY = (InputError, InputTypeError, ParameterError)


def explain(error: BaseException, work: Pass, first_failed: Callable[[Sequence[Any]], Any | None]) -> None:
    """Raise the error that says what happened to which chunk, unless what the scheduler raised does so itself.

    `first_failed` returns the first of some delayed calls that cannot be computed, or None.
    """
    if isinstance(error, IN_WORDS_ALREADY):
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
        raise chunk_failed(suspects[failed.key].number, error) from error


def no_workers(stage: str, seconds: float) -> SourceError:
    """Return the error that says that no worker is left."""
    return SourceError(
        f"the cluster has had no worker for {seconds:g} seconds, and the chunks ({stage}) are not done. "
        "Start workers and fit again."
    )


def no_scheduler(stage: str) -> SourceError:
    """Return the error that says that the cluster cannot be reached any more."""
    return SourceError(
        f"the scheduler of the Dask cluster cannot be reached any more, and the chunks ({stage}) are not done. "
        "Connect a client to a cluster and fit again."
    )


def workers_died(deadly: int | None, stage: str) -> SourceError:
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
