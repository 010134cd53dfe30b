"""Labelled data to judge clusterers by, in kinds: batteries, shapes, tables, images, blobs, embeddings, and none."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from public_data import (
    TABLES,
    list_benchmark_sets,
    load_benchmark_set,
    load_covertype,
    load_mnist,
    load_table,
)
from sklearn import datasets as sklearn_sets
from sklearn.preprocessing import StandardScaler

from dc2.datasets import add_noise_columns, make_bananas, make_rings, make_spirals, make_uneven_blobs

KINDS = {
    "battery": "Batteries of up to 20,000 rows",
    "large-battery": "Batteries of 100,000 rows",
    "shapes": "Shapes",
    "tables": "Tables of measurements, standardised",
    "large-tables": "Images and a large table",
    "blobs": "Many or uneven blobs",
    "embeddings": "Unit vectors: 40 clusters and 5% noise",
    "none": "Data without clusters",
}
SMALL_ROWS = 20_000

Labellings = list[NDArray[Any]]
Load = Callable[[int], tuple[NDArray[Any], Labellings]]
Make = Callable[[int], tuple[NDArray[Any], NDArray[Any]]]


@dataclass(frozen=True)
class Case:
    """A set to cluster.

    `load(seed)` returns rows and their labellings, each with its own number of clusters; label 0 marks noise, which
    is not scored. `drawn` says whether the rows depend on the seed.
    """

    name: str
    kind: str
    load: Load
    drawn: bool = False


def cases() -> Iterator[Case]:
    """Every set available here."""
    if os.environ.get("DC2_DATA"):
        yield from _batteries()
        yield from _public_tables()
    else:
        print("DC2_DATA is not set: batteries and public tables are left out.")
    yield from _sklearn_tables()
    yield from _shapes()
    yield from _blobs()
    yield from _embeddings()
    yield from _without_clusters()


def _batteries() -> Iterator[Case]:
    for battery, name in list_benchmark_sets():
        rows = len(load_benchmark_set(battery, name)[0])
        kind = "battery" if rows <= SMALL_ROWS else "large-battery"
        yield Case(name, kind, lambda seed, at=(battery, name): load_benchmark_set(*at))


def _public_tables() -> Iterator[Case]:
    for name in TABLES:
        yield Case(name, "tables", lambda seed, name=name: _classes(load_table(name)))
    yield Case("MNIST", "large-tables", lambda seed: _classes(load_mnist()))
    yield Case("Cover Type", "large-tables", lambda seed: _classes(load_covertype()))


def _sklearn_tables() -> Iterator[Case]:
    def standardised(load: Callable[[], Any]) -> Load:
        def loaded(seed: int) -> Any:
            bunch = load()
            return _classes(bunch, StandardScaler().fit_transform(bunch.data))

        return loaded

    for name in ("iris", "wine", "breast_cancer"):
        yield Case(name, "tables", standardised(getattr(sklearn_sets, f"load_{name}")))
    # Pixels share one scale.
    yield Case("digits", "tables", lambda seed: _classes(sklearn_sets.load_digits()))


def _classes(bunch: Any, data: NDArray[Any] | None = None) -> tuple[NDArray[Any], Labellings]:
    _, codes = np.unique(bunch.target, return_inverse=True)
    return bunch.data if data is None else data, [codes + 1]


def _made(make: Make) -> Load:
    """Count labels from 1, since 0 is noise."""

    def load(seed: int) -> Any:
        X, y = make(seed)
        return X, [y + 1]

    return load


def _shapes() -> Iterator[Case]:
    def noisy(shape: Callable[..., Any]) -> Make:
        def make(seed: int) -> Any:
            X, y = shape(300_000, seed)
            return add_noise_columns(X, 8, 0.1, seed + 100), y

        return make

    shapes: dict[str, Make] = {
        "moons": lambda seed: sklearn_sets.make_moons(SMALL_ROWS, noise=0.08, random_state=seed),
        "circles": lambda seed: sklearn_sets.make_circles(SMALL_ROWS, noise=0.05, factor=0.5, random_state=seed),
        "bananas 1M": lambda seed: make_bananas(1_000_000, seed),
        "rings 5M": lambda seed: make_rings(5_000_000, seed),
        "spirals 1M": lambda seed: make_spirals(1_000_000, seed),
        "bananas + 8 noise": noisy(make_bananas),
        "rings + 8 noise": noisy(make_rings),
        "spirals + 8 noise": noisy(make_spirals),
    }
    for name, make in shapes.items():
        yield Case(name, "shapes", _made(make), drawn=True)


def _blobs() -> Iterator[Case]:
    def even(n: int, k: int, width: int) -> Make:
        def make(seed: int) -> Any:
            X, y = sklearn_sets.make_blobs(n, n_features=width, centers=k, random_state=seed + 1)
            return X.astype(np.float32), y

        return make

    def uneven(width: int) -> Make:
        return lambda seed: make_uneven_blobs(300_000, width, seed)

    yield Case("five blobs", "blobs", _made(even(SMALL_ROWS, 5, 2)), drawn=True)
    for width in (2, 10, 50):
        yield Case(f"uneven blobs {width}d", "blobs", _made(uneven(width)), drawn=True)
    for k in (60, 100, 300):
        yield Case(f"{k} blobs 16d", "blobs", _made(even(300_000, k, 16)), drawn=True)


def _embeddings() -> Iterator[Case]:
    for n in (20_000, 200_000):
        for width in (128, 384):
            yield Case(
                f"unit vectors {n // 1000}k x {width}",
                "embeddings",
                lambda seed, n=n, width=width: unit_vectors(n, width, seed),
                drawn=True,
            )


def unit_vectors(n: int, width: int, seed: int) -> tuple[NDArray[Any], Labellings]:
    """Return 40 clusters of unequal sizes around random directions, with one row in twenty as noise."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(40, width)).astype(np.float32)
    centres /= np.linalg.norm(centres, axis=1, keepdims=True)
    y = rng.choice(40, n, p=rng.dirichlet(np.full(40, 5.0))) + 1
    y[rng.random(n) < 0.05] = 0
    X = rng.standard_normal((n, width), dtype=np.float32)
    spread = np.float32(1.0 / np.sqrt(width))  # noise as long as the centre: cosines of about 0.7 to it
    X[y > 0] = X[y > 0] * spread + centres[y[y > 0] - 1]
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    return X, [y]


def _without_clusters() -> Iterator[Case]:
    def ring(rng: np.random.Generator) -> NDArray[Any]:
        angle = 2 * np.pi * rng.random(SMALL_ROWS)
        return np.column_stack([np.cos(angle), np.sin(angle)]) + 0.05 * rng.normal(size=(SMALL_ROWS, 2))

    def one(make: Callable[[np.random.Generator], NDArray[Any]]) -> Load:
        def load(seed: int) -> Any:
            X = make(np.random.default_rng(seed)).astype(np.float32)
            return X, [np.ones(len(X), np.int32)]

        return load

    def gaussian(width: int) -> Callable[[np.random.Generator], NDArray[Any]]:
        return lambda rng: rng.normal(size=(SMALL_ROWS, width))

    for width in (2, 5, 10, 30, 100):
        yield Case(f"Gaussian {width}d", "none", one(gaussian(width)), drawn=True)
    yield Case("uniform cube 3d", "none", one(lambda rng: rng.random((SMALL_ROWS, 3))), drawn=True)
    yield Case("one ring", "none", one(ring), drawn=True)
    yield Case("lognormal 5d", "none", one(lambda rng: rng.lognormal(size=(SMALL_ROWS, 5))), drawn=True)
