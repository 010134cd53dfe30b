"""Dask's chunks, in batches: those that need nothing of others are computed inside our tasks, the rest by Dask.

A chunk that shares nothing with others, such as one read from a file, is computed inside the task that uses it,
several of them one after the other: ten thousand chunks become a few hundred tasks, and their results are merged on
the spot. What several chunks need, such as the parts of a shuffle, and what the cluster holds already, stay with
Dask, which computes them once and knows where they lie.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import accumulate
from typing import Any

import dask
import dask.array as da
from dask.core import flatten, istask
from dask.optimization import cull
from dask.sizeof import sizeof

from dc2.engines.dask.gather import active_client
from dc2.engines.dask.work import Batch, Chunk, Key

__all__ = ["Chunks"]

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
