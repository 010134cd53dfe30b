"""Random projection trees and forests, and the nearest neighbours that they find."""

from dc2.trees.forest import RPForest
from dc2.trees.tree import RPTree

__all__ = ["RPForest", "RPTree"]
