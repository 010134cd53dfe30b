"""Which engine runs over a source."""

from dc2.engines.base import Engine
from dc2.engines.threads import ThreadEngine
from dc2.sources.base import Source

__all__ = ["engine_for"]


def engine_for(source: Source, n_jobs: int | None, block_bytes: int, verbose: int = 0) -> Engine:
    """Return the engine that suits a source."""
    return ThreadEngine(n_jobs, block_bytes)
