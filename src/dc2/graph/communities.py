"""Conquering a sparse similarity by communities of its graph."""

from __future__ import annotations

import math
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import numpy as np
from numpy.random import SeedSequence
from numpy.typing import NDArray

from dc2.graph.conquest import RESAMPLINGS, Conquest
from dc2.graph.constraints import Known, with_known, with_links
from dc2.graph.density import crossing_share
from dc2.graph.fixed_k import clouds_apart, exactly, merged
from dc2.graph.layers import (
    CommunityResult,
    FarGroups,
    by_weight,
    distinct,
    layer_heights,
    nest,
    parents,
)
from dc2.graph.n_clusters import NumberEvidence, RequestedClusters, Verdict
from dc2.graph.neighbor_graph import GraphSimilarity, SharedRowsGraph
from dc2.graph.nodes import Nodes
from dc2.graph.resolutions import (
    FEWEST,
    GraphNodes,
    ResolutionSweep,
    communities_at,
    join_isolated,
    settled,
    sweep_around,
    sweep_resolutions,
)
from dc2.graph.select_k import (
    Candidate,
    Evidence,
    agreement,
    candidates,
    clearest,
    evaluated,
    evidence_of,
    information,
    mean_agreement,
    plateaus,
    resampled,
    resamples,
)
from dc2.graph.size_limits import NO_LIMITS, SizeLimits, within_limits
from dc2.parameters import usable_threads
from dc2.random import tree_seed


def find_communities(
    nodes: GraphNodes, requested: RequestedClusters, before: CommunityResult | None = None
) -> CommunityResult:
    """Find the clusters of a neighbour graph; what an earlier result for the same nodes found is used again.

    Examples
    --------
    >>> import numpy as np
    >>> from dc2.graph.neighbor_graph import shared_rows_graph
    >>> rows = np.repeat([[0.0], [9.0]], 30, axis=0) + np.linspace(0, 1, 60)[:, None]
    >>> near = np.argsort(np.abs(rows - rows.T), axis=1, kind="stable")[:, :8].astype(np.int32)
    >>> nodes = GraphNodes(shared_rows_graph(near, None, 60), rows, np.ones(60), seed=0, n_threads=1)
    >>> result = find_communities(nodes, RequestedClusters())
    >>> result.n_clusters
    2
    >>> find_communities(nodes, RequestedClusters.exactly(3), before=result).n_clusters
    3
    """
    n_nodes = nodes.graph.n_nodes
    low, high = min(requested.low, n_nodes), n_nodes if requested.high is None else min(requested.high, n_nodes)
    if before is not None:
        nodes = replace(nodes, parts=before.sweep.parts)
    if low == high:
        return _given(nodes, low, requested, before)
    if before is not None and before.sweep.complete:
        sweep, path = before.sweep, before.resolution_path
    else:
        sweep, path = sweep_resolutions(nodes), None
    evidence = Evidence(nodes, sweep, path)
    if low <= n_nodes <= high and _are_few_values(nodes):
        chosen = NumberEvidence(n_nodes, 1.0, 0.0, 1.0, 0.0, 1.0, 1.0 - evidence.least)
        verdict = Verdict(requested, chosen, None, evidence.least, np.nan)
        labels = by_weight(np.arange(n_nodes, dtype=np.int32), nodes.node_weights)
        return _result(nodes, sweep, evidence, labels, verdict, [])
    allowed = candidates(sweep, evidence, RequestedClusters(low, high))
    found = allowed if (low, high) == (1, n_nodes) else candidates(sweep, evidence, RequestedClusters())
    apart = _across_gaps(nodes, sweep, evidence, evidence.gaps.n_groups)
    if apart and low <= apart[1].n_clusters <= high and apart[1].score > max((c.score for c in allowed), default=0.0):
        labels, chosen = apart
        resolution = np.nan
    elif allowed and (low > 1 or allowed[0].score > 0):
        best = allowed[0]
        chosen, resolution = best.numbers, float(sweep.resolutions[best.index])
        labels = by_weight(clouds_apart(nodes, _settled(nodes, sweep, best.index)), nodes.node_weights)
    else:
        labels, chosen, resolution = _fewest(nodes, sweep, evidence, low)
    others = (candidate.numbers for candidate in found if candidate.plateau.n_clusters != chosen.n_clusters)
    verdict = Verdict(requested, chosen, next(others, None), evidence.least, resolution)
    return _result(nodes, sweep, evidence, labels, verdict, found)


def _across_gaps(
    nodes: GraphNodes, sweep: ResolutionSweep, evidence: Evidence, k: int
) -> tuple[NDArray[np.int32], NumberEvidence] | None:
    """Return the k groups with the deepest gaps between them, and the evidence for them; None if it is too little.

    Gaps count as density gaps do, and the score is that of `candidates`; the groups are the same in every resample and
    at every resolution.
    """
    depth = float(evidence.gaps.depths[: k - 1].mean()) if 1 < k <= evidence.gaps.n_groups else 0.0
    if depth <= evidence.least:
        return None
    labels = by_weight(evidence.gaps.groups(k), nodes.node_weights)
    found = _evidence_for_given(nodes, sweep, evidence, labels, np.nan, 0.0)
    score = math.sqrt(depth - evidence.least) * information(labels, nodes.graph.volumes)
    return labels, replace(found, depth=depth, evidence=max(depth, found.evidence), score=score)


def _are_few_values(nodes: GraphNodes) -> bool:
    """Return whether there are fewer distinct rows than nodes of a cluster, each repeated as often: each is a cluster.

    A single row, or one that is hardly repeated, shows nothing.
    """
    weights = nodes.node_weights
    return nodes.graph.rows_are_nodes and 1 < len(weights) < FEWEST and bool((weights >= FEWEST).all())


def with_clusters(nodes: GraphNodes, result: CommunityResult, labels: NDArray[np.int32]) -> CommunityResult:
    """Return the result with other clusters, such as rules of the user make; layers are nested around these."""
    sweep = result.sweep
    nodes = replace(nodes, parts=sweep.parts)
    labels = by_weight(labels, nodes.node_weights)
    if np.array_equal(labels, result.labels):
        return result
    evidence = Evidence(nodes, sweep, result.resolution_path)
    chosen = _evidence_for_given(nodes, sweep, evidence, labels, np.nan, 0.0)
    verdict = replace(result.verdict, chosen=chosen, resolution=np.nan)
    others = [layer for place, layer in enumerate(result.layers) if place != result.chosen_layer]
    layers, place = nest(nodes.graph, nodes.node_weights, labels, others)
    far = FarGroups.of(nodes.graph, nodes.points, sweep.partitions[0])
    heights = layer_heights([*(int(layer.max()) + 1 for layer in layers), 1], sweep, far)
    path = result.resolution_path | {"chosen": np.zeros(len(sweep.resolutions), bool)}
    return CommunityResult(labels, layers, place, parents(layers), heights, path, verdict, sweep)


def choose_layer(result: CommunityResult, layer: int) -> CommunityResult:
    """Return the result with another of its layers chosen."""
    return replace(result, labels=result.layers[layer], chosen_layer=layer)


def _given(nodes: GraphNodes, k: int, requested: RequestedClusters, before: CommunityResult | None) -> CommunityResult:
    """Return k clusters: the same ones whatever was found before; only layers and the sweep are kept from that."""
    sweep = sweep_around(nodes, k)
    evidence = Evidence(nodes, sweep)
    same = [plateau for plateau in plateaus(sweep, evidence.below) if plateau.n_clusters == k]
    if same:
        index = clearest(same[0], evidence)
        labels, resolution = _settled(nodes, sweep, index), float(sweep.resolutions[index])
    else:
        labels, found_at = exactly(nodes, sweep, k)
        resolution = np.nan if found_at is None else found_at
    other = _merged_finer(nodes, sweep, k)
    if other is not None and better_cut(nodes.graph, other, labels):
        labels, resolution = other, np.nan
    chosen = _evidence_for_given(nodes, sweep, evidence, labels, resolution, same[0].width if same else 0.0)
    apart = _across_gaps(nodes, sweep, evidence, k)
    beyond = max(chosen.evidence - evidence.least, 0.0)
    if apart is not None and apart[1].score > math.sqrt(beyond) * information(labels, nodes.graph.volumes):
        labels, chosen = apart
        resolution = np.nan
    else:
        labels = by_weight(clouds_apart(nodes, labels), nodes.node_weights)
    verdict = Verdict(requested, chosen, None, evidence.least, resolution)
    if before is not None and before.sweep.complete:
        sweep, evidence = before.sweep, Evidence(nodes, before.sweep, before.resolution_path)
    return _result(nodes, sweep, evidence, labels, verdict, evaluated(sweep, evidence))


def _evidence_for_given(
    nodes: GraphNodes,
    sweep: ResolutionSweep,
    evidence: Evidence,
    labels: NDArray[np.int32],
    resolution: float,
    width: float,
) -> NumberEvidence:
    """Return the evidence for the communities of a given number, before borders through clouds are moved."""
    k = int(labels.max()) + 1
    if k == 1:  # nothing speaks against it, and nothing has to be measured
        return NumberEvidence(1, np.nan, 0.0, 0.0, 0.0, 0.0, 0.0)
    others = _bootstrapped(nodes, sweep, labels, range(1, resamples(nodes.graph.n_nodes) + 1), resolution)
    agrees = mean_agreement([labels, *others], nodes.graph.volumes)
    depth, crossing = evidence.density_gaps_of(labels)
    strength = evidence_of(agrees, depth, crossing, evidence)
    return NumberEvidence(k, agrees, width, depth, crossing, strength, strength - evidence.least)


def _merged_finer(nodes: GraphNodes, sweep: ResolutionSweep, k: int) -> NDArray[np.int32] | None:
    """Merge the next finer partition and the small parts of the graph to k clusters; return the fewer crossing edges.

    A single resolution may cut a large cluster before it separates small ones. Merging has no such limit, and leaves
    far fewer edges between clusters. Clusters of few nodes may be whole only among the small parts.
    """
    if k == 1:
        return None
    parts = join_isolated(nodes.graph, sweep.parts.part, nodes.node_weights, nodes.points)
    finer = np.flatnonzero(sweep.n_clusters > k)
    partitions = [_settled(nodes, sweep, int(finer[np.argmin(sweep.n_clusters[finer])]))] if len(finer) else []
    partitions += [parts] if parts.max() >= k else []
    found = [merged(nodes.graph, nodes.points, labels, k) for labels in partitions]
    return min(found, key=lambda labels: crossing_share(nodes.graph, labels), default=None)


def better_cut(graph: SharedRowsGraph, other: NDArray[np.int32], labels: NDArray[np.int32]) -> bool:
    """Return whether half as many edges cross, with at least half of the information: not all nodes in one cluster."""
    half_crossing = 2 * crossing_share(graph, other) < crossing_share(graph, labels)
    return half_crossing and 2 * information(other, graph.volumes) > information(labels, graph.volumes)


def _fewest(
    nodes: GraphNodes, sweep: ResolutionSweep, evidence: Evidence, low: int
) -> tuple[NDArray[np.int32], NumberEvidence, float]:
    """Return the smallest number of clusters allowed, for want of evidence for any other."""
    labels, found_at = exactly(nodes, sweep, low)
    resolution = np.nan if found_at is None else found_at
    chosen = _evidence_for_given(nodes, sweep, evidence, labels, resolution, 0.0)
    return by_weight(labels, nodes.node_weights), chosen, resolution


def _settled(nodes: GraphNodes, sweep: ResolutionSweep, index: int) -> NDArray[np.int32]:
    """Return a partition of the sweep after nodes have moved."""
    return settled(nodes, sweep.partitions[index], float(sweep.resolutions[index]))


def _result(
    nodes: GraphNodes,
    sweep: ResolutionSweep,
    evidence: Evidence,
    labels: NDArray[np.int32],
    verdict: Verdict,
    found: list[Candidate],
) -> CommunityResult:
    """Put the result together: layers are the candidates with enough evidence, and groups of clusters far apart."""
    far = FarGroups.of(nodes.graph, nodes.points, sweep.partitions[0])
    reliable = [_settled(nodes, sweep, candidate.index) for candidate in found if candidate.score > 0]
    apart = [evidence.gaps.groups(evidence.gaps.n_groups)] if evidence.gaps.n_groups > 1 else []
    others = distinct([*reliable, *apart, *far.layers()], nodes.node_weights)
    layers, chosen = nest(nodes.graph, nodes.node_weights, labels, others)
    heights = layer_heights([*(int(layer.max()) + 1 for layer in layers), 1], sweep, far)
    scores = np.full(len(sweep.resolutions), np.nan)
    for candidate in found:
        scores[candidate.plateau.indices] = candidate.score
    path: dict[str, NDArray[np.generic]] = {
        "resolution": sweep.resolutions,
        "n_clusters": sweep.n_clusters,
        "agreement": evidence.agreements.copy(),
        "depth": evidence.depths.copy(),
        "crossing": evidence.crossings.copy(),
        "score": scores,
        "chosen": sweep.resolutions == verdict.resolution,
    }
    return CommunityResult(labels, layers, chosen, parents(layers), heights, path, verdict, sweep)


def partitions_by_number(result: CommunityResult, node_weights: NDArray[np.float64]) -> dict[int, NDArray[np.int32]]:
    """Return a partition of the nodes for each number of clusters, fewest clusters first.

    Each is taken from the middle of the resolutions that gave this number; the result's own number has its own
    clusters.
    """
    found: dict[int, NDArray[np.int32]] = {}
    for k in np.unique(result.sweep.n_clusters).tolist():
        indices = np.flatnonzero(result.sweep.n_clusters == k)
        found[k] = by_weight(result.sweep.partitions[indices[len(indices) // 2]], node_weights)
    found[result.n_clusters] = result.labels
    return dict(sorted(found.items()))


# The edges of all resampled graphs in memory at a time; making these takes about half a gigabyte.
EDGES_AT_ONCE = 1 << 23


def bootstrap_communities(result: CommunityResult, nodes: GraphNodes, times: int) -> list[NDArray[np.int32]]:
    """Return the clusters of resampled graphs, found in the same way as those of the result.

    Each resampled graph is searched at the resolution of the result's own clusters. If the result was merged from
    finer clusters, each resample is merged too; if the number of clusters was given, borders through clouds are moved.
    """
    if result.n_clusters in (1, len(result.labels)):
        return [result.labels]
    # The first resamples already took part in choosing the number of clusters.
    first = resamples(nodes.graph.n_nodes) + 1
    borders = result.verdict.requested.exact
    drawn = range(first, first + times)
    return _bootstrapped(nodes, result.sweep, result.labels, drawn, result.verdict.resolution, borders)


def _bootstrapped(
    nodes: GraphNodes,
    sweep: ResolutionSweep,
    labels: NDArray[np.int32],
    numbers: Sequence[int],
    resolution: float,
    borders: bool = False,
) -> list[NDArray[np.int32]]:
    """Return the clusters of resampled graphs with these numbers, found in the same way as the given ones.

    Each graph is searched at the resolution of the partition of the sweep that agrees best with the given one. If that
    has more clusters, they are merged. If asked for, borders through clouds are moved.
    """
    k = int(labels.max()) + 1
    index = _index_of(sweep, labels, nodes.node_weights, resolution)
    at, finer = float(sweep.resolutions[index]), sweep.n_clusters[index] > k

    def bootstrap(number: int) -> NDArray[np.int32]:
        search = resampled(nodes.search, nodes.graph, nodes.seed + number)
        found = settled(nodes, communities_at(nodes, at, search), at, search)
        found = merged(search.graph, nodes.points, found, k) if finer and found.max() >= k else found
        return clouds_apart(replace(nodes, graph=search.graph), found) if borders else found

    at_once = max(1, EDGES_AT_ONCE // max(1, len(nodes.graph.indices)))
    with ThreadPoolExecutor(min(nodes.n_threads, at_once)) as pool:
        return list(pool.map(bootstrap, numbers))


def _index_of(
    sweep: ResolutionSweep, labels: NDArray[np.int32], node_weights: NDArray[np.float64], resolution: float
) -> int:
    """Return the index in the sweep whose clusters agree best with the given ones; of equals, the given resolution."""
    alike = np.array([agreement(found, labels, node_weights) for found in sweep.partitions])
    best = np.flatnonzero(alike >= alike.max())
    chosen = best[sweep.resolutions[best] == resolution]
    return int(chosen[0] if len(chosen) else best[len(best) // 2])


@dataclass(frozen=True)
class GraphConqueror:
    """Leiden's communities at many resolutions, a choice among them, and the rules of the user."""

    limits: SizeLimits = NO_LIMITS  # of the sizes of clusters
    known: Known | None = None  # known labels and links

    def conquer(
        self,
        similarity: GraphSimilarity,
        nodes: Nodes,
        requested: RequestedClusters,
        seeds: SeedSequence,
        n_jobs: int | None,
        before: Conquest | None = None,
    ) -> Conquest:
        """Return the clusters that persist, or as many as were asked for; what was found before is used again."""
        known = None if before is None else before.communities
        graph_nodes = graph_nodes_of(similarity, nodes, seeds, n_jobs)
        weights = graph_nodes.node_weights
        if self.limits.given:  # what is impossible shows before the search
            self.limits.bounds(float(weights.sum()), float(weights.max()), requested)
        found = find_communities(graph_nodes, requested, known)
        if self.limits.given:
            bounds = self.limits.bounds(float(weights.sum()), float(weights.max()), requested, found.n_clusters)
            found = with_clusters(graph_nodes, found, within_limits(graph_nodes, found.labels, bounds))
        if self.known is not None:
            labels = found.labels
            if self.known.names:
                labels = with_known(graph_nodes, labels, self.known, requested)
            if self.known.must is not None:
                labels = with_links(graph_nodes, labels, self.known)
            found = with_clusters(graph_nodes, found, labels)
        return Conquest(found.labels, requested.low if requested.exact else found.n_clusters, communities=found)

    def bootstrap(
        self,
        found: Conquest,
        similarity: GraphSimilarity,
        nodes: Nodes,
        seeds: SeedSequence,
        n_jobs: int | None,
    ) -> list[NDArray[np.int32]]:
        """Return the clusters that resampled rows lead to."""
        assert found.communities is not None
        graph_nodes = graph_nodes_of(similarity, nodes, seeds, n_jobs)
        return bootstrap_communities(found.communities, graph_nodes, RESAMPLINGS)


def graph_nodes_of(similarity: GraphSimilarity, nodes: Nodes, seeds: SeedSequence, n_jobs: int | None) -> GraphNodes:
    """Return the graph and what is known about its nodes."""
    return GraphNodes(similarity.graph, nodes.points, nodes.node_weights, tree_seed(seeds), usable_threads(n_jobs))
