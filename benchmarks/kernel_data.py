"""Data of the benchmark of kernel machines: rows as they are published, split once."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from public_data import load_mnist, load_table
from sklearn.datasets import load_digits

from evaluation.data.location import find_file, search_folders

CENSUS_COLUMNS = 42
CENSUS_WEIGHT = 24  # the sampling weight, which the description of the set says is not to be learned from


@dataclass(frozen=True)
class Split:
    """Training and test rows."""

    name: str
    X: Any
    y: np.ndarray
    X_test: Any
    y_test: np.ndarray


def _file(name: str) -> Path:
    path = find_file((name,), search_folders(None))
    if path is None:
        raise FileNotFoundError(f"{name} is not in the folder of public data sets that DC2_DATA names")
    return Path(path)


def _opened(path: Path) -> Any:
    return gzip.open(path, "rt") if path.suffix == ".gz" else open(path)


def _cut(name: str, X: np.ndarray, y: np.ndarray) -> Split:
    """Split 80/20, in an order drawn once."""
    order = np.random.default_rng(0).permutation(len(X))
    cut = len(X) * 4 // 5
    train, test = order[:cut], order[cut:]
    return Split(name, X[train], y[train], X[test], y[test])


def covertype() -> Split:
    """Cover Type with its seven classes, columns as published."""
    with _opened(_file("covtype.data")) as lines:
        table = np.loadtxt(lines, delimiter=",", dtype=np.float32)
    return _cut("Cover Type", table[:, :-1], table[:, -1].astype(int) - 1)


def mnist() -> Split:
    """MNIST with its own test images, pixels from 0 to 1."""
    images = load_mnist()
    X, y = images.data.astype(np.float32) / 255, images.target
    return Split("MNIST", X[:60_000], y[:60_000], X[60_000:], y[60_000:])


def digits() -> Split:
    X, y = load_digits(return_X_y=True)
    return _cut("digits", X.astype(np.float32), y)


def letter() -> Split:
    table = load_table("letter")
    return _cut("letter", table.data, table.target)


def satimage() -> Split:
    table = load_table("satimage")
    return _cut("satimage", table.data, table.target)


def census() -> Split:
    """Census income (KDD) with its own test rows; 40 columns, most of them categories."""

    def read(name: str) -> tuple[pd.DataFrame, np.ndarray]:
        with _opened(_file(name)) as lines:
            table = pd.read_csv(lines, header=None, skipinitialspace=True)
        assert table.shape[1] == CENSUS_COLUMNS
        y = table[CENSUS_COLUMNS - 1].str.contains("50000+", regex=False).to_numpy().astype(int)
        features = table.drop(columns=[CENSUS_WEIGHT, CENSUS_COLUMNS - 1]).add_prefix("c")
        words = features.select_dtypes(exclude="number").columns
        return features.astype(dict.fromkeys(words, "object")), y

    X, y = read("census-income.data")
    X_test, y_test = read("census-income.test")
    return Split("census income", X, y, X_test, y_test)


SPLITS: dict[str, Callable[[], Split]] = {
    "digits": digits,
    "satimage": satimage,
    "letter": letter,
    "census": census,
    "mnist": mnist,
    "covertype": covertype,
}
