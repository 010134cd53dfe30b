"""Kernel-quality clusters on millions of rows: divide, compress, conquer, populate."""

from dc2.cluster import KASP, RASP, RPFCluster
from dc2.compress import Compressor, Signatures
from dc2.kernels import GaussianKernel, RPFKernel
from dc2.learn import DC2, RPFFeatures, SignatureNystroem
from dc2.metrics import clustering_accuracy, majority_floor
from dc2.model_file import load
from dc2.sources import as_source
from dc2.spectral import spectral_clustering
from dc2.trees import RPForest, RPTree
from dc2.versions import __version__, show_versions

__all__ = [
    "Compressor",
    "DC2",
    "GaussianKernel",
    "KASP",
    "RASP",
    "RPFCluster",
    "RPFFeatures",
    "RPFKernel",
    "RPForest",
    "RPTree",
    "SignatureNystroem",
    "Signatures",
    "__version__",
    "as_source",
    "clustering_accuracy",
    "load",
    "majority_floor",
    "show_versions",
    "spectral_clustering",
]
