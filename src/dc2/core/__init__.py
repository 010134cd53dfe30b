"""The hot loops, in two implementations of the same functions; this file chooses one.

`reference.py`, `graph_reference.py` and `leiden_reference.py`, plain NumPy and Python, define the right answer; the
native module gives the same bits, faster. The environment variable ``DC2_CORE`` (``native`` or ``reference``) selects
one of them; without it the native module is used wherever it was built. Call the functions as ``core.scan(...)``: the
choice is made at first use.
"""

import os
import warnings
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

from dc2.errors import ParameterError

if TYPE_CHECKING:  # both implementations have these signatures
    from dc2.core.graph_reference import (
        Graph,
        borders,
        count_shared_rows,
        join_nodes,
        leaving_edges,
        leiden,
        modularity,
    )
    from dc2.core.neighbours_reference import (
        find_long_links,
        link_neighbours,
        offer_copies,
        offer_groups,
        offer_links,
        pair_squares,
        rough_copy,
    )  # fmt: skip
    from dc2.core.reference import (
        coleaf_counts,
        grow_tree,
        hash_contents,
        hash_rows,
        sample_rows,
        scan,
        searchable,
    )  # fmt: skip

__all__ = [
    "Graph", "SlowCoreWarning", "borders", "coleaf_counts", "count_shared_rows", "find_long_links", "grow_tree",
    "hash_contents", "hash_rows", "join_nodes", "leaving_edges", "leiden", "link_neighbours", "modularity", "name",
    "offer_copies", "offer_groups", "offer_links", "pair_squares", "reason", "rough_copy", "sample_rows", "scan",
    "searchable", "twin",
]  # fmt: skip

_OWN = ("SlowCoreWarning", "name", "reason", "twin")
_OF_GRAPHS = ("Graph", "borders", "count_shared_rows", "join_nodes", "leaving_edges", "leiden", "modularity")
_OF_NEIGHBOURS = (
    "find_long_links", "link_neighbours", "offer_copies", "offer_groups", "offer_links", "pair_squares", "rough_copy",
)  # fmt: skip
# Each function, and the module where its twin is.
_TWINS = dict.fromkeys(__all__, "dc2.core.reference")
_TWINS |= dict.fromkeys(_OF_GRAPHS, "dc2.core.graph_reference")
_TWINS |= dict.fromkeys(_OF_NEIGHBOURS, "dc2.core.neighbours_reference")
for _name in _OWN:
    del _TWINS[_name]


def twin(function: str) -> Any:
    """Return the NumPy twin of a function of the core."""
    return getattr(import_module(_TWINS[function]), function)


class SlowCoreWarning(RuntimeWarning):
    """The native core is missing, so the slower NumPy core does its work."""


def _choose(wanted: str) -> tuple[str, str, ModuleType | None]:
    """Return the core's name, why it was chosen, and the native module if that is the one."""
    if wanted not in ("", "native", "reference"):
        raise ParameterError(
            f"DC2_CORE={wanted!r} names no core of dc2. "
            "Set it to 'native' or 'reference', or unset it to use the native core where there is one."
        )
    if wanted == "reference":
        return "reference", "DC2_CORE=reference asks for it", None
    try:
        module = import_module("dc2.core._native")
    except ImportError as error:
        if wanted == "native":
            raise ImportError(
                f"DC2_CORE=native asks for the native core, which cannot be loaded ({error}). Reinstall dc2 where "
                "a C++17 compiler is found, or unset DC2_CORE to use the slower NumPy core."
            ) from error
        return "reference", f"the native core cannot be loaded: {error}", None
    return "native", "DC2_CORE=native asks for it" if wanted else "it is built", module


name, reason, _native_module = _choose(os.environ.get("DC2_CORE", ""))


def __getattr__(attribute: str) -> Any:
    """Return the chosen implementation at first use, and warn then if it is the slow one by accident."""
    if attribute not in _TWINS:
        raise AttributeError(f"module {__name__!r} has no attribute {attribute!r}")
    for function, home in _TWINS.items():
        globals()[function] = getattr(_native_module or import_module(home), function)
    if name == "reference" and not os.environ.get("DC2_CORE"):
        warnings.warn(
            f"dc2 runs on its NumPy core, many times slower than the native one, because {reason}. Reinstall dc2 "
            "where a C++17 compiler is found, or set DC2_CORE=reference to accept this.",
            SlowCoreWarning,
            stacklevel=2,
        )
    return globals()[attribute]
