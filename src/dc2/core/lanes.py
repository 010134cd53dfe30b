"""Sums in eight fixed lanes: the order in which both cores add."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.floating[Any]]

LANES = 8

# As in C++, silently: callers look at what comes out.
too_large_is_infinite = np.errstate(over="ignore", invalid="ignore")


@too_large_is_infinite
def lanes_dot(a: Floats, b: Floats) -> Floats:
    """Return the row-wise dot product, column j added to lane j % 8, then the lanes pairwise."""
    product = a * b
    rows, width = product.shape
    padded = np.zeros((rows, -(-width // LANES), LANES), product.dtype)
    padded.reshape(rows, padded.shape[1] * LANES)[:, :width] = product
    lane = padded[:, 0].copy()
    for chunk in range(1, padded.shape[1]):
        lane += padded[:, chunk]
    half = lane[:, :4] + lane[:, 4:]
    quarter = half[:, :2] + half[:, 2:]
    total: Floats = quarter[:, 0] + quarter[:, 1]
    return total
