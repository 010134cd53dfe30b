"""Public data: the paper's six sets as it prepares them, stand-ins for missing ones, and benchmark sets.

Every loader takes ``data_home``, a folder that holds the files, plain or gzipped; None looks into the folder that the
environment variable ``DC2_DATA`` names, then into the user's cache. With ``download=True`` a missing file is fetched
into the last of these. It returns a `sklearn.utils.Bunch` with ``data`` (float32), ``target``, ``target_names``,
``feature_names`` and ``DESCR``.
"""

from evaluation.data.batteries import list_benchmark_sets, load_benchmark_set
from evaluation.data.connect4 import load_connect4
from evaluation.data.covertype import load_covertype
from evaluation.data.gas_sensor import load_gas_sensor
from evaluation.data.ht_sensor import load_ht_sensor
from evaluation.data.location import DataNotFoundError
from evaluation.data.mnist import load_mnist
from evaluation.data.poker import load_poker, make_poker, merge_poker_classes, poker_class
from evaluation.data.stand_ins import make_gas_like, make_ht_like
from evaluation.data.tables import TABLES, load_table
from evaluation.data.usci import load_usci

__all__ = [
    "DataNotFoundError",
    "TABLES",
    "list_benchmark_sets",
    "load_benchmark_set",
    "load_connect4",
    "load_covertype",
    "load_gas_sensor",
    "load_ht_sensor",
    "load_mnist",
    "load_poker",
    "load_table",
    "load_usci",
    "make_gas_like",
    "make_ht_like",
    "make_poker",
    "merge_poker_classes",
    "poker_class",
]
