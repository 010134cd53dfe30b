"""The methods compared, with the paper's parameters, and how each kernel's bandwidths are searched."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from dc2.cluster import KASP, RASP, RPFCluster
from dc2.cluster.base import Seeds, conquered_points
from dc2.experiments.experiment import stopwatch
from dc2.experiments.scores import count_classes, score_signatures
from dc2.experiments.sets import DataSet
from dc2.experiments.settings import PAPER_TREES, Settings
from dc2.experiments.sweep import GaussianSweep, RPFSweep, Similarity, SweepPoint, sweep
from dc2.random import seed_sequence

__all__ = [
    "FIXED_BANDWIDTH",
    "PAPER_COMPRESSION",
    "Fitted",
    "default_rpf",
    "fit",
    "oracle",
    "paper_rival",
    "paper_rpf",
    "sweep_all",
]

PAPER_COMPRESSION: dict[str, Any] = {"cut": "median", "sharpen": 0, "sample_size": None, "populate": "leaf"}
FIXED_BANDWIDTH = 0.05  # beta = 40, the middle of the paper's range; what the fits that are timed use


@dataclass(frozen=True, eq=False)
class Fitted:
    """A fitted clusterer, and how long its fit took."""

    model: Any
    seconds: float

    @property
    def columns(self) -> dict[str, Any]:
        """What a row of results says of the fit."""
        return {
            "seconds": self.seconds,
            "n_signatures": len(self.model.signatures_),
            "distortion": self.model.distortion_,
        }

    def class_counts(self, y: NDArray[np.intp]) -> NDArray[np.float64]:
        """Return the rows of each class that each signature stands for."""
        return count_classes(y, self.model._ids, len(self.model.signatures_))

    def scores(self, data: DataSet) -> dict[str, float | None]:
        """Score the clusters that the fit found; empty where classes mean nothing."""
        if data.scored_y is None:
            return {}
        counts = self.class_counts(data.scored_y)
        return {**score_signatures(counts, self.model.signature_labels_), "floor": data.floor}


def paper_rpf(
    data: DataSet,
    seed: int,
    settings: Settings,
    *,
    n_partitions: int,
    divide: Literal["projection", "sampling"] = "projection",
    n_jobs: int | None = None,
) -> Any:
    """Return rpfCluster+ with the paper's parameters."""
    return RPFCluster(
        data.n_clusters,
        n_signatures=settings.n_signatures,
        n_partitions=n_partitions,
        divide=divide,
        **PAPER_COMPRESSION,
        n_trees=settings.n_trees,
        forest_leaf_size=settings.forest_leaf_size,
        forest_cut="median",
        bandwidth=FIXED_BANDWIDTH,
        assign="ncut",
        n_jobs=n_jobs,
        random_state=seed,
    )


def default_rpf(data: DataSet, seed: int, settings: Settings, **changed: Any) -> Any:
    """Return our clusterer as a user gets it, but for what the settings make smaller and what is `changed`."""
    return RPFCluster(
        data.n_clusters,
        n_signatures=settings.n_signatures,
        n_trees=settings.n_trees,
        n_jobs=settings.n_jobs,
        random_state=seed,
        **changed,
    )


def paper_rival(name: str, data: DataSet, seed: int, settings: Settings) -> Any:
    """Return RASP or KASP with the paper's parameters; sigma is the median squared distance until it is searched."""
    return {"RASP": RASP, "KASP": KASP}[name](
        data.n_clusters,
        n_signatures=settings.n_signatures,
        assign="ncut",
        n_jobs=settings.n_jobs,
        random_state=seed,
    )


def fit(model: Any, data: DataSet) -> Fitted:
    """Fit a clusterer to the rows and label them, by the clock."""
    with stopwatch() as watch:
        model.fit(data.X).labels_  # noqa: B018 - labels are computed when first asked for
    return Fitted(model, watch.seconds)


def sweep_all(fitted: Fitted, data: DataSet, settings: Settings) -> list[SweepPoint]:
    """Score every bandwidth of the paper on the signatures of a fit."""
    assert data.scored_y is not None
    similarity, bandwidths = _kernel(fitted.model, settings)
    counts = fitted.class_counts(data.scored_y)
    return sweep(similarity, bandwidths, data.n_clusters, counts, settings.n_jobs)


def oracle(points: list[SweepPoint]) -> SweepPoint:
    """Return the bandwidth that true labels select; of equal ones the first."""
    return max(points, key=lambda point: point.scores["accuracy"])


def _kernel(model: Any, settings: Settings) -> tuple[Similarity, Sequence[float]]:
    points = conquered_points(model.signatures_)
    if isinstance(model, RPFCluster):
        rng = Seeds.of(seed_sequence(model.random_state)).kernel
        similarity = RPFSweep.of(points, settings.n_trees, settings.forest_leaf_size, rng)
        return similarity, [beta / PAPER_TREES for beta in settings.betas]
    return GaussianSweep.of(points), settings.sigmas
