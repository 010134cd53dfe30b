"""How tight clusters are and how far apart, measured on signatures by their weight."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import pairwise_distances

from dc2.facts.fitted import FittedClusters

__all__ = ["Silhouette", "radius", "weighted_silhouette"]

ROWS_AT_A_TIME = 1024


@dataclass(frozen=True, eq=False)
class Silhouette:
    """Silhouettes of clusters.

    Attributes
    ----------
    per_cluster : ndarray of shape (n_clusters,)
        Mean of (b - a) / max(a, b) over the cluster's signatures by weight, a being the mean distance to the others
        of its cluster and b that to the nearest other cluster. From -1 to 1.
    overall : float
        Mean over all.
    closest : ndarray of shape (n_clusters,), int
        The other cluster that most of a cluster's rows are nearest to.
    """

    per_cluster: NDArray[np.float64]
    overall: float
    closest: NDArray[np.intp]


def weighted_silhouette(
    points: NDArray[np.float64], labels: NDArray[np.int32], weights: NDArray[np.float64]
) -> Silhouette | None:
    """Return silhouettes, or None where there is only one cluster.

    Parameters
    ----------
    points : ndarray of shape (n, n_features)
    labels : ndarray of shape (n,)
        Clusters, 0 to k - 1, none of them empty.
    weights : ndarray of shape (n,)

    Notes
    -----
    A point alone in its cluster has silhouette 0. With equal weights this is scikit-learn's `silhouette_score`.

    Examples
    --------
    >>> X = np.array([[0.0], [0.1], [5.0], [5.1]])
    >>> found = weighted_silhouette(X, np.array([0, 0, 1, 1]), np.ones(4))
    >>> found.per_cluster.round(2).tolist(), found.closest.tolist()
    ([0.98, 0.98], [1, 0])
    """
    k = int(labels.max()) + 1
    if k < 2:
        return None
    weights = np.maximum(weights, np.finfo(float).tiny)
    member = np.zeros((len(labels), k))
    member[np.arange(len(labels)), labels] = weights
    totals, counts = member.sum(axis=0), np.bincount(labels, minlength=k)
    silhouettes, nearest = np.zeros(len(labels)), np.zeros(len(labels), np.intp)
    for start in range(0, len(labels), ROWS_AT_A_TIME):
        rows = np.arange(start, min(start + ROWS_AT_A_TIME, len(labels)))
        sums = pairwise_distances(points[rows], points) @ member
        own, local = labels[rows], np.arange(len(rows))
        others_weight = totals[own] - weights[rows]
        inside = np.divide(sums[local, own], others_weight, out=np.zeros(len(rows)), where=others_weight > 0)
        to_clusters = sums / totals
        to_clusters[local, own] = np.inf
        nearest[rows] = to_clusters.argmin(axis=1)
        outside = to_clusters.min(axis=1)
        larger = np.maximum(inside, outside)
        silhouettes[rows] = np.divide(
            outside - inside, larger, out=np.zeros(len(rows)), where=(counts[own] > 1) & (larger > 0)
        )
    per_cluster = (member.T @ silhouettes) / totals
    votes = np.zeros((k, k))
    np.add.at(votes, (labels, nearest), weights)
    return Silhouette(per_cluster, float(weights @ silhouettes / weights.sum()), votes.argmax(axis=1))


def radius(clusters: FittedClusters) -> NDArray[np.float64]:
    """Return the root mean squared distance of each cluster's rows to their mean, of shape (n_clusters,).

    The spread inside signatures is counted too, so that this is a fact about rows.
    """
    off = clusters.points - clusters.means(clusters.points)[clusters.labels]
    radii: NDArray[np.float64] = np.sqrt(clusters.means(np.einsum("ij,ij->i", off, off) + clusters.spread))
    return radii
