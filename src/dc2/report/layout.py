"""Maps of signatures in the plane, and rows placed on them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.manifold import TSNE
from sklearn.neighbors import NearestNeighbors
from threadpoolctl import threadpool_limits

if TYPE_CHECKING:
    from dc2.report.cluster_statistics import ClusterStatistics

LayoutName = Literal["columns", "variation", "neighbours"]

FEWEST_FOR_NEIGHBOURS = 10
PERPLEXITY = 30.0


@dataclass(frozen=True, eq=False)
class Layout:
    """A place in the plane for each signature."""

    name: LayoutName
    xy: NDArray[np.float64]
    x_title: str = ""
    y_title: str = ""


Distances = Callable[[], NDArray[np.float64]]


def default_layouts(clusters: ClusterStatistics, distances: Distances) -> tuple[Layout, ...]:
    """Return the layouts worth showing, the best first; distances are asked for only where they are used."""
    if 1 <= len(clusters.names) <= 2:
        return (columns_layout(clusters),)
    if len(clusters.points) < FEWEST_FOR_NEIGHBOURS:
        return (variation_layout(clusters),)
    if not clusters.names:
        return (neighbours_layout(clusters, distances()),)
    return neighbours_layout(clusters, distances()), variation_layout(clusters)


def layout_named(name: str, clusters: ClusterStatistics, distances: Distances) -> Layout:
    """Return one layout by its name."""
    if name == "neighbours":
        return neighbours_layout(clusters, distances())
    return columns_layout(clusters) if name == "columns" else variation_layout(clusters)


def columns_layout(clusters: ClusterStatistics) -> Layout:
    """Lay out one or two columns as they are, places as on a map; a single column against the number of rows."""
    if len(clusters.names) == 1:
        xy = np.column_stack([clusters.values[:, 0], clusters.weights])
        return Layout("columns", xy, clusters.names[0], "rows of the signature")
    x, y = _axes(clusters)
    return Layout("columns", clusters.values[:, [x, y]], clusters.names[x], clusters.names[y])


def _axes(clusters: ClusterStatistics) -> tuple[int, int]:
    """Return the columns across and up: of places longitude and latitude."""
    latitude = 1 if clusters.sphere is None else clusters.sphere.latitude
    return 1 - latitude, latitude


def variation_layout(clusters: ClusterStatistics) -> Layout:
    """Lay out by the two directions in which rows vary most (principal components, weighted)."""
    with threadpool_limits(limits=1):
        points, largest = _unit(clusters.points)
        xy, share = _principal_components(points, clusters.weights)
    titles = [f"direction {i + 1} ({share[i]:.0%} of the variance)" for i in range(2)]
    return Layout("variation", xy * largest, titles[0], titles[1])


def neighbours_layout(clusters: ClusterStatistics, distances: NDArray[np.float64]) -> Layout:
    """Lay out by t-SNE, so that similar signatures are close."""
    with threadpool_limits(limits=1):
        start, _ = _principal_components(_unit(clusters.points)[0], clusters.weights)
        start *= 1e-4 / max(start[:, 0].std(), 1e-9)
        tsne = TSNE(
            metric="precomputed",
            init=start.astype(np.float32),
            perplexity=min(PERPLEXITY, (len(distances) - 1) / 3),
            max_iter=500,
            random_state=0,
        )
        xy = tsne.fit_transform(distances).astype(np.float64)
        upright, _ = _principal_components(xy, np.ones(len(xy)))  # the long side lies across, as pages do
    return Layout("neighbours", upright)


def _unit(points: NDArray[np.float64]) -> tuple[NDArray[np.float64], float]:
    """Return points about their middle, scaled to within 1 of it so that squares are safe, and the scale."""
    low, high = points.min(axis=0), points.max(axis=0)
    centred = points - (low / 2 + high / 2)
    largest = float(np.abs(centred).max()) or 1.0
    return centred / largest, largest


def _principal_components(
    points: NDArray[np.float64], weights: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return coordinates along the two main directions, signs fixed, and each one's share of the variance."""
    share = weights / weights.sum()
    centred = points - share @ points
    _, sizes, directions = np.linalg.svd(centred * np.sqrt(share)[:, None], full_matrices=False)
    found = len(directions[:2])  # one column, or one signature, has only one direction
    xy, variance = np.zeros((len(points), 2)), np.zeros(2)
    xy[:, :found] = centred @ directions[:2].T
    xy *= np.where(xy[np.abs(xy).argmax(axis=0), [0, 1]] < 0, -1.0, 1.0)
    variance[:found] = sizes[:2] ** 2
    return xy, variance / max((sizes**2).sum(), np.finfo(float).tiny)


NEAREST = 5


def placed_rows(
    rows: NDArray[np.float64], values: NDArray[np.float64], clusters: ClusterStatistics, layout: Layout
) -> NDArray[np.float64]:
    """Return a place in the plane for each row, of shape (n_rows, 2).

    Two columns are their own map. Otherwise a row is drawn among its nearest signatures, those of the nearest one's
    cluster only, nearer ones counting more: exp(-d^2 / mean d^2). If the nearest one is noise the row is drawn there:
    other noise may be anywhere.
    """
    if layout.name == "columns" and values.shape[1] == 2:
        return values[:, _axes(clusters)]
    with threadpool_limits(limits=1):  # the same places for any number of threads
        search = NearestNeighbors(n_neighbors=min(NEAREST, len(clusters.points)), algorithm="brute", n_jobs=1)
        distances, near = search.fit(clusters.points).kneighbors(rows)
    squared = distances**2
    scale = squared.mean(axis=1, keepdims=True)
    shares = np.exp(-squared / np.where(scale > 0, scale, 1.0))
    own, nearest = clusters.labels[near], clusters.labels[near[:, :1]]
    apart = (own != nearest) | (nearest < 0)
    apart[:, 0] = False
    shares[apart] = 0.0
    shares /= shares.sum(axis=1, keepdims=True)
    return np.stack([(shares * layout.xy[near, axis]).sum(axis=1) for axis in (0, 1)], axis=1)
