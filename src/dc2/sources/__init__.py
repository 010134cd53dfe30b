"""Sources: rows in blocks, whatever they come from."""

from dc2.sources.arrays import ArraySource
from dc2.sources.base import Block, Source
from dc2.sources.checks import raise_if_not_finite
from dc2.sources.formats import CsvOptions
from dc2.sources.frames import FrameSource
from dc2.sources.resolve import as_source
from dc2.sources.streams import StreamSource

__all__ = [
    "ArraySource",
    "Block",
    "CsvOptions",
    "FrameSource",
    "Source",
    "StreamSource",
    "as_source",
    "raise_if_not_finite",
]
