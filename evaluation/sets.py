"""The data the evaluation runs on, each with its origin: genuine, regenerated, simulated or generated."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Bunch

from dc2.datasets import make_intrinsic
from dc2.metrics import majority_floor
from evaluation import data as public
from evaluation.data.location import Folder
from evaluation.settings import Settings

__all__ = ["GENERATED", "PAPER_SETS", "TITLES", "DataSet", "Origin", "clumps", "load"]

Origin = Literal["genuine", "regenerated", "simulated", "generated"]

PAPER_SETS = ("connect4", "usci", "covertype", "ht_sensor", "poker", "gas_sensor")
INTRINSIC_DIMENSIONS = tuple(range(1, 11))
GENERATED = tuple(f"intrinsic_{dimension}" for dimension in INTRINSIC_DIMENSIONS)

TITLES = {
    "connect4": "Connect-4",
    "usci": "USCI",
    "covertype": "Cover Type",
    "ht_sensor": "HT Sensor",
    "poker": "Poker Hand",
    "gas_sensor": "Gas Sensor",
    "mnist": "MNIST",
    "separated": "two clumps apart",
    "overlapping": "two clumps that overlap",
} | {f"intrinsic_{dimension}": f"dimension {dimension} in 20 columns" for dimension in INTRINSIC_DIMENSIONS}

_LOADERS: dict[str, Callable[..., Bunch]] = {
    "connect4": public.load_connect4,
    "usci": public.load_usci,
    "covertype": public.load_covertype,
    "ht_sensor": public.load_ht_sensor,
    "poker": public.load_poker,
    "gas_sensor": public.load_gas_sensor,
    "mnist": public.load_mnist,
}
_STAND_INS: dict[str, tuple[Origin, Callable[..., Bunch]]] = {
    "ht_sensor": ("simulated", public.make_ht_like),
    "poker": ("regenerated", public.make_poker),
    "gas_sensor": ("simulated", public.make_gas_like),
}


@dataclass(frozen=True, eq=False)
class DataSet:
    """Rows, their classes (none for generated rows), and where they come from."""

    name: str
    origin: Origin
    X: NDArray[Any]
    y: NDArray[np.intp] | None

    @property
    def n_clusters(self) -> int:
        """Number of classes."""
        assert self.y is not None
        return int(self.y.max()) + 1

    @property
    def scored_y(self) -> NDArray[np.intp] | None:
        """The classes; None for simulated data, where scores by them say nothing."""
        return None if self.origin == "simulated" else self.y

    @cached_property
    def floor(self) -> float | None:
        """The accuracy of one single cluster."""
        return None if self.scored_y is None else majority_floor(self.scored_y)

    @cached_property
    def variance(self) -> float:
        """The mean squared distance of a row to the mean of all: the distortion of one signature."""
        return float(sum(np.var(column, dtype=np.float64) for column in self.X.T))

    def part(self, n_rows: int) -> DataSet:
        """Return this many rows, drawn at random but the same every time, or all if there are fewer."""
        if len(self.X) <= n_rows:
            return self
        kept = np.sort(np.random.default_rng(0).choice(len(self.X), n_rows, replace=False))
        return replace(self, X=self.X[kept], y=None if self.y is None else self.y[kept])

    def describe(self) -> dict[str, Any]:
        """Return the columns that every row of results begins with."""
        return {
            "data_set": self.name,
            "origin": self.origin,
            "n_rows": len(self.X),
            "n_features": self.X.shape[1],
        }


def load(name: str, settings: Settings, data_home: Folder | None = None, *, download: bool = False) -> DataSet:
    """Return a data set by name, cut to the rows that the settings allow.

    Genuine files are preferred. Without them, Poker Hand is regenerated and the sensor sets are simulated; other sets
    raise `DataNotFoundError`.
    """
    if name.startswith("intrinsic_"):
        rows = make_intrinsic(settings.generated_rows, int(name.removeprefix("intrinsic_")))
        return DataSet(name, "generated", rows, None)
    if name in ("separated", "overlapping"):
        return clumps(name, settings.theorem_points)
    origin: Origin = "genuine"
    try:
        bunch = _LOADERS[name](data_home, download=download)
    except public.DataNotFoundError:
        if name not in _STAND_INS:
            raise
        origin, make = _STAND_INS[name]
        bunch = make() if settings.max_rows is None else make(settings.max_rows)
    classes = np.unique(bunch.target, return_inverse=True)[1]
    data = DataSet(name, origin, bunch.data, classes)
    return data if settings.max_rows is None else data.part(settings.max_rows)


def clumps(name: str, n: int, seed: int = 0) -> DataSet:
    """Return two round clumps of bounded support in the plane, with a gap between them or without."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    radius, angle = np.sqrt(rng.random(n)), 2 * np.pi * rng.random(n)
    X = np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])
    X[:, 0] += np.where(y == 0, -1.0, 1.0) * (1.5 if name == "separated" else 0.8)
    return DataSet(name, "generated", X, y)
