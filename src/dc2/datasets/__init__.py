"""Data: the paper's six sets, benchmark sets, and generated shapes."""

from dc2.datasets.batteries import list_benchmark_sets, load_benchmark_set
from dc2.datasets.connect4 import load_connect4
from dc2.datasets.covertype import load_covertype
from dc2.datasets.gas_sensor import load_gas_sensor
from dc2.datasets.ht_sensor import load_ht_sensor
from dc2.datasets.location import DataNotFoundError
from dc2.datasets.mnist import load_mnist
from dc2.datasets.poker import load_poker, make_poker, merge_poker_classes, poker_class
from dc2.datasets.shapes import (
    add_noise_columns,
    make_bananas,
    make_intrinsic,
    make_rank,
    make_rings,
    make_spirals,
    make_uneven_blobs,
)
from dc2.datasets.stand_ins import make_gas_like, make_ht_like
from dc2.datasets.usci import load_usci

__all__ = [
    "DataNotFoundError",
    "add_noise_columns",
    "list_benchmark_sets",
    "load_benchmark_set",
    "load_connect4",
    "load_covertype",
    "load_gas_sensor",
    "load_ht_sensor",
    "load_mnist",
    "load_poker",
    "load_usci",
    "make_bananas",
    "make_gas_like",
    "make_ht_like",
    "make_intrinsic",
    "make_poker",
    "make_rank",
    "make_rings",
    "make_spirals",
    "make_uneven_blobs",
    "merge_poker_classes",
    "poker_class",
]
