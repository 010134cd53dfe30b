"""Generated shapes, to try clusterers on."""

from dc2.datasets.shapes import (
    add_noise_columns,
    make_bananas,
    make_intrinsic,
    make_rank,
    make_rings,
    make_spirals,
    make_uneven_blobs,
)

__all__ = [
    "add_noise_columns",
    "make_bananas",
    "make_intrinsic",
    "make_rank",
    "make_rings",
    "make_spirals",
    "make_uneven_blobs",
]
