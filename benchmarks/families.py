"""Families of labelled data sets, each drawn by seed with random parameters of its own.

`instances()` yields them. Every family belongs to one of two halves: rules and constants are chosen on the half
``"choose"``, and what they are worth is reported on the half ``"report"``. What counts as the right answer, also where
clusters overlap, is explained in `family_truth`.

>>> one = next(instances(["moons"], seeds=[0]))
>>> one.name, one.X.shape[1], one.k
('moons-0', 2, 2)
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from family_truth import SKELETON, Drawn, gaussian_densities, labelings, skeleton_densities
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

Rng = np.random.Generator
Family = Callable[[Rng, float], Drawn]
FAMILIES: dict[str, Family] = {}
HALVES: dict[str, str] = {}
FEWEST_OF_A_CLUSTER = 8


@dataclass(frozen=True)
class Instance:
    """A data set with its right answers.

    Attributes
    ----------
    name, family, half : str
    seed : int
    X : ndarray of shape (n_rows, n_columns), float32
    y : ndarray of shape (n_rows,), int64
        The right answer, clusters from 1; 0 marks noise, which is not scored.
    k : int
        The number of clusters in `y`.
    accept : tuple of ndarray
        All acceptable labellings, `y` first; 0 marks the same rows in each.
    """

    name: str
    family: str
    half: str
    seed: int
    X: NDArray[np.float32]
    y: NDArray[np.int64]
    k: int
    accept: tuple[NDArray[np.int64], ...]

    @property
    def numbers(self) -> tuple[int, ...]:
        """The acceptable numbers of clusters."""
        return tuple(int(y.max()) for y in self.accept)


def instances(
    families: Iterable[str] | None = None,
    seeds: Iterable[int] = range(3),
    half: str | None = None,
    scale: float = 1.0,
) -> Iterator[Instance]:
    """Yield data sets, those of a family one after the other.

    Parameters
    ----------
    families : iterable of str, optional
        Names in `FAMILIES`; all by default.
    seeds : iterable of int
    half : {"choose", "report"}, optional
        Only families of this half.
    scale : float
        Factor on the numbers of rows, which are 100 to 8000 otherwise.
    """
    seeds = list(seeds)
    for name in FAMILIES if families is None else families:
        if half in (None, HALVES[name]):
            for seed in seeds:
                yield instance(name, seed, scale)


def instance(family: str, seed: int, scale: float = 1.0) -> Instance:
    """Return one data set; rows are in random order."""
    rng = np.random.default_rng([zlib.crc32(family.encode()), seed])
    drawn = FAMILIES[family](rng, scale)
    accept = labelings(drawn)
    order = rng.permutation(len(drawn.X))
    X = np.ascontiguousarray(drawn.X[order], dtype=np.float32)
    accept = tuple(y[order] for y in accept)
    return Instance(f"{family}-{seed}", family, HALVES[family], seed, X, accept[0], int(accept[0].max()), accept)


def family(half: str) -> Callable[[Family], Family]:
    """Register a function as a family of a half."""

    def register(draw: Family) -> Family:
        FAMILIES[draw.__name__] = draw
        HALVES[draw.__name__] = half
        return draw

    return register


# --- what families are made of ---------------------------------------------------------------------------------------


def count(rng: Rng, scale: float, low: int = 300, high: int = 4000) -> int:
    """Return a number of rows, even in the logarithm."""
    return round(scale * float(np.exp(rng.uniform(np.log(low), np.log(high)))))


def number(rng: Rng, low: int, high: int) -> int:
    """Return a whole number from low to high, even in the logarithm."""
    return int(np.floor(np.exp(rng.uniform(np.log(low), np.log(high + 1)))))


def members(rng: Rng, n: int, k: int, ratio: float = 1.5) -> NDArray[np.int64]:
    """Return the component of each row, from 1; the largest component has up to `ratio` times as many as the least."""
    shares = np.exp(rng.uniform(0, np.log(ratio), k))
    if k > 1:
        shares[rng.permutation(k)[:2]] = 1.0, ratio
    counts = np.maximum(np.round(n * shares / shares.sum()).astype(int), FEWEST_OF_A_CLUSTER)
    return np.repeat(np.arange(1, k + 1), counts)


def centres(rng: Rng, k: int, d: int, apart: float, typical: bool = False) -> NDArray[np.float64]:
    """Return random centres whose least (or typical, the median) distance to the nearest other is `apart`."""
    if k == 1:
        return np.zeros((1, d))
    points = rng.normal(size=(1, d))
    while len(points) < k:  # of three tries the one farthest from the others, so that no two nearly coincide
        tries = rng.normal(size=(3, d))
        points = np.vstack([points, tries[cdist(tries, points).min(axis=1).argmax()]])
    gaps = cdist(points, points)
    np.fill_diagonal(gaps, np.inf)
    least = gaps.min(axis=1)
    return np.asarray(points * (apart / (np.median(least) if typical else least.min())))


def rotation(rng: Rng, d: int) -> NDArray[np.float64]:
    return np.asarray(np.linalg.qr(rng.normal(size=(d, d)))[0])


def factors(rng: Rng, k: int, d: int, stretch: float = 1.0, spread: float = 1.0) -> NDArray[np.float64]:
    """Return factors of covariances: axes differ by up to `stretch`, clusters by up to `spread`; the volume is kept."""
    made = np.empty((k, d, d))
    for i in range(k):
        axes = np.exp(rng.uniform(-0.5, 0.5, d) * np.log(stretch))
        size = np.exp(rng.uniform(-0.5, 0.5) * np.log(spread))
        made[i] = rotation(rng, d) * (size * axes / np.exp(np.log(axes).mean()))
    return made


def mixture(
    rng: Rng, y: NDArray[np.int64], means: NDArray[Any], shapes: NDArray[Any], freedom: float | None = None
) -> Drawn:
    """Draw Gaussians, or t distributions."""
    z = rng.normal(size=(len(y), means.shape[1]))
    if freedom is not None:
        z /= np.sqrt(rng.chisquare(freedom, (len(y), 1)) / freedom)
    X = (
        means[y - 1] + np.einsum("nij,nj->ni", shapes[y - 1], z)
        if len(y) * means.shape[1] ** 2 < 5e7
        else _slowly(y, means, shapes, z)
    )
    return Drawn(X, y, lambda rows: gaussian_densities(X[rows], means, shapes, freedom))


def _slowly(y: NDArray[np.int64], means: NDArray[Any], shapes: NDArray[Any], z: NDArray[Any]) -> NDArray[np.float64]:
    X = np.empty_like(z)
    for i in range(len(means)):
        X[y == i + 1] = means[i] + z[y == i + 1] @ shapes[i].T
    return X


def skeleton(
    rng: Rng, n: int, curves: list[NDArray[Any]], noise: float | list[float], ratio: float = 1.5, touching: bool = True
) -> Drawn:
    """Draw rows evenly from the points of curves, with Gaussian noise around them.

    Points must be dense and evenly spaced along each curve; if they are not, lengths are evened out here.
    """
    curves = [resample(curve, 4 * SKELETON) if _is_path(curve) else curve for curve in curves]
    noises = [noise] * len(curves) if np.isscalar(noise) else list(noise)
    lengths = np.array([_length(curve) for curve in curves])
    by_length = lengths / lengths.sum()
    shares = by_length * np.exp(rng.uniform(-0.5, 0.5, len(curves)) * np.log(ratio))
    counts = np.maximum(np.round(n * shares / shares.sum()).astype(int), FEWEST_OF_A_CLUSTER)
    y = np.repeat(np.arange(1, len(curves) + 1), counts)
    parts = [
        curve[rng.integers(len(curve), size=m)] + s * rng.normal(size=(m, curve.shape[1]))
        for curve, m, s in zip(curves, counts, noises, strict=True)
    ]
    X = np.concatenate(parts)
    return Drawn(X, y, lambda rows: skeleton_densities(X[rows], [curve[::4] for curve in curves], noises), touching)


def _is_path(curve: NDArray[Any]) -> bool:
    return len(curve) != 4 * SKELETON


def _length(curve: NDArray[Any]) -> float:
    return float(np.linalg.norm(np.diff(curve, axis=0), axis=1).sum()) + 1e-9


def resample(path: NDArray[Any], m: int) -> NDArray[np.float64]:
    """Return m points, evenly spaced along a path of straight pieces."""
    along = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(path, axis=0), axis=1))])
    at = np.linspace(0, along[-1], m)
    return np.stack([np.interp(at, along, column) for column in path.T], axis=1)


def turned(path: NDArray[Any], angle: float) -> NDArray[np.float64]:
    c, s = np.cos(angle), np.sin(angle)
    return np.asarray(path @ np.array([[c, s], [-s, c]]))


def arc(centre: NDArray[Any] | tuple[float, float], radius: float, start: float, stop: float) -> NDArray[np.float64]:
    t = np.linspace(start, stop, 400)
    return np.asarray(centre) + radius * np.stack([np.cos(t), np.sin(t)], axis=1)


def with_background(rng: Rng, drawn: Drawn, share: float) -> Drawn:
    """Add uniform noise, labelled 0; its rows inside clusters stay noise, and are not scored."""
    low, high = drawn.X.min(axis=0), drawn.X.max(axis=0)
    noise = rng.uniform(low, high, (round(len(drawn.X) * share), drawn.X.shape[1]))
    raw = np.concatenate([drawn.raw, np.zeros(len(noise), dtype=np.int64)])
    return replace(drawn, X=np.concatenate([drawn.X, noise]), raw=raw)


def with_columns(drawn: Drawn, X: NDArray[Any]) -> Drawn:
    """Keep labels and densities, but replace the columns."""
    return replace(drawn, X=X)


def one_cluster(X: NDArray[Any]) -> Drawn:
    return Drawn(X, np.ones(len(X), dtype=np.int64))


# --- clouds ----------------------------------------------------------------------------------------------------------


@family("choose")
def clouds_clear(rng: Rng, scale: float) -> Drawn:
    d, k = number(rng, 2, 50), number(rng, 2, 30)
    y = members(rng, max(count(rng, scale), 20 * k), k, rng.uniform(1, 3))
    return mixture(rng, y, centres(rng, k, d, rng.uniform(6, 12) * _more(d)), factors(rng, k, d))


def _more(d: int) -> float:
    """In many columns the spread of a cloud, not its width in one direction, is what centres must differ by."""
    return float(max(1.0, (d / 4) ** 0.25))


@family("report")
def clouds_close(rng: Rng, scale: float) -> Drawn:
    d, k = number(rng, 2, 20), number(rng, 2, 30)
    y = members(rng, max(count(rng, scale, 500), 40 * k), k, rng.uniform(1, 3))
    return mixture(rng, y, centres(rng, k, d, rng.uniform(4, 6), typical=True), factors(rng, k, d, 1.5, 1.5))


@family("choose")
def clouds_overlapping(rng: Rng, scale: float) -> Drawn:
    d, k = number(rng, 2, 10), number(rng, 2, 12)
    y = members(rng, max(count(rng, scale, 600, 6000), 60 * k), k, rng.uniform(1, 2))
    return mixture(rng, y, centres(rng, k, d, rng.uniform(2.2, 4), typical=True), factors(rng, k, d, 1.5, 1.5))


@family("report")
def clouds_two_overlapping(rng: Rng, scale: float) -> Drawn:
    d = number(rng, 2, 10)
    y = members(rng, count(rng, scale, 400, 5000), 2, rng.uniform(1, 3))
    means = np.zeros((2, d))
    means[1] = rotation(rng, d)[0] * rng.uniform(1.5, 4.5)
    return mixture(rng, y, means, factors(rng, 2, d, rng.uniform(1, 2), rng.uniform(1, 2)))


@family("choose")
def clouds_uneven_sizes(rng: Rng, scale: float) -> Drawn:
    d, k = number(rng, 2, 20), number(rng, 3, 15)
    y = members(rng, count(rng, scale, 1000, 8000), k, np.exp(rng.uniform(np.log(10), np.log(100))))
    return mixture(rng, y, centres(rng, k, d, rng.uniform(5, 9) * _more(d)), factors(rng, k, d, 1.5, 2))


@family("report")
def clouds_uneven_spreads(rng: Rng, scale: float) -> Drawn:
    d, k = number(rng, 2, 12), number(rng, 2, 12)
    spread = rng.uniform(4, 12)
    y = members(rng, count(rng, scale, 500), k, rng.uniform(1, 4))
    return mixture(rng, y, centres(rng, k, d, 3 * np.sqrt(spread) * _more(d)), factors(rng, k, d, 1.2, spread))


@family("choose")
def clouds_elongated(rng: Rng, scale: float) -> Drawn:
    d, k = number(rng, 2, 10), number(rng, 2, 12)
    y = members(rng, count(rng, scale, 400), k, rng.uniform(1, 3))
    means = centres(rng, k, d, rng.uniform(4, 8))
    return mixture(rng, y, means, factors(rng, k, d, rng.uniform(3, 10)))


@family("report")
def clouds_parallel(rng: Rng, scale: float) -> Drawn:
    """Long clouds side by side."""
    d, k = number(rng, 2, 8), number(rng, 2, 6)
    y = members(rng, count(rng, scale, 400), k, rng.uniform(1, 2))
    means = np.zeros((k, d))
    means[:, 0] = np.arange(k) * rng.uniform(4, 8)
    means[:, 1] = rng.uniform(-3, 3, k)
    axes = np.ones(d)
    axes[1] = rng.uniform(4, 10)
    drawn = mixture(rng, y, means, np.repeat(np.diag(axes)[None], k, axis=0))
    return with_columns(drawn, drawn.X @ rotation(rng, d))


@family("report")
def clouds_crowded(rng: Rng, scale: float) -> Drawn:
    """Many clouds in the plane, some of which overlap."""
    k = number(rng, 10, 35)
    y = members(rng, count(rng, scale, 2000, 8000), k, rng.uniform(1, 1.6))
    return mixture(rng, y, centres(rng, k, 2, rng.uniform(3, 5), typical=True), factors(rng, k, 2, 2, 1.5))


@family("choose")
def clouds_crowded_3_to_6(rng: Rng, scale: float) -> Drawn:
    d, k = number(rng, 3, 6), number(rng, 8, 40)
    y = members(rng, max(count(rng, scale, 2000, 8000), 60 * k), k, rng.uniform(1, 1.6))
    return mixture(rng, y, centres(rng, k, d, rng.uniform(3.2, 5), typical=True), factors(rng, k, d, 2, 1.5))


@family("choose")
def few_rows(rng: Rng, scale: float) -> Drawn:
    d, k = number(rng, 2, 30), number(rng, 2, 6)
    y = members(rng, count(rng, scale, 100, 300), k, rng.uniform(1, 3))
    means = centres(rng, k, d, rng.uniform(4, 8) * _more(d))
    return mixture(rng, y, means, factors(rng, k, d, rng.uniform(1, 3), 1.5))


@family("report")
def many_clouds(rng: Rng, scale: float) -> Drawn:
    d, k = number(rng, 3, 16), number(rng, 40, 120)
    y = members(rng, max(count(rng, scale, 3000, 8000), 40 * k), k, rng.uniform(1, 3))
    return mixture(rng, y, centres(rng, k, d, rng.uniform(5, 8) * _more(d)), factors(rng, k, d, 1.5, 1.5))


@family("choose")
def hundreds_of_clouds(rng: Rng, scale: float) -> Drawn:
    d, k = number(rng, 4, 24), number(rng, 100, 400)
    y = members(rng, round(scale * k * rng.uniform(16, 24)), k, rng.uniform(1, 2))
    return mixture(rng, y, centres(rng, k, d, rng.uniform(6, 9) * _more(d)), factors(rng, k, d))


@family("report")
def nested(rng: Rng, scale: float) -> Drawn:
    """Groups of groups; both levels are right."""
    d, groups = number(rng, 2, 12), number(rng, 2, 6)
    inner = [number(rng, 2, 5) for _ in range(groups)]
    within, between = rng.uniform(5, 7) * _more(d), rng.uniform(4, 8)
    parts = [centres(rng, m, d, within) for m in inner]
    reach = max(float(np.linalg.norm(part - part.mean(axis=0), axis=1).max()) for part in parts)
    outer = centres(rng, groups, d, 2 * reach + between * within / 2)
    means = np.concatenate([c + part - part.mean(axis=0) for c, part in zip(outer, parts, strict=True)])
    k = len(means)
    y = members(rng, max(count(rng, scale, 500, 5000), 30 * k), k, rng.uniform(1, 3))
    drawn = mixture(rng, y, means, factors(rng, k, d, 1.3, 1.3))
    return replace(drawn, coarser=(np.repeat(np.arange(groups), inner),))


@family("choose")
def heavy_tails(rng: Rng, scale: float) -> Drawn:
    d, k = number(rng, 2, 10), number(rng, 2, 10)
    y = members(rng, count(rng, scale, 500, 5000), k, rng.uniform(1, 3))
    freedom = rng.uniform(2.5, 6)
    return mixture(rng, y, centres(rng, k, d, rng.uniform(8, 14) * _more(d)), factors(rng, k, d, 1.5), freedom)


@family("report")
def laplace_clouds(rng: Rng, scale: float) -> Drawn:
    d, k = number(rng, 2, 10), number(rng, 2, 10)
    y = members(rng, count(rng, scale, 500, 5000), k, rng.uniform(1, 3))
    means = centres(rng, k, d, rng.uniform(7, 12) * _more(d))
    X = means[y - 1] + rng.laplace(size=(len(y), d)) / np.sqrt(2)
    return Drawn(X, y, lambda rows: -np.sqrt(2) * cdist(X[rows], means, "cityblock"))


@family("report")
def lognormal_clouds(rng: Rng, scale: float) -> Drawn:
    """Skewed columns: exponentials of Gaussians."""
    d, k = number(rng, 2, 8), number(rng, 2, 6)
    y = members(rng, count(rng, scale, 500, 5000), k, rng.uniform(1, 3))
    drawn = mixture(rng, y, centres(rng, k, d, rng.uniform(6, 9) * _more(d)), factors(rng, k, d, 1.3))
    return with_columns(drawn, np.exp(drawn.X * rng.uniform(0.1, 0.25)))


@family("choose")
def clouds_and_noise(rng: Rng, scale: float) -> Drawn:
    d, k = number(rng, 2, 5), number(rng, 2, 12)
    y = members(rng, count(rng, scale, 500, 5000), k, rng.uniform(1, 3))
    drawn = mixture(rng, y, centres(rng, k, d, rng.uniform(7, 12)), factors(rng, k, d, 1.5, 1.5))
    return with_background(rng, drawn, rng.uniform(0.05, 0.3))


@family("report")
def noise_columns(rng: Rng, scale: float) -> Drawn:
    """Clusters in a few columns, nothing in the others."""
    d, k, more = number(rng, 2, 6), number(rng, 2, 10), number(rng, 2, 20)
    y = members(rng, count(rng, scale, 500, 5000), k, rng.uniform(1, 3))
    drawn = mixture(rng, y, centres(rng, k, d, rng.uniform(7, 12) * _more(d + more)), factors(rng, k, d, 1.5))
    return with_columns(drawn, np.column_stack([drawn.X, rng.normal(size=(len(y), more)) * rng.uniform(0.5, 1.2)]))


# --- directions, tables, manifolds -----------------------------------------------------------------------------------


@family("report")
def unit_vectors(rng: Rng, scale: float) -> Drawn:
    d, k = number(rng, 16, 256), number(rng, 3, 50)
    y = members(rng, max(count(rng, scale, 1000, 6000), 40 * k), k, rng.uniform(1, 4))
    means = rng.normal(size=(k, d))
    means /= np.linalg.norm(means, axis=1, keepdims=True)
    spread = rng.uniform(0.5, 0.9) / np.sqrt(d) * min(1.0, np.sqrt(d / 64) + 0.5)
    X = means[y - 1] + spread * rng.normal(size=(len(y), d))
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    return Drawn(unit, y, lambda rows: -cdist(X[rows], means, "sqeuclidean") / (2 * spread**2))


@family("choose")
def unit_vectors_of_topics(rng: Rng, scale: float) -> Drawn:
    """Directions in groups, wider and narrower, with rows of no cluster."""
    d, k = number(rng, 32, 256), number(rng, 4, 40)
    y = members(rng, max(count(rng, scale, 1000, 6000), 40 * k), k, rng.uniform(2, 10))
    common = rng.normal(size=(number(rng, 1, 4), d))
    means = rng.normal(size=(k, d)) + common[rng.integers(len(common), size=k)] * rng.uniform(0.3, 1.0)
    means /= np.linalg.norm(means, axis=1, keepdims=True)
    spreads = rng.uniform(0.35, 0.8, k) / np.sqrt(d)
    X = means[y - 1] + spreads[y - 1, None] * rng.normal(size=(len(y), d))
    noise = rng.normal(size=(round(len(y) * rng.uniform(0, 0.1)), d))
    everything = np.concatenate([X, noise])
    raw = np.concatenate([y, np.zeros(len(noise), dtype=np.int64)])
    unit = everything / np.linalg.norm(everything, axis=1, keepdims=True)
    return Drawn(unit, raw, lambda rows: -cdist(X[rows], means, "sqeuclidean") / (2 * spreads**2) - d * np.log(spreads))


@family("choose")
def measurements(rng: Rng, scale: float) -> Drawn:
    """Standardised measurements: correlated columns, some of them skewed, driven by a few hidden ones."""
    d, k, hidden = number(rng, 5, 40), number(rng, 2, 8), number(rng, 2, 6)
    y = members(rng, count(rng, scale, 300, 5000), k, rng.uniform(1, 5))
    drawn = mixture(rng, y, centres(rng, k, hidden, rng.uniform(4, 8)), factors(rng, k, hidden, 2, 1.5))
    X = drawn.X @ rng.normal(size=(hidden, d)) / np.sqrt(hidden)
    X += rng.normal(size=X.shape) * X.std(axis=0) * rng.uniform(0.1, 0.3)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    skewed = rng.random(d) < 0.4
    X[:, skewed] = np.exp(X[:, skewed] * rng.uniform(0.2, 0.6))
    return with_columns(drawn, (X - X.mean(axis=0)) / X.std(axis=0))


@family("report")
def mixed_scales(rng: Rng, scale: float) -> Drawn:
    """Columns in different units, rounded as instruments do, each of which tells something."""
    d, k = number(rng, 3, 15), number(rng, 2, 8)
    y = members(rng, count(rng, scale, 300, 5000), k, rng.uniform(1, 4))
    drawn = mixture(rng, y, centres(rng, k, d, rng.uniform(6, 10) * _more(d)), factors(rng, k, d, 2, 1.5))
    X = np.round(drawn.X * 20) / 20 * np.exp(rng.uniform(-0.8, 0.8, d))
    return with_columns(drawn, X)


@family("choose")
def count_table(rng: Rng, scale: float) -> Drawn:
    """Square roots of Poisson counts, whose spread is the same everywhere; few distinct values a column."""
    d, k = number(rng, 4, 30), number(rng, 2, 8)
    y = members(rng, count(rng, scale, 400, 5000), k, rng.uniform(1, 3))
    base = np.exp(rng.normal(0.8, 0.8, d))
    rates = base * np.exp(rng.normal(size=(k, d)) * rng.uniform(0.4, 1.0))
    X = rng.poisson(rates[y - 1])
    return Drawn(np.sqrt(X), y, lambda rows: X[rows] @ np.log(rates).T - rates.sum(axis=1))


@family("report")
def answers_table(rng: Rng, scale: float) -> Drawn:
    """Questionnaires: each class has its own chance of each answer; answers are one-hot columns or a scale."""
    questions, k, options = number(rng, 10, 40), number(rng, 2, 5), number(rng, 2, 4)
    y = members(rng, count(rng, scale, 400, 3000), k, rng.uniform(1, 3))
    chances = rng.dirichlet(np.full(options, rng.uniform(0.2, 0.6)), size=(k, questions))
    chances = (chances + 0.03) / (chances + 0.03).sum(axis=2, keepdims=True)
    cumulated = np.cumsum(chances, axis=2)[y - 1]
    answer = np.minimum((rng.random((len(y), questions, 1)) > cumulated).sum(axis=2), options - 1)

    def densities(rows: NDArray[np.intp]) -> NDArray[np.float64]:
        return np.asarray(np.log(chances[:, np.arange(questions)[None], answer[rows]]).sum(axis=2).T)

    return Drawn(np.eye(options)[answer].reshape(len(y), -1), y, densities)


def _random_map(rng: Rng, low: int, d: int) -> Callable[[NDArray[Any]], NDArray[np.float64]]:
    """Return a smooth random map into d columns."""
    waves, turns = rng.normal(size=(low, 12)) * rng.uniform(1, 2), rng.uniform(0, 2 * np.pi, 12)
    out, lift = rng.normal(size=(12, d)), rng.normal(size=(low, d))
    return lambda t: np.asarray(np.sin(t @ waves + turns) @ out / np.sqrt(12) + t @ lift / np.sqrt(low))


@family("choose")
def manifolds(rng: Rng, scale: float) -> Drawn:
    """Curved sheets of 1 to 3 dimensions in many columns."""
    d, k, low = number(rng, 15, 100), number(rng, 2, 10), int(rng.integers(1, 4))
    maps = [_random_map(rng, low, d) for _ in range(k)]
    offsets = centres(rng, k, d, rng.uniform(1.0, 2.0) * np.sqrt(d))
    noise = rng.uniform(0.05, 0.2)
    sheets = [one(rng.uniform(-1, 1, (4 * SKELETON, low))) + o for one, o in zip(maps, offsets, strict=True)]
    return skeleton(rng, max(count(rng, scale, 500, 5000), 60 * k), sheets, noise, 3, touching=False)


@family("report")
def pictures(rng: Rng, scale: float) -> Drawn:
    """Small images of strokes, one drawing a cluster, moved, turned and scaled at random."""
    side, k = 12, number(rng, 2, 8)
    y = members(rng, max(count(rng, scale, 500, 3000), 80 * k), k, rng.uniform(1, 2))
    grid = np.stack(np.meshgrid(np.arange(side), np.arange(side)), axis=2).reshape(-1, 2)
    drawings = [resample(rng.uniform(2.5, side - 3.5, (int(rng.integers(3, 6)), 2)), 24) for _ in range(k)]
    X = np.empty((len(y), side * side))
    for i, one in enumerate(y):
        path = drawings[one - 1] - (side - 1) / 2
        path = turned(path, rng.normal() * 0.12) * rng.normal(1, 0.06, 2) + rng.normal(0, 0.5, 2) + (side - 1) / 2
        X[i] = np.exp(-cdist(grid, path, "sqeuclidean").min(axis=1) / 1.2)
    return Drawn(X + 0.03 * rng.normal(size=X.shape), y)


# --- shapes ----------------------------------------------------------------------------------------------------------


@family("choose")
def moons(rng: Rng, scale: float) -> Drawn:
    shift, lift = rng.uniform(0.8, 1.2), rng.uniform(0.2, 0.5)
    curves = [arc((0, 0), 1, 0, np.pi), arc((shift, lift), 1, np.pi, 2 * np.pi)]
    return skeleton(rng, count(rng, scale), curves, rng.uniform(0.03, 0.14))


@family("report")
def rings(rng: Rng, scale: float) -> Drawn:
    k = number(rng, 2, 4)
    radii = np.cumsum(rng.uniform(0.7, 1.3, k))
    curves = [arc((0, 0), radius, 0, 2 * np.pi) for radius in radii]
    if rng.random() < 0.5:
        curves[0] = np.zeros((4 * SKELETON, 2)) + 0.15 * rng.normal(size=(4 * SKELETON, 2))
    return skeleton(rng, count(rng, scale, 500), curves, rng.uniform(0.04, 0.14), 4)


@family("choose")
def spirals(rng: Rng, scale: float) -> Drawn:
    k, turns = number(rng, 2, 4), rng.uniform(0.6, 1.4)
    t = np.linspace(0.15, 1, 500)
    spiral = np.stack([t * np.cos(2 * np.pi * turns * t), t * np.sin(2 * np.pi * turns * t)], axis=1)
    gap = 1 / (turns * k) if turns > 1 else 0.6 / k
    curves = [turned(spiral, 2 * np.pi * i / k) for i in range(k)]
    return skeleton(rng, count(rng, scale, 500, 5000), curves, gap * rng.uniform(0.04, 0.13))


@family("report")
def crosses(rng: Rng, scale: float) -> Drawn:
    """Bars that cross, in two columns or more; apart or all together, each bar a cluster or each cross one."""
    k = int(rng.integers(2, 4))
    angles = np.pi * (np.arange(k) / k + rng.uniform(-0.15, 0.15, k) / k) + rng.uniform(0, np.pi)
    bar = np.array([[-1.0, 0.0], [1.0, 0.0]])
    curves = [turned(bar, angle) + rng.uniform(-0.3, 0.3, 2) for angle in angles]
    return skeleton(rng, count(rng, scale), curves, rng.uniform(0.01, 0.06))


@family("choose")
def crossing_clouds(rng: Rng, scale: float) -> Drawn:
    """Long Gaussians that cross."""
    d, k = number(rng, 2, 5), int(rng.integers(2, 4))
    y = members(rng, count(rng, scale, 400), k, rng.uniform(1, 2))
    drawn = mixture(rng, y, rng.normal(size=(k, d)) * rng.uniform(0, 2), factors(rng, k, d, rng.uniform(10, 40)))
    return replace(drawn, touching=True)


@family("choose")
def zigzags(rng: Rng, scale: float) -> Drawn:
    k, corners = number(rng, 1, 4), int(rng.integers(3, 7))
    path = np.stack([np.arange(corners), np.where(np.arange(corners) % 2, 1.0, 0.0)], axis=1)
    path[:, 1] *= rng.uniform(0.5, 2)
    apart = rng.uniform(0.7, 1.2)
    curves = [path + np.array([0, apart * i]) for i in range(k)]
    return skeleton(rng, count(rng, scale, 400), curves, rng.uniform(0.02, 0.1), 2)


@family("report")
def chains(rng: Rng, scale: float) -> Drawn:
    """Interlocked rings in three columns."""
    k = number(rng, 2, 5)
    curves = []
    for i in range(k):
        ring = np.column_stack([arc((1.3 * i, 0), 1, 0, 2 * np.pi), np.zeros(400)])
        if i % 2:
            ring = ring[:, [0, 2, 1]]
        curves.append(ring)
    drawn = skeleton(rng, count(rng, scale, 500), curves, rng.uniform(0.03, 0.1), 2)
    return with_columns(drawn, drawn.X @ rotation(rng, 3))


@family("report")
def grids(rng: Rng, scale: float) -> Drawn:
    """Clouds or blocks at the places of a lattice."""
    across, down = int(rng.integers(2, 7)), int(rng.integers(2, 7))
    k = across * down
    places = np.stack(np.meshgrid(np.arange(across), np.arange(down)), axis=2).reshape(-1, 2).astype(float)
    y = members(rng, max(count(rng, scale, 800, 6000), 40 * k), k, rng.uniform(1, 2))
    if rng.random() < 0.5:
        return mixture(rng, y, places * rng.uniform(4, 8), factors(rng, k, 2))
    gap = rng.uniform(0.12, 0.4)
    return Drawn(places[y - 1] + rng.uniform(0, 1 - gap, (len(y), 2)), y)


@family("choose")
def blocks(rng: Rng, scale: float) -> Drawn:
    """Uniform boxes and balls of different sizes and densities, with gaps of several distances between neighbours."""
    d, k = number(rng, 2, 5), number(rng, 2, 8)
    radii = np.exp(rng.uniform(-0.7, 0.7, k))
    middles = centres(rng, k, d, 1.0)
    gaps = cdist(middles, middles)
    np.fill_diagonal(gaps, np.inf)
    middles *= ((radii[:, None] + radii) / gaps).max() * rng.uniform(1.15, 1.8)
    y = members(rng, count(rng, scale, 500, 5000), k, rng.uniform(1, 4))
    inside = rng.normal(size=(len(y), d))
    balls = inside / np.linalg.norm(inside, axis=1, keepdims=True) * rng.random((len(y), 1)) ** (1 / d)
    boxes = rng.uniform(-1, 1, (len(y), d)) / np.sqrt(d)
    is_box = (rng.random(k) < 0.5)[y - 1, None]
    return Drawn(middles[y - 1] + radii[y - 1, None] * np.where(is_box, boxes, balls), y)


@family("choose")
def strokes(rng: Rng, scale: float) -> Drawn:
    """Figures of bent strokes, like letters on a page."""
    k = number(rng, 2, 8)
    places = centres(rng, k, 2, 1.0) * rng.uniform(1.5, 2.2)
    curves = []
    for place in places:
        corners = rng.uniform(-0.5, 0.5, (int(rng.integers(3, 6)), 2))
        curves.append(resample(corners, 200) + place)
    return skeleton(rng, count(rng, scale, 500, 5000), curves, rng.uniform(0.01, 0.05), 3)


@family("report")
def lines(rng: Rng, scale: float) -> Drawn:
    """Straight lines of any direction, which seldom cross."""
    k, d = number(rng, 2, 8), int(rng.integers(2, 4))
    directions = rng.normal(size=(k, d))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    starts = centres(rng, k, d, 1.0)
    curves = [np.stack([s - u, s + u]) for s, u in zip(starts * rng.uniform(0.8, 2), directions, strict=True)]
    return skeleton(rng, count(rng, scale, 400), curves, rng.uniform(0.01, 0.07), 2)


@family("report")
def ring_around_clouds(rng: Rng, scale: float) -> Drawn:
    """An open ring around clouds."""
    k = int(rng.integers(1, 4))
    opening = rng.uniform(0, 1.2)
    ring = arc((0, 0), 3.2, opening, 2 * np.pi)
    middles = centres(rng, k, 2, rng.uniform(1.5, 2)) if k > 1 else np.zeros((1, 2))
    middles -= middles.mean(axis=0)
    middles *= min(1.0, 1.9 / max(float(np.linalg.norm(middles, axis=1).max()), 1e-9))
    blobs = [middle + rng.uniform(0.25, 0.4) * rng.normal(size=(4 * SKELETON, 2)) for middle in middles]
    n = count(rng, scale)
    drawn = skeleton(rng, n, [ring], rng.uniform(0.08, 0.25))
    weight = [1.0] * (k + 1)
    counts = [round(n * w / sum(weight)) for w in weight]
    X = np.concatenate(
        [
            drawn.X[rng.integers(len(drawn.X), size=counts[0])],
            *(
                blob[rng.integers(len(blob), size=m)] + 0.03 * rng.normal(size=(m, 2))
                for blob, m in zip(blobs, counts[1:], strict=True)
            ),
        ]
    )
    y = np.repeat(np.arange(1, k + 2), counts)
    skeletons = [resample(ring, SKELETON), *(blob[::4] for blob in blobs)]
    return Drawn(X, y, lambda rows: skeleton_densities(X[rows], skeletons, [0.16] + [0.1] * k))


@family("choose")
def shapes_of_densities(rng: Rng, scale: float) -> Drawn:
    """Moons, rings, bars and clouds beside each other, each as dense as it likes."""
    k = number(rng, 2, 6)
    curves = []
    for place in centres(rng, k, 2, 1.0) * rng.uniform(3.2, 4.2):
        kind = rng.integers(4)
        if kind == 0:
            curve = arc((0, 0), 1, 0, np.pi)
        elif kind == 1:
            curve = arc((0, 0), 1, 0, 2 * np.pi)
        elif kind == 2:
            curve = np.array([[-1.2, 0.0], [1.2, 0.0]])
        else:
            curve = rng.normal(size=(4 * SKELETON, 2)) * 0.45
        curves.append(turned(resample(curve, 300) if len(curve) < 4 * SKELETON else curve, rng.uniform(0, 6)) + place)
    return skeleton(rng, count(rng, scale, 400), curves, [float(s) for s in rng.uniform(0.04, 0.16, k)], 8)


@family("report")
def shapes_and_noise(rng: Rng, scale: float) -> Drawn:
    """Shapes in uniform background noise."""
    made = [moons, rings, zigzags, lines][int(rng.integers(4))](rng, scale)
    return with_background(rng, made, rng.uniform(0.03, 0.2))


@family("choose")
def shapes_in_many_columns(rng: Rng, scale: float) -> Drawn:
    """Shapes in the plane, turned into more columns, with noise in each of these."""
    made = [moons, rings, spirals, lines][int(rng.integers(4))](rng, 2 * scale)
    d = number(rng, 4, 20)
    X = np.zeros((len(made.X), d))
    X[:, : made.X.shape[1]] = made.X / made.X.std()
    X += rng.normal(size=X.shape) * rng.uniform(0.02, 0.06)
    return with_columns(made, X @ rotation(rng, d))


# --- no clusters -----------------------------------------------------------------------------------------------------


@family("choose")
def none_gaussian(rng: Rng, scale: float) -> Drawn:
    return one_cluster(rng.normal(size=(count(rng, scale, 100, 8000), number(rng, 1, 60))))


@family("report")
def none_uniform(rng: Rng, scale: float) -> Drawn:
    """A box, a ball or a shell."""
    n, d = count(rng, scale, 100, 8000), number(rng, 2, 12)
    kind = rng.integers(3)
    if kind == 0:
        return one_cluster(rng.random((n, d)) * rng.uniform(1, 3, d))
    X = rng.normal(size=(n, d))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    return one_cluster(X * (rng.random((n, 1)) ** (1 / d) if kind == 1 else 1 + 0.05 * rng.normal(size=(n, 1))))


@family("report")
def none_curve(rng: Rng, scale: float) -> Drawn:
    """A noisy ring, line, swirl, helix or smooth loop, perhaps in further columns of noise."""
    n, noise = count(rng, scale, 300, 8000), rng.uniform(0.02, 0.1)
    curve = _curve(rng, int(rng.integers(5)), rng.uniform(0, 1, n))
    X = np.concatenate([curve, np.zeros((n, int(rng.choice([0, 2, 8]))))], axis=1)
    return one_cluster(X + noise * rng.normal(size=X.shape))


def _curve(rng: Rng, kind: int, t: NDArray[Any]) -> NDArray[np.float64]:
    if kind == 0:
        return np.stack([np.cos(2 * np.pi * t), np.sin(2 * np.pi * t)], axis=1)
    if kind == 1:
        return np.stack([6 * t, 0 * t], axis=1)
    if kind == 2:
        return np.asarray(2 * np.stack([t * np.cos(9 * t), t * np.sin(9 * t)], axis=1))
    if kind == 3:
        return np.stack([np.cos(15 * t), np.sin(15 * t), 3 * t], axis=1)
    waves = rng.normal(size=(3, 2, 5)) / np.arange(1, 4)[:, None, None]
    turns = 2 * np.pi * t[:, None]
    made = sum(np.sin(turns * turn) * wave[0] + np.cos(turns * turn) * wave[1] for turn, wave in enumerate(waves, 1))
    return np.asarray(made)


@family("choose")
def none_heavy(rng: Rng, scale: float) -> Drawn:
    n, d = count(rng, scale, 200, 6000), number(rng, 1, 10)
    kind = rng.integers(3)
    if kind == 0:
        return one_cluster(rng.normal(size=(n, d)) / np.sqrt(rng.chisquare(rng.uniform(2, 6), (n, 1)) / 3))
    return one_cluster(rng.laplace(size=(n, d)) if kind == 1 else rng.lognormal(0, rng.uniform(0.4, 1), (n, d)))


@family("report")
def none_correlated(rng: Rng, scale: float) -> Drawn:
    n, d = count(rng, scale, 200, 6000), number(rng, 3, 60)
    return one_cluster(rng.normal(size=(n, d)) @ rng.normal(size=(d, d)) * np.exp(rng.normal(size=d) * 0.5))


@family("choose")
def none_manifold(rng: Rng, scale: float) -> Drawn:
    n, d, low = count(rng, scale, 400, 6000), number(rng, 10, 100), int(rng.integers(2, 5))
    X = _random_map(rng, low, d)(rng.uniform(-1, 1, (n, low)))
    return one_cluster(X + rng.uniform(0.03, 0.15) * rng.normal(size=X.shape))


@family("report")
def none_counts(rng: Rng, scale: float) -> Drawn:
    """One Poisson law, or independent categories."""
    n, d = count(rng, scale, 300, 5000), number(rng, 4, 30)
    if rng.random() < 0.6:
        return one_cluster(np.sqrt(rng.poisson(np.exp(rng.normal(1.2, 0.8, d)), (n, d))))
    options = int(rng.integers(2, 5))
    answer = (rng.random((n, d, 1)) > np.cumsum(rng.dirichlet(np.ones(options), d), axis=1)[None, :, :-1]).sum(axis=2)
    return one_cluster(np.eye(options)[answer].reshape(n, -1))
