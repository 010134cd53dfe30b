"""Small arrays of the host that a card has been given, so that the next block of rows finds them there."""

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
    """What was made from arrays, kept while these live and until too many others have followed.

    An array is known by itself and not by its values: what is changed in place must not be kept.

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
        """Return what `make` makes of an array in some form, made now or before."""
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
