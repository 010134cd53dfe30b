"""Kernel learning at scale: kernel machines, any estimator on signatures, and kernel features for linear models."""

from dc2.learn.features import RPFFeatures
from dc2.learn.kernel_machines import KernelClassifier, KernelRegressor
from dc2.learn.meta_estimator import DC2
from dc2.learn.nystroem import SignatureNystroem

__all__ = ["DC2", "KernelClassifier", "KernelRegressor", "RPFFeatures", "SignatureNystroem"]
