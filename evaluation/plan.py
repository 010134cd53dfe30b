"""All pieces of work in order, and those that were left out."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from statistics import median

from evaluation.accuracy import ACCURACY
from evaluation.distortion import DISTORTION
from evaluation.experiment import Experiment
from evaluation.ours import OURS
from evaluation.partitions import PARTITIONS
from evaluation.radius import RADIUS
from evaluation.sets import TITLES
from evaluation.store import Row, Store
from evaluation.summary import numbers, pick
from evaluation.theorem import THEOREM

__all__ = ["EXPERIMENTS", "Piece", "missing", "pieces"]

EXPERIMENTS = (DISTORTION, ACCURACY, PARTITIONS, THEOREM, RADIUS, OURS)


@dataclass(frozen=True)
class Piece:
    """One variant of one experiment with one seed on one data set: done as a whole or not at all."""

    experiment: Experiment
    data_set: str
    variant: str
    seed: int

    @property
    def is_slow(self) -> bool:
        """Whether it may take longer than everything else together."""
        return self.variant in self.experiment.slow

    def is_done(self, store: Store) -> bool:
        """Return whether its results are there."""
        return store.table(self.experiment.name).holds(self.data_set, self.variant, self.seed)

    def seconds_of_others(self, store: Store, column: str) -> float | None:
        """Return the seconds, from some column, that other seeds of the same took; None before the first."""
        rows = pick(store.table(self.experiment.name).rows, data_set=self.data_set, variant=self.variant)
        found = numbers(rows, column)
        return median(found) if found else None

    def __str__(self) -> str:
        """Say which it is."""
        return f"{TITLES[self.data_set]}, {self.experiment.name}, {self.variant}, seed {self.seed}"


def pieces(
    runs: int,
    *,
    experiments: Collection[Experiment] = EXPERIMENTS,
    sets: Collection[str] = tuple(TITLES),
    skip: Collection[str] = (),
) -> list[Piece]:
    """Return all pieces: whole seeds one after the other, slow variants when everything else is done.

    So a run that ends early has as many whole seeds as time allowed, and only slow variants lack some.
    """
    found = [
        Piece(experiment, name, variant, seed)
        for seed in range(runs)
        for name in sets
        for experiment in experiments
        if name in experiment.sets
        for variant in experiment.variants
        if variant not in skip
    ]
    return sorted(found, key=lambda piece: piece.is_slow)


def missing(store: Store, runs: int) -> Iterator[tuple[str, str, str, str, str]]:
    """List what has no results: experiment, data set, variant, seeds, and why."""
    left: dict[tuple[str, str, str], list[int]] = {}
    for piece in pieces(runs):
        if not piece.is_done(store):
            left.setdefault((piece.experiment.name, piece.data_set, piece.variant), []).append(piece.seed)
    for experiment in EXPERIMENTS:
        rows = store.table(experiment.name).rows
        if not rows:
            yield experiment.name, "all", "all", "all", "not run"
            continue
        for name in experiment.sets:
            if not pick(rows, data_set=name):
                yield experiment.name, TITLES[name], "all", "all", "not run"
                continue
            for variant in experiment.variants:
                seeds = left.get((experiment.name, name, variant))
                if seeds:
                    written = "all" if len(seeds) == runs else ", ".join(map(str, seeds))
                    why = _why(pick(store.table("estimates").rows, data_set=name, variant=variant))
                    yield experiment.name, TITLES[name], variant, written, why


def _why(estimates: list[Row]) -> str:
    if not estimates:
        return "not run"
    (row,) = estimates
    return f"one fit would take about {float(row['seconds']):.0f} s, by a fit to {int(row['n_rows']):,} rows"
