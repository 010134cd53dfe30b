"""Conquer: from a similarity of nodes, and a wish for their number, to clusters."""

from dc2.conquer.conquest import Conquest, Spectrum
from dc2.conquer.eigenvectors import SpectralConqueror
from dc2.conquer.wish import Wish

__all__ = ["Conquest", "SpectralConqueror", "Spectrum", "Wish"]
