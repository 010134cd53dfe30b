"""What a fitted clusterer knows of its signatures, in the units of the data."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from sklearn.utils.validation import check_is_fitted

from dc2.errors import InputTypeError

__all__ = ["FittedClusters"]


@dataclass(frozen=True, eq=False)
class FittedClusters:
    """The signatures of a fitted clusterer, with their clusters.

    Attributes
    ----------
    points : ndarray of shape (n_signatures, n_features), float64
        As they were clustered: scaled, where the model scales.
    values : ndarray of shape (n_signatures, n_features), float64
        The same in the units of the data.
    weights : ndarray of shape (n_signatures,), float64
        The rows of each that are in its cluster, or all its rows if it is in none; all 1 if no signature has rows.
    spread : ndarray of shape (n_signatures,), float64
        Mean squared distance of its rows.
    labels : ndarray of shape (n_signatures,), int32
        Cluster of each; -1 where it is in none: its cluster is too small, or all of its rows are noise.
    names : tuple of str
        Columns; x0, x1, ... where the data had no names.
    n_clusters : int
    noise : float or None
        Rows that are in no cluster; None where no noise was asked for.

    Examples
    --------
    >>> import numpy as np
    >>> from dc2 import RPFCluster
    >>> X = np.random.default_rng(0).normal(size=(50, 2)) + np.repeat([[0.0], [9.0]], 25, axis=0)
    >>> clusters = FittedClusters.of(RPFCluster(2, random_state=0).fit(X))
    >>> clusters.names, clusters.sizes.tolist()
    (('x0', 'x1'), [25.0, 25.0])
    """

    points: NDArray[np.float64]
    values: NDArray[np.float64]
    weights: NDArray[np.float64]
    spread: NDArray[np.float64]
    labels: NDArray[np.int32]
    names: tuple[str, ...]
    n_clusters: int
    noise: float | None = None

    @classmethod
    def of(cls, model: Any) -> FittedClusters:
        """Take them from a model, or raise if it is not a fitted clusterer of this package."""
        if not hasattr(type(model), "stability_"):
            raise InputTypeError(
                f"a fitted DC2Clustering, RPFCluster, RASP or KASP is needed; got {type(model).__name__}. "
                "Fit one first, or load a saved one with dc2.load."
            )
        check_is_fitted(model)
        signatures = model.signatures_
        points = signatures.points.astype(np.float64)
        scaling = model.router_.scaling
        names, values = model.column_names, points if scaling is None else scaling.undo(points)
        if hasattr(model, "preparer_"):
            names, values = model.preparer_.in_units(points)
        weights = signatures.weights if signatures.weights.sum() > 0 else np.ones(len(points))
        labels, noise = model.signature_labels_, getattr(model, "noise_weights_", None)
        n_clusters = int(labels.max()) + 1
        if noise is not None:
            labels = _without_noise(labels, noise >= weights)
            weights = np.where(labels < 0, weights, weights - noise)
        return cls(
            points=points,
            values=values,
            weights=weights,
            spread=signatures.spread,
            labels=labels,
            names=tuple(f"x{i}" for i in range(points.shape[1])) if names is None else names,
            n_clusters=n_clusters,
            noise=None if noise is None else float(noise.sum()),
        )

    @cached_property
    def sizes(self) -> NDArray[np.float64]:
        """Rows of each cluster, of shape (n_clusters,)."""
        sizes = np.zeros(self.n_clusters)
        np.add.at(sizes, self.labels[self.in_clusters], self.weights[self.in_clusters])
        return sizes

    @property
    def total(self) -> float:
        """Rows of all clusters and of none."""
        return float(self.sizes.sum()) + (self.noise or 0.0)

    @cached_property
    def in_clusters(self) -> NDArray[np.intp]:
        """The signatures that are in a cluster."""
        return np.flatnonzero(self.labels >= 0)

    def take(self, signatures: NDArray[np.intp]) -> FittedClusters:
        """Return some of the signatures; clusters keep their numbers."""
        return replace(
            self,
            points=self.points[signatures],
            values=self.values[signatures],
            weights=self.weights[signatures],
            spread=self.spread[signatures],
            labels=self.labels[signatures],
        )

    def means(self, of: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the mean over each cluster's rows of something given per signature, (n_clusters, ...)."""
        if len(self.in_clusters) < len(self.labels):
            return self.take(self.in_clusters).means(of[self.in_clusters])
        # A cluster whose signatures have no rows still has a place: that of its signatures.
        rowless = self.sizes[self.labels] == 0
        weights = np.where(rowless, 1.0, self.weights)
        # Shares first: a sum of large values times weights may overflow.
        shares = weights / np.bincount(self.labels, weights)[self.labels]
        starts = np.arange(len(self.labels) + 1)
        member = csr_array((shares, self.labels, starts), shape=(len(self.labels), self.n_clusters))
        means: NDArray[np.float64] = np.asarray(member.T @ of)
        return means


def _without_noise(labels: NDArray[np.int32], is_noise: NDArray[np.bool_]) -> NDArray[np.int32]:
    """Return labels with -1 for signatures of noise only; a cluster of nothing else keeps its signatures."""
    left = np.bincount(labels[(labels >= 0) & ~is_noise], minlength=int(labels.max()) + 1) > 0
    return np.where(is_noise & left[labels], np.int32(-1), labels)
