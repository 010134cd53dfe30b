"""Sources: rows in blocks, whatever they come from."""

from dc2.sources.arrays import ArraySource
from dc2.sources.base import Block, Source
from dc2.sources.checks import raise_if_not_finite
from dc2.sources.resolve import as_source

__all__ = ["ArraySource", "Block", "Source", "as_source", "raise_if_not_finite"]
