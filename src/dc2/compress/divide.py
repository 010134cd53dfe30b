"""Division: the trees that cut a sample into leaves, with partitions by projection or by random dealing."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields, replace
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
        takes = "metric='haversine' takes degrees as they are."
        raise ParameterError(
            f"scale={compressor.scale!r}: {takes} Use scale=None.",
            parameter="scale",
            value=compressor.scale,
            problem=f"{takes} Leave it out.",
        )
    _check_sample_size(compressor.sample_size, compressor.n_signatures)
    division = Division(*(getattr(compressor, field.name) for field in fields(Division)))
    return Plan(division, *(getattr(compressor, field.name) for field in fields(Plan)[1:]))


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
_Rows = tuple[NDArray[Any], NDArray[np.float64] | None]  # and their weights


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

    def grow(self, rows: _Rows, seed: SeedSequence, leaf_size: float, most: int, threads: int) -> _Grown:
        """Grow a tree of at most so many leaves."""
        return grow_on(
            *rows, seed=tree_seed(seed), leaf_size=leaf_size, max_leaves=most, cut=self.cut, sharpen=self.sharpen,
            n_candidates=self.n_candidates, n_threads=threads,
        )  # fmt: skip

    def grow_sizes(self, parts: list[_Rows], seeds: list[SeedSequence], leaf_size: float, threads: int) -> list[_Grown]:
        """Grow a tree for each partition, with leaves in proportion to its weight, side by side."""
        finished: dict[int, _Grown] = {}
        growing = list(range(len(parts)))
        with ThreadPoolExecutor(threads, thread_name_prefix="dc2") as pool:
            while growing:
                quotas = [NO_LIMIT] * len(growing)
                if self.n_signatures is not None:
                    left_over = self.n_signatures - sum(tree.n_leaves for tree, _ in finished.values())
                    quotas = share_out(left_over, [_weight(*parts[i]) for i in growing])
                each = -(-threads // len(growing))  # threads of a partition: all cores work however few grow
                jobs = [
                    pool.submit(self.grow, parts[i], seeds[i], leaf_size, quota, each)
                    for i, quota in zip(growing, quotas, strict=True)
                ]
                grown = dict(zip(growing, (job.result() for job in jobs), strict=True))
                # A partition with fewer distinct rows than its quota is finished; the others share the rest.
                short = [i for i, quota in zip(growing, quotas, strict=True) if grown[i][0].n_leaves < quota]
                done = short or growing
                finished |= {i: grown[i] for i in done}
                growing = [i for i in growing if i not in done]
        return [finished[i] for i in range(len(parts))]


def _weight(X: NDArray[Any], weights: NDArray[np.float64] | None) -> float:
    return float(len(X)) if weights is None else float(weights.sum())


def grow_trees(
    sample: Sample, division: Division, seeds: SeedSequence, deal_seed: int, n_threads: int
) -> tuple[tuple[RPTree, ...], NDArray[np.int32]]:
    """Return one tree for all partitions (projection) or one for each (sampling), and the leaf of each row."""
    top_seed, *part_seeds = seed_sequence(seeds).spawn(division.n_partitions + 1)
    all_rows = (sample.X, sample.weights)
    # `leaf_size` counts rows of the full data.
    leaf_size = 0.0 if division.leaf_size is None else division.leaf_size * sample.weight / sample.total_weight
    if division.n_partitions == 1:
        tree, leaf = division.grow(all_rows, part_seeds[0], leaf_size, division.n_signatures or NO_LIMIT, n_threads)
        return (tree,), leaf
    top: RPTree | None = None
    if division.divide == "sampling":
        number: NDArray[Any] = deal(deal_seed, sample.rows, division.n_partitions)
        n_parts = division.n_partitions
    else:
        top, number = division.grow(all_rows, top_seed, 0.0, division.n_partitions, n_threads)
        n_parts = int(number.max()) + 1
    places = [np.flatnonzero(number == part) for part in range(n_parts)]
    if not all(map(len, places)):
        raise ParameterError(
            f"n_partitions={n_parts} leaves a partition without rows: only {len(number)} were dealt. Use fewer "
            "partitions."
        )
    parts = [(sample.X[rows], None if sample.weights is None else sample.weights[rows]) for rows in places]
    grown = division.grow_sizes(parts, part_seeds, leaf_size, n_threads)
    leaf, n_leaves = np.empty(len(sample.X), np.int32), 0
    for rows, (tree, part_leaf) in zip(places, grown, strict=True):
        leaf[rows] = part_leaf + n_leaves
        n_leaves += tree.n_leaves
    trees = tuple(tree for tree, _ in grown)
    return (trees if top is None else (graft(top, list(trees)),)), leaf


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
