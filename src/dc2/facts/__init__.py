"""Facts: what is known about a fitted model, computed in one place for plots, report and command line."""

from dc2.facts.facts import Facts
from dc2.facts.fitted import FittedClusters

__all__ = ["Facts", "FittedClusters"]
