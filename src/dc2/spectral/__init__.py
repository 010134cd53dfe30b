"""Spectral clustering: normalized affinity, its leading eigenvectors, and two ways to assign clusters."""

from dc2.spectral.affinity import normalized_affinity
from dc2.spectral.eigenvectors import top_eigenvectors
from dc2.spectral.kmeans_assign import assign_kmeans
from dc2.spectral.ncut import assign_ncut
from dc2.spectral.spectral import Assign, SpectralResult, spectral_clustering

__all__ = [
    "Assign",
    "SpectralResult",
    "assign_kmeans",
    "assign_ncut",
    "normalized_affinity",
    "spectral_clustering",
    "top_eigenvectors",
]
