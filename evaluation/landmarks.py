"""Spectral clustering of all rows through landmarks: by Nyström's method, and landmark-based.

Both write the similarity of all rows as Z Z' with as many columns as landmarks. The leading eigenvectors of its
normalized form come from a small matrix, and K-means clusters their rows.

References
----------
Fowlkes, Belongie, Chung, Malik: Spectral grouping using the Nyström method. IEEE TPAMI 26(2), 2004.
Chen, Cai: Large scale spectral clustering with landmark-based representation. AAAI 2011.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, diags_array
from sklearn.cluster import KMeans
from sklearn.kernel_approximation import Nystroem
from sklearn.neighbors import NearestNeighbors

__all__ = ["RIVALS", "landmark_spectral", "nystroem_spectral"]

BLOCK_ROWS = 10_000
NEAREST = 5  # landmarks that represent a row
RESTARTS = 3
TINY = float(np.finfo(np.float32).tiny)

Features = Callable[[], Iterable[Any]]


def nystroem_spectral(X: NDArray[Any], n_clusters: int, n_landmarks: int, seed: int) -> NDArray[np.int32]:
    """Cluster rows by the Nyström approximation of their Gaussian kernel, from uniform rows as landmarks.

    As for RASP without labels, the kernel is exp(-||x - y||^2 / sigma) with the median squared distance as sigma.
    """
    some = X[np.random.default_rng(seed).choice(len(X), min(500, len(X)), replace=False)].astype(np.float64)
    squared = ((some[:, None] - some) ** 2).sum(axis=2)[np.triu_indices(len(some), 1)]
    gamma = 1 / max(float(np.median(squared)), TINY)
    kernel = Nystroem(gamma=gamma, n_components=min(n_landmarks, len(X)), random_state=seed).fit(X)
    total = sum(kernel.transform(rows).sum(axis=0, dtype=np.float64) for rows in _blocks(X))

    def normalized() -> Iterator[NDArray[Any]]:
        for rows in _blocks(X):
            Z = kernel.transform(rows)
            yield Z / np.sqrt(np.maximum(Z @ total, TINY))[:, None]

    return _clustered(normalized, n_clusters, seed)


def landmark_spectral(X: NDArray[Any], n_clusters: int, n_landmarks: int, seed: int) -> NDArray[np.int32]:
    """Cluster rows by their similarity to the nearest few of uniform rows as landmarks (LSC-R)."""
    drawn = np.random.default_rng(seed).choice(len(X), min(n_landmarks, len(X)), replace=False)
    search = NearestNeighbors(n_neighbors=min(NEAREST, len(drawn))).fit(X[drawn])
    distances, ids = (np.concatenate(parts) for parts in zip(*map(search.kneighbors, _blocks(X)), strict=True))
    bandwidth = max(float(distances.mean()), TINY)
    weights = np.exp(-((distances / bandwidth) ** 2) / 2) + TINY
    weights /= weights.sum(axis=1, keepdims=True)
    starts = np.arange(0, ids.size + 1, ids.shape[1])
    Z = csr_array((weights.ravel(), ids.ravel(), starts), shape=(len(X), len(drawn)))
    return _clustered(lambda: [Z @ diags_array(1 / np.sqrt(np.maximum(Z.sum(axis=0), 1e-12)))], n_clusters, seed)


RIVALS = {"Nyström spectral": nystroem_spectral, "landmark spectral": landmark_spectral}


def _blocks(X: NDArray[Any]) -> Iterator[NDArray[Any]]:
    return (X[first : first + BLOCK_ROWS] for first in range(0, len(X), BLOCK_ROWS))


def _clustered(features: Features, n_clusters: int, seed: int) -> NDArray[np.int32]:
    """Cluster rows by the leading left singular vectors of normalized features, scaled to unit length."""
    gram: Any = sum(Z.T @ Z for Z in features())
    values, vectors = np.linalg.eigh(gram.toarray() if hasattr(gram, "toarray") else gram)
    leading = vectors[:, -n_clusters:] / np.sqrt(np.maximum(values[-n_clusters:], 1e-12))
    rows = np.concatenate([Z @ leading for Z in features()])
    rows /= np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)
    labels: NDArray[np.int32] = KMeans(n_clusters, n_init=RESTARTS, random_state=seed).fit_predict(rows)
    return labels
