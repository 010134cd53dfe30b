"""The evaluation's loaders of public data, for scripts that are run from anywhere."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # evaluation/ is not installed

from evaluation.data import (
    TABLES,
    list_benchmark_sets,
    load_benchmark_set,
    load_covertype,
    load_mnist,
    load_table,
)

__all__ = [
    "TABLES",
    "list_benchmark_sets",
    "load_benchmark_set",
    "load_covertype",
    "load_mnist",
    "load_table",
]
