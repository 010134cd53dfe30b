"""Engines: a map over the blocks of a source, with results in block order."""

from dc2.engines.engine import DEFAULT_BLOCK_BYTES, Engine, Progress, progress_for
from dc2.engines.map_rows import RunOptions, Verbose, engine_for
from dc2.engines.threads import ThreadEngine

__all__ = [
    "DEFAULT_BLOCK_BYTES",
    "Engine",
    "Progress",
    "RunOptions",
    "ThreadEngine",
    "Verbose",
    "engine_for",
    "progress_for",
]
