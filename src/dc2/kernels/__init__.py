"""Kernels: how alike points are."""

from dc2.kernels.gaussian import Gaussian, GaussianKernel
from dc2.kernels.recipes import similarity_recipe
from dc2.kernels.rpf import RPF, RPFKernel

__all__ = ["Gaussian", "GaussianKernel", "RPF", "RPFKernel", "similarity_recipe"]
