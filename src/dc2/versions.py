"""The version of dc2, and what it runs on."""

import os
import platform
from importlib import metadata

from dc2 import core

__all__ = ["__version__", "package_versions", "show_versions"]

# The one place that holds the version; the package's metadata read it from here.
__version__ = "0.2.0"

_REQUIRED = ("numpy", "scipy", "scikit-learn")
_OPTIONAL = ("pandas", "polars", "pyarrow", "matplotlib", "typer", "rich", "dask", "distributed")


def show_versions() -> None:
    """Print what a bug report should say about versions and the machine.

    The first lines say which core does the work, native or the slower NumPy one, and why.

    Examples
    --------
    >>> import dc2
    >>> dc2.show_versions()
    dc2           ...
    core          ...
    """
    facts = {"dc2": __version__, "core": _core(), "python": platform.python_version()}
    facts |= package_versions() | {package: _version(package) for package in _OPTIONAL}
    facts |= {"platform": platform.platform(), "cores": _cores()}
    for fact, value in facts.items():
        print(f"{fact:<13} {value}")


def package_versions() -> dict[str, str]:
    """Return the versions of the packages that results depend on."""
    return {package: _version(package) for package in _REQUIRED}


def _core() -> str:
    if core.name == "reference":
        return f"reference ({core.reason})"
    from dc2.core import _native

    simd_level = getattr(_native, "simd_level", None)
    return f"native, {simd_level()}" if simd_level else "native"


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "not installed"


def _cores() -> str:
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return f"{usable} usable of {os.cpu_count()}"
