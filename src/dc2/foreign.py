"""Collections of other libraries that are worked on where they live: who makes sources of them.

`dc2.as_source` looks here, and whoever stands above the engines enters what he knows; so sources need not know engines.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["CUDA", "lies_on_cuda", "maker_for", "register"]

CUDA = "CUDA"
"""Stands for whatever lies on a CUDA device, of any library."""
_CUDA_KINDS = (2, 13)  # DLPack's numbers for CUDA memory, and for memory that CUDA manages

_MAKERS: dict[str, Callable[..., Any]] = {}


def register(library: str, make: Callable[..., Any]) -> None:
    """Say who makes sources of the collections of a library.

    Parameters
    ----------
    library : str
        Name of the library, as the module names of its classes begin; or `CUDA`.
    make : callable
        Takes a collection, and `columns`, `drop`, `sample_weight` and `extra` as `dc2.as_source` does.
    """
    _MAKERS[library] = make


def maker_for(data: Any) -> Callable[..., Any] | None:
    """Return who makes a source of data, or None where it is of no such library.

    Examples
    --------
    >>> maker_for([[1.0, 2.0]]) is None
    True
    """
    make = _MAKERS.get(type(data).__module__.partition(".")[0])
    return _MAKERS.get(CUDA) if make is None and lies_on_cuda(data) else make


def lies_on_cuda(data: Any) -> bool:
    """Return whether data is an array on a CUDA device, of CuPy, torch, JAX or any other library that says so.

    Examples
    --------
    >>> import numpy as np
    >>> lies_on_cuda(np.zeros(3))
    False
    """
    where = None if isinstance(data, type) else getattr(data, "__dlpack_device__", None)
    if where is None:
        return False
    try:
        return int(where()[0]) in _CUDA_KINDS
    except (BufferError, RuntimeError, TypeError, ValueError):  # memory of a kind that DLPack does not know
        return False
