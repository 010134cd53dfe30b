"""Experiments 2 and 3: accuracy and time of K-means, RASP, KASP, rpfCluster+, other rivals and dc2's own methods."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dc2.metrics import contingency_table
from evaluation.experiment import Experiment, Results, stopwatch
from evaluation.fitted import Fitted, fit
from evaluation.landmarks import RIVALS
from evaluation.methods import communities, default_rpf, kmeans, paper_rival, paper_rpf
from evaluation.scores import score
from evaluation.sets import PAPER_SETS, DataSet
from evaluation.settings import Settings
from evaluation.sweep import oracles, sweep_fit

__all__ = ["ACCURACY", "METHODS", "OURS", "SWEPT"]

RESTARTS = {"K-means": 20, "K-means, 1 restart": 1}
SWEPT = ("RASP", "KASP", "rpfCluster+(1)", "rpfCluster+(2)")
OURS = ("RPFCluster", "DC2Clustering", "DC2Clustering, k not given")
METHODS = (*RESTARTS, *SWEPT, *RIVALS, *OURS)


def _work(data: DataSet, variant: str, seed: int, settings: Settings) -> Results:
    begin = {**data.describe(), "variant": variant, "seed": seed}
    if variant in RESTARTS or variant in RIVALS:
        return {"accuracy": [begin | {"selection": "no labels"} | _without_signatures(data, variant, seed, settings)]}
    fitted = fit(_model(variant, data, seed, settings), data)
    rows = [begin | {"selection": "no labels"} | fitted.columns | fitted.scores(data)]
    if variant not in SWEPT or data.scored_y is None:
        return {"accuracy": rows}
    chosen, swept = _search(fitted, data, settings)
    return {"sweep": [begin | row for row in swept], "accuracy": rows + [begin | row for row in chosen]}


def _without_signatures(data: DataSet, variant: str, seed: int, settings: Settings) -> dict[str, Any]:
    """Return the time and the scores of a method that clusters rows themselves."""
    with stopwatch() as watch:
        labels: NDArray[np.int32] = (
            RIVALS[variant](data.X, data.n_clusters, settings.n_signatures, seed)
            if variant in RIVALS
            else kmeans(data, seed, RESTARTS[variant]).fit(data.X).labels_
        )
    row: dict[str, Any] = {"seconds": watch.seconds, "n_clusters": data.n_clusters}
    if data.scored_y is not None:
        row |= score(contingency_table(data.scored_y, labels)) | {"floor": data.floor}
    return row


def _model(variant: str, data: DataSet, seed: int, settings: Settings) -> Any:
    if variant == "RPFCluster":
        return default_rpf(data, seed, settings)
    if variant.startswith("DC2Clustering"):
        return communities(data, seed, settings, given="not given" not in variant)
    if variant in ("RASP", "KASP"):
        return paper_rival(variant, data, seed, settings)
    n_partitions = int(variant[-2])
    return paper_rpf(data, seed, settings, n_partitions=n_partitions, n_jobs=settings.n_jobs)


def _search(fitted: Fitted, data: DataSet, settings: Settings) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the results at the bandwidths that true labels select, and at all bandwidths."""
    with stopwatch() as watch:
        points = sweep_fit(fitted, data, settings)
    chosen = [
        {"selection": selection, "floor": data.floor, "sweep_seconds": watch.seconds} | point.columns
        for selection, point in oracles(points).items()
    ]
    return chosen, [point.columns for point in points]


def _seconds(data: DataSet, variant: str, seed: int, settings: Settings) -> float:
    return fit(_model(variant, data, seed, settings), data).seconds


ACCURACY = Experiment("accuracy", PAPER_SETS, METHODS, _work, slow=("KASP",), seconds=_seconds)
