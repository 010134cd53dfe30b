"""Random projection trees and forests, which everything else is built on."""

from dc2.trees.forest import RPForest
from dc2.trees.tree import RPTree

__all__ = ["RPForest", "RPTree"]
