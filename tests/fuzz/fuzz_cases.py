"""Random cases for the campaign of labels: rows, a model for them, and another way to bring them."""

import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone

from dc2 import KASP, RASP, Compressor, DC2Clustering, RPFCluster
from dc2.spectral import RPF
from support.array_kinds import ARRAYS, SPARSE, STREAMED_ARRAYS
from support.row_changes import clear_clusters

MISSING = []  # packages without which some sources are not drawn
try:
    from support.source_kinds import IN_MEMORY, LAZY, LISTS, STREAMED, WRITTEN
    from support.source_kinds import MISSING as _WITHOUT

    MISSING += _WITHOUT
except ImportError as _error:  # pandas or pyarrow
    MISSING.append(_error.name)
    IN_MEMORY, STREAMED, LAZY, LISTS, WRITTEN = ARRAYS, STREAMED_ARRAYS, {}, {}, {}
try:
    import dask.array as da
except ImportError:
    MISSING.append("dask")


def dask_array(X: np.ndarray, folder: Path, at: tuple[float, ...]) -> Any:
    return da.from_array(X, chunks=(max(1, len(X) // 3), -1))


Maker = Callable[[np.ndarray, Path, tuple[float, ...]], Any]
AT_ONCE: dict[str, Maker] = IN_MEMORY | SPARSE | LISTS
PIECEWISE: dict[str, Maker] = STREAMED | WRITTEN | LAZY | ({} if "dask" in MISSING else {"dask": dask_array})
AS_FLOAT64 = (
    "list",
    "csv",
    "csv.gz",
    "jsonl",
    "pandas csv",
    "polars csv",
    "duckdb csv",
)  # text and Python's numbers have no other type
KINDS = (*2 * ("auto", "DC2Clustering", "RPFCluster", "Compressor"), "RASP", "KASP")
SHAPES = (
    "normal",
    "blobs",
    "line",
    "grid",
    "constant columns",
    "outliers",
    "offset",
    "tiny",
    "huge",
    "denormal",
    "few distinct",
    "many scales",
    "groups of few",
    "added columns",
    "clear clusters",
)
ROWS_FOR_TWIN = (20, 80)  # NumPy's core is slow, so most cases with more rows are left out there
SIZES = (2, 8, 20, 50, 120, 400)  # most bugs show in few rows, and few rows are quick
HOW_OFTEN = (20, 30, 35, 11, 3, 1)


@dataclass(frozen=True, eq=False)
class Case:
    """Rows, a model for them, and another way to bring them."""

    shape: str
    X: np.ndarray
    weights: np.ndarray | None
    model: Any
    source: str = "array"
    cuts: tuple[float, ...] = ()
    n_jobs: int = 1
    block_bytes: int = 2**24
    rows_for_twin: int = 80

    @property
    def call(self) -> str:
        weighted = "" if self.weights is None else ", sample_weight=integers"
        return (
            f"{' '.join(repr(self.model).split())}.fit(<{self.shape} {self.X.dtype} {self.X.shape}>{weighted}), also "
            f"from {self.source!r} with n_jobs={self.n_jobs}, block_bytes={self.block_bytes}"
        )

    def brought(self, folder: Path) -> Any:
        """The rows, as the source brings them."""
        return (AT_ONCE | PIECEWISE)[self.source](self.X, folder, self.cuts)


def made(seed: int, number: int) -> Case:
    """Make a case from the seed and its number alone; it also depends on the packages that are installed."""
    chance = random.Random(f"{seed} {number}")
    rng = np.random.default_rng(chance.getrandbits(64))
    shape = chance.choice(SHAPES)
    size = chance.choices(SIZES, HOW_OFTEN)[0]
    X = rows_of(shape, size + chance.randrange(1 + size), chance.randint(1, 9), rng)
    dtype = chance.choice((np.float32, np.float64))
    weights = weights_of(len(X), rng) if chance.random() < 0.2 else None
    model = model_for(chance, len(X))
    cuts = tuple(sorted(chance.random() for _ in range(chance.randrange(3))))
    n_jobs, block_bytes = chance.choice((1, 2, 3)), chance.choice((64, 256, 512, 4096, 2**24))
    rows_for_twin = chance.choices(ROWS_FOR_TWIN, (9, 1))[0]
    source = chance.choice(list(AT_ONCE if isinstance(model, KASP) else AT_ONCE | PIECEWISE))
    X = finite(X, np.float64 if source in AS_FLOAT64 else dtype)
    if source in SPARSE:
        X = X + X.dtype.type(0)  # zeros that are not stored have no sign
    return Case(shape, X, weights, model, source, cuts, n_jobs, block_bytes, rows_for_twin)


def finite(X: np.ndarray, dtype: Any) -> np.ndarray:
    with np.errstate(over="ignore", under="ignore"):
        X = X.astype(dtype)
    return np.where(np.isfinite(X), X, 0).astype(dtype)


def weights_of(n_rows: int, rng: np.random.Generator) -> np.ndarray:
    weights = rng.integers(0, 4, n_rows).astype(np.float64)
    return weights if weights.any() else np.ones(n_rows)


def rows_of(shape: str, n_rows: int, width: int, rng: np.random.Generator) -> np.ndarray:
    """Make rows of a shape."""
    X = rng.normal(size=(n_rows, width))
    if shape == "blobs":
        X += 9.0 * rng.integers(0, 4, (n_rows, 1))
    elif shape == "line":
        X = np.arange(n_rows, dtype=float)[:, None] * np.ones(width)
    elif shape == "grid":
        X = rng.integers(0, 4, (n_rows, width)).astype(float)
    elif shape == "constant columns":
        X[:, ::2] = 7.25
    elif shape == "outliers":
        X[rng.random(n_rows) < 0.05] *= 1e6
    elif shape == "offset":
        X += 10.0 ** rng.integers(3, 7)
    elif shape == "tiny":
        X *= 2.0 ** -int(rng.integers(60, 1000))
    elif shape == "huge":
        X *= 2.0 ** int(rng.integers(60, 1000))
    elif shape == "few distinct":
        X = X[rng.integers(0, 1 + n_rows // 4, n_rows)]
    elif shape == "groups of few":
        groups, distinct = int(rng.integers(2, 9)), int(rng.integers(1, 9))
        each = (9.0 * rng.permutation(groups)[:, None, None] + rng.normal(size=(groups, distinct, width))).reshape(
            -1, width
        )
        X = each[rng.integers(0, len(each), n_rows)]
    elif shape == "added columns":
        X = np.column_stack([X, X[:, rng.integers(0, width, 2)], np.full(n_rows, rng.normal())])
    elif shape == "clear clusters":
        k = int(rng.integers(1, 5))
        X = clear_clusters(rng, k, width, max(40, n_rows // k))[0]
    elif shape == "many scales":
        X = 5.0 + X * 10.0 ** rng.integers(-4, 5, width)
    elif shape == "denormal":
        X = np.ldexp(np.round(100 * X), -1074)
    return X


def model_for(chance: random.Random, n_rows: int) -> Any:
    """Make a model with random parameters."""
    n_clusters = chance.choice((1, 2, 3, 5))
    n_signatures = max(n_clusters, chance.randint(2, max(2, n_rows)))
    own: dict[str, Any] = {"n_jobs": 1, "random_state": chance.randrange(1000)}
    as_it_is = {"prepare": None}  # frames of very different scales would be scaled, arrays are not
    scale = {
        "scale": chance.choice((None, None, "standard", "robust")),
        "metric": chance.choice(("euclidean", "euclidean", "cosine")),
    }
    compressor = Compressor(
        refine=chance.choice((0, 1)),
        populate=chance.choice(("nearest", "nearest", "leaf")),
        signature=chance.choice(("centroid", "centroid", "member")),
        cut=chance.choice(("median", "mean", "quantile", "uniform")),
        sharpen=chance.randrange(3),
        n_partitions=chance.choice((1, 1, 1, 2)),
        divide=chance.choice(("projection", "projection", "sampling")),
    )
    kind = chance.choice(KINDS)
    if kind == "auto":
        noise = chance.choice((0.0, 0.0, 0.05, 0.2))
        requested = chance.choice((n_clusters, "auto", (1, 6)))
        return DC2Clustering(requested, noise=noise, **as_it_is, **scale, **own)
    if kind == "DC2Clustering":
        return DC2Clustering(n_clusters, n_signatures=n_signatures, compressor=compressor, **as_it_is, **scale, **own)
    if kind == "RPFCluster":
        similarity = chance.choice((RPF(n_trees=chance.randint(1, 20)), "gaussian", "graph"))
        requested = n_clusters if chance.random() < 0.7 else chance.choice(("auto", (1, 4)))
        weighted = chance.random() < 0.3
        return RPFCluster(
            requested, n_signatures=n_signatures, similarity=similarity, weighted=weighted,
            assign=chance.choice(("kmeans", "ncut")), compressor=compressor, **scale, **own,
        )  # fmt: skip
    if kind == "RASP":
        return RASP(n_clusters, n_signatures=n_signatures, **own)
    if kind == "KASP":
        return KASP(n_clusters, n_signatures=min(n_signatures, 12), **own)
    return clone(compressor).set_params(n_signatures=n_signatures, **scale, **own)
