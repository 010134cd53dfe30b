"""Kernels of signatures: by random trees, and the Gaussian."""

from dc2.kernels.gaussian import GaussianKernel
from dc2.kernels.rpf import RPFKernel

__all__ = ["GaussianKernel", "RPFKernel"]
