"""Collections of other libraries that are worked on where they live: who makes sources of them.

`dc2.as_source` looks here, and whoever stands above the engines enters what he knows; so sources need not know engines.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["maker_for", "register"]

_MAKERS: dict[str, Callable[..., Any]] = {}


def register(library: str, make: Callable[..., Any]) -> None:
    """Say who makes sources of the collections of a library.

    Parameters
    ----------
    library : str
        Name of the library, as the module names of its classes begin.
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
    return _MAKERS.get(type(data).__module__.partition(".")[0])
