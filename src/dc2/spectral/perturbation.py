"""The perturbation bound of spectral clustering on rows of the user."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_array

from dc2.errors import InputError
from dc2.metrics import clustering_accuracy
from dc2.parameters import check_integer
from dc2.random import RandomStateLike, seed_sequence
from dc2.spectral.assignment import Assign, spectral_clustering
from dc2.spectral.eigenvectors import eigengap, normalized_affinity
from dc2.spectral.gaussian import GaussianKernel


@dataclass(frozen=True)
class PerturbationBound:
    """How much spectral clustering of some rows changes if the rows do.

    Attributes
    ----------
    n_rows : int
        Rows compared.
    sigma : float
        The sigma of the Gaussian kernel.
    distortion : float
        Mean squared distance of a row to its perturbed row: the theorem's variance of the noise.
    laplacian_change : float
        ||L~ - L||_F^2 of the normalized Laplacians: the theorem's bound on the loss.
    eigengap : float
        Distance between the k-th and the next eigenvalue of L.
    loss : float
        Share of rows whose cluster changes, after the best match of clusters.
    """

    n_rows: int
    sigma: float
    distortion: float
    laplacian_change: float
    eigengap: float
    loss: float

    @property
    def rotation_bound(self) -> float:
        """Bound on how far the k leading eigenvectors turn: 2 ||L~ - L||_F / eigengap bounds the norm of the sines.

        It says nothing if it is above the root of k.
        """
        return float(2.0 * np.sqrt(self.laplacian_change) / self.eigengap) if self.eigengap > 0 else np.inf

    @property
    def holds(self) -> bool:
        """Whether the loss is at most ||L~ - L||_F^2, as the theorem says."""
        return self.loss <= self.laplacian_change


def perturbation_bound(
    X: ArrayLike,
    X_perturbed: ArrayLike,
    n_clusters: int = 2,
    *,
    sigma: float | None = None,
    assign: Assign = "ncut",
    max_rows: int = 1000,
    random_state: RandomStateLike = None,
) -> PerturbationBound:
    """Measure how much spectral clustering with a Gaussian kernel changes if rows are replaced, on a sample.

    Parameters
    ----------
    X : array-like of shape (n_rows, n_features)
    X_perturbed : array-like of shape (n_rows, n_features)
        What replaces each row, such as its signature: ``Compressor().fit(X).transform(X)``.
    n_clusters : int, default=2
    sigma : float or None, default=None
        As in `GaussianKernel`; None takes the median squared distance between rows.
    assign : {"ncut", "kmeans"}, default="ncut"
        As in `spectral_clustering`; "ncut" with two clusters is the cut in two of the theorem.
    max_rows : int, default=1000
        Rows drawn if there are more; time grows with their cube.
    random_state : int, RandomState, Generator or None, default=None
        Seed of the draw and of K-means.

    Returns
    -------
    PerturbationBound

    Notes
    -----
    The theorem of the paper (Section 3) says that the loss of a cut in two is at most ||L~ - L||_F^2 "under suitable
    technical conditions". `holds` may be False where rows are on the border between clusters: one of them that changes
    sides is a loss of 1 / n_rows, which a small perturbation need not allow.

    References
    ----------
    Wang, Bian, Liu, Yan: DC²: A Divide-and-conquer Algorithm for Large-scale Kernel Learning with Application to
    Clustering.
    Yu, Wang, Samworth: A useful variant of the Davis-Kahan theorem for statisticians. Biometrika 102, 2015.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from dc2 import Compressor
    >>> X, _ = make_blobs(1000, centers=[[0, 0], [8, 8]], random_state=0)
    >>> few, many = (
    ...     perturbation_bound(X, Compressor(n, random_state=0).fit(X).transform(X), random_state=0) for n in (20, 300)
    ... )
    >>> many.laplacian_change < few.laplacian_change / 10, many.loss
    (True, 0.0)
    """
    rows, others = (check_array(part, dtype=np.float64) for part in (X, X_perturbed))
    if rows.shape != others.shape:
        raise InputError(f"X_perturbed has shape {others.shape}, X {rows.shape}. Give each row of X its perturbed row.")
    check_integer("max_rows", max_rows, low=2)
    seeds = seed_sequence(random_state)
    if len(rows) > max_rows:
        drawn = np.sort(np.random.default_rng(seeds).choice(len(rows), max_rows, replace=False))
        rows, others = rows[drawn], others[drawn]
    kernel = GaussianKernel(sigma).fit(rows)
    similarities = kernel.similarity_, GaussianKernel(kernel.sigma_).fit(others).similarity_
    before, after = (spectral_clustering(S, n_clusters, assign=assign, random_state=seeds) for S in similarities)
    changes = np.subtract(*(normalized_affinity(S, np.ones(len(S))) for S in similarities))
    return PerturbationBound(
        n_rows=len(rows),
        sigma=kernel.sigma_,
        distortion=float(((others - rows) ** 2).sum(axis=1).mean()),
        laplacian_change=float((changes**2).sum()),
        eigengap=eigengap(before.eigenvalues, n_clusters),
        loss=1.0 - clustering_accuracy(before.labels, after.labels),
    )
