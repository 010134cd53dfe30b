"""The rule that decides whether rows are worked on as float32 or as float64."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

__all__ = ["promoted_dtype"]


def promoted_dtype(dtypes: Iterable[np.dtype[Any]]) -> np.dtype[Any]:
    """Return float32 if it holds every value of every column exactly, else float64.

    float32 takes float32, float16, booleans and integers up to 16 bits; anything wider makes all float64.

    Examples
    --------
    >>> promoted_dtype([np.dtype("float32"), np.dtype("int16"), np.dtype("bool")])
    dtype('float32')
    >>> promoted_dtype([np.dtype("float32"), np.dtype("int32")])
    dtype('float64')
    """
    fits = all(np.can_cast(dtype, np.float32, casting="safe") for dtype in dtypes)
    return np.dtype(np.float32) if fits else np.dtype(np.float64)
