"""Centres for rough products: bounds of distances that hold however a matrix product rounds.

See `Bounds` in `device.hpp` for the inequality; the numbers here follow it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["RoughCentres", "least_squared_distances", "rough_centres"]

PRODUCT_ERROR = 2.0**-8  # relative to both lengths: factors are rounded to 10 bits, and sums in any way
ROUNDING = 2.0**-15  # error of all other terms
UP = 1 + 2.0**-20  # keeps bounds valid when they are rounded to float32
MOST_COLUMNS = 4096  # the error of a product grows with columns
WIDE = 64  # columns; distances of narrower points are cheap
MOST_LEAST_BYTES = 2**31
SMALLEST, LARGEST = np.float32(1e-30), np.float32(1e38)  # of bounds; beyond these, digits may have been lost
CLEAR_SHARE = 0.05  # of the squared distances of centres from their middle


@dataclass(frozen=True, eq=False)
class RoughCentres:
    """Centres relative to their middle.

    Attributes
    ----------
    middle : ndarray of shape (1, n_features), float32
    shifted : array on the card, of shape (n_signatures, n_features), float32
        The centres minus the middle.
    facts : array on the card, of shape (3, n_signatures), float32
    tells_apart : bool
        Whether products are accurate enough to tell most centres apart. It only saves time.
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


def least_squared_distances(card: Any, points: NDArray[Any]) -> NDArray[np.float32] | None:
    """Return lower bounds of the squared distances among points, by rough products.

    None if there are too many points, or if they are so narrow that distances cost no more. No bound is larger than the
    distance as any core rounds it; extreme numbers give 0.
    """
    n, width = points.shape
    if not (WIDE < width <= MOST_COLUMNS and 4 * n * n <= MOST_LEAST_BYTES and card.multiplies):
        return None
    wide = points.astype(np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        shifted = (wide - wide.mean(axis=0)).astype(np.float32)
        own = shifted.astype(np.float64)
        squares = np.einsum("ij,ij->i", own, own)
        near_squares = (squares * (1 - 2 * ROUNDING)).astype(np.float32)
        errors = (np.sqrt(2 * PRODUCT_ERROR * squares) * UP).astype(np.float32)
    with card.use(), np.errstate(all="ignore"):
        xp, there = card.xp, card.array(shifted)
        least = xp.empty((n, n), np.float32)
        card.multiply(there, there, least)
        near_squares, errors = card.array(near_squares), card.array(errors)
        least *= np.float32(-2)
        least += near_squares[:, None]
        least += near_squares
        least -= errors[:, None] * errors
        least[~((least > SMALLEST) & (least < LARGEST))] = 0
        brought: NDArray[np.float32] = card.fetched(least)
        return brought
