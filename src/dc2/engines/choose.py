"""Which engine runs over a source."""

from dc2.engines.base import Engine, Progress
from dc2.engines.progress import progress_for
from dc2.engines.threads import ThreadEngine
from dc2.sources.base import Source

__all__ = ["Verbose", "engine_for"]

Verbose = int | Progress
"""0 is silent, 1 draws a bar on a terminal, a callable is told the progress."""


def engine_for(source: Source, n_jobs: int | None, block_bytes: int, verbose: Verbose = 0) -> Engine:
    """Return the engine that suits a source."""
    progress = verbose if callable(verbose) else progress_for(verbose)
    own_engine = getattr(source, "own_engine", None)
    if own_engine is not None:  # rows that live on a cluster bring the engine that works there
        engine: Engine = own_engine(progress)
        return engine
    return ThreadEngine(n_jobs, block_bytes, progress)
