"""The result of conquering."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dc2.communities import CommunityResult
from dc2.errors import InputError
from dc2.model_file import saved_record

__all__ = ["RESAMPLINGS", "Conquest", "Path", "Spectrum"]

RESAMPLINGS = 10  # that tell how stable clusters are

Path = dict[str, NDArray[Any]]


@saved_record
@dataclass(frozen=True, eq=False)
class Spectrum:
    """What spectral clustering looked at.

    Attributes
    ----------
    eigenvalues : ndarray of shape (m,)
        Leading eigenvalues of the normalized similarity, descending.
    embedding : ndarray of shape (n_nodes, n_clusters)
        The first eigenvectors, with rows at unit length.
    bandwidth : float
        The bandwidth in use.
    bandwidth_path : dict of two arrays, or None
        "bandwidth" and "score" of each that was considered, where one was chosen.
    n_clusters_path : dict of two arrays, or None
        "n_clusters" and "score" of each that was considered, where a number was chosen.
    """

    eigenvalues: NDArray[np.float64]
    embedding: NDArray[np.float64]
    bandwidth: float
    bandwidth_path: Path | None = None
    n_clusters_path: Path | None = None

    def check(self) -> None:
        """Raise if the parts do not fit together; called when a spectrum was read from a model file."""
        numbers = (self.eigenvalues, self.embedding)
        if (
            self.eigenvalues.ndim != 1
            or self.embedding.ndim != 2
            or not all(array.dtype == np.float64 and np.isfinite(array).all() for array in numbers)
            or not isinstance(self.bandwidth, float)
            or not 0 < self.bandwidth < np.inf
            or not all(np.abs(array).max(initial=0.0) <= 1.0 + 1e-6 for array in numbers)
            or not _is_path(self.bandwidth_path, "bandwidth")
            or not _is_path(self.n_clusters_path, "n_clusters")
        ):
            raise InputError("the parts of a Spectrum do not fit together.")


@saved_record
@dataclass(frozen=True, eq=False)
class Conquest:
    """Clusters of nodes, and how they were found.

    Attributes
    ----------
    labels : ndarray of shape (n_nodes,), int32
        The cluster of each node; clusters are numbered by their mass, heaviest first, ties by the first node.
    wanted : int
        The number of clusters that was asked for or chosen; fewer are found only where nodes cannot be told apart.
    spectrum : Spectrum or None
        How, where eigenvectors decided.
    communities : CommunityResult or None
        How, where communities decided.
    """

    labels: NDArray[np.int32]
    wanted: int
    spectrum: Spectrum | None = None
    communities: CommunityResult | None = None

    def check(self) -> None:
        """Raise if the parts do not fit together; called when a conquest was read from a model file."""
        labels = self.labels
        if (
            type(self.wanted) is not int
            or labels.dtype != np.int32
            or labels.ndim != 1
            or not len(labels)
            or not 0 <= labels.min() <= labels.max() < len(labels)
            or not np.bincount(labels).all()
            or (self.spectrum is not None and len(self.spectrum.embedding) != len(labels))
            or (self.communities is not None and not np.array_equal(self.communities.labels, labels))
        ):
            raise InputError("the parts of a Conquest do not fit together.")

    @property
    def n_clusters(self) -> int:
        """The number of clusters found."""
        return int(self.labels.max()) + 1


def _is_path(path: Path | None, considered: str) -> bool:
    """Return whether there is a score for each thing that was considered."""
    if path is None:
        return True
    values, scores = path[considered], path["score"]
    return bool(
        len(path) == 2
        and values.ndim == 1
        and len(values) > 0
        and values.shape == scores.shape
        and values.dtype.kind in "if"
        and scores.dtype == np.float64
    )
