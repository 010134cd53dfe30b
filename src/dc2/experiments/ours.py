"""Experiment 6: what our directions and cut rules gain over the paper's, at equal numbers of signatures."""

from __future__ import annotations

from typing import Any

import numpy as np

from dc2.experiments.experiment import Experiment, Results
from dc2.experiments.methods import default_rpf, fit
from dc2.experiments.sets import PAPER_SETS, DataSet
from dc2.experiments.settings import Settings

__all__ = ["OURS", "VARIANTS"]

# Only the compression changes; conquer is the same for all.
_FIXED: dict[str, Any] = {"populate": "leaf", "sample_size": None, "bandwidth": 0.05}
VARIANTS: dict[str, dict[str, Any]] = {
    **{
        f"{cut}, sharpen {sharpen}": _FIXED | {"cut": cut, "sharpen": sharpen}
        for cut in ("median", "mean")
        for sharpen in (0, 1, 2, 4)
    },
    "uniform, sharpen 0": _FIXED | {"cut": "uniform", "sharpen": 0},
    "quantile, sharpen 0": _FIXED | {"cut": "quantile", "sharpen": 0},
    "mean, sharpen 2, nearest": _FIXED | {"cut": "mean", "sharpen": 2, "populate": "nearest"},
    "dc2 defaults": {},
}


def _work(data: DataSet, variant: str, seed: int, settings: Settings) -> Results:
    fitted = fit(default_rpf(data, seed, settings, **VARIANTS[variant]), data)
    relative = fitted.model.distortion_ / _total_variance(data)
    row = {**data.describe(), "variant": variant, "seed": seed, "relative_distortion": relative}
    return {"ours": [row | fitted.columns | fitted.scores(data)]}


def _total_variance(data: DataSet) -> float:
    """Return the mean squared distance of a row to the mean of all: the distortion of one signature."""
    return float(sum(np.var(column, dtype=np.float64) for column in data.X.T))


OURS = Experiment("ours", (*PAPER_SETS, "mnist"), tuple(VARIANTS), _work)
