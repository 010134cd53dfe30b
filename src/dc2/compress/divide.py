"""Division: the trees that cut a sample into leaves, with partitions by projection or by random dealing."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import SeedSequence
from numpy.typing import NDArray

from dc2.compress.router import deal
from dc2.compress.sample import Sample
from dc2.errors import ParameterError
from dc2.random import seed_sequence, tree_seed
from dc2.trees.tree import NO_LIMIT, RPTree, graft, grow_on

_Grown = tuple[RPTree, NDArray[np.int32]]  # a tree, and the leaf of each row it was grown on


@dataclass(frozen=True)
class Division:
    """How rows are divided; one of `n_signatures` and `leaf_size` is None."""

    n_signatures: int | None
    leaf_size: float | None
    n_partitions: int
    divide: str
    cut: str
    sharpen: int


@dataclass(frozen=True, eq=False)
class _Part:
    """Some rows of the sample, and the seed of the tree that will divide them."""

    rows: NDArray[np.intp]
    X: NDArray[Any]
    weights: NDArray[np.float64] | None
    seed: int

    @property
    def weight(self) -> float:
        return float(len(self.X)) if self.weights is None else float(self.weights.sum())


def grow_trees(
    sample: Sample, division: Division, seeds: SeedSequence, deal_seed: int, n_threads: int
) -> tuple[tuple[RPTree, ...], NDArray[np.int32]]:
    """Return the tree of all partitions (projection) or a tree for each (sampling), and the leaf of each row."""
    top_seed, *part_seeds = seed_sequence(seeds).spawn(division.n_partitions + 1)
    if division.n_partitions == 1:
        whole = _Part(np.arange(len(sample.X)), sample.X, sample.weights, tree_seed(part_seeds[0]))
        (grown,) = _grow_parts([whole], sample, division, n_threads)
        return (grown[0],), grown[1]
    top: RPTree | None = None
    number: NDArray[Any]
    if division.divide == "sampling":
        number = deal(deal_seed, sample.rows, division.n_partitions)
    else:
        top, number = grow_on(
            sample.X, sample.weights, seed=tree_seed(top_seed), leaf_size=0.0,
            max_leaves=division.n_partitions, cut=division.cut, sharpen=division.sharpen,
        )  # fmt: skip
    parts = _parts(sample, number, division, part_seeds)
    trees = []
    leaf = np.empty(len(sample.X), np.int32)
    n_leaves = 0
    for part, (tree, part_leaf) in zip(parts, _grow_parts(parts, sample, division, n_threads), strict=True):
        leaf[part.rows] = part_leaf + n_leaves
        n_leaves += tree.n_leaves
        trees.append(tree)
    return tuple(trees) if top is None else (graft(top, trees),), leaf


def _parts(
    sample: Sample, number: NDArray[Any], division: Division, seeds: list[SeedSequence]
) -> list[_Part]:
    n_parts = division.n_partitions if division.divide == "sampling" else int(number.max()) + 1
    parts = []
    for part in range(n_parts):
        rows = np.flatnonzero(number == part)
        if not len(rows):
            raise ParameterError(
                f"n_partitions={division.n_partitions} leaves a partition without rows: only {len(number)} were "
                "dealt. Use fewer partitions."
            )
        weights = None if sample.weights is None else sample.weights[rows]
        parts.append(_Part(rows, sample.X[rows], weights, tree_seed(seeds[part])))
    return parts


def _grow_parts(parts: list[_Part], sample: Sample, division: Division, n_threads: int) -> list[_Grown]:
    threads_each = n_threads if len(parts) == 1 else 1

    def grow(part: _Part, leaf_size: float, max_leaves: int) -> _Grown:
        return grow_on(
            part.X, part.weights, seed=part.seed, leaf_size=leaf_size, max_leaves=max_leaves,
            cut=division.cut, sharpen=division.sharpen, n_threads=threads_each,
        )  # fmt: skip

    if division.leaf_size is not None:
        # leaf_size is meant in rows of the full data, of which the sample has a share.
        scaled = division.leaf_size * sample.weight / sample.total_weight
        return _in_threads(lambda part: grow(part, scaled, NO_LIMIT), parts, n_threads)

    assert division.n_signatures is not None
    wanted = division.n_signatures
    finished: dict[int, _Grown] = {}
    growing = list(range(len(parts)))
    while growing:
        left_over = wanted - sum(tree.n_leaves for tree, _ in finished.values())
        quotas = share_out(left_over, [parts[i].weight for i in growing])
        grown = _in_threads(
            lambda job: grow(parts[job[0]], 0.0, job[1]), list(zip(growing, quotas, strict=True)), n_threads
        )
        # A partition with fewer distinct rows than its quota is finished; the others share what it leaves.
        short = {
            i: part for i, part, quota in zip(growing, grown, quotas, strict=True) if part[0].n_leaves < quota
        }
        if not short:
            finished.update(zip(growing, grown, strict=True))
            break
        finished.update(short)
        growing = [i for i in growing if i not in short]
    return [finished[i] for i in range(len(parts))]


def share_out(total: int, weights: list[float]) -> list[int]:
    """Share a number out in proportion to weights by largest remainder, at least 1 each.

    Examples
    --------
    >>> share_out(10, [1.0, 1.0, 2.0])
    [3, 2, 5]
    """
    exact = np.asarray(weights) / np.sum(weights) * total
    shares = np.maximum(np.floor(exact), 1).astype(int)
    for part in np.argsort(np.floor(exact) - exact, kind="stable")[: max(total - shares.sum(), 0)]:
        shares[part] += 1
    while shares.sum() > max(total, len(shares)):
        shares[shares.argmax()] -= 1
    return [int(share) for share in shares]


def _in_threads(function: Callable[[Any], _Grown], items: list[Any], n_threads: int) -> list[_Grown]:
    if n_threads == 1 or len(items) == 1:
        return [function(item) for item in items]
    with ThreadPoolExecutor(n_threads, thread_name_prefix="dc2") as pool:
        return list(pool.map(function, items))
