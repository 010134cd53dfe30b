"""Compression: from rows to signatures."""

from dc2.compress.compressor import Compressor
from dc2.compress.rp_neighbors import RPNeighbors
from dc2.compress.signatures import Signatures

__all__ = [
    "Compressor",
    "RPNeighbors",
    "Signatures",
]
