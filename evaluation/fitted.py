"""A fitted clusterer, the time of its fit, and its scores."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dc2.errors import ClustersDoNotShowWarning
from evaluation.experiment import stopwatch
from evaluation.methods import signature_of_rows
from evaluation.scores import count_classes, score_signatures
from evaluation.sets import DataSet

__all__ = ["Fitted", "fit"]


@dataclass(frozen=True, eq=False)
class Fitted:
    """A fitted clusterer, and how long its fit took."""

    model: Any
    seconds: float

    @property
    def columns(self) -> dict[str, Any]:
        """What a row of results says about the fit."""
        return {
            "seconds": self.seconds,
            "n_clusters": self.model.n_clusters_,
            "n_signatures": len(self.model.signatures_),
            "distortion": self.model.distortion_,
        }

    def class_counts(self, y: NDArray[np.intp]) -> NDArray[np.float64]:
        """Return the rows of each class that each signature represents."""
        return count_classes(y, signature_of_rows(self.model), len(self.model.signatures_))

    def scores(self, data: DataSet) -> dict[str, float | None]:
        """Score the clusters that the fit found; empty if classes mean nothing."""
        if data.scored_y is None:
            return {}
        counts = self.class_counts(data.scored_y)
        return {**score_signatures(counts, self.model.signature_labels_), "floor": data.floor}


def fit(model: Any, data: DataSet) -> Fitted:
    """Fit a clusterer to the rows and label them, and measure the time."""
    with warnings.catch_warnings(), stopwatch() as watch:
        warnings.simplefilter("ignore", ClustersDoNotShowWarning)  # what the scores say anyway
        model.fit(data.X).labels_  # noqa: B018 - labels are computed when first asked for
    return Fitted(model, watch.seconds)
