"""What a fitted clusterer knows of its signatures, in the units of the data."""

from __future__ import annotations

from dataclasses import dataclass, replace
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
        Rows of each; ones if no signature has any.
    spread : ndarray of shape (n_signatures,), float64
        Mean squared distance of its rows.
    labels : ndarray of shape (n_signatures,), int32
        Cluster of each.
    names : tuple of str
        Columns; x0, x1, ... where the data had no names.
    n_clusters : int

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

    @classmethod
    def of(cls, model: Any) -> FittedClusters:
        """Take them from a model, or raise where it is no fitted clusterer of this package."""
        if not hasattr(type(model), "stability_"):
            raise InputTypeError(
                f"a fitted DC2Clustering, RPFCluster, RASP or KASP is needed; got {type(model).__name__}. "
                "Fit one first, or load a saved one with dc2.load."
            )
        check_is_fitted(model)
        signatures = model.signatures_
        points = signatures.points.astype(np.float64)
        scaling = model.router_.scaling
        names = getattr(model, "feature_names_in_", None)
        return cls(
            points=points,
            values=points if scaling is None else scaling.undo(points),
            weights=signatures.weights if signatures.weights.sum() > 0 else np.ones(len(points)),
            spread=signatures.spread,
            labels=model.signature_labels_,
            names=tuple(f"x{i}" for i in range(points.shape[1])) if names is None else tuple(map(str, names)),
            n_clusters=int(model.signature_labels_.max()) + 1,
        )

    @property
    def sizes(self) -> NDArray[np.float64]:
        """Rows of each cluster, of shape (n_clusters,)."""
        sizes = np.zeros(self.n_clusters)
        np.add.at(sizes, self.labels, self.weights)
        return sizes

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
        # A cluster whose signatures have no rows still has a place: that of its signatures.
        rowless = self.sizes[self.labels] == 0
        weights = np.where(rowless, 1.0, self.weights)
        starts = np.arange(len(self.labels) + 1)
        member = csr_array((weights, self.labels, starts), shape=(len(self.labels), self.n_clusters))
        means: NDArray[np.float64] = ((member.T @ of).T / np.asarray(member.sum(axis=0))).T
        return means
