"""Experiment 4: accuracy and time of rpfCluster+ by scheme and number of partitions.

In parallel each partition has a core, as in the paper: one partition has one thread, three have three. One after the
other all have one thread.
"""

from __future__ import annotations

from typing import Any

import joblib

from evaluation.experiment import Experiment, Results
from evaluation.fitted import fit
from evaluation.methods import paper_rpf
from evaluation.sets import PAPER_SETS, DataSet
from evaluation.settings import Settings
from evaluation.sweep import oracles, sweep_fit

__all__ = ["PARTITIONS", "SCHEMES"]

# With one partition there is nothing to divide, so both schemes are the same.
SCHEMES = ("projection 1", "projection 2", "projection 3", "sampling 2", "sampling 3")


def _work(data: DataSet, variant: str, seed: int, settings: Settings) -> Results:
    divide, n_partitions = variant.split()
    scheme: dict[str, Any] = {"divide": divide, "n_partitions": int(n_partitions)}
    parallel = fit(paper_rpf(data, seed, settings, **scheme, n_jobs=int(n_partitions)), data)
    sequential = fit(paper_rpf(data, seed, settings, **scheme, n_jobs=1), data)
    begin = {**data.describe(), "variant": variant, "seed": seed, **scheme}
    times = {
        "cores": settings.n_jobs or joblib.cpu_count(),
        "seconds": parallel.seconds,
        "seconds_sequential": sequential.seconds,
        "compress_seconds": _compress_seconds(parallel.model),
        "compress_seconds_sequential": _compress_seconds(sequential.model),
    }
    rows = [begin | {"selection": "no labels"} | parallel.columns | times | parallel.scores(data)]
    if data.scored_y is not None:
        best = oracles(sweep_fit(parallel, data, settings))
        rows += [begin | {"selection": name, "floor": data.floor} | point.columns for name, point in best.items()]
    return {"partitions": rows}


def _compress_seconds(model: Any) -> float:
    """Return the seconds of the stages that partitions can make faster."""
    return float(model.stage_seconds_["divide"] + model.stage_seconds_["compress"])


PARTITIONS = Experiment("partitions", PAPER_SETS, SCHEMES, _work)
