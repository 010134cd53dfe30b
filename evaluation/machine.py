"""The machine that a row of results was computed on, as text."""

from __future__ import annotations

import os
import platform
from functools import cache
from pathlib import Path

import joblib

__all__ = ["machine"]


@cache
def machine(n_jobs: int | None = None) -> str:
    """Return the processor, the cores used and available, the system and Python.

    Examples
    --------
    >>> "1 of" in machine(1)
    True
    """
    cores = f"{n_jobs or joblib.cpu_count()} of {os.cpu_count()} cores"
    system = f"{platform.system()} {platform.release()}"
    return f"{_processor()}, {cores}, {system}, Python {platform.python_version()}"


def _processor() -> str:
    """Return the model of the processor as Linux names it, else its kind."""
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    except OSError:
        lines = []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return " ".join([*models[:1], platform.machine()])
