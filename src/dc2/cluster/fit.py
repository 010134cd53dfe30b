"""The fit of every clusterer: divide, compress, conquer. It reads rows and returns a record; it changes nothing."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.random import SeedSequence
from numpy.typing import NDArray
from sklearn.base import clone

from dc2.cluster.noise import NoisePlan, Outliers, outliers_of, outliers_of_graph
from dc2.cluster.record import ClusterRecord
from dc2.compress.compression import Compression, compress, near, near_rows
from dc2.compress.compressor import Compressor
from dc2.compress.divide import Plan, plan_of
from dc2.compress.neighbor_lists import EdgesPerRow, nearest_points, signature_router
from dc2.compress.populate import on_host, outlier_scores_of
from dc2.compress.scaling import Scaling
from dc2.compress.signatures import Signatures
from dc2.core.neighbours_reference import squared_distances_of_pairs
from dc2.engines.engine import Engine, progress_for
from dc2.engines.map_rows import RunOptions, Verbose, engine_for, in_form_of
from dc2.errors import InputError, MissingValuesError, ParameterError, PreparationNote
from dc2.graph.communities import GraphConqueror, choose_layer
from dc2.graph.conquest import Conqueror, Conquest, Stability, stability
from dc2.graph.constraints import Known, RowsKnown
from dc2.graph.n_clusters import RequestedClusters
from dc2.graph.neighbor_graph import GraphSimilarity, NeighborGraph
from dc2.graph.nodes import NearRows, Nodes, Similarity, SimilarityRecipe, nodes_at
from dc2.graph.precomputed import (
    GivenGraph,
    checked_matrix,
    checked_weights,
    graph_nodes,
    neighbour_lists,
    typical_reach,
)
from dc2.graph.size_limits import NO_LIMITS, SizeLimits
from dc2.io.columns import Columns
from dc2.io.source import Block, Source
from dc2.parameters import usable_threads
from dc2.random import seed_sequence
from dc2.spectral.conquer import SpectralConqueror
from dc2.tables.auto_prepare import OpenedRows, Preparation

STAGES = ("divide", "compress", "conquer", "populate")


class StageClock:
    """A progress callback that adds up the seconds of each stage and passes each call on.

    Examples
    --------
    >>> clock = StageClock(verbose=0)
    >>> clock.enter("divide")
    >>> clock("compress", 0, 100)
    >>> clock.stop()
    >>> list(clock.seconds)
    ['divide', 'compress', 'conquer', 'populate']
    """

    def __init__(self, verbose: Verbose) -> None:
        self.seconds = dict.fromkeys(STAGES, 0.0)
        self._told = verbose if callable(verbose) else progress_for(verbose)
        self._stage: str | None = None
        self._since = 0.0

    def __call__(self, stage: str, rows_done: int, rows_total: int | None) -> None:
        """Note the progress of an engine."""
        self._switch(stage)
        if self._told is not None:
            self._told(stage, rows_done, rows_total)

    def enter(self, stage: str) -> None:
        """Begin a stage that no engine reports."""
        self(stage, 0, None)

    def stop(self) -> None:
        """End the last stage."""
        self._switch(None)
        close = getattr(self._told, "close", None)
        if close is not None:
            close()

    def _switch(self, stage: str | None) -> None:
        now = time.perf_counter()
        if self._stage is not None:
            self.seconds[self._stage] += now - self._since
        self._stage, self._since = stage, now


# Parameters that a clusterer and its compressor share; the clusterer decides them.
SHARED = ("n_signatures", "leaf_size", "scale", "metric", "n_jobs", "block_bytes", "device", "random_state", "verbose")


def _compressor_of(clusterer: Any) -> Compressor:
    """Return the compressor of a clusterer, with the clusterer's own settings, or raise."""
    given = clusterer.compressor
    if given is None:
        given = Compressor()
    elif not isinstance(given, Compressor):
        raise ParameterError(f"compressor must be a dc2.Compressor or None; got {given!r}.")
    defaults = Compressor().get_params()
    shared = {name: getattr(clusterer, name) for name in SHARED if hasattr(clusterer, name)}
    for name, value in shared.items():
        own = getattr(given, name)
        if not _same(own, defaults[name]) and not _same(own, value):
            raise ParameterError(
                f"compressor has {name}={own!r}, but the clusterer decides this and has {value!r}. Give {name} to "
                f"{type(clusterer).__name__} and not to its compressor."
            )
    compressor: Compressor = clone(given)
    # The seeds of a fit are spawned by the clusterer.
    compressor.set_params(**{name: value for name, value in shared.items() if name != "random_state"})
    if isinstance(compressor.n_signatures, str) and compressor.n_signatures == "auto":
        compressor.set_params(n_signatures=Compressor().n_signatures)  # replaced once the rows are seen
    return compressor


def compress_by(plan: Plan) -> Compress:
    """Return a function that compresses rows by a plan."""
    return lambda source, engine, seeds, n_threads, per_row: compress(source, engine, plan, seeds, n_threads, per_row)


def checked_plan(clusterer: Any) -> Plan:
    """Return the plan of a clusterer's compressor, all parameters checked."""
    return plan_of(_compressor_of(clusterer))


def _same(a: Any, b: Any) -> bool:
    return a is b or (type(a) is type(b) and bool(a == b))


TRIED = 8  # sampled rows of each signature; the nearest is taken


def member_rows(compression: Compression, similarity: Similarity, n_threads: int = 1) -> NDArray[Any]:
    """Return a row of each signature, in the units of clustering: the nearest of a few sampled ones.

    For a signature without sampled rows, or one that is a row, return the signature itself.
    """
    points, sample = compression.signatures.points, compression.sample
    if sample is None:
        return points
    ids = _signature_of(compression, similarity)
    order = np.argsort(ids, kind="stable")
    starts = np.searchsorted(ids[order], np.arange(len(points)))
    tried = order[np.arange(len(order)) - starts[ids[order]] < TRIED]
    squared = squared_distances_of_pairs(sample.X, tried, points, ids[tried], n_threads)
    best_first = tried[np.lexsort((squared, ids[tried]))]
    found, first = np.unique(ids[best_first], return_index=True)
    members = points.copy()
    members[found] = sample.X[best_first[first]]
    return members


def _signature_of(compression: Compression, similarity: Similarity) -> NDArray[np.int32]:
    """Return the signature of each sampled row; rows are routed only if neither compression nor graph kept it."""
    sample = compression.sample
    assert sample is not None
    if compression.ids is not None:
        return on_host(compression.ids, sample.rows)
    if isinstance(similarity, GraphSimilarity) and compression.near is None:
        nearest: NDArray[np.int32] = similarity.graph.near[:, 0]
        return nearest
    ids: NDArray[np.int32] = replace(compression.tree_router, scaling=None).assign(sample.X, rows=sample.rows)
    return ids


Compress = Callable[[Source, Engine, SeedSequence, int, EdgesPerRow | None], Compression]


@dataclass(frozen=True, eq=False)
class ClusterPlan:
    """The parameters of a clusterer, checked and put together."""

    owner: str
    compress: Compress | None  # None if a graph is given
    similarity: SimilarityRecipe
    conqueror: SpectralConqueror
    requested: RequestedClusters
    options: RunOptions
    seeds: SeedSequence
    noise: NoisePlan | None = None  # None if rows are not scored
    preparation: Preparation = field(default_factory=Preparation)
    graph: str | None = None  # what a given graph holds: "distances" or "similarities"
    limits: SizeLimits = NO_LIMITS
    compress_frames: Compress | None = None  # for frames and files of numbers, whose scales may be very different

    def conqueror_of(self, similarity: Similarity, known: Known | None = None) -> Conqueror:
        """Return the conqueror for a similarity: communities for a sparse one, eigenvectors for a dense one."""
        return GraphConqueror(self.limits, known) if similarity.sparse else self.conqueror

    def conquest(
        self, similarity: Similarity, nodes: Nodes, seeds: SeedSequence, known: Known | None = None
    ) -> Conquest:
        """Return the clusters of nodes."""
        conqueror = self.conqueror_of(similarity, known)
        return conqueror.conquer(similarity, nodes, self.requested, seeds, self.options.n_jobs)

    def built(self, nodes: Nodes, seeds: SeedSequence) -> Similarity:
        """Return the similarity of nodes."""
        built: Similarity = self.similarity.build(
            nodes, seeds, weighted=self.conqueror.weighted, n_jobs=self.options.n_jobs
        )
        return built


def fit_rows(
    plan: ClusterPlan, X: Any, sample_weight: Any = None, rows_known: RowsKnown | None = None
) -> ClusterRecord:
    """Divide and compress rows to signatures, and conquer these."""
    if plan.graph is not None:
        return _fit_graph(plan, plan.graph, X, sample_weight, rows_known)
    compress_seeds, kernel_seeds, assign_seeds = spawned(plan.seeds)
    threads = usable_threads(plan.options.n_jobs)
    clock = StageClock(plan.options.verbose)

    try:
        opened = plan.preparation.opened(X, sample_weight, plan.owner)
        if rows_known is not None and opened.source.n_rows is not None:
            rows_known.check(opened.source.n_rows, plan.requested)
        engine, compression = _compressed(plan, opened, compress_seeds, clock)
    except MissingValuesError:  # missing values that column types do not show are found only while rows are read
        prepared = plan.preparation.with_blanks(X, sample_weight)
        if prepared is None:
            raise
        opened = prepared
        engine, compression = _compressed(plan, opened, compress_seeds, clock)
    source = opened.source
    known = None if rows_known is None else _known_of(rows_known, plan.requested, compression, source, engine)

    _check_units(plan.similarity, compression)
    clock.enter("conquer")
    nodes = nodes_of(compression, plan.similarity, threads)
    similarity = plan.built(nodes, kernel_seeds)
    conquest = plan.conquest(similarity, nodes, assign_seeds, known)

    outliers, scores = None, None
    if plan.noise is not None:
        outliers, scores = outliers_of(plan.noise, source, engine, compression, threads)
    clock.enter("populate")
    members = member_rows(compression, similarity, threads)
    share_known = None
    if opened.table is not None:
        share_known = opened.table.known_shares(engine, compression.router, len(compression.signatures))
    clock.stop()

    return ClusterRecord(
        opened.columns, compression.n_rows, compression.router, None, compression.signatures, similarity,
        plan.requested, conquest, dict(plan.seeds.state), clock.seconds, outliers, opened.preparer,
        share_known=share_known, ids=in_form_of(source, compression.ids), scores=scores,
        rows=source if compression.ids is not None else None, members=members, known=known,
    )  # fmt: skip


def _known_of(
    known: RowsKnown, requested: RequestedClusters, compression: Compression, source: Source, engine: Engine
) -> Known:
    """Return what is known about signatures from their rows; rows that are not in memory are read again."""
    known.check(compression.n_rows, requested)
    rows, n_signatures = known.rows, len(compression.signatures)
    if compression.ids is not None:
        return known.of_nodes(on_host(compression.ids, rows), n_signatures, keep_rows=True)

    router, names = compression.router, source.feature_names  # all that workers of a cluster need

    def ids_of(block: Block) -> NDArray[np.int32]:
        first, last = np.searchsorted(rows, [block.start, block.start + block.n_rows])
        found = router.assign(block.X, names, block.start)
        return np.asarray(found[rows[first:last] - block.start])

    ids = np.concatenate(list(engine.map(ids_of, source, stage="compress")))
    return known.of_nodes(ids, n_signatures, keep_rows=False)


def _fit_graph(plan: ClusterPlan, kind: str, X: Any, sample_weight: Any, rows_known: RowsKnown | None) -> ClusterRecord:
    """Conquer a given graph, whose nodes are the rows."""
    matrix = checked_matrix(X, kind)
    n = matrix.shape[0]
    weights = checked_weights(sample_weight, n)
    _check_enough(n, plan.requested)
    known, ids = None, np.arange(n, dtype=np.int32)
    if rows_known is not None:
        rows_known.check(n, plan.requested)
        known = rows_known.of_nodes(ids[rows_known.rows], n, keep_rows=True)
    _, kernel_seeds, assign_seeds = spawned(plan.seeds)
    clock = StageClock(plan.options.verbose)
    clock.enter("conquer")
    assert isinstance(plan.similarity, NeighborGraph)
    most = plan.similarity.edges_in_graph(n) - 1
    lists = neighbour_lists(matrix, kind, most, own=True).without_fragments()
    nodes, points = graph_nodes(lists, weights)
    similarity = plan.built(nodes, kernel_seeds)
    conquest = plan.conquest(similarity, nodes, assign_seeds, known)
    graph = GivenGraph(points, kind, lists.ids.shape[1], typical_reach(lists.reach, weights))
    scores = graph.scores(lists)
    clock.stop()
    outliers = outliers_of_graph(plan.noise or NoisePlan.of(0, None), scores, weights, graph.typical)
    return ClusterRecord(
        Columns(n), n, graph, None, Signatures(points, weights, np.zeros(n)), similarity, plan.requested, conquest,
        dict(plan.seeds.state), clock.seconds, outliers, ids=ids, scores=scores, known=known,
    )  # fmt: skip


def fit_signatures(plan: ClusterPlan, signatures: Signatures) -> ClusterRecord:
    """Conquer signatures that were compressed elsewhere."""
    if plan.graph is not None:
        raise ParameterError("metric='precomputed': signatures have coordinates. Use metric='euclidean'.")
    _check_enough_signatures(len(signatures), plan.requested)
    if plan.noise is not None and plan.noise.share:
        raise ParameterError(
            f"noise={float(plan.noise.share):g} is a share of rows, but fit_signatures sees no rows. Use noise=0, or "
            "fit the rows."
        )
    compress_seeds, kernel_seeds, assign_seeds = spawned(plan.seeds)
    router, signature_of_id = signature_router(signatures.points, compress_seeds)
    nodes = nodes_at(signatures.points, signatures.weights, are_rows=True)
    if plan.similarity.uses_rows:  # each signature counts as a row of its weight
        nearest, _ = router.nearest_few(
            signatures.points, plan.similarity.edges_per_row(nodes.points, nodes.rows_per_node)
        )
        nodes = replace(nodes, near=NearRows(signature_of_id[nearest], signatures.weights))
    similarity = plan.built(nodes, kernel_seeds)
    conquest = plan.conquest(similarity, nodes, assign_seeds)
    outliers = None
    if plan.noise is not None:
        weights, spread = signatures.weights[signature_of_id], signatures.spread[signature_of_id]
        typical = outlier_scores_of(router, weights, spread).typical
        outliers = Outliers(typical, plan.noise.min_cluster_share)
    return ClusterRecord(
        Columns(signatures.points.shape[1]), len(signatures), router, signature_of_id, signatures, similarity,
        plan.requested, conquest, dict(plan.seeds.state), outliers=outliers,
    )  # fmt: skip


def reconquer(
    plan: ClusterPlan, record: ClusterRecord, similarity: Similarity, requested: RequestedClusters
) -> ClusterRecord:
    """Return another record of the same fit, with its signatures conquered again; no rows are needed."""
    if requested != record.requested:  # what the rows were fitted with is taken again, with the same warning
        _check_enough_signatures(len(record.signatures), requested)
    *_, assign_seeds = spawned(SeedSequence(**record.seed))
    nodes = nodes_at(record.signatures.points, record.signatures.weights)
    conqueror = plan.conqueror_of(similarity, record.known)
    conquest = conqueror.conquer(similarity, nodes, requested, assign_seeds, plan.options.n_jobs, record.conquest)
    return replace(record, similarity=similarity, requested=requested).reconquered(conquest)


def stability_of(plan: ClusterPlan, record: ClusterRecord) -> Stability:
    """Return how much of each cluster is found again when the signatures are resampled and conquered again."""
    *_, assign_seeds = spawned(SeedSequence(**record.seed))
    similarity, found = record.similarity, record.conquest
    nodes = nodes_at(record.signatures.points, record.signatures.weights)
    conqueror = plan.conqueror_of(similarity)
    bootstrap = conqueror.bootstrap(found, similarity, nodes, assign_seeds, plan.options.n_jobs)
    return stability(found.labels, bootstrap, nodes.node_weights)


def with_layer(record: ClusterRecord, layer: int) -> ClusterRecord:
    """Return another record of the same fit, whose clusters are one of its layers."""
    assert record.conquest.communities is not None
    chosen = choose_layer(record.conquest.communities, layer)
    return record.reconquered(Conquest(chosen.labels, chosen.n_clusters, communities=chosen))


def _compressed(
    plan: ClusterPlan, opened: OpenedRows, seeds: SeedSequence, clock: StageClock
) -> tuple[Engine, Compression]:
    source = opened.source
    _check_enough(source.n_rows, plan.requested)
    clock.enter("divide")
    engine = engine_for(source, replace(plan.options, verbose=clock))
    fresh = seed_sequence(seeds)  # a second try must draw the same as the first
    per_row = plan.similarity.edges_per_row if plan.similarity.uses_rows else None
    compress = plan.compress_frames if opened.is_frame and plan.compress_frames else plan.compress
    assert compress is not None
    compression = compress(source, engine, fresh, usable_threads(plan.options.n_jobs), per_row)
    _check_enough(compression.n_rows, plan.requested)
    if compress is plan.compress_frames and getattr(compression.router.scaling, "kind", None) == "standard":
        warnings.warn(
            "the columns have very different scales (interquartile ranges differ more than thirtyfold), so dc2 divided "
            "each by its standard deviation. Say scale='standard' to do so without this note, or prepare=None to take "
            "the numbers as they are.",
            PreparationNote,
            stacklevel=5,
        )
    return engine, compression


def nodes_of(compression: Compression, recipe: SimilarityRecipe, n_threads: int) -> Nodes:
    """Return the signatures as nodes, and the nearest ones of rows if the similarity needs them."""
    signatures, sample = compression.signatures, compression.sample
    nodes = nodes_at(signatures.points, signatures.weights, are_rows=sample is None)
    if not recipe.uses_rows:
        return nodes
    if sample is not None and compression.near is not None:
        return replace(nodes, near=compression.near)
    few = recipe.edges_per_row(nodes.points, nodes.rows_per_node)
    if sample is None:
        return replace(
            nodes, near=NearRows(nearest_points(compression.tree_router, few, n_threads), signatures.weights)
        )
    return replace(nodes, near=near_rows(near(compression.tree_router, n_threads), sample, few, n_threads))


def _check_units(similarity: SimilarityRecipe, compression: Compression) -> None:
    """Raise if a sigma in the units of the data meets rows that had to be rescaled because of their size."""
    sigma, scaling = getattr(similarity, "sigma", None), compression.router.scaling
    if sigma is not None and isinstance(scaling, Scaling) and scaling.exponents is not None and scaling.kind is None:
        raise ParameterError(
            f"sigma={sigma!r}: squares of values do not fit into {compression.signatures.points.dtype.name}, so dc2 "
            "rescaled the rows. Convert the rows to float64, or use scale='standard'.",
            parameter="sigma",
            value=sigma,
        )


def spawned(seeds: SeedSequence) -> list[SeedSequence]:
    """Return the seeds of compression, similarity and assignment; equal sequences give equal seeds."""
    return seed_sequence(seeds).spawn(3)


def _check_enough(n_rows: int | None, requested: RequestedClusters) -> None:
    if n_rows is not None and n_rows < requested.low:
        raise InputError(f"n_samples={n_rows} should be >= n_clusters={requested.low}: fewer rows than clusters.")


def _check_enough_signatures(n_signatures: int, requested: RequestedClusters) -> None:
    if n_signatures < requested.low:
        raise InputError(
            f"n_clusters={requested.low} asks for more clusters than there are signatures ({n_signatures}). Fit again "
            f"with this number, or with n_signatures={10 * requested.low} or more."
        )
