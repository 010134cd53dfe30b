"""Dask's graph, cut into what each chunk needs alone and what is left to Dask.

A chunk that shares nothing with others, such as one read from a file, is computed inside the task that uses it,
several of them one after the other: ten thousand chunks become a few hundred tasks, and their results are merged on
the spot. What several chunks need, such as the parts of a shuffle, and what the cluster holds already, stay with
Dask, which computes them once and knows where they lie.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import Any

import dask
import dask.array as da
from dask._task_spec import DataNode
from dask.core import flatten, get_dependencies

from dc2.engines.dask.work import Batch, Chunk, Key

__all__ = ["ChunkGraph"]


class ChunkGraph:
    """The graph of a row of pieces.

    Parameters
    ----------
    pieces : dask.array.Array of one dimension
        One piece per chunk.

    Attributes
    ----------
    keys : list
        Names of the chunks.
    """

    def __init__(self, pieces: da.Array) -> None:
        (optimized,) = dask.optimize(pieces)
        self._graph: dict[Key, Any] = dict(optimized.__dask_graph__())
        self.keys: list[Key] = list(flatten(optimized.__dask_keys__()))
        contested = self._needed_by_several()
        self._own = [self._needed_alone(key, contested) for key in self.keys]

    def batches(self, row_counts: Sequence[int] | None, n_tasks: int) -> list[Batch]:
        """Return the chunks in order, in about `n_tasks` batches; a chunk that Dask computes is one by itself."""
        starts = [0] * len(self.keys) if row_counts is None else [0, *accumulate(row_counts)]
        most = -(-len(self.keys) // n_tasks)
        batches: list[Batch] = []
        waiting: list[Chunk] = []
        shared: dict[Key, None] = {}

        def close() -> None:
            if waiting:
                batches.append(Batch(tuple(waiting), tuple(shared)))
                waiting.clear()
                shared.clear()

        for number, (key, own) in enumerate(zip(self.keys, self._own, strict=True)):
            rows = None if row_counts is None else row_counts[number]
            if own is None:
                close()
                batches.append(Batch((Chunk(number, key, starts[number], rows, {}),), (key,)))
                continue
            waiting.append(
                Chunk(number, key, starts[number], rows, {node: self._graph[node] for node in own})
            )
            shared |= dict.fromkeys(need for node in own for need in self._needs(node) if need not in own)
            if len(waiting) == most:
                close()
        close()
        return batches

    def left_to_dask(self, batches: Iterable[Batch]) -> dict[Key, Any]:
        """Return the part of the graph that makes what is handed over to batches."""
        part: dict[Key, Any] = {}
        stack = [key for batch in batches for key in batch.shared]
        while stack:
            key = stack.pop()
            if key in self._graph and key not in part:
                part[key] = self._graph[key]
                stack.extend(self._needs(key))
        return part

    def _needs(self, key: Key) -> Iterable[Key]:
        needs: Iterable[Key] = get_dependencies(self._graph, key)
        return needs

    def _needed_by_several(self) -> set[Key]:
        """Return what is reached from more than one chunk, without what lies only below it."""
        reached_from: dict[Key, int] = {}
        contested = set()
        for number, chunk_key in enumerate(self.keys):
            stack = [chunk_key]
            while stack:
                key = stack.pop()
                if key not in reached_from:
                    reached_from[key] = number
                    if key in self._graph:
                        stack.extend(self._needs(key))
                elif reached_from[key] != number:
                    contested.add(key)
        return contested

    def _needed_alone(self, chunk_key: Key, contested: set[Key]) -> set[Key] | None:
        """Return what only this chunk needs, literals apart; None if there is more, or the cluster holds some."""
        own: set[Key] = set()
        stack = [chunk_key]
        while stack:
            key = stack.pop()
            if key not in self._graph:
                return None
            if key in contested:
                if isinstance(self._graph[key], DataNode):
                    continue
                return None
            if key not in own:
                own.add(key)
                stack.extend(self._needs(key))
        return own
