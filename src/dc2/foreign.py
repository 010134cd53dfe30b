"""Collections of other libraries that are processed where they live, and the functions that make sources of them.

The engines register here what they can open, and `dc2.as_source` looks it up; so sources need not know engines.
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
    """Register the function that makes sources of a library's collections.

    Parameters
    ----------
    library : str
        Name of the library, as the module names of its classes begin; or `CUDA`.
    make : callable
        Takes a collection, and `columns`, `drop`, `sample_weight` and `extra` as `dc2.as_source` does.
    """
    _MAKERS[library] = make


def maker_for(data: Any) -> Callable[..., Any] | None:
    """Return the function that makes a source of this data, or None if its library is not registered.

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
