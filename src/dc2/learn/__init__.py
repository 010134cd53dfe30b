"""Kernel learning at large: any estimator on signatures, and kernel features for linear models."""

from dc2.learn.dc2 import DC2
from dc2.learn.features import RPFFeatures
from dc2.learn.nystroem import SignatureNystroem

__all__ = ["DC2", "RPFFeatures", "SignatureNystroem"]
