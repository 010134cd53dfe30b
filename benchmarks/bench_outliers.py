"""Outlier scores as a detector, beside others: area under the ROC curve, and processor time.

Writes docs/measured/outliers.md. Takes a minute: LocalOutlierFactor compares all pairs of 20,000 rows. Classes of
labelled tables become outliers as in the collections ODDS and ADBench, whose own files are not read: small classes, or
a few rows of one class. The two groups named "made" stand for their sets http and musk.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from common import machine, table, write_page
from numpy.typing import NDArray
from sklearn.datasets import load_breast_cancer, load_digits, load_wine, make_blobs, make_moons
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
MOST_ROWS = 4000


def moons() -> Rows:
    X, _ = make_moons(49_000, noise=0.06, random_state=0)
    return with_strays(X, np.random.default_rng(0).uniform([-1.5, -1.0], [2.5, 2.0], (1000, 2)))


def directions() -> Rows:
    rng = np.random.default_rng(0)
    middles = _unit(rng.normal(size=(40, 128)))
    own = middles[rng.integers(0, 40, 19_000)]
    return with_strays(_unit(own + 0.05 * rng.normal(size=own.shape)), _unit(rng.normal(size=(1000, 128))))


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


def classes_as_outliers(load: Callable[[], tuple[Any, Any]], outliers: list[Any], most: int) -> Rows:
    """Return standardised rows: at most 4000 of the other classes, and at most so many of the classes of outliers."""
    X, y = map(np.asarray, load())
    rng = np.random.default_rng(0)
    is_out = np.isin(y, outliers)
    chosen = [rng.permutation(np.flatnonzero(which))[:limit] for which, limit in ((~is_out, MOST_ROWS), (is_out, most))]
    rows = StandardScaler().fit_transform(X[np.concatenate(chosen)].astype(np.float64))
    return rows.astype(np.float32), np.repeat([0, 1], [len(part) for part in chosen])


def table_of(name: str) -> tuple[Any, Any]:
    frame = pd.read_csv(Path(os.environ["DC2_DATA"]) / "real" / f"{name}.tsv.gz", sep="\t")
    return frame.drop(columns="target"), frame["target"]


def cover() -> tuple[Any, Any]:
    frame = pd.read_csv(Path(os.environ["DC2_DATA"]) / "covtype.data.gz", header=None, nrows=250_000)
    frame = frame[frame[54].isin([2, 4])]
    return frame.iloc[:, :10], frame[54]


def census() -> tuple[Any, Any]:
    frame = pd.read_csv(Path(os.environ["DC2_DATA"]) / "census-income.data.gz", header=None, nrows=40_000)
    numbers = frame.select_dtypes("number").drop(columns=24)  # the weight of a row
    return numbers, frame[41].str.contains("50000+", regex=False)


def tight_group() -> tuple[Any, Any]:
    rng = np.random.default_rng(5)
    group = [6.0, 5.0, -3.0] + 0.05 * rng.normal(size=(40, 3))
    return np.concatenate([rng.normal(size=(4000, 3)) * [1.0, 1.0, 0.3], group]), np.repeat([0, 1], [4000, 40])


def group_in_30_columns() -> tuple[Any, Any]:
    rng = np.random.default_rng(5)
    centres = 2 * rng.normal(size=(6, 30))
    own = centres[rng.integers(0, 5, 2000)] + rng.normal(size=(2000, 30))
    group = 1.6 * centres[5] + 0.3 * rng.normal(size=(60, 30))
    return np.concatenate([own, group]), np.repeat([0, 1], [2000, 60])


TASKS: dict[str, tuple[Callable[[], tuple[Any, Any]], list[Any], int]] = {
    "breast cancer: 10 malignant (as wdbc)": (lambda: load_breast_cancer(return_X_y=True), [0], 10),
    "breast cancer: all malignant": (lambda: load_breast_cancer(return_X_y=True), [0], 212),
    "wine: 10 of class 0": (lambda: load_wine(return_X_y=True), [0], 10),
    "digits: 45 zeros (as optdigits)": (lambda: load_digits(return_X_y=True), [0], 45),
    "digits: 45 ones": (lambda: load_digits(return_X_y=True), [1], 45),
    "satimage: three small classes (as satellite)": (lambda: table_of("satimage"), [2, 4, 5], 1200),
    "satimage: 71 of class 2 (as satimage-2)": (lambda: table_of("satimage"), [2], 71),
    "pendigits: 90 fours (as pendigits)": (lambda: table_of("pendigits"), [4], 90),
    "cover types 2 and 4: 40 of 4 (as cover)": (cover, [4], 40),
    "census: 250 of high income (as census)": (census, [True], 250),
    "made: a tight group far out (as http)": (tight_group, [1], 40),
    "made: a group in 30 columns (as musk)": (group_in_30_columns, [1], 60),
}
DATA: dict[str, Callable[[], Rows]] = {
    "two moons, 49,000 rows, and 1000 anywhere in a box around them": moons,
    "40 clusters of directions in 128 columns, 19,000 rows, and 1000 random directions": directions,
    "three blobs of unequal density, 50,000 rows, and 1000 anywhere": blobs,
    "the wine table, and one row for every twenty drawn from each column apart": lambda: standard_table(load_wine),
    "the breast cancer table, likewise": lambda: standard_table(load_breast_cancer),
    **{name: partial(classes_as_outliers, *task) for name, task in TASKS.items()},
}


def scored(find: Callable[[], Any]) -> tuple[Any, float]:
    """Return the result, and the processor seconds of all threads."""
    start = time.process_time()
    return find(), time.process_time() - start


def measured(X: NDArray[np.float32], strays: NDArray[np.intp]) -> list[tuple[float, str]]:
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
    return [(float(roc_auc_score(strays, scores)), seconds) for scores, seconds in found]


def main() -> None:
    about, lines, of_classes = machine(), [], []
    for name, rows in DATA.items():
        found = measured(*rows())
        lines.append([name, *(f"{area:.3f} ({seconds})" for area, seconds in found)])
        print(lines[-1], flush=True)
        if name in TASKS:
            of_classes.append([area for area, _ in found])
    lines.append(
        [f"mean of the {len(TASKS)} sets of classes", *(f"{area:.3f}" for area in np.mean(of_classes, axis=0))]
    )
    text = [
        "Area under the ROC curve; in brackets processor time, which for dc2 is all of `fit`, the number of clusters "
        "not given, and the scores. scikit-learn's detectors have their defaults, with 20 neighbours. In the second "
        "half, classes of labelled tables are the outliers, as in ODDS and ADBench, whose own files were not at hand.",
        table(HEAD, lines),
    ]
    write_page("outliers", "Outlier scores, measured", text, about)


if __name__ == "__main__":
    main()
