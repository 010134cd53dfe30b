"""What went wrong on a cluster, in words, with the number of the chunk."""

from __future__ import annotations

import asyncio
import concurrent.futures
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from dc2.engines.dask.work import Key, chunk_failed
from dc2.errors import InputError, InputTypeError, ParameterError, SourceError

__all__ = ["Fault"]

IN_WORDS_ALREADY = (InputError, InputTypeError, ParameterError)
CANCELLED = (asyncio.CancelledError, concurrent.futures.CancelledError)


@dataclass(frozen=True, eq=False)
class Fault:
    """Knows which chunks each task works on.

    Attributes
    ----------
    stage : str
        What the tasks are part of.
    chunks_of : mapping of keys to ranges
        The numbers of the chunks that a task makes or works on.
    candidates : sequence of keys
        Tasks whose chunks are computed by Dask: if one of those fails, the error does not say which.
    """

    stage: str
    chunks_of: Mapping[Key, range]
    candidates: Sequence[Key]

    kinds = (Exception, asyncio.CancelledError)
    """What may come out of a cluster; to be cancelled is not an Exception everywhere."""

    def explain(self, error: BaseException, first_failed: Callable[[Sequence[Key]], Key | None]) -> None:
        """Raise the error that says what happened to which chunk, unless `error` does so itself.

        Parameters
        ----------
        error : exception
            What a scheduler raised.
        first_failed : callable
            Returns the first of some keys that cannot be computed, or None.
        """
        if isinstance(error, IN_WORDS_ALREADY):
            return
        if isinstance(error, CANCELLED):
            raise SourceError(
                f"the work on the chunks ({self.stage}) was cancelled, or the Dask client was closed before it was "
                "done. Connect a client and start again."
            ) from error
        if type(error).__name__ == "KilledWorker":
            raise self._killed(error) from error
        failed = first_failed(self.candidates) if self.candidates else None
        if failed is not None:
            raise chunk_failed(self.chunks_of[failed].start, error) from error

    def _killed(self, error: BaseException) -> SourceError:
        task = getattr(error, "task", None)
        chunks = self.chunks_of.get(task)
        if chunks is None:
            what = f"task {task!r}"
        elif len(chunks) == 1:
            what = f"chunk {chunks.start}"
        else:
            what = f"one of the chunks {chunks.start} to {chunks.stop - 1}"
        return SourceError(
            f"every worker that took up {what} ({self.stage}) died: {error} Most often a chunk is too large for a "
            "worker's memory: use smaller chunks, fewer threads per worker or more memory."
        )
