"""How a clusterer compresses rows: with the user's `Compressor`, or with its own."""

from __future__ import annotations

from typing import Any

from sklearn.base import clone

from dc2.cluster.fit import Compress
from dc2.compress import Compressor
from dc2.compress.compress import compress
from dc2.compress.plan import Plan, plan_of
from dc2.errors import ParameterError

__all__ = ["checked_plan", "compress_by"]

# Parameters that a clusterer and its compressor share; the clusterer decides them.
SHARED = ("n_signatures", "scale", "metric", "n_jobs", "block_bytes", "device", "random_state", "verbose")


def _compressor_of(clusterer: Any) -> Compressor:
    """Return the compressor of a clusterer, with the clusterer's own settings, or raise."""
    given = clusterer.compressor
    if given is None:
        given = Compressor()
    elif not isinstance(given, Compressor):
        raise ParameterError(f"compressor must be a dc2.Compressor or None; got {given!r}.")
    defaults = Compressor().get_params()
    shared = {name: getattr(clusterer, name) for name in SHARED if hasattr(clusterer, name)}
    for name, value in shared.items():
        own = getattr(given, name)
        if not _same(own, defaults[name]) and not _same(own, value):
            raise ParameterError(
                f"compressor has {name}={own!r}, but the clusterer decides this and has {value!r}. Give {name} to "
                f"{type(clusterer).__name__} and not to its compressor."
            )
    compressor: Compressor = clone(given)
    # The seeds of a fit are spawned by the clusterer.
    compressor.set_params(**{name: value for name, value in shared.items() if name != "random_state"})
    if isinstance(compressor.n_signatures, str) and compressor.n_signatures == "auto":
        compressor.set_params(n_signatures=Compressor().n_signatures)  # replaced once the rows are seen
    return compressor


def compress_by(plan: Plan) -> Compress:
    """Return a function that compresses rows by a plan."""
    return lambda source, engine, seeds, n_threads: compress(source, engine, plan, seeds, n_threads)


def checked_plan(clusterer: Any) -> Plan:
    """Return the plan of a clusterer's compressor, all parameters checked."""
    return plan_of(_compressor_of(clusterer))


def _same(a: Any, b: Any) -> bool:
    return a is b or (type(a) is type(b) and bool(a == b))
