"""Kernel-quality clusters on millions of rows: divide, compress, conquer, populate."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from dc2.foreign import CUDA, register

if TYPE_CHECKING:
    from dc2.cluster import KASP, RASP, DC2Clustering, RPFCluster
    from dc2.compress import Compressor, Signatures
    from dc2.kernels import GaussianKernel, RPFKernel
    from dc2.learn import DC2, RPFFeatures, SignatureNystroem
    from dc2.loading import load
    from dc2.metrics import clustering_accuracy, majority_floor
    from dc2.sources import CsvOptions, as_source
    from dc2.spectral import spectral_clustering
    from dc2.tables import TablePreparer
    from dc2.trees import RPForest, RPTree
    from dc2.versions import __version__, show_versions

__all__ = [
    "Compressor",
    "CsvOptions",
    "DC2",
    "DC2Clustering",
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
    "TablePreparer",
    "__version__",
    "as_source",
    "clustering_accuracy",
    "load",
    "majority_floor",
    "show_versions",
    "spectral_clustering",
]

# A name is imported when it is first used: importing scikit-learn takes a second, which `dc2 --help` need not wait for.
_CONTENTS = {
    "dc2.cluster": ("DC2Clustering", "KASP", "RASP", "RPFCluster"),
    "dc2.compress": ("Compressor", "Signatures"),
    "dc2.kernels": ("GaussianKernel", "RPFKernel"),
    "dc2.learn": ("DC2", "RPFFeatures", "SignatureNystroem"),
    "dc2.metrics": ("clustering_accuracy", "majority_floor"),
    "dc2.loading": ("load",),
    "dc2.sources": ("CsvOptions", "as_source"),
    "dc2.spectral": ("spectral_clustering",),
    "dc2.tables": ("TablePreparer",),
    "dc2.trees": ("RPForest", "RPTree"),
    "dc2.versions": ("__version__", "show_versions"),
}
_HOMES = {name: home for home, names in _CONTENTS.items() for name in names}

if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        if name not in _HOMES:
            raise AttributeError(f"module 'dc2' has no attribute {name!r}")
        globals()[name] = getattr(import_module(_HOMES[name]), name)
        return globals()[name]


def _dask_source(collection: Any, **options: Any) -> Any:
    from dc2.engines.dask import dask_source

    return dask_source(collection, **options)


def _cuda_source(array: Any, **options: Any) -> Any:
    from dc2.engines.cuda import cuda_source

    return cuda_source(array, **options)


for _library in ("dask", "dask_expr"):
    register(_library, _dask_source)
register(CUDA, _cuda_source)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
