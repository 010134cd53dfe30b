"""Labelled data to judge clusterers by: benchmark batteries, MNIST, Cover Type, and large generated shapes."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import make_blobs, make_circles, make_moons

from dc2.datasets import (
    add_noise_columns,
    list_benchmark_sets,
    load_benchmark_set,
    load_covertype,
    load_mnist,
    make_bananas,
    make_rings,
    make_spirals,
    make_uneven_blobs,
)

SMALL_ROWS = 20_000
SEEDS = (0, 1)


@dataclass(frozen=True)
class Case:
    """A set to cluster.

    `load(seed)` returns rows and their labellings, each with its own number of clusters; label 0 marks noise, which
    is not scored. `group` is "battery", "large battery", "shapes", "real" or "generated".
    """

    name: str
    group: str
    seeds: tuple[int, ...]
    load: Callable[[int], tuple[NDArray[Any], list[NDArray[Any]]]]


def cases(quick: bool) -> Iterator[Case]:
    """Every set; with `quick` small ones, and one seed."""
    if os.environ.get("DC2_DATA"):
        yield from _batteries(quick)
        if not quick:
            yield Case("MNIST", "real", (0, 1), lambda seed: _classes(load_mnist()))
            yield Case("Cover Type", "real", (0,), lambda seed: _classes(load_covertype()))
    else:
        print("DC2_DATA is not set: batteries, MNIST and Cover Type are left out.")
    yield from _shapes(quick)
    yield from _generated(quick)


def _batteries(quick: bool) -> Iterator[Case]:
    for battery, name in list_benchmark_sets():
        X, _ = load_benchmark_set(battery, name)
        if quick and len(X) > 1000:
            continue
        group = "battery" if len(X) <= SMALL_ROWS else "large battery"
        yield Case(name, group, (0,), lambda seed, at=(battery, name): load_benchmark_set(*at))


def _shapes(quick: bool) -> Iterator[Case]:
    n = 1000 if quick else SMALL_ROWS

    def moons(seed: int) -> Any:
        return make_moons(n, noise=0.08, random_state=seed)

    def circles(seed: int) -> Any:
        return make_circles(n, noise=0.05, factor=0.5, random_state=seed)

    def five_blobs(seed: int) -> Any:
        return make_blobs(n, centers=5, random_state=seed + 1)

    for name, make in (("moons", moons), ("circles", circles), ("five blobs", five_blobs)):
        yield Case(name, "shapes", SEEDS, _labelled(make))


def _labelled(make: Callable[[int], Any]) -> Callable[[int], Any]:
    """Count labels from 1, since 0 is noise."""

    def load(seed: int) -> Any:
        X, y = make(seed)
        return X, [y + 1]

    return load


def _generated(quick: bool) -> Iterator[Case]:
    def rows(n: int) -> int:
        return n // 100 if quick else n

    def noisy(shape: Callable[..., Any]) -> Callable[[int], Any]:
        def load(seed: int) -> Any:
            X, y = shape(rows(300_000), seed)
            return add_noise_columns(X, 8, 0.1, seed + 100), [y + 1]

        return load

    seeds = SEEDS[:1] if quick else SEEDS
    yield Case("bananas 1M", "generated", seeds, _labelled(lambda seed: make_bananas(rows(1_000_000), seed)))
    yield Case("rings 5M", "generated", seeds, _labelled(lambda seed: make_rings(rows(5_000_000), seed)))
    yield Case("spirals 1M", "generated", seeds, _labelled(lambda seed: make_spirals(rows(1_000_000), seed)))
    for width in (2, 10, 50):
        yield Case(
            f"uneven blobs {width}d",
            "generated",
            seeds,
            _labelled(lambda seed, width=width: make_uneven_blobs(rows(300_000), width, seed)),
        )
    yield Case("bananas + 8 noise", "generated", seeds, noisy(make_bananas))
    yield Case("rings + 8 noise", "generated", seeds, noisy(make_rings))
    yield Case("spirals + 8 noise", "generated", seeds, noisy(make_spirals))


def _classes(bunch: Any) -> tuple[NDArray[Any], list[NDArray[Any]]]:
    _, codes = np.unique(bunch.target, return_inverse=True)
    return bunch.data, [codes + 1]
