"""Conquering a sparse similarity by communities of its graph."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.random import SeedSequence
from numpy.typing import NDArray

from dc2 import communities
from dc2.communities import Wish
from dc2.conquer.conquest import RESAMPLINGS, Conquest
from dc2.engines.threads import usable_threads
from dc2.kernels.nodes import Nodes
from dc2.kernels.ties import TieSimilarity
from dc2.random import tree_seed

__all__ = ["CommunityConqueror"]


@dataclass(frozen=True)
class CommunityConqueror:
    """Leiden's communities at many resolutions, and a choice among them."""

    def conquer(
        self,
        similarity: TieSimilarity,
        nodes: Nodes,
        wish: Wish,
        seeds: SeedSequence,
        n_jobs: int | None,
        before: Conquest | None = None,
    ) -> Conquest:
        """Return the clusters that persist, or as many as were asked for; what was found before is used again."""
        known = None if before is None else before.communities
        found = communities.conquer_ties(_tied(similarity, nodes, seeds, n_jobs), wish, known)
        return Conquest(found.labels, wish.low if wish.exact else found.n_clusters, communities=found)

    def anew(
        self,
        found: Conquest,
        similarity: TieSimilarity,
        nodes: Nodes,
        seeds: SeedSequence,
        n_jobs: int | None,
    ) -> list[NDArray[np.int32]]:
        """Return the clusters that resampled rows lead to."""
        assert found.communities is not None
        tied = _tied(similarity, nodes, seeds, n_jobs)
        return communities.conquered_anew(found.communities, tied, RESAMPLINGS)


def _tied(similarity: TieSimilarity, nodes: Nodes, seeds: SeedSequence, n_jobs: int | None) -> communities.Nodes:
    return communities.Nodes(similarity.graph, nodes.points, nodes.masses, tree_seed(seeds), usable_threads(n_jobs))
