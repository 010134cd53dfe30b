"""From whatever the user has to a source."""

from __future__ import annotations

from typing import Any

from dc2.sources.arrays import ArraySource
from dc2.sources.base import Source
from dc2.sources.weights import WeightedSource

__all__ = ["as_source"]


def as_source(data: Any, *, sample_weight: Any = None) -> Source:
    """Return the source for `data`."""
    source: Source = data if isinstance(data, Source) else ArraySource(data)
    return source if sample_weight is None else WeightedSource(source, sample_weight)
