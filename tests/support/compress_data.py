"""Rows, ways to compress them, and comparisons of what came out, for the tests of compression."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dc2 import Compressor

WAYS: list[dict[str, Any]] = [
    {},
    {"populate": "leaf"},
    {"n_partitions": 3},
    {"n_partitions": 3, "populate": "leaf"},
    {"n_partitions": 3, "divide": "sampling"},
    {"signature": "member"},
    {"sample_size": 700},
    {"sample_size": None, "cut": "median", "sharpen": 0},
    {"n_signatures": None, "leaf_size": 90},
]


def way_name(way: dict[str, Any]) -> str:
    return ", ".join(f"{key}={value}" for key, value in way.items()) or "default"


def low_rank(n_rows: int, width: int = 7, dtype: Any = np.float32, seed: int = 0) -> NDArray[Any]:
    """Rows near a plane of dimension 3."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_rows, 3)) @ rng.standard_normal((3, width))
    return (X + 0.1 * rng.standard_normal(X.shape)).astype(dtype)


def fitted(X: Any, way: dict[str, Any] | None = None, sample_weight: Any = None, **options: Any) -> Compressor:
    given = {"n_signatures": 50, "random_state": 0} | (way or {}) | options
    return Compressor(**given).fit(X, sample_weight=sample_weight)


def assert_same(a: Compressor, b: Compressor, labels: bool = True) -> None:
    """Two fits agree bit for bit."""
    for name in ("points", "weights", "spread"):
        ours, theirs = getattr(a.signatures_, name), getattr(b.signatures_, name)
        assert ours.dtype == theirs.dtype
        np.testing.assert_array_equal(ours, theirs, err_msg=name)
    if labels:
        np.testing.assert_array_equal(a.labels_, b.labels_)


def as_compressed(X: NDArray[Any], compressor: Compressor) -> NDArray[Any]:
    """Rows in the units of the signatures: those of the data, unless these were scaled or are very large or small."""
    scaling = compressor.router_.scaling
    return X if scaling is None else scaling.apply(X)


def direct_distortion(X: NDArray[Any], compressor: Compressor, weights: Any = None) -> float:
    off = (
        as_compressed(X, compressor).astype(np.float64)
        - compressor.signatures_.points.astype(np.float64)[compressor.labels_]
    )
    return float(np.average((off * off).sum(axis=1), weights=weights))
