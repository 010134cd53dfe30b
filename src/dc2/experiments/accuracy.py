"""Experiments 2 and 3: accuracy and time of K-means, RASP, KASP, rpfCluster+ and our defaults."""

from __future__ import annotations

from typing import Any

from sklearn.cluster import KMeans

from dc2.experiments.experiment import Experiment, Results, stopwatch
from dc2.experiments.methods import (
    Fitted,
    default_rpf,
    fit,
    oracle,
    paper_rival,
    paper_rpf,
    sweep_all,
)
from dc2.experiments.scores import score
from dc2.experiments.sets import PAPER_SETS, DataSet
from dc2.experiments.settings import Settings
from dc2.metrics import contingency_table

__all__ = ["ACCURACY", "METHODS", "SWEPT"]

# R's K-means of the paper is Hartigan and Wong's from random rows; scikit-learn's is Lloyd's from k-means++.
KMEANS = {"n_init": 20, "max_iter": 200, "algorithm": "lloyd"}
SWEPT = ("RASP", "KASP", "rpfCluster+(1)", "rpfCluster+(2)")
METHODS = ("K-means", "K-means, 1 restart", *SWEPT, "dc2 defaults")


def _work(data: DataSet, variant: str, seed: int, settings: Settings) -> Results:
    begin = {**data.describe(), "variant": variant, "seed": seed}
    if variant.startswith("K-means"):
        return {"accuracy": [begin | {"selection": "no labels"} | _kmeans(data, variant, seed)]}
    fitted = fit(_model(variant, data, seed, settings), data)
    rows = [begin | {"selection": "no labels"} | fitted.columns | fitted.scores(data)]
    if variant not in SWEPT or data.scored_y is None:
        return {"accuracy": rows}
    chosen, swept = _search(fitted, data, settings)
    return {"sweep": [begin | row for row in swept], "accuracy": rows + [begin | row for row in chosen]}


def _kmeans(data: DataSet, variant: str, seed: int) -> dict[str, Any]:
    parameters = KMEANS | ({"n_init": 1} if variant.endswith("1 restart") else {})
    model = KMeans(data.n_clusters, **parameters, random_state=seed)
    with stopwatch() as watch:
        model.fit(data.X)
    row: dict[str, Any] = {"seconds": watch.seconds}
    if data.scored_y is not None:
        row |= score(contingency_table(data.scored_y, model.labels_)) | {"floor": data.floor}
    return row


def _model(variant: str, data: DataSet, seed: int, settings: Settings) -> Any:
    if variant == "dc2 defaults":
        return default_rpf(data, seed, settings)
    if variant in ("RASP", "KASP"):
        return paper_rival(variant, data, seed, settings)
    n_partitions = int(variant[-2])
    return paper_rpf(data, seed, settings, n_partitions=n_partitions, n_jobs=settings.n_jobs)


def _search(
    fitted: Fitted, data: DataSet, settings: Settings
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the rows that true labels select, and those of all bandwidths."""
    with stopwatch() as watch:
        points = sweep_all(fitted, data, settings)
    determined = [point for point in points if not point.degenerate]
    selected = [("oracle", oracle(points))]
    if determined:
        selected.append(("oracle, not degenerate", oracle(determined)))
    chosen = [
        {"selection": selection, "floor": data.floor, "sweep_seconds": watch.seconds} | point.columns
        for selection, point in selected
    ]
    return chosen, [point.columns for point in points]


ACCURACY = Experiment("accuracy", PAPER_SETS, METHODS, _work)
