"""KASP: signatures by K-means, Gaussian kernel, spectral clustering."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import SeedSequence
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import pairwise_distances_argmin_min

from dc2.cluster.base import Seeds
from dc2.cluster.rasp import RASP
from dc2.compress.compress import Compression
from dc2.compress.signatures import Signatures
from dc2.engines.base import Engine
from dc2.errors import InputError, InputTypeError
from dc2.model_file import saved_model, saved_record
from dc2.sources import Source, raise_if_not_finite
from dc2.trees.tree import NO_LIMIT

TWO_STAGES_ABOVE = 20_000
FIRST_SHARE, FIRST_RESTARTS = 0.1, 20


@saved_record
@dataclass(frozen=True, eq=False)
class CentreRouter:
    """Sends a row to the nearest of all centres."""

    centres: NDArray[Any]

    def check(self) -> None:
        """Raise unless there are finite centres; called when read from a model file."""
        if self.centres.ndim != 2 or self.centres.dtype.kind != "f" or not np.isfinite(self.centres).all():
            raise InputError("a CentreRouter has no finite centres.")

    def assign(
        self, X: NDArray[Any], names: tuple[str, ...] | None = None, start: int = 0
    ) -> NDArray[np.int32]:
        """Return the nearest centre of each row."""
        raise_if_not_finite(X, names, start)
        nearest, _ = pairwise_distances_argmin_min(X.astype(self.centres.dtype, copy=False), self.centres)
        ids: NDArray[np.int32] = nearest.astype(np.int32)
        return ids


@saved_model
class KASP(RASP):
    """Fast approximate spectral clustering with K-means; one of the paper's rivals.

    Above 20,000 rows the signatures are found in two stages, as its authors do: 20 restarts on a tenth of the rows,
    then once on all rows from the best centres. Rows must lie in memory.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.
    n_signatures : int, default=1000
        Centres of K-means.
    sigma, assign, weighted, n_jobs, block_bytes, random_state, verbose
        As in `RASP`.

    Attributes
    ----------
    labels_, signatures_, signature_labels_, embedding_, eigenvalues_, distortion_, stage_seconds_
        As in `RPFCluster`.

    References
    ----------
    Yan, Huang, Jordan: Fast approximate spectral clustering. KDD 2009.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> X, _ = make_blobs(5_000, centers=2, random_state=0)
    >>> KASP(n_clusters=2, n_signatures=100, random_state=0).fit_predict(X).shape
    (5000,)
    """

    def _compress(self, source: Source, engine: Engine, seeds: Seeds) -> Compression:
        if not source.in_memory:
            raise InputTypeError("KASP needs its rows in memory, since K-means passes over them many times. "
                                 "Use RPFCluster for files and streams.")  # fmt: skip
        block = next(source.blocks(NO_LIMIT))
        raise_if_not_finite(block.X, source.feature_names)
        weights = np.ones(len(block.X)) if block.weights is None else block.weights
        kept = np.flatnonzero(weights > 0)
        X = block.X if len(kept) == len(weights) else block.X[kept]
        distinct = np.unique(X, axis=0) if len(X) <= TWO_STAGES_ABOVE else X
        if len(distinct) <= self.n_signatures:
            centres = distinct
        else:
            centres = kmeans_centres(X, weights[kept], self.n_signatures, seeds.compress)
        router = CentreRouter(centres)
        ids = np.concatenate(list(engine.map(lambda block: router.assign(block.X), source, stage="compress")))
        return Compression(router, means_of(block.X, weights, ids, centres), ids, len(ids))  # type: ignore[arg-type]


def kmeans_centres(
    X: NDArray[Any], weights: NDArray[np.float64], n_centres: int, seeds: SeedSequence
) -> NDArray[Any]:
    """Return the centres of K-means, in two stages if the rows are many."""
    first_seed, second_seed, sample_seed = (int(seed) for seed in seeds.generate_state(3))
    with warnings.catch_warnings():
        # Fewer distinct rows than centres is checked elsewhere.
        warnings.simplefilter("ignore", ConvergenceWarning)
        first = KMeans(n_centres, n_init=FIRST_RESTARTS, random_state=first_seed)
        if len(X) <= TWO_STAGES_ABOVE:
            return np.asarray(first.fit(X, sample_weight=weights).cluster_centers_)
        size = max(n_centres, int(FIRST_SHARE * len(X)))
        sampled = np.sort(np.random.default_rng(sample_seed).choice(len(X), size, replace=False))
        first.fit(X[sampled], sample_weight=weights[sampled])
        second = KMeans(n_centres, init=first.cluster_centers_, n_init=1, random_state=second_seed)
        return np.asarray(second.fit(X, sample_weight=weights).cluster_centers_)


def means_of(
    X: NDArray[Any], weights: NDArray[np.float64], ids: NDArray[np.int32], centres: NDArray[Any]
) -> Signatures:
    """Return the means of rows assigned to centres, as signatures."""
    total = np.bincount(ids, weights, minlength=len(centres)).astype(np.float64)
    safe = np.where(total > 0, total, 1.0)
    means = np.stack([np.bincount(ids, weights * column, minlength=len(centres)) for column in X.T], axis=1)
    points = np.where(total[:, None] > 0, means / safe[:, None], centres).astype(centres.dtype)
    spread = np.zeros(len(centres))
    for start in range(0, len(X), 100_000):
        rows = slice(start, start + 100_000)
        off = X[rows].astype(np.float64) - points[ids[rows]]
        spread += np.bincount(
            ids[rows], weights[rows] * np.einsum("ij,ij->i", off, off), minlength=len(centres)
        )
    return Signatures(points, total, spread / safe)
