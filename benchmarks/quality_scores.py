"""Scores of labels; if a method leaves noise, once with noise as a cluster and once on clustered rows only."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from quality_methods import Labels
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

from dc2 import clustering_accuracy


def scores(y: NDArray[Any], candidates: list[Labels]) -> dict[str, float | int]:
    """Score the best of some labels; rows that the truth marks as noise, by 0, are not scored."""
    kept = y > 0
    labels = max(candidates, key=lambda found: _ari(y[kept], found[kept]))
    found, true = labels[kept], y[kept]
    clustered = found >= 0
    result: dict[str, float | int] = {
        "ari": _ari(true, found),
        "nmi": float(normalized_mutual_info_score(true, found)),
        "accuracy": clustering_accuracy(true, found),
        "clustered": float(clustered.mean()),
        "ari_clustered": _ari(true[clustered], found[clustered]),
        "k_found": len(np.unique(labels[labels >= 0])),
    }
    return {name: value if isinstance(value, int) else round(value, 5) for name, value in result.items()}


def _ari(true: NDArray[Any], found: Labels) -> float:
    return float(adjusted_rand_score(true, found)) if len(true) else 0.0


def n_classes(y: NDArray[Any]) -> int:
    return len(np.unique(y[y > 0]))
