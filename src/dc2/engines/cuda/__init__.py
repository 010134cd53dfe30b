"""The engine for a graphics card: rows are worked on where they lie, or sent there block by block."""

from dc2.engines.cuda.engine import CudaEngine
from dc2.engines.cuda.source import CudaSource, cuda_source

__all__ = ["CudaEngine", "CudaSource", "cuda_source"]
