"""Kernel-quality clusters on millions of rows: divide, compress, conquer, populate."""

from dc2.compress import Compressor, Signatures
from dc2.sources import as_source
from dc2.trees import RPForest, RPTree
from dc2.versions import __version__, show_versions

__all__ = [
    "Compressor",
    "RPForest",
    "RPTree",
    "Signatures",
    "__version__",
    "as_source",
    "show_versions",
]
