"""Experiment 6: what our directions and cut rules gain over the paper's, at equal numbers of signatures."""

from __future__ import annotations

from typing import Any

from evaluation.experiment import Experiment, Results
from evaluation.fitted import fit
from evaluation.methods import default_rpf, with_compression
from evaluation.sets import PAPER_SETS, DataSet
from evaluation.settings import Settings

__all__ = ["OURS", "VARIANTS"]

VARIANTS: dict[str, dict[str, Any] | None] = {
    **{
        f"{cut}, sharpen {sharpen}": {"cut": cut, "sharpen": sharpen}
        for cut in ("median", "mean")
        for sharpen in (0, 1, 2, 4)
    },
    "uniform, sharpen 0": {"cut": "uniform", "sharpen": 0},
    "quantile, sharpen 0": {"cut": "quantile", "sharpen": 0},
    "mean, sharpen 2, nearest": {"cut": "mean", "sharpen": 2, "populate": "nearest"},
    "RPFCluster": None,
}


def _work(data: DataSet, variant: str, seed: int, settings: Settings) -> Results:
    compression = VARIANTS[variant]
    model = (
        default_rpf(data, seed, settings)
        if compression is None
        else with_compression(data, seed, settings, **compression)
    )
    fitted = fit(model, data)
    relative = fitted.model.distortion_ / data.variance
    row = {**data.describe(), "variant": variant, "seed": seed, "relative_distortion": relative}
    return {"ours": [row | fitted.columns | fitted.scores(data)]}


OURS = Experiment("ours", (*PAPER_SETS, "mnist"), tuple(VARIANTS), _work)
