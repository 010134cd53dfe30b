"""Division: the trees that cut a sample into leaves, with partitions by projection or by random dealing."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.random import SeedSequence
from numpy.typing import NDArray

from dc2.compress.routing import deal
from dc2.compress.sampling import Sample
from dc2.compress.scaling import METRICS, SCALES
from dc2.core.reference import CUTS
from dc2.errors import ParameterError
from dc2.parameters import (
    MOST_SIGNATURES,
    MOST_STEPS,
    check_choice,
    check_integer,
    check_positive,
    check_random_directions,
)
from dc2.random import seed_sequence, tree_seed
from dc2.trees.tree import NO_LIMIT, RPTree, graft, grow_on

SAMPLED_PER_SIGNATURE, SAMPLED_PER_SIGNATURE_OF_MANY = 256, 32
FEW_SIGNATURES = 1000
SAMPLE_BYTES = 256 * 2**20


@dataclass(frozen=True)
class Plan:
    """How rows become signatures."""

    division: Division
    signature: str
    sample_size: int | str | None
    populate: str
    refine: int
    scale: str | None
    metric: str

    @property
    def one_tree(self) -> bool:
        """Whether one tree divides all rows."""
        return self.division.n_partitions == 1 or self.division.divide == "projection"

    def with_signatures(self, n_signatures: int) -> Plan:
        """Return the same plan for another number of signatures."""
        return replace(self, division=replace(self.division, n_signatures=n_signatures))

    def sample_rows_wanted(self, n_features: int, dtype: np.dtype[Any], n_rows: int | None) -> int:
        """Return how many rows place the cuts."""
        if self.sample_size is None:
            return 2**62
        if self.sample_size != "auto":
            return int(self.sample_size)
        affordable = SAMPLE_BYTES // (n_features * dtype.itemsize)
        if self.division.n_signatures is not None:
            # A sample cannot give more signatures than it has rows.
            affordable = max(affordable, self.division.n_signatures)
            return min(affordable, sampled_rows(self.division.n_signatures))
        assert self.division.leaf_size is not None
        most_leaves = np.inf if n_rows is None else 2 * n_rows / self.division.leaf_size
        return max(1, int(min(affordable, SAMPLED_PER_SIGNATURE * np.ceil(most_leaves))))


def sampled_rows(n_signatures: int) -> int:
    """Return how many rows place the cuts for this many signatures: fewer per signature if there are many."""
    few = min(n_signatures, FEW_SIGNATURES)
    return max(SAMPLED_PER_SIGNATURE * few, SAMPLED_PER_SIGNATURE_OF_MANY * n_signatures)


def plan_of(compressor: Any) -> Plan:
    """Check the parameters of a `Compressor` and put them together."""
    _check_number(compressor)
    check_choice("divide", compressor.divide, ("projection", "sampling"))
    check_random_directions(compressor.cut, CUTS, compressor.sharpen, compressor.n_candidates)
    check_choice("signature", compressor.signature, ("centroid", "member"))
    check_choice("populate", compressor.populate, ("leaf", "nearest"))
    check_integer("refine", compressor.refine, low=0, high=MOST_STEPS)
    check_choice("scale", compressor.scale, SCALES)
    check_choice("metric", compressor.metric, (*METRICS, "haversine"))
    if compressor.metric == "haversine" and compressor.scale is not None:
        raise ParameterError(
            f"scale={compressor.scale!r}: metric='haversine' takes degrees as they are. Use scale=None.",
            parameter="scale",
            value=compressor.scale,
            problem="metric='haversine' takes degrees as they are. Leave it out.",
        )
    _check_sample_size(compressor.sample_size, compressor.n_signatures)
    division = Division(
        n_signatures=compressor.n_signatures,
        leaf_size=compressor.leaf_size,
        n_partitions=compressor.n_partitions,
        divide=compressor.divide,
        cut=compressor.cut,
        sharpen=compressor.sharpen,
        n_candidates=compressor.n_candidates,
    )
    return Plan(
        division=division,
        signature=compressor.signature,
        sample_size=compressor.sample_size,
        populate=compressor.populate,
        refine=compressor.refine,
        scale=compressor.scale,
        metric=compressor.metric,
    )


def _check_number(compressor: Any) -> None:
    n_signatures, leaf_size = compressor.n_signatures, compressor.leaf_size
    if (n_signatures is None) == (leaf_size is None):
        raise ParameterError(
            f"give either n_signatures or leaf_size and None for the other; got n_signatures={n_signatures!r} and "
            f"leaf_size={leaf_size!r}."
        )
    n_partitions = check_integer("n_partitions", compressor.n_partitions, low=1)
    if n_signatures is not None:
        check_integer("n_signatures", n_signatures, low=1, high=MOST_SIGNATURES)
        if n_partitions > n_signatures:
            raise ParameterError(
                f"n_partitions={n_partitions} partitions need at least one signature each, but n_signatures is "
                f"{n_signatures}."
            )
    if leaf_size is not None:
        check_positive("leaf_size", leaf_size)


def _check_sample_size(sample_size: Any, n_signatures: int | None) -> None:
    if sample_size is None or (isinstance(sample_size, str) and sample_size == "auto"):
        return
    sampled = check_integer("sample_size", sample_size, low=1)
    if n_signatures is not None and sampled < n_signatures:
        raise ParameterError(
            f"sample_size={sample_size} rows cannot place the cuts of n_signatures={n_signatures}; take at least "
            "as many rows as signatures, better a hundred times as many, or 'auto'."
        )


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
    n_candidates: int

    def grow(
        self, X: NDArray[Any], weights: NDArray[np.float64] | None, seed: int, leaf_size: float, most: int, threads: int
    ) -> _Grown:
        """Grow a tree of at most so many leaves."""
        return grow_on(
            X, weights, seed=seed, leaf_size=leaf_size, max_leaves=most, cut=self.cut, sharpen=self.sharpen,
            n_candidates=self.n_candidates, n_threads=threads,
        )  # fmt: skip


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

    def grow(self, division: Division, leaf_size: float, max_leaves: int, n_threads: int) -> _Grown:
        return division.grow(self.X, self.weights, self.seed, leaf_size, max_leaves, n_threads)


def grow_trees(
    sample: Sample, division: Division, seeds: SeedSequence, deal_seed: int, n_threads: int
) -> tuple[tuple[RPTree, ...], NDArray[np.int32]]:
    """Return one tree for all partitions (projection) or one for each (sampling), and the leaf of each row."""
    top_seed, *part_seeds = seed_sequence(seeds).spawn(division.n_partitions + 1)
    if division.n_partitions == 1:
        whole = _Part(np.arange(len(sample.X)), sample.X, sample.weights, tree_seed(part_seeds[0]))
        tree, leaf = whole.grow(division, _leaf_size(division, sample), division.n_signatures or NO_LIMIT, n_threads)
        return (tree,), leaf
    top: RPTree | None = None
    number: NDArray[Any]
    if division.divide == "sampling":
        number = deal(deal_seed, sample.rows, division.n_partitions)
    else:
        top, number = division.grow(
            sample.X, sample.weights, tree_seed(top_seed), 0.0, division.n_partitions, n_threads
        )
    parts = _parts(sample, number, division, part_seeds)
    trees = []
    leaf = np.empty(len(sample.X), np.int32)
    n_leaves = 0
    for part, (tree, part_leaf) in zip(parts, _grow_parts(parts, sample, division, n_threads), strict=True):
        leaf[part.rows] = part_leaf + n_leaves
        n_leaves += tree.n_leaves
        trees.append(tree)
    return tuple(trees) if top is None else (graft(top, trees),), leaf


def _parts(sample: Sample, number: NDArray[Any], division: Division, seeds: list[SeedSequence]) -> list[_Part]:
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


def _leaf_size(division: Division, sample: Sample) -> float:
    """Return the least weight at which a node of the sample is split: `leaf_size` scaled to the sample's share."""
    if division.leaf_size is None:
        return 0.0
    return division.leaf_size * sample.weight / sample.total_weight


def _grow_parts(parts: list[_Part], sample: Sample, division: Division, n_threads: int) -> list[_Grown]:
    leaf_size = _leaf_size(division, sample)
    finished: dict[int, _Grown] = {}
    growing = list(range(len(parts)))
    with ThreadPoolExecutor(n_threads, thread_name_prefix="dc2") as pool:
        while growing:
            quotas = [NO_LIMIT] * len(growing)
            if division.n_signatures is not None:
                left_over = division.n_signatures - sum(tree.n_leaves for tree, _ in finished.values())
                quotas = share_out(left_over, [parts[i].weight for i in growing])
            each = -(-n_threads // len(growing))  # threads of a partition: all cores work however few partitions grow
            jobs = [
                pool.submit(parts[i].grow, division, leaf_size, quota, each)
                for i, quota in zip(growing, quotas, strict=True)
            ]
            grown = dict(zip(growing, (job.result() for job in jobs), strict=True))
            # A partition with fewer distinct rows than its quota is finished; the others share the rest.
            short = [i for i, quota in zip(growing, quotas, strict=True) if grown[i][0].n_leaves < quota]
            done = short or growing
            finished |= {i: grown[i] for i in done}
            growing = [i for i in growing if i not in done]
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
