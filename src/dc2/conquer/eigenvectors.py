"""Conquering a dense similarity by its eigenvectors, with a bandwidth and a number of clusters chosen if asked."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.random import SeedSequence
from numpy.typing import NDArray

from dc2.communities import drawn_weights
from dc2.communities.layers import by_mass
from dc2.communities.wish import Wish
from dc2.conquer.bandwidth import Choice, Chooser
from dc2.conquer.conquest import RESAMPLINGS, Conquest, Spectrum
from dc2.conquer.solid import first_solid
from dc2.kernels.nodes import Nodes
from dc2.kernels.similarity import DenseSimilarity
from dc2.random import tree_seed
from dc2.spectral import Assign, SpectralResult, spectral_clustering

__all__ = ["SpectralConqueror"]

MOST_CLUSTERS, POINTS_PER_CLUSTER = 50, 15


@dataclass(frozen=True)
class SpectralConqueror:
    """Spectral clustering of nodes.

    Attributes
    ----------
    assign : {"kmeans", "ncut"}
        How eigenvectors become clusters.
    weighted : bool
        Whether it regards how many rows a node stands for.
    """

    assign: Assign = "kmeans"
    weighted: bool = False

    def conquer(
        self,
        similarity: DenseSimilarity,
        nodes: Nodes,
        wish: Wish,
        seeds: SeedSequence,
        n_jobs: int | None,
        before: Conquest | None = None,
    ) -> Conquest:
        """Return the clusters that the leading eigenvectors of a similarity show; nothing is kept from before."""
        weights = nodes.relative_masses if self.weighted else np.ones(len(nodes))
        chooser = Chooser(similarity, weights, nodes.relative_masses, n_jobs)

        def clustered(choice: Choice) -> SpectralResult:
            return spectral_clustering(
                similarity.matrix(choice.bandwidth),
                min(choice.n_clusters, len(nodes)),
                assign=self.assign,
                weights=weights,
                random_state=seeds,
            )

        considered = chooser.choices(*_bounds(wish, len(nodes)))
        choice, result = first_solid((choice, clustered(choice)) for choice in considered)
        spectrum = Spectrum(
            eigenvalues=result.eigenvalues,
            embedding=result.embedding,
            bandwidth=choice.bandwidth,
            bandwidth_path=choice.bandwidth_path,
            n_clusters_path=choice.n_clusters_path,
        )
        return Conquest(by_mass(result.labels, nodes.masses), choice.n_clusters, spectrum)

    def anew(
        self,
        found: Conquest,
        similarity: DenseSimilarity,
        nodes: Nodes,
        seeds: SeedSequence,
        n_jobs: int | None,
    ) -> list[NDArray[np.int32]]:
        """Return the clusters of nodes with resampled weights, as many as were found, at the same bandwidth."""
        assert found.spectrum is not None
        if found.n_clusters == 1:
            return [found.labels]
        weights = nodes.relative_masses if self.weighted else np.ones(len(nodes))
        matrix, seed = similarity.matrix(found.spectrum.bandwidth), tree_seed(seeds)

        def clustered(i: int) -> NDArray[np.int32]:
            drawn = np.maximum(drawn_weights(seed + i, len(nodes)), 1.0)  # no node disappears
            return spectral_clustering(
                matrix, found.n_clusters, assign=self.assign, weights=weights * drawn, random_state=seeds
            ).labels

        return [clustered(i + 1) for i in range(RESAMPLINGS)]


def _bounds(wish: Wish, n_nodes: int) -> tuple[int, int]:
    """Return the numbers of clusters to consider; for larger ones the spectrum is noise."""
    if wish.exact:
        return wish.low, wish.low
    if wish.high is None:
        return wish.low, max(wish.low, min(MOST_CLUSTERS, n_nodes // POINTS_PER_CLUSTER))
    return wish.low, max(wish.low, min(wish.high, n_nodes // 2))
