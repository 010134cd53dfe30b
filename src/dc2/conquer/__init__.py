"""Conquer: from a similarity of nodes, and a wish for their number, to clusters."""

from dc2.communities import Wish
from dc2.conquer.communities import CommunityConqueror
from dc2.conquer.conquest import Conquest, Spectrum
from dc2.conquer.eigenvectors import SpectralConqueror

__all__ = ["CommunityConqueror", "Conquest", "SpectralConqueror", "Spectrum", "Wish"]
