"""Everything that is told of a fitted clusterer; each fact is computed once, when it is first asked for."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dc2.facts.fitted import FittedClusters
from dc2.facts.layout import Layout, default_layouts, layout_named
from dc2.facts.profile import Profile, cluster_profile
from dc2.facts.quality import Silhouette, radius, weighted_silhouette
from dc2.facts.remarks import column_remarks
from dc2.facts.shown import heaviest_of_clusters
from dc2.facts.summary import summary_records
from dc2.facts.variance import variance_kept
from dc2.facts.verdict import verdict_in_words
from dc2.facts.views import View, views_of
from dc2.kernels.similarity import InWords

__all__ = ["Facts"]

MOST_SHOWN = 2000  # signatures at most are drawn or compared in pairs, since that costs their square
MOST_TOLD = 100  # clusters that pages describe one by one, the largest; a summary has all


@dataclass(frozen=True, eq=False)
class Facts:
    """A fitted clusterer and what follows from it.

    Attributes
    ----------
    model : DC2Clustering, RPFCluster, RASP or KASP
    clusters : FittedClusters
        Its signatures, in the units of the data.
    """

    model: Any
    clusters: FittedClusters

    @classmethod
    def of(cls, model: Any) -> Facts:
        """Gather facts of a model, or raise if it is not a fitted clusterer of this package."""
        return cls(model, FittedClusters.of(model))

    @cached_property
    def drawn(self) -> NDArray[np.intp]:
        """The signatures to draw: from each cluster its share of them, heaviest first; those of noise last."""
        chosen = heaviest_of_clusters(self.clusters.labels, self.clusters.weights, MOST_SHOWN)
        is_noise = self.clusters.labels[chosen] < 0
        return np.concatenate([chosen[~is_noise], chosen[is_noise]])

    @cached_property
    def drawn_clusters(self) -> FittedClusters:
        """The signatures to be drawn, with their clusters, -1 where they are noise."""
        return self.clusters.take(self.drawn)

    @cached_property
    def shown(self) -> NDArray[np.intp]:
        """Those to be drawn that are in a cluster."""
        shown: NDArray[np.intp] = self.drawn[self.clusters.labels[self.drawn] >= 0]
        return shown

    @cached_property
    def shown_clusters(self) -> FittedClusters:
        """Those to be drawn that are in a cluster, with their clusters."""
        return self.clusters.take(self.shown)

    @property
    def told(self) -> int:
        """How many clusters pages describe one by one."""
        return min(self.clusters.n_clusters, MOST_TOLD)

    @cached_property
    def profile(self) -> Profile:
        """What sets clusters apart."""
        return cluster_profile(self.clusters)

    @cached_property
    def strength(self) -> NDArray[np.float64]:
        """How alike the signatures are that are drawn and lie in a cluster, 0 to 1."""
        strength: NDArray[np.float64] = self.model.similarity_.strength(self.shown)
        return strength

    @cached_property
    def similarity_in_words(self) -> InWords:
        """What the similarity is and what its numbers mean."""
        words: InWords = self.model.similarity_.in_words()
        return words

    @cached_property
    def layouts(self) -> tuple[Layout, ...]:
        """Maps of the signatures to be drawn, the best first."""
        return default_layouts(self.drawn_clusters, self._apart)

    def layout(self, name: str) -> Layout:
        """Return a map of the signatures to be drawn: "auto" is the best."""
        return self.layouts[0] if name == "auto" else layout_named(name, self.drawn_clusters, self._apart)

    def _apart(self) -> NDArray[np.float64]:
        apart: NDArray[np.float64] = self.model.similarity_.apart(self.drawn, self.drawn_clusters.points)
        return apart

    @cached_property
    def shares(self) -> NDArray[np.float64]:
        """Share of all rows in each cluster; with noise they add up to less than 1."""
        shares: NDArray[np.float64] = self.clusters.sizes / self.clusters.total
        return shares

    @property
    def stability(self) -> NDArray[np.float64]:
        """How much of each cluster comes back when signatures are resampled, 0 to 1."""
        stability: NDArray[np.float64] = self.model.stability_
        return stability

    @cached_property
    def summary(self) -> list[dict[str, Any]]:
        """What there is to say of each cluster, one record each."""
        return summary_records(self)

    @cached_property
    def views(self) -> list[View]:
        """The same signatures in other numbers of clusters, the model's own among them; fewest first."""
        return views_of(self)

    @cached_property
    def remarks(self) -> list[str]:
        """Sentences on columns that are constant, look like ids, or make the clusters by themselves."""
        return column_remarks(self.clusters, self.n_rows)

    @cached_property
    def silhouette(self) -> Silhouette | None:
        """How far clusters are apart in straight lines, on the signatures that are drawn."""
        shown = self.shown_clusters
        return weighted_silhouette(shown.points, shown.labels, shown.weights)

    @cached_property
    def kernel_silhouette(self) -> Silhouette | None:
        """How far clusters are apart in the spectral embedding; None where there is none."""
        embedding = getattr(self.model, "embedding_", None)
        if embedding is None:
            return None
        shown = self.shown_clusters
        return weighted_silhouette(embedding[self.shown], shown.labels, shown.weights)

    @cached_property
    def radii(self) -> NDArray[np.float64]:
        """Root mean squared distance of each cluster's rows to their mean."""
        return radius(self.clusters)

    @cached_property
    def variance_kept(self) -> float:
        """Share of the rows' variance that the signatures keep."""
        return variance_kept(self.model.signatures_)

    @property
    def verdict(self) -> str | None:
        """What to think of the number of clusters, in one sentence."""
        return verdict_in_words(self.model)

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
        """Whether the rows were so few that each one was kept."""
        return self.n_rows == len(self.clusters.points)
