"""The engine for a cluster of machines: chunks of Dask collections are worked on where they live."""

from dc2.engines.dask.engine import DaskEngine
from dc2.engines.dask.source import DaskSource, dask_source

__all__ = ["DaskEngine", "DaskSource", "dask_source"]
