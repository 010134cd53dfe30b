"""Engines: a map over the blocks of a source, with results in block order."""

from dc2.engines.answers import answered
from dc2.engines.base import DEFAULT_BLOCK_BYTES, Engine, Progress
from dc2.engines.choose import engine_for
from dc2.engines.options import RunOptions, Verbose
from dc2.engines.progress import progress_for
from dc2.engines.threads import ThreadEngine

__all__ = [
    "DEFAULT_BLOCK_BYTES",
    "Engine",
    "Progress",
    "RunOptions",
    "ThreadEngine",
    "Verbose",
    "answered",
    "engine_for",
    "progress_for",
]
