"""Random projection trees and forests: the one mechanism."""

from dc2.trees.forest import RPForest
from dc2.trees.tree import RPTree

__all__ = ["RPForest", "RPTree"]
