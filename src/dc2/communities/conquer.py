"""From a tie graph to clusters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from dc2.communities.choose import BAR, Candidate, Evidence, candidates, clearest, looked_at, plateaus
from dc2.communities.exact import exactly, merged
from dc2.communities.layers import by_mass, nest, parents
from dc2.communities.profile import Nodes, Profile, make_profile, profile_around
from dc2.communities.result import CommunityResult
from dc2.communities.valleys import crossing_ties
from dc2.communities.verdict import Verdict
from dc2.communities.wish import Wish

LAYER_AGREEMENT = 0.9


def conquer_ties(nodes: Nodes, wish: Wish, before: CommunityResult | None = None) -> CommunityResult:
    """Find the clusters of a tie graph.

    Parameters
    ----------
    nodes : Nodes
        The graph, and what is known about its nodes.
    wish : Wish
        How many clusters are asked for.
    before : CommunityResult, optional
        An earlier result for the same nodes; its findings are used again.

    Returns
    -------
    CommunityResult

    Examples
    --------
    >>> import numpy as np
    >>> from dc2.communities.graph import tie_graph
    >>> rows = np.repeat([[0.0], [9.0]], 30, axis=0) + np.linspace(0, 1, 60)[:, None]
    >>> near = np.argsort(np.abs(rows - rows.T), axis=1, kind="stable")[:, :8].astype(np.int32)
    >>> nodes = Nodes(tie_graph(near, None, 60), rows, np.ones(60), seed=0, n_threads=1)
    >>> result = conquer_ties(nodes, Wish())
    >>> result.n_clusters
    2
    >>> conquer_ties(nodes, Wish.exactly(3), before=result).n_clusters
    3
    """
    n_nodes = nodes.graph.n_nodes
    low, high = min(wish.low, n_nodes), n_nodes if wish.high is None else min(wish.high, n_nodes)
    if before is not None:
        nodes = replace(nodes, parts=before.profile.parts)
    if before is not None and before.profile.complete:
        profile, path = before.profile, before.resolution_path
    else:
        profile, path = profile_around(nodes, low) if wish.exact else make_profile(nodes), None
    evidence = Evidence(nodes, profile, path)
    if low == high:
        return _given(nodes, profile, evidence, low, wish)
    found = candidates(profile, evidence, Wish(low, high))
    free = (low, high) == (1, n_nodes)
    if not found or (low == 1 and found[0].score < BAR):
        labels, verdict = _fewest(nodes, profile, found, low, wish)
        return _result(nodes, profile, evidence, labels, verdict, found if free else None)
    best = found[0]
    labels = by_mass(profile.partitions[best.place], nodes.masses)
    verdict = _verdict(wish, labels, float(profile.resolutions[best.place]), best, found[1:])
    return _result(nodes, profile, evidence, labels, verdict, found if free else None)


def choose_layer(result: CommunityResult, layer: int) -> CommunityResult:
    """Return the result with another of its layers chosen."""
    return replace(result, labels=result.layers[layer], chosen_layer=layer)


def _given(nodes: Nodes, profile: Profile, evidence: Evidence, k: int, wish: Wish) -> CommunityResult:
    same = [plateau for plateau in plateaus(profile, evidence.below()) if plateau.n_clusters == k]
    if same:
        place = clearest(same[0], evidence)
        labels, resolution = profile.partitions[place], float(profile.resolutions[place])
    else:
        labels, found_at = exactly(nodes, profile, k)
        resolution = np.nan if found_at is None else found_at
    other = _merged_finer(nodes, profile, k)
    if other is not None and 2 * crossing_ties(nodes.graph, other) < crossing_ties(nodes.graph, labels):
        labels, resolution = other, np.nan
    verdict = replace(_verdict(wish, labels, resolution), persistence=same[0].width if same else 0.0)
    return _result(nodes, profile, evidence, by_mass(labels, nodes.masses), verdict)


def _merged_finer(nodes: Nodes, profile: Profile, k: int) -> NDArray[np.int32] | None:
    """Merge the next finer partition of the profile down to k clusters.

    A single resolution may cut a large cluster before it separates small ones. Merging has no such limit, and leaves
    far fewer ties between clusters.
    """
    finer = np.flatnonzero((profile.n_clusters > k) & (profile.n_clusters <= 2 * k))
    if k == 1 or not len(finer):
        return None
    place = finer[np.argmin(profile.n_clusters[finer])]
    return merged(nodes.graph, nodes.points, profile.partitions[place], k)


def _fewest(
    nodes: Nodes, profile: Profile, found: list[Candidate], low: int, wish: Wish
) -> tuple[NDArray[np.int32], Verdict]:
    """Return the smallest number of clusters allowed, for want of evidence for any other."""
    labels, found_at = exactly(nodes, profile, low)
    resolution = np.nan if found_at is None else found_at
    verdict = _verdict(wish, labels, resolution, others=found)
    return by_mass(labels, nodes.masses), replace(verdict, one_cluster=low == 1, crossing=0.0)


def _verdict(
    wish: Wish,
    labels: NDArray[np.int32],
    resolution: float,
    best: Candidate | None = None,
    others: Sequence[Candidate] = (),
) -> Verdict:
    return Verdict(
        n_clusters=int(labels.max()) + 1,
        wish=wish,
        score=best.score if best else 0.0,
        bar=BAR,
        runner_up=others[0].plateau.n_clusters if others else 0,
        runner_up_score=others[0].score if others else 0.0,
        one_cluster=False,
        agreement=best.agreement if best else np.nan,
        depth=best.depth if best else 0.0,
        crossing=best.crossing if best else np.nan,
        persistence=best.plateau.width if best else 0.0,
        resolution=resolution,
    )


def _result(
    nodes: Nodes,
    profile: Profile,
    evidence: Evidence,
    labels: NDArray[np.int32],
    verdict: Verdict,
    found: list[Candidate] | None = None,
) -> CommunityResult:
    """Put the answer together; layers are taken from what was found now, or else from all that is known."""
    found = looked_at(profile, evidence) if found is None else found
    solid = [c for c in found if c.agreement >= LAYER_AGREEMENT]
    layers, chosen = nest(nodes.graph, nodes.masses, labels, [profile.partitions[c.place] for c in solid])
    scores = np.full(len(profile.resolutions), np.nan)
    for candidate in found:
        scores[candidate.plateau.places] = candidate.score
    path: dict[str, NDArray[np.generic]] = {
        "resolution": profile.resolutions,
        "n_clusters": profile.n_clusters,
        "agreement": evidence.agreements.copy(),
        "depth": evidence.depths.copy(),
        "crossing": evidence.crossings.copy(),
        "score": scores,
        "chosen": profile.resolutions == verdict.resolution,
    }
    return CommunityResult(labels, layers, chosen, parents(layers), path, verdict, profile)
