"""Which engine runs over a source."""

from dc2.engines.base import Engine
from dc2.engines.options import RunOptions
from dc2.engines.progress import progress_for
from dc2.engines.threads import ThreadEngine
from dc2.sources.base import Source

__all__ = ["engine_for"]


def engine_for(source: Source, options: RunOptions) -> Engine:
    """Return the engine that suits a source."""
    verbose = options.verbose
    progress = verbose if callable(verbose) else progress_for(verbose)
    own_engine = getattr(source, "own_engine", None)
    if own_engine is not None:  # rows that live on a cluster bring the engine that works there
        engine: Engine = own_engine(progress)
        return engine
    if options.device is not None:
        from dc2.engines.cuda import CudaEngine

        return CudaEngine(options.n_jobs, options.block_bytes, progress)
    return ThreadEngine(options.n_jobs, options.block_bytes, progress)
