"""Experiment 5, second part: the radius of tree nodes shrinks with depth, which the use of the theorem relies on."""

from __future__ import annotations

from dc2.trees import RPTree
from evaluation.experiment import Experiment, Results
from evaluation.sets import GENERATED, PAPER_SETS, DataSet
from evaluation.settings import Settings

__all__ = ["RADIUS"]

MOST_ROWS = 20_000


def _work(data: DataSet, variant: str, seed: int, settings: Settings) -> Results:
    # Every so many rows, in order: the sets are long recordings or shuffled, so this covers them evenly.
    X = data.X[:: max(1, len(data.X) // MOST_ROWS)]
    radius = RPTree.grow(X, max_leaves=settings.n_signatures, rng=seed).radius_by_depth(X)
    begin = {**data.describe(), "variant": variant, "seed": seed}
    return {
        "radius": [
            begin | {"depth": depth, "radius": float(mean), "relative": float(mean / radius[0])}
            for depth, mean in enumerate(radius)
        ]
    }


RADIUS = Experiment("radius", (*PAPER_SETS, *GENERATED), ("one tree",), _work)
