"""What is right for a data set drawn from a known mixture, including what no method could distinguish.

A mixture's components are the raw answer. Two components count as one cluster if even the best classifier, which knows
their densities, mistakes more than one row in ten of the one for the other (`MISTAKEN`). The error is a mean over both
components, so that it does not depend on their sizes. For two equal Gaussians one row in ten is a distance of 2.6
standard deviations; their density then falls by a seventh between the two centres, which takes hundreds of rows to see.

Up to an error of 0.16 (`NO_DIP`), which is a distance of 2 standard deviations, the density of two equal Gaussians
still has two maxima. So a labelling that keeps those apart is accepted too.

Components that cross or touch, such as the bars of a cross, are hardly mistaken for each other, yet the density has no
gap between them. If at the place of contact it is as high as it typically is inside the two, a labelling that joins
them is accepted too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components
from scipy.spatial import cKDTree
from scipy.spatial.distance import cdist

MISTAKEN = 0.10
NO_DIP = 0.16
ROWS_JUDGED, ROWS_OF_EACH = 4000, 80
SKELETON = 400  # points of a curve or surface, by which its density is computed
Densities = Callable[[NDArray[np.intp]], NDArray[np.float64]]  # for the rows at some places, of each component


@dataclass(frozen=True)
class Drawn:
    """Rows of a mixture before its indistinguishable components are joined.

    Attributes
    ----------
    X : ndarray of shape (n_rows, n_columns)
    raw : ndarray of shape (n_rows,), int
        The component of each row, from 1; 0 is background noise.
    densities : callable or None
        Gives the logarithm of each component's density at the rows of some places; None if components do not overlap
        by their making.
    touching : bool
        Whether components that cross or touch may be taken as one.
    coarser : tuple of ndarray
        For each coarser level that is right too, the group of each component.
    """

    X: NDArray[Any]
    raw: NDArray[np.int64]
    densities: Densities | None = None
    touching: bool = False
    coarser: tuple[NDArray[np.int64], ...] = ()


def labelings(drawn: Drawn) -> tuple[NDArray[np.int64], ...]:
    """Return all acceptable labellings of the rows, the main one first; 0 is noise."""
    y = drawn.raw
    n_components = int(y.max())
    apart = np.arange(n_components)
    groupings = []
    if drawn.densities is None or n_components == 1:
        groupings.append(apart)
    else:
        told = np.flatnonzero(y > 0)[:: -(-len(y) // max(ROWS_JUDGED, ROWS_OF_EACH * n_components))]
        logs, component = drawn.densities(told), y[told] - 1
        mistaken = mistakes(logs, component)
        groupings += [joined(mistaken > MISTAKEN), joined(mistaken > NO_DIP)]
        if drawn.touching:
            groupings.append(joined((mistaken > MISTAKEN) | contacts(logs, component)))
    groupings += drawn.coarser
    found: list[NDArray[np.int64]] = []
    for groups in groupings:
        one = np.where(y > 0, groups[y - 1] + 1, 0)
        if not any(np.array_equal(one, other) for other in found):
            found.append(one)
    return tuple(found)


def mistakes(logs: NDArray[np.float64], component: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return for each two components the share of rows that the best classifier of the two gets wrong."""
    k = logs.shape[1]
    lost = np.zeros((k, k))
    for one in range(k):
        rows = logs[component == one]
        if len(rows):
            lost[one] = (rows > rows[:, [one]]).mean(axis=0) + 0.5 * (rows == rows[:, [one]]).mean(axis=0)
    found: NDArray[np.float64] = (lost + lost.T) / 2
    np.fill_diagonal(found, 0.0)
    return found


def contacts(logs: NDArray[np.float64], component: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Tell between which components the density has no gap: where they are equal, both together are typical."""
    k = logs.shape[1]
    shares = np.log(np.maximum(np.bincount(component, minlength=k), 1) / len(component))
    weighed = logs + shares
    typical = np.array(
        [np.median(weighed[component == one, one]) if (component == one).any() else 0 for one in range(k)]
    )
    touch = np.zeros((k, k), dtype=bool)
    for one in range(k):
        both = np.minimum(weighed, weighed[:, [one]]).max(axis=0) + np.log(2)
        touch[one] = both >= np.minimum(typical, typical[one])
    np.fill_diagonal(touch, False)
    return touch


def joined(links: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return the group of each component, if linked ones belong together."""
    return np.asarray(connected_components(links, directed=False)[1], dtype=np.int64)


def gaussian_densities(
    X: NDArray[Any], means: NDArray[Any], factors: NDArray[Any], freedom: float | None = None
) -> NDArray[np.float64]:
    """Return the log densities of Gaussians `means + factors @ z`, or of t distributions with so much freedom."""
    logs = np.empty((len(X), len(means)))
    for i, (mean, factor) in enumerate(zip(means, factors, strict=True)):
        squared = (np.linalg.solve(factor, (X - mean).T) ** 2).sum(axis=0)
        shape = -squared / 2 if freedom is None else -(freedom + X.shape[1]) / 2 * np.log1p(squared / freedom)
        logs[:, i] = shape - np.linalg.slogdet(factor)[1]
    return logs


def skeleton_densities(
    X: NDArray[Any], skeletons: Sequence[NDArray[Any]], noise: Sequence[float]
) -> NDArray[np.float64]:
    """Return the log densities of curves and surfaces with Gaussian noise, from points along each.

    Where points of a skeleton are farther apart than the noise, their distance stands for the noise.
    """
    logs = np.empty((len(X), len(skeletons)))
    columns = X.shape[1]
    for i, (points, sigma) in enumerate(zip(skeletons, noise, strict=True)):
        spacing = float(np.median(cKDTree(points).query(points, k=2)[0][:, 1])) if len(points) > 1 else 0.0
        width = max(sigma, spacing, 1e-6)
        squared = cdist(X, points, "sqeuclidean") / (2 * width**2)
        least = squared.min(axis=1)
        spread = np.exp(least[:, None] - squared).mean(axis=1)
        logs[:, i] = np.log(spread) - least - columns * np.log(width)
    return logs
