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
from dask._task_spec import DataNode, convert_legacy_graph
from dask.core import flatten

from dc2.engines.dask.work import Batch, Chunk, Key

__all__ = ["ChunkGraph"]


class ChunkGraph:
    """The graph of a row of pieces.

    Parameters
    ----------
    pieces : dask.array.Array of one dimension
        One piece per chunk.
    """

    def __init__(self, pieces: da.Array) -> None:
        (optimized,) = dask.optimize(pieces)
        self._graph: dict[Key, Any] = convert_legacy_graph(dict(optimized.__dask_graph__()))
        self._keys: list[Key] = list(flatten(optimized.__dask_keys__()))
        contested = self._needed_by_several()
        self._own = [self._needed_alone(key, contested) for key in self._keys]

    def batches(self, row_counts: Sequence[int] | None, n_tasks: int) -> list[Batch]:
        """Return the chunks in order, in about `n_tasks` batches, or one by one where they should not move."""
        starts = [0] * len(self._keys) if row_counts is None else [0, *accumulate(row_counts)]
        most = -(-len(self._keys) // n_tasks)
        batches: list[Batch] = []
        waiting: list[Chunk] = []
        literals: dict[Key, None] = {}

        def close() -> None:
            if waiting:
                batches.append(Batch(tuple(waiting), tuple(literals)))
                waiting.clear()
                literals.clear()

        for number, (key, own) in enumerate(zip(self._keys, self._own, strict=True)):
            graph = {node: self._graph[node] for node in own or ()}
            inputs = dict.fromkeys(need for node in graph for need in self._needs(node) if need not in graph)
            rows = None if row_counts is None else row_counts[number]
            chunk = Chunk(number, key, starts[number], rows, graph)
            held = any(need not in self._graph for need in inputs or [key])
            if own is None or held:
                close()
                batches.append(Batch((chunk,), tuple(inputs) if graph else (key,), held))
                continue
            waiting.append(chunk)
            literals |= inputs
            if len(waiting) == most:
                close()
        close()
        return batches

    def left_to_dask(self, batches: Iterable[Batch]) -> dict[Key, Any]:
        """Return the part of the graph that makes the inputs of batches."""
        part: dict[Key, Any] = {}
        stack = [key for batch in batches for key in batch.inputs]
        while stack:
            key = stack.pop()
            if key in self._graph and key not in part:
                part[key] = self._graph[key]
                stack.extend(self._needs(key))
        return part

    def _needs(self, key: Key) -> Iterable[Key]:
        """Return what a node refers to, also where it is not in the graph because the cluster holds it."""
        needs: Iterable[Key] = self._graph[key].dependencies
        return needs

    def _needed_by_several(self) -> set[Key]:
        """Return what is reached from more than one chunk, without what lies only below it."""
        reached_from: dict[Key, int] = {}
        contested = set()
        for number, chunk_key in enumerate(self._keys):
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
        """Return the nodes that serve this chunk only; None if it needs others, literals and held data apart."""
        own: set[Key] = set()
        stack = [chunk_key]
        while stack:
            key = stack.pop()
            if key in contested:
                if not isinstance(self._graph.get(key), DataNode):
                    return None
            elif key in self._graph and key not in own:
                own.add(key)
                stack.extend(self._needs(key))
        return own
