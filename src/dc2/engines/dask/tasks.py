"""The tasks of one pass over the chunks, as a graph for whichever scheduler is active."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from dask._task_spec import List, Task, TaskRef
from dask.highlevelgraph import HighLevelGraph, MaterializedLayer

from dc2.engines.dask.work import Batch, Chunk, Key, join_results, run_batch

__all__ = ["Work", "batch_task", "join_task"]


@dataclass(frozen=True, eq=False)
class Work:
    """One pass over the chunks.

    Attributes
    ----------
    job : hashable
        The task that makes the job.
    made : dict
        The part of the graph that makes the job and inputs.
    worked : dict
        A task per batch.
    merged : dict
        Tasks that join results.
    batches : sequence of Batch
        The batches, in the order of `worked`.
    """

    job: Key
    made: dict[Key, Any]
    worked: dict[Key, Any]
    merged: dict[Key, Any]
    batches: Sequence[Batch]

    @property
    def graph(self) -> dict[Key, Any]:
        """All tasks."""
        return {**self.made, **self.worked, **self.merged}

    @property
    def pairs(self) -> list[tuple[Key, Batch]]:
        """Each batch with the task that works on it."""
        return list(zip(self.worked, self.batches, strict=True))

    def placed(self, client: Any) -> Any:
        """Return the graph, with tasks on data that workers hold tied to these workers as long as they live."""
        held = {key for batch in self.batches if batch.held for key in batch.inputs}
        if not held:
            return self.graph
        holders = {key: workers for key, workers in client.who_has().items() if key in held}
        layers: dict[tuple[str, ...], dict[Key, Any]] = defaultdict(dict)
        for key, batch in self.pairs:
            first, *others = [set(holders.get(name, ())) for name in batch.inputs] if batch.held else [set()]
            layers[tuple(sorted(first.intersection(*others)))][key] = self.worked[key]
        named = {
            f"worked-{number}": MaterializedLayer(tasks, annotations=_tied_to(workers))
            for number, (workers, tasks) in enumerate(layers.items())
        }
        return HighLevelGraph(
            {"made": MaterializedLayer(self.made), **named, "merged": MaterializedLayer(self.merged)},
            {"made": set(), **{name: {"made"} for name in named}, "merged": {"made", *named}},
        )

    def alone(self, key: Key, chunk: Chunk, batch: Batch) -> dict[Key, Any]:
        """Return a graph whose one result, `key`, is that of a single chunk of a batch."""
        return {**self.made, key: batch_task(key, self.job, Batch((chunk,), batch.inputs))}

    def needed(self, batch: Batch) -> set[Key]:
        """Return the tasks that make the inputs of a batch."""
        found: set[Key] = set()
        stack = list(batch.inputs)
        while stack:
            key = stack.pop()
            if key in self.made and key not in found:
                found.add(key)
                stack.extend(self.made[key].dependencies)
        return found


def batch_task(key: Key, job: Key, batch: Batch) -> Task:
    """Return the task that does the job on a batch."""
    return Task(key, run_batch, TaskRef(job), batch, _all(batch.inputs))


def join_task(key: Key, job: Key, parts: Iterable[Key]) -> Task:
    """Return the task that joins results of consecutive batches."""
    return Task(key, join_results, TaskRef(job), _all(parts))


def _all(keys: Iterable[Key]) -> Any:
    return List(*map(TaskRef, keys))


def _tied_to(workers: Sequence[str]) -> dict[str, Any] | None:
    return {"workers": list(workers), "allow_other_workers": True} if workers else None
