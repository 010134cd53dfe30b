"""A picture with a palette as PNG, written without any imaging library."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

__all__ = ["png_of_levels"]

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
# Bits, colour type, and the only ways of compression, filtering and order.
_PALETTE_OF_BYTES = bytes([8, 3, 0, 0, 0])


def png_of_levels(levels: NDArray[np.uint8], palette: Sequence[tuple[int, int, int]]) -> bytes:
    """Return a PNG file.

    Parameters
    ----------
    levels : ndarray of shape (height, width), uint8
        Places in the palette.
    palette : sequence of (red, green, blue)
        At most 256 colours.

    Examples
    --------
    >>> png_of_levels(np.zeros((2, 3), np.uint8), [(255, 255, 255)])[1:4]
    b'PNG'
    """
    height, width = levels.shape
    rows = np.zeros((height, width + 1), np.uint8)  # each row begins with the number of its filter: 0 is none
    rows[:, 1:] = levels
    return b"".join(
        [
            _SIGNATURE,
            _chunk(b"IHDR", struct.pack(">II", width, height) + _PALETTE_OF_BYTES),
            _chunk(b"PLTE", bytes(part for colour in palette for part in colour)),
            _chunk(b"IDAT", zlib.compress(rows.tobytes(), 9)),
            _chunk(b"IEND", b""),
        ]
    )


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
