"""Outlier scores as a detector, beside others: area under the ROC curve, and processor time.

Writes docs/measured/outliers.md. Takes a few minutes: LocalOutlierFactor compares all pairs of 100,000 rows.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from common import machine, table, write_page
from numpy.typing import NDArray
from sklearn.datasets import load_breast_cancer, load_wine, make_blobs, make_moons
from sklearn.ensemble import IsolationForest
from sklearn.metrics import roc_auc_score
from sklearn.neighbors import LocalOutlierFactor
from sklearn.preprocessing import StandardScaler

from dc2 import DC2Clustering

NEIGHBOURS = 20
HEAD = [
    "rows that stray among",
    "dc2",
    "distance to the 20th neighbour",
    "LocalOutlierFactor",
    "IsolationForest",
]

Rows = tuple[NDArray[np.float32], NDArray[np.intp]]


def moons() -> Rows:
    X, _ = make_moons(49_000, noise=0.06, random_state=0)
    return with_strays(X, np.random.default_rng(0).uniform([-1.5, -1.0], [2.5, 2.0], (1000, 2)))


def directions() -> Rows:
    rng = np.random.default_rng(0)
    middles = _unit(rng.normal(size=(40, 128)))
    own = middles[rng.integers(0, 40, 95_000)]
    return with_strays(_unit(own + 0.05 * rng.normal(size=own.shape)), _unit(rng.normal(size=(5000, 128))))


def blobs() -> Rows:
    X, _ = make_blobs(50_000, centers=[[0, 0], [8, 0], [0, 9]], cluster_std=[0.4, 1.0, 1.6], random_state=0)
    return with_strays(X, np.random.default_rng(0).uniform([-8, -8], [14, 17], (1000, 2)))


def standard_table(load: Callable[..., Any]) -> Rows:
    """Return the standardised rows of a table and, for every twenty, one outlier made of columns of different rows."""
    X = StandardScaler().fit_transform(load(return_X_y=True)[0])
    rng = np.random.default_rng(0)
    drawn = rng.integers(len(X), size=(len(X) // 20, X.shape[1]))
    return with_strays(X, X[drawn, np.arange(X.shape[1])])


def with_strays(X: NDArray[Any], strays: NDArray[Any]) -> Rows:
    rows = np.concatenate([X, strays]).astype(np.float32)
    return rows, np.repeat([0, 1], [len(X), len(strays)])


def _unit(rows: NDArray[Any]) -> NDArray[Any]:
    unit: NDArray[Any] = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return unit


DATA: dict[str, Callable[[], Rows]] = {
    "two moons, 49,000 rows, and 1000 anywhere in a box around them": moons,
    "40 clusters of directions in 128 columns, 95,000 rows, and 5000 random directions": directions,
    "three blobs of unequal density, 50,000 rows, and 1000 anywhere": blobs,
    "the wine table, and one row for every twenty drawn anew, column by column": lambda: standard_table(load_wine),
    "the breast cancer table, likewise": lambda: standard_table(load_breast_cancer),
}


def scored(find: Callable[[], Any]) -> tuple[Any, float]:
    """Return the result, and the processor seconds of all threads."""
    start = time.process_time()
    return find(), time.process_time() - start


def measured(X: NDArray[np.float32], strays: NDArray[np.intp]) -> list[str]:
    own, own_seconds = scored(lambda: DC2Clustering(random_state=0).fit(X).outlier_scores_)
    # LocalOutlierFactor does little more than search for neighbours, and keeps their distances.
    factor, factor_seconds = scored(lambda: LocalOutlierFactor(NEIGHBOURS).fit(X))
    forest, forest_seconds = scored(lambda: -IsolationForest(random_state=0).fit(X).score_samples(X))
    found = [
        (own, f"{own_seconds:.1f} s"),
        (factor._distances_fit_X_[:, -1], "as the next"),
        (-factor.negative_outlier_factor_, f"{factor_seconds:.1f} s"),
        (forest, f"{forest_seconds:.1f} s"),
    ]
    return [f"{roc_auc_score(strays, scores):.3f} ({seconds})" for scores, seconds in found]


def main() -> None:
    about, lines = machine(), []
    for name, rows in DATA.items():
        lines.append([name, *measured(*rows())])
        print(lines[-1], flush=True)
    text = [
        "Area under the ROC curve; in brackets processor time, which for dc2 is all of `fit`, the number of clusters "
        "not given, and the scores. scikit-learn's detectors have their defaults, with 20 neighbours.",
        table(HEAD, lines),
    ]
    write_page("outliers", "Outlier scores, measured", text, about)


if __name__ == "__main__":
    main()
