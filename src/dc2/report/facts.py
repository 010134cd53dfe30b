"""What the sections of a cluster report draw on, computed once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dc2.plots.fitted import FittedClusters
from dc2.plots.profile import Profile, cluster_profile
from dc2.plots.similarity import signature_similarity

__all__ = ["Facts"]


@dataclass(frozen=True, eq=False)
class Facts:
    """A fitted model and what follows from it.

    Attributes
    ----------
    model : RPFCluster, RASP or KASP
    clusters : FittedClusters
    source_description : str or None
        What the rows are, in the user's words.
    """

    model: Any
    clusters: FittedClusters
    source_description: str | None = None

    @cached_property
    def profile(self) -> Profile:
        """What sets clusters apart."""
        return cluster_profile(self.clusters)

    @cached_property
    def similarity(self) -> NDArray[np.float64]:
        """The kernel's similarity of signatures."""
        return signature_similarity(self.model)

    @cached_property
    def shares(self) -> NDArray[np.float64]:
        """Share of all rows in each cluster."""
        shares: NDArray[np.float64] = self.clusters.sizes / self.clusters.sizes.sum()
        return shares

    @property
    def uses_forest(self) -> bool:
        """Whether similarity comes from a forest of random trees, and not from distances."""
        return hasattr(self.model, "n_trees")

    @property
    def unit(self) -> str:
        """What sizes count: rows, unless the rows had fractional weights."""
        weights = self.clusters.weights
        return "rows" if np.array_equal(weights, np.round(weights)) else "weight"

    @property
    def n_rows(self) -> float:
        """Rows that were clustered; for signatures that came from elsewhere, the rows they stand for."""
        compressed_here = hasattr(self.model, "stage_seconds_")
        return float(self.model.n_rows_in_) if compressed_here else float(self.clusters.weights.sum())

    @property
    def each_row_is_a_signature(self) -> bool:
        """Whether the rows were so few that none had to stand for others."""
        return self.n_rows == len(self.clusters.points)

    @cached_property
    def variation_kept(self) -> float:
        """Share of the rows' variance that the signatures keep."""
        share = self.clusters.weights / self.clusters.weights.sum()
        off = self.clusters.points - share @ self.clusters.points
        between = float(share @ (off * off).sum(axis=1))
        lost = float(share @ self.clusters.spread)
        return between / (between + lost) if between + lost > 0 else 1.0
