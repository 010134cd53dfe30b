"""Centres for rough products: what a matrix product of any rounding says for sure about distances.

See `Bounds` in `device.hpp`, which holds the law; the numbers here follow it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["RoughCentres", "rough_centres"]

PRODUCT_ERROR = 2.0**-8  # of the lengths: factors rounded to 10 bits, and sums that round as they like
ROUNDING = 2.0**-15  # of all other terms
UP = 1 + 2.0**-20  # so that bounds stay bounds when they are rounded to float32
CLEAR_SHARE = 0.05  # of how far centres lie from their middle, squared


@dataclass(frozen=True, eq=False)
class RoughCentres:
    """Centres about their middle.

    Attributes
    ----------
    middle : ndarray of shape (1, n_features), float32
    shifted : array on the card, of shape (n_signatures, n_features), float32
        Centres less the middle.
    facts : array on the card, of shape (3, n_signatures), float32
    tells_apart : bool
        Whether products are fine enough to tell most centres apart. It only saves time.
    """

    middle: NDArray[np.float32]
    shifted: Any
    facts: Any
    tells_apart: bool


def rough_centres(card: Any, centres: NDArray[Any]) -> RoughCentres:
    """Return centres as rough products need them, on a card."""
    wide = centres.astype(np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        middle = wide.mean(axis=0).astype(np.float32)
        shifted = (wide - middle).astype(np.float32)
        own = shifted.astype(np.float64)
        squares, along = np.einsum("ij,ij->i", own, own), own @ middle.astype(np.float64)
        lengths, to_middle = np.sqrt(squares), float(np.linalg.norm(middle.astype(np.float64)))
        facts = np.stack(
            [
                squares + 2 * along,
                2 * PRODUCT_ERROR * lengths * UP,
                ROUNDING * (squares + 2 * to_middle * lengths) * UP,
            ]
        ).astype(np.float32)
        error = 2 * PRODUCT_ERROR * float(np.median(np.linalg.norm(wide, axis=1) * lengths))
        tells_apart = error < CLEAR_SHARE * float(np.median(squares))
    return RoughCentres(middle[None], card.array(shifted), card.array(facts), tells_apart)
