"""Kernel-quality clusters on millions of rows: divide, compress, conquer, populate."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dc2.cluster import KASP, RASP, Changes, DC2Clustering, RPFCluster, compare
    from dc2.compress import Compressor, RPNeighbors, Signatures
    from dc2.io import CsvOptions, as_source, load
    from dc2.learn import DC2, RPFFeatures, SignatureNystroem
    from dc2.learn.kernel_machines import KernelClassifier, KernelRegressor
    from dc2.metrics import clustering_accuracy, majority_floor
    from dc2.spectral import GaussianKernel, RPFKernel, spectral_clustering
    from dc2.tables import TablePreparer
    from dc2.trees import RPForest, RPTree
    from dc2.versions import __version__, show_versions

__all__ = [
    "Changes",
    "Compressor",
    "CsvOptions",
    "DC2",
    "DC2Clustering",
    "GaussianKernel",
    "KASP",
    "KernelClassifier",
    "KernelRegressor",
    "RASP",
    "RPFCluster",
    "RPFFeatures",
    "RPFKernel",
    "RPForest",
    "RPNeighbors",
    "RPTree",
    "SignatureNystroem",
    "Signatures",
    "TablePreparer",
    "__version__",
    "as_source",
    "clustering_accuracy",
    "compare",
    "load",
    "majority_floor",
    "show_versions",
    "spectral_clustering",
]

# A name is imported when it is first used: importing scikit-learn takes a second, which `dc2 --help` need not wait for.
_CONTENTS = {
    "dc2.cluster": ("Changes", "DC2Clustering", "KASP", "RASP", "RPFCluster", "compare"),
    "dc2.compress": ("Compressor", "RPNeighbors", "Signatures"),
    "dc2.spectral": ("GaussianKernel", "RPFKernel", "spectral_clustering"),
    "dc2.learn": ("DC2", "KernelClassifier", "KernelRegressor", "RPFFeatures", "SignatureNystroem"),
    "dc2.metrics": ("clustering_accuracy", "majority_floor"),
    "dc2.io": ("CsvOptions", "as_source", "load"),
    "dc2.tables": ("TablePreparer",),
    "dc2.trees": ("RPForest", "RPTree"),
    "dc2.versions": ("__version__", "show_versions"),
    # Not public: sources of the libraries that have an engine of their own, for `dc2.as_source`.
    "dc2.engines.dask_source": ("dask_source",),
    "dc2.engines.cuda": ("cuda_source",),
    "dc2.engines.spark_engine": ("spark_source",),
    "dc2.engines.ray_engine": ("ray_source",),
}
_HOMES = {name: home for home, names in _CONTENTS.items() for name in names}

if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        if name not in _HOMES:
            raise AttributeError(f"module 'dc2' has no attribute {name!r}")
        globals()[name] = getattr(import_module(_HOMES[name]), name)
        return globals()[name]


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
