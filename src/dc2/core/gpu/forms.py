"""Arrays of any library on a card: taken in and handed out without a copy, by DLPack."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from numpy.typing import NDArray

from dc2.core.gpu.card import Card, cupy, own_card
from dc2.errors import InputTypeError

__all__ = ["as_cupy", "form_like", "host_array", "table_at"]


def as_cupy(data: Any) -> tuple[Card, Any]:
    """Return the card that an array lies on, and the array as one of CuPy's."""
    card = own_card(int(data.__dlpack_device__()[1]))
    if isinstance(data, card.xp.ndarray):
        return card, data
    detach = getattr(data, "detach", None)  # torch: no gradients are needed
    with card.use():
        try:
            return card, card.xp.from_dlpack(data if detach is None else detach())
        except (BufferError, TypeError, ValueError, RuntimeError) as error:
            raise InputTypeError(
                f"X is a {type(data).__module__}.{type(data).__name__} that CuPy cannot take ({error}). Convert it to "
                "float32 first."
            ) from error


def form_like(data: Any) -> Callable[[Any], Any]:
    """Return a function that turns arrays of the host or of CuPy into the kind of array that `data` is, on its card."""
    card, _ = as_cupy(data)
    xp = card.xp
    take = None if isinstance(data, xp.ndarray) else getattr(_library(data), "from_dlpack", None)

    def form(array: Any) -> Any:
        with card.use():
            there = xp.asarray(array)
            return there if take is None else take(there)

    return form


def _library(data: Any) -> Any:
    if hasattr(data, "__array_namespace__"):
        return data.__array_namespace__()
    return sys.modules.get(type(data).__module__.partition(".")[0])


def table_at(table: NDArray[Any], ids: Any) -> Any:
    """Return a host table's rows for numbers on a card, as the same kind of array as the numbers."""
    card, numbers = as_cupy(ids)
    with card.use():
        return form_like(ids)(card.xp.asarray(table)[numbers])


def host_array(data: Any) -> NDArray[Any]:
    """Return numbers that may lie on a card, on the host."""
    _, array = as_cupy(data)
    host: NDArray[Any] = cupy().asnumpy(array)
    return host
