"""Kernels: how alike points are."""

from dc2.kernels.gaussian import Gaussian, GaussianKernel
from dc2.kernels.recipes import similarity_recipe
from dc2.kernels.rpf import RPF, RPFKernel
from dc2.kernels.ties import Ties

__all__ = ["Gaussian", "GaussianKernel", "RPF", "RPFKernel", "Ties", "similarity_recipe"]
