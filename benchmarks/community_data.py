"""Sets to judge communities by: batteries, tables, shapes, crowds, many clusters, and none at all."""

from __future__ import annotations

import gzip
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from quality_data import cases
from sklearn.datasets import (
    load_breast_cancer,
    load_digits,
    load_iris,
    load_wine,
    make_blobs,
    make_circles,
    make_moons,
)
from sklearn.preprocessing import StandardScaler

from dc2.datasets import add_noise_columns, make_bananas, make_rings, make_spirals, make_uneven_blobs

Labelled = tuple[NDArray[Any], list[NDArray[Any]]]


@dataclass(frozen=True)
class Set:
    """Rows with labellings, in which 0 marks noise; `signatures` of 0 means that rows are the nodes."""

    name: str
    kind: str
    load: Callable[[], Labelled]
    signatures: int = 0


def sets() -> Iterator[Set]:
    """Every set, those of a kind one after the other."""
    for case in cases():
        if case.kind == "battery":
            yield Set(case.name, "battery", lambda case=case: case.load(0))
    yield from _tables()
    yield from _shapes()
    yield from _blobs()
    yield from _without_clusters()


def _tables() -> Iterator[Set]:
    folder = os.environ.get("DC2_DATA")
    if folder:
        for name in ("pendigits", "satimage", "letter"):
            yield Set(name, "table", lambda path=Path(folder) / "real" / f"{name}.tsv.gz": _table(path))
    yield Set("digits", "table", lambda: _counted(load_digits(return_X_y=True)))
    for load in (load_iris, load_wine, load_breast_cancer):
        yield Set(load.__name__[5:], "small table", lambda load=load: _standard(load(return_X_y=True)))


def _table(path: Path) -> Labelled:
    with gzip.open(path, "rt") as file:
        values = np.loadtxt(file, delimiter="\t", skiprows=1)
    return _standard((values[:, :-1], values[:, -1]))


def _shapes() -> Iterator[Set]:
    for n in (300, 1500):
        yield Set(f"moons {n}", "shape", lambda n=n: _counted(make_moons(n, noise=0.05, random_state=1)))
        yield Set(f"noisy moons {n}", "shape", lambda n=n: _counted(make_moons(n, noise=0.12, random_state=1)))
        circles = {"noise": 0.05, "factor": 0.5, "random_state": 1}
        yield Set(f"circles {n}", "shape", lambda n=n, circles=circles: _counted(make_circles(n, **circles)))
        wide = make_moons(n, noise=0.05, random_state=2)
        yield Set(f"moons + 8 columns {n}", "shape", lambda wide=wide: _widened(wide))
    yield Set("bananas", "shape", lambda: _counted(make_bananas(2000, 1)))
    yield Set("bananas + 8 columns", "shape", lambda: _widened(make_bananas(3000, 0)))
    yield Set("rings + 8 columns", "shape", lambda: _widened(make_rings(3000, 0)))
    yield Set("spirals", "shape", lambda: _counted(make_spirals(2000, 1)))
    for width in (2, 10):
        yield Set(f"uneven blobs {width}", "shape", lambda width=width: _counted(make_uneven_blobs(3000, width, 0)))
    yield Set("bananas compressed", "shape", lambda: _counted(make_bananas(100_000, 1)), 1000)
    spread = {"cluster_std": [1.0, 2.5, 0.5], "random_state": 170}
    yield Set("varied densities", "shape", lambda: _counted(make_blobs(1500, centers=3, **spread)))
    yield Set("blobs + 10% noise", "shape", lambda: _with_noise(make_blobs(1500, centers=5, random_state=3)))


def _blobs() -> Iterator[Set]:
    for n, k, width in ((30, 3, 4), (60, 4, 5), (100, 2, 10), (150, 5, 3), (200, 8, 2), (200, 4, 20)):
        yield Set(f"{n} rows", "tiny", lambda n=n, k=k, width=width: _box(n, k, width, 8.0))
    for k, width, box in ((10, 8, 3.0), (25, 5, 4.0), (15, 20, 2.2), (50, 10, 4.0)):
        yield Set(f"{k} crowded", "crowd", lambda k=k, width=width, box=box: _box(5000, k, width, box))
    for k in (60, 100, 300):
        yield Set(f"{k} blobs", "many", lambda k=k: _box(300_000, k, 16, 10.0), 4500)
    for width in (128, 384):
        yield Set(f"unit vectors {width}", "many", lambda width=width: _unit_vectors(10_000, width))
        yield Set(
            f"unit vectors {width} compressed",
            "many",
            lambda width=width: _unit_vectors(100_000, width),
            4000,
        )


def _without_clusters() -> Iterator[Set]:
    for n, signatures in ((100, 0), (500, 0), (2000, 0), (100_000, 1000)):
        for width in (1, 2, 5, 20, 100):
            yield Set(
                f"Gaussian {width} x {n}",
                "none",
                lambda n=n, width=width: _one(_rng(n, width).normal(size=(n, width))),
                signatures,
            )
        for width in (2, 3, 10):
            yield Set(
                f"cube {width} x {n}",
                "none",
                lambda n=n, width=width: _one(_rng(n, width).random(size=(n, width))),
                signatures,
            )
        for width in (2, 5):
            yield Set(
                f"lognormal {width} x {n}",
                "none",
                lambda n=n, width=width: _one(_rng(n, width).lognormal(size=(n, width))),
                signatures,
            )
        yield Set(f"ring x {n}", "none", lambda n=n: _one(_ring(n)), signatures)


def _rng(*seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)


def _one(X: NDArray[Any]) -> Labelled:
    return X, [np.ones(len(X), dtype=int)]


def _ring(n: int) -> NDArray[Any]:
    angle = _rng(n).random(n) * 2 * np.pi
    return np.column_stack([np.cos(angle), np.sin(angle)]) + 0.05 * _rng(n, 1).normal(size=(n, 2))


def _counted(Xy: Any) -> Labelled:
    X, y = Xy
    return X, [np.unique(y, return_inverse=True)[1] + 1]


def _standard(Xy: Any) -> Labelled:
    X, y = Xy
    return _counted((StandardScaler().fit_transform(X), y))


def _widened(Xy: Any) -> Labelled:
    X, y = Xy
    return _counted((add_noise_columns(X, 8, 0.1, 100), y))


def _with_noise(Xy: Any) -> Labelled:
    X, y = Xy
    noise = _rng(0).uniform(X.min(axis=0), X.max(axis=0), (len(X) // 10, X.shape[1]))
    return np.concatenate([X, noise]), [np.concatenate([y + 1, np.zeros(len(noise), dtype=int)])]


def _box(n: int, k: int, width: int, box: float) -> Labelled:
    return _counted(make_blobs(n, centers=k, n_features=width, center_box=(-box, box), random_state=k))


def _unit_vectors(n: int, width: int) -> Labelled:
    rng = _rng(n, width)
    centers = rng.normal(size=(40, width))
    centers /= np.linalg.norm(centers, axis=1, keepdims=True)
    y = rng.integers(1, 41, n)
    X = centers[y - 1] + rng.normal(size=(n, width)) * 0.8 / np.sqrt(width)
    noise = np.arange(n) < n // 20
    X[noise] = rng.normal(size=(int(noise.sum()), width))
    return X / np.linalg.norm(X, axis=1, keepdims=True), [np.where(noise, 0, y)]
