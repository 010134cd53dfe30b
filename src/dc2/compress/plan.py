"""The plan of a compression: its parameters, checked together before any work."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dc2.compress.divide import Division
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

__all__ = ["Plan", "plan_of"]

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
    check_random_directions(compressor.cut, CUTS, compressor.sharpen)
    check_choice("signature", compressor.signature, ("centroid", "member"))
    check_choice("populate", compressor.populate, ("leaf", "nearest"))
    check_integer("refine", compressor.refine, low=0, high=MOST_STEPS)
    check_choice("scale", compressor.scale, SCALES)
    check_choice("metric", compressor.metric, METRICS)
    _check_sample_size(compressor.sample_size, compressor.n_signatures)
    division = Division(
        n_signatures=compressor.n_signatures,
        leaf_size=compressor.leaf_size,
        n_partitions=compressor.n_partitions,
        divide=compressor.divide,
        cut=compressor.cut,
        sharpen=compressor.sharpen,
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
