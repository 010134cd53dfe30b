"""Conquering anew: the clusters that other rows from the same source might have made."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray

from dc2.communities.agreement import agreement, resampled, resamples
from dc2.communities.exact import merged
from dc2.communities.profile import Nodes, communities
from dc2.communities.result import CommunityResult
from dc2.communities.search import Search

# The ties of all resampled graphs in memory at a time; making these takes about half a gigabyte.
TIES_AT_ONCE = 1 << 23


def conquered_anew(result: CommunityResult, nodes: Nodes, times: int) -> list[NDArray[np.int32]]:
    """Return the clusters of resampled graphs, found in the same way as those of the result.

    Each resampled graph is searched at the resolution of the result's own clusters. If the result was merged from
    finer clusters, each resample is merged too.

    Parameters
    ----------
    result : CommunityResult
    nodes : Nodes
        The nodes that the result is about.
    times : int
        Number of resamples.
    """
    k = result.n_clusters
    if k == 1:
        return [result.labels]
    place = _place_of(result, nodes.masses)
    resolution, finer = float(result.profile.resolutions[place]), result.profile.n_clusters[place] > k
    seen = resamples(nodes.graph.n_nodes)

    def anew(i: int) -> NDArray[np.int32]:
        # The first resamples already took part in choosing the number of clusters.
        graph = resampled(nodes.graph, nodes.seed + seen + i + 1)
        labels = communities(nodes, resolution, Search.of(graph, result.profile.parts, nodes.seed))
        return merged(graph, nodes.points, labels, k) if finer and labels.max() >= k else labels

    at_once = max(1, TIES_AT_ONCE // max(1, len(nodes.graph.indices)))
    with ThreadPoolExecutor(min(nodes.n_threads, at_once)) as pool:
        return list(pool.map(anew, range(times)))


def _place_of(result: CommunityResult, masses: NDArray[np.float64]) -> int:
    """Return the place in the profile whose clusters agree best with those of the result."""
    alike = [agreement(labels, result.labels, masses) for labels in result.profile.partitions]
    best = np.flatnonzero(np.array(alike) >= max(alike))
    chosen = best[result.profile.resolutions[best] == result.verdict.resolution]
    return int(chosen[0] if len(chosen) else best[len(best) // 2])
