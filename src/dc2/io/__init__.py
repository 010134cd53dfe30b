"""Rows in, in blocks, whatever they come from; labels and model files out."""

from dc2.io.arrays import ArraySource
from dc2.io.csv_files import CsvOptions
from dc2.io.frames import FrameSource
from dc2.io.model_file import load
from dc2.io.resolve import as_source
from dc2.io.source import Block, Source
from dc2.io.streams import StreamSource

__all__ = ["ArraySource", "Block", "CsvOptions", "FrameSource", "Source", "StreamSource", "as_source", "load"]
