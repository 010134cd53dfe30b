"""The profile: the communities of a graph at many resolutions, coarse to fine."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dc2.communities.graph import TieGraph
from dc2.communities.search import Search, small_parts
from dc2.communities.strays import join_strays
from dc2.errors import InputError
from dc2.model_file import saved_record

LOWEST = 0.002
STEP = 0.25  # in the logarithm of resolutions
EVERYDAY = 34  # that many resolutions are always looked at: up to about 8
COARSE_STEP = 0.5  # beyond
HIGHEST = 1e6
LEAST_SIZE = 12  # of clusters on average, where finer ones are looked for


@saved_record
@dataclass(frozen=True, eq=False)
class Profile:
    """Partitions at rising resolutions, strays joined.

    Attributes
    ----------
    resolutions : ndarray of shape (n_resolutions,)
    partitions : ndarray of shape (n_resolutions, n_nodes), int32
        Clusters counted from 0.
    n_clusters : ndarray of shape (n_resolutions,)
    """

    resolutions: NDArray[np.float64]
    partitions: NDArray[np.int32]
    n_clusters: NDArray[np.int64]

    def check(self) -> None:
        """Raise if the parts do not fit together; called when a profile was read from a model file."""
        parts = self.partitions
        if (
            parts.ndim != 2
            or not parts.size
            or parts.dtype != np.int32
            or self.resolutions.shape != (len(parts),)
            or not (np.isfinite(self.resolutions).all() and (self.resolutions > 0).all())
            or not np.array_equal(self.n_clusters, parts.max(axis=1) + 1)
            or not 0 <= int(parts.min()) <= int(parts.max()) < parts.shape[1]
        ):
            raise InputError("the parts of a Profile do not fit together.")


@dataclass(frozen=True, eq=False)
class Nodes:
    """A tie graph with what is known of its nodes."""

    graph: TieGraph
    points: NDArray[Any]
    masses: NDArray[np.float64]
    seed: int
    n_threads: int

    @cached_property
    def search(self) -> Search:
        """What finds communities of the graph."""
        return Search.of(self.graph, small_parts(self.graph, self.seed), self.seed)


def communities(nodes: Nodes, resolution: float, search: Search | None = None) -> NDArray[np.int32]:
    """Return the communities at a resolution, of the nodes' own graph or of a resampled one, with strays joined."""
    search = search or nodes.search
    return join_strays(search.graph, search.communities(float(resolution)), nodes.masses, nodes.points)


def make_profile(nodes: Nodes) -> Profile:
    """Take partitions from the coarsest on, until clusters get too small to be any.

    The grid is fixed up to a resolution of about 8, where 2 to 100 clusters are told apart. More clusters
    need higher ones: it goes on while their number still grows and they have a dozen nodes each on average.
    """
    n_nodes = nodes.graph.n_nodes
    resolutions = list(LOWEST * np.exp(STEP * np.arange(EVERYDAY)))
    with ThreadPoolExecutor(nodes.n_threads) as pool:
        partitions = list(pool.map(lambda g: communities(nodes, g), resolutions))
        while (
            partitions[-1].max() > partitions[-2].max()
            and (partitions[-1].max() + 1) * LEAST_SIZE < n_nodes
            and resolutions[-1] < HIGHEST
        ):
            further = list(resolutions[-1] * np.exp(COARSE_STEP * np.arange(1, 3)))
            partitions += pool.map(lambda g: communities(nodes, g), further)
            resolutions += further
    counts = np.array([labels.max() + 1 for labels in partitions], dtype=np.int64)
    return Profile(np.array(resolutions), np.array(partitions, dtype=np.int32), counts)
