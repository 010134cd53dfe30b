"""The update of a fit: new rows join its signatures, far ones make new signatures, and the graph is conquered again.

Neither old rows nor their labels are needed: a signature keeps the weight, mean and spread of its rows, and the
squared distance of the farthest one (its reach). A new row beyond the reach of its nearest signature is *far*.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from dc2.cluster.arrivals import EDGE_ROWS_PER_SIGNATURE, NewRows, Placed, State, Work, equal_added, joined, thinned
from dc2.cluster.changes import NO_CLUSTER, Changes, Way, changes_between
from dc2.cluster.fit import ClusterPlan, Compress, StageClock, nodes_of
from dc2.cluster.noise import Outliers
from dc2.cluster.record import ClusterRecord
from dc2.compress.compression import near
from dc2.compress.compressor import Compressor
from dc2.compress.neighbor_lists import nearest_points, signature_router
from dc2.compress.routing import Router, StagedRouter
from dc2.compress.signatures import Signatures
from dc2.core.reference import hash_at
from dc2.engines.map_rows import engine_for
from dc2.engines.threads import ThreadEngine
from dc2.errors import ParameterError
from dc2.graph.communities import graph_nodes_of, with_clusters
from dc2.graph.conquest import Conquest
from dc2.graph.layers import by_weight
from dc2.graph.nodes import NearRows, nodes_at
from dc2.io.resolve import as_source
from dc2.io.source import Source
from dc2.trees.neighbours import distinct_rows, nearest_neighbours

FEWEST_FAR = 0.25  # of the rows of a mean signature: fewer far rows join the nearest signatures
FINER = 2.0  # new signatures stand for so many times fewer rows than the others
COARSE = 4.0  # a signature whose share grew by this factor is divided
GHOST = 1 / 8  # a cluster that keeps no more of its share, and gets no rows, is forgotten
LEAST_WEIGHT = 0.05  # of a mean signature: lighter ones are forgotten
MOST_SIGNATURES = 1.5  # times those of the fit
MOST_STAGES = 64  # updates with ``move=False`` that make new signatures
SHARE_OF_STAGE = 16  # such an update makes at most one new signature for so many of the fit
MERGED_NAMES = 1e6  # factor of the cost of merging signatures of different clusters


def update(
    plan: ClusterPlan, record: ClusterRecord, source: Source, forget: float, move: bool, compress: Compress
) -> ClusterRecord:
    """Return the record with the rows of a source added; `compress` compresses points that are scaled already."""
    _check(record, move)
    clock = StageClock(plan.options.verbose)
    clock.enter("compress")
    engine = engine_for(source, replace(plan.options, verbose=clock))
    work = Work(replace(plan, requested=record.requested), record, source, engine, compress)
    placed, kept = _placed(work, forget, move)
    if not placed.weight:
        clock.stop()
        return replace(record, changes=no_changes(record))
    clock.enter("conquer")
    now, far = State.of(record, kept, placed, forget), placed.far
    near: list[Way] = []
    if not len(far) and _same_shares(now):
        after = replace(
            record,
            signatures=now.signatures(record.router.centres.dtype),
            names=record.cluster_names,
            unused=record.first_unused,
            outliers=_outliers_with(record, now.noise),
        )
        labels = record.conquest.labels
    elif not move:
        after, labels = _conquered_in_stages(work, now, far)
    elif record.holds_rows and not now.spread.any():
        now = _without_some_rows(now, forget, record.n_rows)
        after, labels = _conquered_rows(work, now, far)
    else:
        moved = _without_ghosts(_with_far(now, far, work), forget)
        moved = _merged_closest(moved, round(MOST_SIGNATURES * record.n_fitted), work.seed)
        moved, router = _rebuilt(moved, work)
        after, labels = _conquered(work, moved, router, far)
        near = _ways_of_new(moved, after)
    clock.stop()
    drift = {
        "rows": float(placed.weight),
        "beyond": float(placed.beyond / placed.weight),
        "distortion_before": record.signatures.distortion,
        "distortion_after": after.signatures.distortion,
    }
    return replace(
        after.without_rows(),
        n_rows=record.n_rows + placed.n_rows,
        base=record.n_fitted,
        share_known=_known_shares(record, after),
        stage_seconds=clock.seconds,
        changes=_changes(record, now, labels, after, near, drift),
    )


def _known_shares(record: ClusterRecord, after: ClusterRecord) -> NDArray[np.float32] | None:
    """Return which values of the rows of signatures are known: as those of the nearest signature before."""
    if record.share_known is None:
        return None
    nearest = replace(cast(Router, record.router), scaling=None).assign(after.signatures.points)
    known: NDArray[np.float32] = record.share_known[nearest]
    return known


def _placed(work: Work, forget: float, move: bool) -> tuple[Placed, Signatures]:
    """Return what comes of the new rows, and the signatures with what is left of their weights."""
    record = work.record
    signatures, limits = record.signatures, work.reach(move)
    placed = work.place(limits)
    kept = replace(signatures, weights=(1.0 - forget) * signatures.weights)
    if record.holds_rows:
        return placed, kept
    coarse = _too_coarse(signatures.weights, placed.sums.weights)
    coarse &= np.bincount(placed.edges.ids, minlength=len(kept)) > 0  # sampled rows stand for the others
    if move and coarse.any():
        placed = placed.with_far(work.rows_of(coarse, placed.edges), coarse)
    few = placed.far.weight < FEWEST_FAR * (kept.weights.sum() + placed.weight) / len(kept)
    stages = len(record.router.stages) if isinstance(record.router, StagedRouter) else 0
    return placed.joined() if (move and few) or stages >= MOST_STAGES else placed, kept


def _check(record: ClusterRecord, move: bool) -> None:
    if record.signature_of_id is not None or len(getattr(record.router, "trees", ())) > 1:
        raise ParameterError(
            "update needs a model that was fitted on rows by one tree; this one has signatures from elsewhere "
            "(fit_signatures) or divide='sampling'. Merge signatures, fit them again, and take over the numbers of "
            "the clusters with relabel(old)."
        )
    if record.is_graph or record.known is not None:
        kind = "a graph" if record.is_graph else "rows with labels in y"
        raise ParameterError(
            f"update needs a model that was fitted on rows alone; this one was fitted on {kind}. Fit old and new rows "
            "together, and take over the numbers of the clusters with relabel(old)."
        )
    if not move and getattr(record.router, "neighbor_lists", ()) is None:
        raise ParameterError(
            "move=False needs to know how far out the rows of signatures are, but populate='leaf' finds no distances. "
            "Use move=True, or fit with populate='nearest'."
        )
    outliers = record.outliers
    if not move and outliers is not None and (outliers.threshold is not None or outliers.min_cluster_share):
        raise ParameterError(
            "move=False keeps all labels, but noise and min_cluster_share depend on all rows. Use move=True, or fit "
            "with noise=0 and min_cluster_share=None."
        )


# --- steps ----------------------------------------------------------------------------------------------------------


def _same_shares(now: State) -> bool:
    """Return whether each signature has the same share of the weight as before: then nothing else changes."""
    return bool(np.allclose(now.weights * now.was.sum(), now.was * now.weights.sum(), rtol=1e-9, atol=0.0))


def _too_coarse(before: NDArray[np.float64], arrived: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return signatures that got so many of the new rows that they may hide a new cluster."""
    share = arrived / (arrived.sum() or 1.0)
    return np.asarray(share > COARSE * np.maximum(before / before.sum(), 1.0 / len(before)))


def _new_signatures(work: Work, far: NewRows, most: int) -> tuple[Router, Signatures]:
    """Return the signatures of far rows, and their router; as many as rows of their weight deserve."""
    weight = work.record.signatures.weights.mean()
    wanted = int(np.clip(round(FINER * far.weight / max(weight, 1e-300)), 1, most))
    distinct = len(distinct_rows(far.X))
    compressor = Compressor(min(wanted, distinct), n_jobs=work.n_threads, random_state=work.seed % 2**32)
    compressor.fit(np.ascontiguousarray(far.X), sample_weight=far.scaled_weights)
    return compressor.router_, compressor.signatures_


def _with_far(now: State, far: NewRows, work: Work) -> State:
    """Return the signatures with new ones for far rows; their edges follow when all signatures are known.

    A new signature no farther from an old one than the radius of its cluster counts as a part of that cluster before.
    """
    if not len(far):
        return now
    router, new = _new_signatures(work, far, work.record.n_fitted)
    whole = replace(work.record.router_to_search(work.n_threads), scaling=None)
    ids, squared = whole.nearest_few(np.ascontiguousarray(new.points, whole.dtype), 1)
    means = _means(work.record)
    radii = np.array([means[name][1] for name in now.names[ids[:, 0]].tolist()])
    names = np.where(squared[:, 0] <= radii**2, now.names[ids[:, 0]], NO_CLUSTER).astype(np.int32)
    return _with_signatures(now, router, new, names)


def _with_signatures(now: State, router: Router, new: Signatures, names: NDArray[np.int32] | None = None) -> State:
    n, count = len(now), len(new)
    points, zeros = new.points.astype(np.float64), np.zeros(count)
    added: dict[str, NDArray[Any]] = {
        "points": points, "weights": new.weights, "spread": new.spread, "centres": router.centres.astype(np.float64),
        "reach": zeros if router.reach is None else router.reach, "was": zeros, "arrived": new.weights,
        "names": np.full(count, NO_CLUSTER, np.int32) if names is None else names, "before": points, "noise": zeros,
        "home": np.arange(n, n + count),
    }  # fmt: skip
    return replace(now, **{name: np.concatenate([getattr(now, name), part]) for name, part in added.items()})


def _without_ghosts(now: State, forget: float) -> State:
    """Forget signatures that hardly weigh anything any more, and clusters that got no rows and lost their share."""
    if not forget:
        return now
    dead = (now.weights < LEAST_WEIGHT * now.weights.mean()) & (now.arrived == 0)
    for name in np.unique(now.names[now.names >= 0]):
        own = now.names == name
        was, is_ = now.was[own].sum() / now.was.sum(), now.weights[own].sum() / now.weights.sum()
        if is_ < GHOST * was and now.arrived[own].sum() < LEAST_WEIGHT * was * now.arrived.sum():
            dead |= own
    if not dead.any() or dead.all():
        return now
    home = np.where(dead, -1, np.cumsum(~dead) - 1)
    return now.moved_to(home)


def _without_some_rows(now: State, forget: float, seed: int) -> State:
    """Forget a share of the rows that are signatures, drawn by hash, instead of a share of the weight of each."""
    kept = hash_at(seed, np.arange(len(now))).astype(np.float64) / 2.0**64 >= forget
    return replace(now, weights=now.arrived + kept * now.was)


def _merged_closest(now: State, most: int, seed: int) -> State:
    """Merge pairs of near and light signatures, until there are no more than `most`."""
    while len(now) > most:
        ids, squared = nearest_neighbours(now.points, 4, seed=seed, n_threads=1)
        a, b = np.repeat(np.arange(len(now)), ids.shape[1] - 1), ids[:, 1:].ravel()
        w = np.maximum(now.weights, 1e-300)
        cost = w[a] * w[b] / (w[a] + w[b]) * squared[:, 1:].ravel()  # what the merge adds to the distortion
        cost *= np.where(now.names[a] == now.names[b], 1.0, MERGED_NAMES)
        into, excess = np.arange(len(now)), len(now) - most
        free = np.ones(len(now), bool)
        for pair in np.argsort(cost, kind="stable").tolist():
            one, other = int(a[pair]), int(b[pair])
            if excess and free[one] and free[other]:
                into[max(one, other)], free[one], free[other] = min(one, other), False, False
                excess -= 1
        now = now.moved_to(np.unique(into, return_inverse=True)[1])
    return now


def _rebuilt(now: State, work: Work) -> tuple[State, Router]:
    """Return the signatures in the order of a router's leaves, and that router; the old one if nothing moved."""
    record = work.record
    router = record.router
    if isinstance(router, Router) and np.array_equal(now.home, np.arange(len(router.centres))):
        return now, replace(router, reach=now.reach)
    drifted = ((now.points - now.centres) ** 2).sum(axis=1) > now.spread
    centres = np.where(drifted[:, None], now.points, now.centres).astype(router.centres.dtype)
    distinct = distinct_rows(centres)
    off = np.sqrt(((now.centres - centres) ** 2).sum(axis=1))
    now = replace(now, centres=centres.astype(np.float64), reach=(np.sqrt(now.reach) + off) ** 2)
    made, leaf_of = _router_of(centres[distinct.first], work)
    now = now.moved_to(distinct.of_row).moved_to(leaf_of)
    return now, replace(made, reach=now.reach)


def _router_of(centres: NDArray[Any], work: Work) -> tuple[Router, NDArray[np.intp]]:
    """Return a router of distinct centres, and the leaf of each."""
    router, first = signature_router(centres, work.seeds[0], work.record.router.scaling, work.n_threads)
    return router, np.argsort(first)


def _graph_of(work: Work, now: State, router: Any, far: NewRows) -> tuple[Any, Any]:
    """Return the signatures as nodes, and their similarity."""
    signatures = now.signatures(router.centres.dtype)
    nodes = nodes_at(signatures.points, signatures.weights)
    if work.plan.similarity.uses_rows:
        few = min(work.few, len(now))
        whole = near(getattr(router, "whole", router), work.n_threads)
        lists = nearest_points(whole, few, work.n_threads)
        tuples = now.home[now.near[:, :few]].astype(np.int32)
        tuples, weights = tuples[tuples[:, 0] >= 0], now.near_weights[tuples[:, 0] >= 0]
        broken = (np.diff(np.sort(tuples, axis=1), axis=1) == 0).any(axis=1) | (tuples < 0).any(axis=1)
        tuples = np.where(broken[:, None], lists[tuples[:, 0]], tuples)  # of signatures that are one now
        if len(far):
            found = replace(whole, scaling=None).nearest_few(np.ascontiguousarray(far.X, whole.dtype), few)[0]
            tuples, weights = np.concatenate([tuples, found]), np.concatenate([weights, far.scaled_weights])
        tuples, weights = thinned(*equal_added(tuples, weights), 2 * EDGE_ROWS_PER_SIGNATURE * len(now))
        nodes = replace(nodes, near=NearRows(tuples, weights))
    return nodes, work.plan.built(nodes, work.seeds[1])


def _outliers_with(record: ClusterRecord, noise: NDArray[np.float64]) -> Outliers | None:
    """Return the outliers of a record with other weights of noise; the threshold stays, so scores are comparable."""
    outliers = record.outliers
    return outliers if outliers is None or outliers.noise_weights is None else replace(outliers, noise_weights=noise)


def _conquered(work: Work, now: State, router: Router, far: NewRows) -> tuple[ClusterRecord, NDArray[np.int32]]:
    """Return the record with the signatures conquered again, and the new cluster of each signature before."""
    nodes, similarity = _graph_of(work, now, router, far)
    conquest = work.plan.conquest(similarity, nodes, work.seeds[2])
    after = replace(
        work.record,
        router=router,
        signatures=now.signatures(router.centres.dtype),
        similarity=similarity,
        outliers=_outliers_with(work.record, now.noise),
    ).renamed(conquest, now.names, conquest.labels, now.weights)
    home = now.home[: len(work.record.signatures)]
    return after, np.where(home >= 0, conquest.labels[home], np.int32(-1))


def _conquered_rows(work: Work, now: State, far: NewRows) -> tuple[ClusterRecord, NDArray[np.int32]]:
    """Do the same where signatures are rows: as a fit of all distinct rows would, compressing them if they are many."""
    record, recipe = work.record, work.plan.similarity
    dtype, n_rows = record.router.centres.dtype, int(np.count_nonzero(now.weights))
    now = now.moved_to(np.where(now.weights > 0, np.cumsum(now.weights > 0) - 1, -1)) if n_rows < len(now) else now
    X = np.concatenate([now.points.astype(dtype), far.X.astype(dtype)])
    weights = np.concatenate([now.weights, far.scaled_weights])
    per_row = recipe.edges_per_row if recipe.uses_rows else None
    source, engine = as_source(X, sample_weight=weights), ThreadEngine(work.n_threads)
    found = work.compress(source, engine, work.seeds[0], work.n_threads, per_row)
    assert found.ids is not None
    nodes = nodes_of(found, recipe, work.n_threads)
    similarity = work.plan.built(nodes, work.seeds[1])
    conquest = work.plan.conquest(similarity, nodes, work.seeds[2])
    of_rows, names = conquest.labels[found.ids], np.full(len(X), NO_CLUSTER, np.int32)
    names[: len(now)] = now.names
    after = replace(
        record,
        router=replace(found.tree_router, scaling=record.router.scaling),
        signatures=found.signatures,
        similarity=similarity,
        outliers=_outliers_with(record, np.bincount(found.ids[: len(now)], now.noise, len(nodes)).astype(np.float64)),
    ).renamed(conquest, names, of_rows, weights)
    return after, np.where(now.home >= 0, of_rows[now.home], np.int32(-1))


def _conquered_in_stages(work: Work, now: State, far: NewRows) -> tuple[ClusterRecord, NDArray[np.int32]]:
    """Return the record with clusters of far rows added; signatures before keep their clusters, and rows theirs."""
    record, n = work.record, len(now)
    router: Any = record.router
    reach = np.maximum(work.reach(move=False), now.reach)
    if not isinstance(router, StagedRouter):
        first = replace(near(router, work.n_threads) if router.neighbor_lists is not None else router, reach=reach)
        router = StagedRouter(
            near(first, work.n_threads), (replace(first, scaling=None),), (np.arange(n, dtype=np.int32),)
        )
    if len(far):
        stage, new = _new_signatures(work, far, max(1, record.n_fitted // SHARE_OF_STAGE))
        if far.weights.sum() < far.weight:  # rows that were not held have no other bound
            stage = replace(stage, reach=np.full(len(new), np.inf))
        now = _with_signatures(now, stage, new)
        whole, leaf_of = _router_of(np.concatenate([router.centres, stage.centres]), work)
        router, now = router.with_stage(stage, whole, leaf_of), now.moved_to(leaf_of)
    nodes, similarity = _graph_of(work, now, router, far)
    signatures = now.signatures(router.centres.dtype)
    after = replace(record, router=router, signatures=signatures, similarity=similarity, unused=record.first_unused)
    if not len(far):
        after = replace(after, names=record.cluster_names)
        return after, record.conquest.labels
    found = work.plan.conquest(similarity, nodes, work.seeds[2])
    names, unused = _fixed_names(now, found.labels, record.first_unused)
    labels, communities = by_weight(names, now.weights), found.communities
    if communities is not None:
        graph_nodes = graph_nodes_of(similarity, nodes, work.seeds[2], work.plan.options.n_jobs)
        communities = with_clusters(graph_nodes, communities, labels)
        labels = communities.labels
    of_cluster = names[np.unique(labels, return_index=True)[1]]
    conquest = Conquest(labels, int(labels.max()) + 1, found.spectrum, communities)
    after = replace(after, conquest=conquest, names=of_cluster, unused=unused)
    return after, labels[now.home[:n]]


def _fixed_names(now: State, found: NDArray[np.int32], unused: int) -> tuple[NDArray[np.int32], int]:
    """Return the number of each signature's cluster: its own or, of a new one, that of the others it was found with.

    A community that is mostly new is a new cluster.
    """
    names = now.names.copy()
    new = names == NO_CLUSTER
    for community in np.unique(found[new]):
        own = found == community
        old = own & ~new
        if old.any() and now.weights[old].sum() >= now.weights[own & new].sum():
            choices, at = np.unique(names[old], return_inverse=True)
            names[own & new] = choices[np.bincount(at, now.weights[old]).argmax()]
        else:
            names[own & new] = unused
            unused += 1
    return names, unused


# --- what changed ---------------------------------------------------------------------------------------------------


def no_changes(record: ClusterRecord) -> Changes:
    """Return what an update without rows changes."""
    names, weights = record.cluster_names[record.conquest.labels], record.signatures.weights
    return changes_between([(n, n, w, w) for n, w in zip(names.tolist(), weights.tolist(), strict=True)])


def _ways_of_new(now: State, after: ClusterRecord) -> list[Way]:
    """Return the rows of new signatures that count as parts of clusters before, by old and new cluster."""
    new = np.flatnonzero((now.was == 0) & (now.names != NO_CLUSTER))
    names = after.cluster_names[after.conquest.labels[new]]
    return [
        (old, name, 0.0, weight)
        for old, name, weight in zip(now.names[new].tolist(), names.tolist(), now.weights[new].tolist(), strict=True)
    ]


def _changes(
    record: ClusterRecord,
    now: State,
    labels: NDArray[np.int32],
    after: ClusterRecord,
    near: list[Way],
    drift: dict[str, float],
) -> Changes:
    """Return what changed; `labels` are the new clusters of the signatures before, -1 for none."""
    old, names = record.cluster_names[record.conquest.labels], after.cluster_names
    new = np.where(labels >= 0, names[labels], np.int32(NO_CLUSTER))
    held = np.where(labels >= 0, now.weights, 0.0)
    ways = list(zip(old.tolist(), new.tolist(), record.signatures.weights.tolist(), held.tolist(), strict=True))
    sizes = np.bincount(after.conquest.labels, after.signatures.weights, len(names))
    rest = sizes - np.bincount(labels[labels >= 0], held[labels >= 0], len(names))
    ways += near
    for _, name, _, weight in near:
        rest[names == name] -= weight
    added = rest > 1e-9 * sizes.sum()
    ways += [(NO_CLUSTER, int(name), 0.0, float(rows)) for name, rows in zip(names[added], rest[added], strict=True)]
    before = _means(record)
    shifts = {
        name: float(np.linalg.norm(mean - before[name][0]) / before[name][1])
        for name, (mean, _) in _means(after).items()
        if name in before and before[name][1] > 0
    }
    return changes_between(ways, shifts, drift)


def _means(record: ClusterRecord) -> dict[int, tuple[NDArray[np.float64], float]]:
    """Return the mean and the radius of each cluster, by its number."""
    signatures, labels = record.signatures, record.conquest.labels.astype(np.intp)
    points = signatures.points.astype(np.float64)
    means, _, spread = joined(points, signatures.weights, signatures.spread, labels, record.conquest.n_clusters)
    radii = np.sqrt(spread).tolist()
    return {int(n): (mean, radius) for n, mean, radius in zip(record.cluster_names, means, radii, strict=True)}
