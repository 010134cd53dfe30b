"""Engines: a map over the blocks of a source, with results in block order."""

from dc2.engines.base import DEFAULT_BLOCK_BYTES, Engine, Progress
from dc2.engines.choose import Verbose, engine_for
from dc2.engines.progress import ProgressBar, progress_for
from dc2.engines.threads import ThreadEngine

__all__ = [
    "DEFAULT_BLOCK_BYTES",
    "Engine",
    "Progress",
    "ProgressBar",
    "ThreadEngine",
    "Verbose",
    "engine_for",
    "progress_for",
]
