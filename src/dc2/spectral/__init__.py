"""Spectral clustering: dense similarities, their leading eigenvectors, and the assignment of clusters."""

from dc2.spectral.assignment import SpectralResult, assign_kmeans, assign_ncut, spectral_clustering
from dc2.spectral.eigenvectors import normalized_affinity, top_eigenvectors
from dc2.spectral.gaussian import Gaussian, GaussianKernel
from dc2.spectral.perturbation import PerturbationBound, perturbation_bound
from dc2.spectral.rpf import RPF, RPFKernel

__all__ = [
    "Gaussian",
    "GaussianKernel",
    "PerturbationBound",
    "RPF",
    "RPFKernel",
    "SpectralResult",
    "assign_kmeans",
    "assign_ncut",
    "normalized_affinity",
    "perturbation_bound",
    "spectral_clustering",
    "top_eigenvectors",
]
