"""Shifted MNIST: MNIST at any size, with known classes.

The first 70,000 rows' worth are the images themselves; every further copy of them is moved by -1, 0 or 1 pixels in both
directions, drawn at random for each image, and the rows are mixed. A moved image is another image of the same digit, so
there are ten classes at any size, and the classes keep their shape while they become denser.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from public_data import load_mnist

__all__ = ["SIDE", "shifted_mnist"]

SIDE = 28
FARTHEST = 1  # pixels


def shifted_mnist(n_rows: int, seed: int = 0) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Return images and their digits.

    Parameters
    ----------
    n_rows : int
        At most 70,000 rows are images as they are; others are moved copies.
    seed : int, default=0
        Equal seeds give equal rows.
    """
    images = load_mnist()
    plain = np.asarray(images.data, np.uint8).reshape(-1, SIDE, SIDE)
    digits = np.asarray(images.target, np.int64)
    draw = np.random.default_rng(seed)
    image = np.concatenate([draw.permutation(len(plain)) for _ in range(-(-n_rows // len(plain)))])[:n_rows]
    moves = draw.integers(-FARTHEST, FARTHEST + 1, (n_rows, 2))
    moves[: len(plain)] = 0
    order = draw.permutation(n_rows)
    X = np.empty((n_rows, SIDE * SIDE), np.float32)
    for down in range(-FARTHEST, FARTHEST + 1):
        for right in range(-FARTHEST, FARTHEST + 1):
            rows = np.flatnonzero((moves[order] == (down, right)).all(axis=1))
            if len(rows):
                X[rows] = _moved(plain, down, right)[image[order[rows]]].reshape(len(rows), -1)
    return X, digits[image[order]]


def _moved(images: NDArray[np.uint8], down: int, right: int) -> NDArray[np.uint8]:
    """Return images moved by some pixels; what enters is black."""
    moved = np.roll(images, (down, right), axis=(1, 2))
    for axis, step in ((1, down), (2, right)):
        entered = np.arange(SIDE)[:step] if step > 0 else np.arange(SIDE)[SIDE + step :] if step else ()
        moved[(slice(None),) * axis + (np.asarray(entered, np.intp),)] = 0
    return moved
