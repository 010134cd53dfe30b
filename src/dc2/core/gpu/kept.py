"""Small arrays of the host that stay on the card for the next block of rows."""

from __future__ import annotations

import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from numpy.typing import NDArray

__all__ = ["Kept"]

MOST = 16  # arrays: those of two models or so


class Kept:
    """Results made from arrays, kept while these exist and until too many others have followed.

    An array is recognised by its identity, not by its values: arrays that change in place must not be kept.

    Examples
    --------
    >>> import numpy as np
    >>> kept, array = Kept(), np.arange(3)
    >>> kept.of(array, "sum", lambda: [int(array.sum())]) is kept.of(array, "sum", list)
    True
    """

    def __init__(self) -> None:
        self._made: OrderedDict[tuple[int, str], tuple[weakref.ref[NDArray[Any]], Any]] = OrderedDict()
        self._lock = threading.Lock()

    def of(self, array: NDArray[Any], form: str, make: Callable[[], Any]) -> Any:
        """Return `make` of an array in some form, computed now or earlier."""
        key = (id(array), form)
        with self._lock:
            if key not in self._made:
                is_gone = weakref.ref(array, lambda _: self._made.pop(key, None))
                self._made[key] = (is_gone, make())
            self._made.move_to_end(key)
            made = self._made[key][1]
            while len(self._made) > MOST:
                self._made.popitem(last=False)
        return made
