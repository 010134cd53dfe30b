"""One pass over the chunks, as delayed calls for whichever scheduler is active."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any

import cloudpickle
import dask

from dc2.engines.dask.chunks import Chunks
from dc2.engines.dask.work import Batch, Chunk, Job, join_results, run_batch

__all__ = ["Pass"]

JOINED_AT_ONCE = 16
MOST_RESULTS = 64
"""More results than these are joined on the workers before any of them travels."""


class Pass:
    """One pass over the chunks: a job, done on every batch of them, on a client's workers or in this process.

    Attributes
    ----------
    pairs : list of (Delayed, Batch)
        Each batch with the call that works on it.
    wanted : list of (Delayed, int)
        The calls whose results are wanted, and how many rows each is of.
    """

    def __init__(self, job: Job, chunks: Chunks, batches: Sequence[Batch], stage: str, client: Any | None) -> None:
        self.chunks, self.stage = chunks, stage
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
            self._join()

    def alone(self, chunk: Chunk) -> Any:
        """Return the call that works on a single chunk."""
        return self._call(f"dc2-alone-{uuid.uuid4().hex}", Batch([chunk]), {})

    def _call(self, key: Any, batch: Batch, who_has: dict[Any, Any]) -> Any:
        """Return the call for a batch, tied to the workers that hold its data as long as they live."""
        work = dask.delayed(run_batch, pure=False)
        if not batch.left_to_dask:
            return work(self._job, batch, dask_key_name=key)
        (chunk,) = batch.chunks
        holders = self.chunks.holders(chunk, who_has)
        tied = {"workers": list(holders), "allow_other_workers": True} if holders else {}
        with dask.annotate(**tied):
            return work(self._job, batch, self.chunks.delayed[chunk.number], dask_key_name=key)

    def _join(self) -> None:
        join = dask.delayed(join_results, pure=False)
        number = 0
        while len(self.wanted) > MOST_RESULTS:
            joined = []
            for first in range(0, len(self.wanted), JOINED_AT_ONCE):
                group = self.wanted[first : first + JOINED_AT_ONCE]
                call = join(
                    self._job,
                    [part for part, _ in group],
                    dask_key_name=(f"{self._name}-merge", number),
                )
                joined.append((call, sum(rows for _, rows in group)))
                number += 1
            self.wanted = joined
