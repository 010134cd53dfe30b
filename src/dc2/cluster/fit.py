"""The fit of every clusterer: divide, compress, conquer. It reads rows and returns a record; it changes nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from numpy.random import SeedSequence

from dc2.cluster.clock import StageClock
from dc2.cluster.members import member_rows
from dc2.cluster.noise import NoisePlan, Outliers
from dc2.cluster.noise_threshold import outliers_of
from dc2.cluster.record import ClusterRecord
from dc2.communities import choose_layer
from dc2.compress.compress import Compression, near
from dc2.compress.lookup import nearest_points, signature_router
from dc2.compress.near_rows import near_rows
from dc2.compress.outliers import outlier_scores_of
from dc2.compress.signatures import Signatures
from dc2.conquer import CommunityConqueror, Conquest, SpectralConqueror, Wish
from dc2.conquer.stability import Stability, stability
from dc2.engines import Engine, RunOptions, engine_for
from dc2.engines.answers import in_form_of
from dc2.engines.threads import usable_threads
from dc2.errors import InputError, MissingValuesError, ParameterError
from dc2.estimators.columns import Columns
from dc2.kernels.nodes import NearRows, Nodes, nodes_at
from dc2.kernels.similarity import SimilarityRecipe
from dc2.random import seed_sequence
from dc2.sources import Source
from dc2.tables.opening import Preparation

__all__ = ["ClusterPlan", "fit_rows", "fit_signatures", "reconquer", "stability_of", "with_layer"]

Compress = Callable[[Source, Engine, SeedSequence, int], Compression]


@dataclass(frozen=True, eq=False)
class ClusterPlan:
    """The parameters of a clusterer, checked and put together.

    Attributes
    ----------
    owner : str
        The class, for messages.
    compress : callable
        Makes a `Compression` from a source, an engine, seeds and a number of threads.
    similarity : SimilarityRecipe
    conqueror : SpectralConqueror
        How a dense similarity is conquered.
    wish : Wish
    options : RunOptions
    seeds : SeedSequence
    noise : NoisePlan or None
        How much is noise; None if rows are not scored.
    preparation : Preparation
        How tables that are not all numbers are handled.
    """

    owner: str
    compress: Compress
    similarity: SimilarityRecipe
    conqueror: SpectralConqueror
    wish: Wish
    options: RunOptions
    seeds: SeedSequence
    noise: NoisePlan | None = None
    preparation: Preparation = field(default_factory=Preparation)

    def conqueror_of(self, similarity: Any) -> Any:
        """Return the conqueror for a similarity: communities for a sparse one, eigenvectors for a dense one."""
        return CommunityConqueror() if similarity.sparse else self.conqueror


def fit_rows(plan: ClusterPlan, X: Any, sample_weight: Any = None) -> ClusterRecord:
    """Divide and compress rows to signatures, and conquer these."""
    compress_seeds, kernel_seeds, assign_seeds = _spawned(plan.seeds)
    threads = usable_threads(plan.options.n_jobs)
    clock = StageClock(plan.options.verbose)

    opened = None
    try:
        opened = plan.preparation.opened(X, sample_weight, plan.owner)
        engine, compression = _compressed(plan, opened.source, compress_seeds, clock)
    except MissingValuesError:
        # Blanks that column types do not show are found only while rows are read.
        taken_as_it_is = opened is None or opened.preparer is None
        opened = plan.preparation.with_blanks(X, sample_weight) if taken_as_it_is else None
        if opened is None:
            raise
        engine, compression = _compressed(plan, opened.source, compress_seeds, clock)
    source = opened.source

    clock.enter("conquer")
    nodes = _nodes_of(compression, threads)
    similarity = plan.similarity.build(
        nodes, kernel_seeds, weighted=plan.conqueror.weighted, n_jobs=plan.options.n_jobs
    )
    conqueror = plan.conqueror_of(similarity)
    conquest = conqueror.conquer(similarity, nodes, plan.wish, assign_seeds, plan.options.n_jobs)

    outliers, scores = None, None
    if plan.noise is not None:
        outliers, scores = outliers_of(plan.noise, source, engine, compression, threads)
    clock.stop()

    return ClusterRecord(
        columns=opened.columns,
        n_rows=compression.n_rows,
        router=compression.router,
        signature_of_id=None,
        signatures=compression.signatures,
        similarity=similarity,
        wish=plan.wish,
        conquest=conquest,
        seed=dict(plan.seeds.state),
        stage_seconds=clock.seconds,
        outliers=outliers,
        preparer=opened.preparer,
        ids=in_form_of(source, compression.ids),
        scores=scores,
        rows=source if compression.ids is not None else None,
        members=member_rows(compression, similarity, threads),
    )


def fit_signatures(plan: ClusterPlan, signatures: Signatures) -> ClusterRecord:
    """Conquer signatures that were compressed elsewhere."""
    _check_enough_signatures(len(signatures), plan.wish)
    if plan.noise is not None and plan.noise.share:
        raise ParameterError(
            f"noise={float(plan.noise.share):g} is a share of rows, but fit_signatures sees no rows. Use noise=0, or "
            "fit the rows."
        )
    compress_seeds, kernel_seeds, assign_seeds = _spawned(plan.seeds)
    router, signature_of_id = signature_router(signatures.points, compress_seeds)

    def near_signatures(few: int) -> NearRows:
        """Treat each signature as a row of its weight."""
        ids = signature_of_id[router.nearest_few(signatures.points, few)[0]]
        return NearRows(ids, signatures.weights)

    nodes = nodes_at(signatures.points, signatures.weights, near_signatures, are_rows=True)
    similarity = plan.similarity.build(
        nodes, kernel_seeds, weighted=plan.conqueror.weighted, n_jobs=plan.options.n_jobs
    )
    conqueror = plan.conqueror_of(similarity)
    conquest = conqueror.conquer(similarity, nodes, plan.wish, assign_seeds, plan.options.n_jobs)
    outliers = None
    if plan.noise is not None:
        weights, spread = signatures.weights[signature_of_id], signatures.spread[signature_of_id]
        typical = outlier_scores_of(router, weights, spread).typical
        outliers = Outliers(typical, plan.noise.min_cluster_share)
    return ClusterRecord(
        columns=Columns(signatures.points.shape[1]),
        n_rows=len(signatures),
        router=router,
        signature_of_id=signature_of_id,
        signatures=signatures,
        similarity=similarity,
        wish=plan.wish,
        conquest=conquest,
        seed=dict(plan.seeds.state),
        outliers=outliers,
    )


def reconquer(plan: ClusterPlan, record: ClusterRecord, similarity: Any, wish: Wish) -> ClusterRecord:
    """Return another record of the same fit, with its signatures conquered again; no rows are needed."""
    if wish != record.wish:  # what the rows were fitted with is taken again, with the same warning
        _check_enough_signatures(len(record.signatures), wish)
    *_, assign_seeds = _spawned(SeedSequence(**record.seed))
    nodes = nodes_at(record.signatures.points, record.signatures.weights, _no_rows)
    conqueror = plan.conqueror_of(similarity)
    conquest = conqueror.conquer(similarity, nodes, wish, assign_seeds, plan.options.n_jobs, before=record.conquest)
    return replace(record, similarity=similarity, wish=wish, conquest=conquest)


def stability_of(plan: ClusterPlan, record: ClusterRecord) -> Stability:
    """Return how much of each cluster comes back when the signatures are resampled and conquered again."""
    *_, assign_seeds = _spawned(SeedSequence(**record.seed))
    similarity, found = record.similarity, record.conquest
    nodes = nodes_at(record.signatures.points, record.signatures.weights, _no_rows)
    conqueror = plan.conqueror_of(similarity)
    anew = conqueror.anew(found, similarity, nodes, assign_seeds, plan.options.n_jobs)
    return stability(found.labels, anew, nodes.masses)


def with_layer(record: ClusterRecord, layer: int) -> ClusterRecord:
    """Return another record of the same fit, whose clusters are one of its layers."""
    assert record.conquest.communities is not None
    chosen = choose_layer(record.conquest.communities, layer)
    return replace(record, conquest=Conquest(chosen.labels, chosen.n_clusters, communities=chosen))


def _compressed(
    plan: ClusterPlan, source: Source, seeds: SeedSequence, clock: StageClock
) -> tuple[Engine, Compression]:
    _check_enough(source.n_rows, plan.wish)
    clock.enter("divide")
    engine = engine_for(source, replace(plan.options, verbose=clock))
    fresh = seed_sequence(seeds)  # a second try must draw the same as the first
    compression = plan.compress(source, engine, fresh, usable_threads(plan.options.n_jobs))
    _check_enough(compression.n_rows, plan.wish)
    return engine, compression


def _nodes_of(compression: Compression, n_threads: int) -> Nodes:
    signatures = compression.signatures

    def near_sampled(few: int) -> NearRows:
        if compression.sample is None:
            return NearRows(nearest_points(compression.router, few, n_threads), signatures.weights)
        return near_rows(near(compression.router, n_threads), compression.sample, few, n_threads)

    return nodes_at(signatures.points, signatures.weights, near_sampled, are_rows=compression.sample is None)


def _no_rows(few: int) -> NearRows:
    raise AssertionError("a similarity that is built already looks at no rows")


def _spawned(seeds: SeedSequence) -> list[SeedSequence]:
    """Return the seeds of compression, similarity and assignment; equal sequences give equal seeds."""
    return seed_sequence(seeds).spawn(3)


def _check_enough(n_rows: int | None, wish: Wish) -> None:
    if n_rows is not None and n_rows < wish.low:
        raise InputError(f"n_samples={n_rows} should be >= n_clusters={wish.low}: fewer rows than clusters.")


def _check_enough_signatures(n_signatures: int, wish: Wish) -> None:
    if n_signatures < wish.low:
        raise InputError(
            f"n_clusters={wish.low} asks for more clusters than there are signatures ({n_signatures}). Fit again with "
            f"this number, or with n_signatures={10 * wish.low} or more."
        )
