"""Generated shapes for benchmarks and tests: float32, any number of rows, memory near the result's size."""

from collections.abc import Iterator
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from dc2.errors import InputError, ParameterError

__all__ = [
    "add_noise_columns",
    "make_bananas",
    "make_intrinsic",
    "make_rank",
    "make_rings",
    "make_spirals",
    "make_uneven_blobs",
]

_ROWS_PER_BLOCK = 1 << 14


def check_rows(n: int) -> int:
    """Return `n`, a number of rows to generate, if it is one."""
    if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 1:
        raise ParameterError(f"n={n!r} rows cannot be generated; n must be a whole number of at least 1.")
    return int(n)


def row_blocks(n: int) -> Iterator[slice]:
    """Yield slices that cut `n` rows into blocks small enough to stay in a processor's cache."""
    for start in range(0, n, _ROWS_PER_BLOCK):
        yield slice(start, min(start + _ROWS_PER_BLOCK, n))


Rows: TypeAlias = NDArray[np.float32]
Labels: TypeAlias = NDArray[np.int32]

_TURN = np.float32(2.0 * np.pi)


def make_rank(n: int, seed: int = 0, *, rank: int = 4, n_features: int = 18, noise: float = 0.2) -> Rows:
    """Draw rows near a flat space: standard normal (n, rank) times a normal (rank, n_features), plus noise.

    Parameters
    ----------
    n : int
        Number of rows.
    seed : int, default=0
        Seed; it also fixes the matrix.
    rank : int, default=4
        Dimension of the flat space.
    n_features : int, default=18
        Number of columns.
    noise : float, default=0.2
        Standard deviation of the noise in every column.

    Returns
    -------
    ndarray of shape (n, n_features), float32

    Examples
    --------
    >>> from dc2.datasets import make_rank
    >>> make_rank(1000).shape
    (1000, 18)
    """
    rng = np.random.default_rng(seed)
    basis = rng.standard_normal((_at_least_one(rank, "rank"), _at_least_one(n_features, "n_features")), np.float32)
    X = np.empty((check_rows(n), n_features), dtype=np.float32)
    with threadpool_limits(1, "blas"):  # products this narrow are slower on several threads
        for rows in row_blocks(n):
            block = X[rows]
            rng.standard_normal(dtype=np.float32, out=block)
            block *= np.float32(noise)
            block += rng.standard_normal((len(block), rank), np.float32) @ basis
    return X


def make_bananas(n: int, seed: int = 0, *, noise: float = 0.1) -> tuple[Rows, Labels]:
    """Draw two interleaved half circles of radius 1 with Gaussian noise: two clusters that no plane parts.

    Parameters
    ----------
    n : int
        Number of rows. A common size in work on large-scale spectral clustering is 1,000,000.
    seed : int, default=0
        Seed.
    noise : float, default=0.1
        Standard deviation; the arcs come as near as 0.5 to each other.

    Returns
    -------
    X : ndarray of shape (n, 2), float32
    y : ndarray of shape (n,), int32

    Examples
    --------
    >>> from dc2.datasets import make_bananas
    >>> X, y = make_bananas(1000)
    >>> X.shape, y.max()
    ((1000, 2), np.int32(1))
    """
    rng = np.random.default_rng(seed)
    X, y = _empty(n, 2)
    for rows in row_blocks(n):
        label = y[rows]
        label[:] = rng.integers(0, 2, len(label), dtype=np.int32)
        angle = rng.random(len(label), np.float32) * (_TURN / 2)
        X[rows, 0] = np.where(label == 0, np.cos(angle), 1 - np.cos(angle))
        X[rows, 1] = np.where(label == 0, np.sin(angle), 0.5 - np.sin(angle))
        _add_noise(X[rows], noise, rng)
    return X, y


def make_rings(n: int, seed: int = 0, *, n_rings: int = 3, noise: float = 0.1) -> tuple[Rows, Labels]:
    """Draw circles within circles, of radius 1, 2, 3, ..., with Gaussian noise; a ring has rows by its length.

    Parameters
    ----------
    n : int
        Number of rows. A common size in work on large-scale spectral clustering is 5,000,000, with three rings.
    seed : int, default=0
        Seed.
    n_rings : int, default=3
        Number of rings.
    noise : float, default=0.1
        Standard deviation of the noise; rings are 1 apart.

    Returns
    -------
    X : ndarray of shape (n, 2), float32
    y : ndarray of shape (n,), int32
        0 is the innermost ring.

    Examples
    --------
    >>> from dc2.datasets import make_rings
    >>> X, y = make_rings(1000, n_rings=5)
    >>> X.shape, y.max()
    ((1000, 2), np.int32(4))
    """
    rng = np.random.default_rng(seed)
    lengths = np.arange(1, _at_least_one(n_rings, "n_rings") + 1)
    X, y = _empty(n, 2)
    for rows in row_blocks(n):
        y[rows] = _pick(lengths, rows.stop - rows.start, rng)
        _place_on_circle(X[rows], (y[rows] + 1).astype(np.float32), rng.random(len(X[rows]), np.float32) * _TURN)
        _add_noise(X[rows], noise, rng)
    return X, y


def make_spirals(
    n: int, seed: int = 0, *, n_arms: int = 3, turns: float = 1.0, noise: float = 0.1
) -> tuple[Rows, Labels]:
    """Draw spiral arms that wind around each other, 1 apart, evenly dense along each, with Gaussian noise.

    Parameters
    ----------
    n : int
        Number of rows.
    seed : int, default=0
        Seed.
    n_arms : int, default=3
        Number of arms.
    turns : float, default=1.0
        How often each arm goes around.
    noise : float, default=0.1
        Standard deviation of the noise.

    Returns
    -------
    X : ndarray of shape (n, 2), float32
    y : ndarray of shape (n,), int32

    Examples
    --------
    >>> from dc2.datasets import make_spirals
    >>> X, y = make_spirals(1000)
    >>> X.shape, y.max()
    ((1000, 2), np.int32(2))
    """
    if not turns > 0:
        raise ParameterError(f"turns={turns} makes no spiral; it must be above 0.")
    rng = np.random.default_rng(seed)
    inner, growth = 1.0, float(_at_least_one(n_arms, "n_arms"))  # radius, and how much it grows in a turn
    outer = inner + growth * turns
    X, y = _empty(n, 2)
    for rows in row_blocks(n):
        label = y[rows]
        label[:] = rng.integers(0, n_arms, len(label), dtype=np.int32)
        # A ring of a spiral is as long as its radius: uniform in the radius' square is even along the arm.
        radius = np.sqrt(inner**2 + (outer**2 - inner**2) * rng.random(len(label), np.float32)).astype(np.float32)
        _place_on_circle(X[rows], radius, ((radius - inner) / growth + label / np.float32(n_arms)) * _TURN)
        _add_noise(X[rows], noise, rng)
    return X, y


def make_uneven_blobs(n: int, n_features: int = 2, seed: int = 0, *, n_clusters: int = 10) -> tuple[Rows, Labels]:
    """Draw Gaussian clusters of very different sizes and widths.

    Each cluster has 0.7 times the rows of the one before it, so the last of ten has a 25th of the first; widths run
    from 0.3 to 1.5, in random order, and centres keep apart in a cube of side 20.

    Parameters
    ----------
    n : int
        Number of rows.
    n_features : int, default=2
        Number of columns.
    seed : int, default=0
        Seed; it also fixes centres and widths.
    n_clusters : int, default=10
        Number of clusters.

    Returns
    -------
    X : ndarray of shape (n, n_features), float32
    y : ndarray of shape (n,), int32
        0 is the largest cluster.

    Examples
    --------
    >>> from dc2.datasets import make_uneven_blobs
    >>> X, y = make_uneven_blobs(1000, 5)
    >>> X.shape
    (1000, 5)
    """
    rng = np.random.default_rng(seed)
    centres = _centres_apart(_at_least_one(n_clusters, "n_clusters"), _at_least_one(n_features, "n_features"), rng)
    widths = rng.permutation(np.geomspace(0.3, 1.5, n_clusters)).astype(np.float32)
    sizes = 0.7 ** np.arange(n_clusters)
    X, y = _empty(n, n_features)
    for rows in row_blocks(n):
        y[rows] = _pick(sizes, rows.stop - rows.start, rng)
        block = X[rows]
        rng.standard_normal(dtype=np.float32, out=block)
        block *= widths[y[rows], None]
        block += centres[y[rows]]
    return X, y


def make_intrinsic(n: int, intrinsic_dim: int, n_features: int = 20, seed: int = 0, *, bend: float = 0.5) -> Rows:
    """Draw rows from a curved manifold of known intrinsic dimension.

    The manifold is the graph of a smooth function: `intrinsic_dim` coordinates, uniform with variance 1, along as many
    directions of space, and `bend` times sines of mixtures of them along all the others. A graph does not cross
    itself, so its dimension is exactly `intrinsic_dim`.

    Parameters
    ----------
    n : int
        Number of rows.
    intrinsic_dim : int
        Dimension of the manifold, from 1 to `n_features`.
    n_features : int, default=20
        Number of columns.
    seed : int, default=0
        Seed; it also fixes the manifold.
    bend : float, default=0.5
        Height of the bends; 0 gives a flat space.

    Returns
    -------
    ndarray of shape (n, n_features), float32

    Examples
    --------
    >>> from dc2.datasets import make_intrinsic
    >>> make_intrinsic(1000, 3).shape
    (1000, 20)
    """
    if not 1 <= intrinsic_dim <= _at_least_one(n_features, "n_features"):
        raise ParameterError(f"intrinsic_dim={intrinsic_dim} does not fit into n_features={n_features} columns.")
    rng = np.random.default_rng(seed)
    rotation = np.linalg.qr(rng.standard_normal((n_features, n_features)))[0].astype(np.float32)
    flat, others = rotation[:intrinsic_dim], rotation[intrinsic_dim:]
    mixtures = rng.standard_normal((intrinsic_dim, len(others)), np.float32) / np.float32(np.sqrt(intrinsic_dim))
    phases = rng.random(len(others), np.float32) * _TURN
    X = np.empty((check_rows(n), n_features), dtype=np.float32)
    with threadpool_limits(1, "blas"):
        for rows in row_blocks(n):
            inner = (rng.random((rows.stop - rows.start, intrinsic_dim), np.float32) - 0.5) * np.float32(np.sqrt(12.0))
            X[rows] = inner @ flat + np.float32(bend) * np.sin(2 * (inner @ mixtures) + phases) @ others
    return X


def add_noise_columns(X: NDArray[Any], n_columns: int = 8, std: float = 0.1, seed: int = 0) -> Rows:
    """Return `X` with `n_columns` columns of Gaussian noise to its right, as float32.

    Parameters
    ----------
    X : array of shape (n, n_features)
    n_columns : int, default=8
        Number of columns to add.
    std : float, default=0.1
        Standard deviation of the noise.
    seed : int, default=0
        Seed.

    Returns
    -------
    ndarray of shape (n, n_features + n_columns), float32

    Examples
    --------
    >>> from dc2.datasets import add_noise_columns, make_bananas
    >>> add_noise_columns(make_bananas(1000)[0]).shape
    (1000, 10)
    """
    X = np.asarray(X)
    if X.ndim != 2:
        raise InputError(f"X of shape {X.shape} is not a table; noise columns need rows and columns.")
    rng = np.random.default_rng(seed)
    n_features = X.shape[1]
    wider = np.empty((len(X), n_features + _at_least_one(n_columns, "n_columns")), dtype=np.float32)
    for rows in row_blocks(len(X)):
        wider[rows, :n_features] = X[rows]
        noise = rng.standard_normal((rows.stop - rows.start, n_columns), np.float32)
        wider[rows, n_features:] = noise * np.float32(std)
    return wider


def _at_least_one(value: int, name: str) -> int:
    if value < 1:
        raise ParameterError(f"{name}={value} is impossible; it must be at least 1.")
    return value


def _empty(n: int, n_features: int) -> tuple[Rows, Labels]:
    return np.empty((check_rows(n), n_features), dtype=np.float32), np.empty(n, dtype=np.int32)


def _pick(sizes: NDArray[Any], n: int, rng: np.random.Generator) -> Labels:
    """Draw `n` labels with probabilities in proportion to `sizes`."""
    bounds = np.cumsum(sizes / sizes.sum())[:-1].astype(np.float32)
    return np.searchsorted(bounds, rng.random(n, np.float32), side="right").astype(np.int32)


def _place_on_circle(out: Rows, radius: Rows, angle: Rows) -> None:
    out[:, 0] = radius * np.cos(angle)
    out[:, 1] = radius * np.sin(angle)


def _add_noise(out: Rows, noise: float, rng: np.random.Generator) -> None:
    out += rng.standard_normal(out.shape, np.float32) * np.float32(noise)


def _centres_apart(n_centres: int, n_features: int, rng: np.random.Generator) -> Rows:
    """Draw centres one by one, each the one of 50 candidates that is farthest from those already there."""
    centres = rng.uniform(-10.0, 10.0, size=(1, n_features))
    while len(centres) < n_centres:
        candidates = rng.uniform(-10.0, 10.0, size=(50, n_features))
        nearest = np.linalg.norm(candidates[:, None] - centres, axis=2).min(axis=1)
        centres = np.vstack([centres, candidates[nearest.argmax()]])
    return centres.astype(np.float32)
