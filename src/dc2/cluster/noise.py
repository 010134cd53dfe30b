"""The noise threshold: the smallest outlier score that at most a given share of the rows exceed, exactly."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dc2.compress.compression import Compression, near
from dc2.compress.populate import Lookup, OutlierScores, on_host, outlier_scores_of, with_noise
from dc2.compress.routing import Router
from dc2.compress.sampling import Sample
from dc2.engines.engine import Engine
from dc2.engines.threads import ThreadEngine
from dc2.errors import InputError, ParameterError
from dc2.io.model_file import saved_record
from dc2.io.resolve import as_source
from dc2.io.source import Block, Source


@dataclass(frozen=True)
class NoisePlan:
    """How much is noise, checked."""

    share: Fraction
    min_cluster_share: float

    @classmethod
    def of(cls, noise: Any, min_cluster_share: Any) -> NoisePlan:
        """Check the parameters ``noise`` and ``min_cluster_share``, or raise.

        Examples
        --------
        >>> NoisePlan.of(0.05, None)
        NoisePlan(share=Fraction(1, 20), min_cluster_share=0.0)
        """
        least = 0.0 if min_cluster_share is None else float(_share("min_cluster_share", min_cluster_share))
        return cls(_share("noise", noise), least)

    def most(self, weight: float) -> float:
        """Return the largest weight that noise may have among rows of this total weight."""
        exact = self.share * Fraction(weight)
        nearest = float(exact)
        return nearest if Fraction(nearest) <= exact else float(np.nextafter(nearest, 0.0))


def _share(name: str, value: Any) -> Fraction:
    if not isinstance(value, Real) or isinstance(value, bool | np.bool_) or not 0 <= float(value) < 1:
        problem = "not a share. Use a number from 0 up to, but not including, 1, such as 0.05."
        raise ParameterError(f"{name}={value!r}: {problem}", parameter=name, value=value, problem=problem)
    return Fraction(str(value))


@saved_record
@dataclass(frozen=True, eq=False)
class Outliers:
    """What a fit knows about rows that are far out."""

    typical: float
    min_cluster_share: float = 0.0
    threshold: float | None = None
    noise_weights: NDArray[np.float64] | None = None

    def check(self) -> None:
        """Raise if rows could not be scored; called when read from a model file."""
        threshold, noise = self.threshold, self.noise_weights
        is_sound = (
            isinstance(self.typical, float)
            and 0 < self.typical < np.inf
            and isinstance(self.min_cluster_share, float)
            and 0 <= self.min_cluster_share < 1
            and (threshold is None) == (noise is None)
            and (threshold is None or (isinstance(threshold, float) and 0 <= threshold <= 1))
            and (noise is None or (noise.ndim == 1 and noise.dtype == np.float64 and bool((noise >= 0).all())))
        )
        if not is_sound:
            raise InputError("the parts of Outliers do not fit together.")

    def is_noise(self, scores: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Return which rows are noise, by their scores."""
        return np.zeros(len(scores), bool) if self.threshold is None else scores > self.threshold

    def belongs(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return how much rows belong to any cluster: 1 up to the threshold, then less, down to 0 at score 1."""
        if self.threshold is None or self.threshold >= 1:
            return np.ones(len(scores))
        return np.minimum((1.0 - scores) / (1.0 - self.threshold), 1.0)


@dataclass(frozen=True, eq=False)
class LabelsWithNoise:
    """Labels of the rows of a block: what is looked up, or -1 for noise."""

    lookup: Lookup
    scores_of: OutlierScores
    outliers: Outliers

    def __call__(self, block: Block) -> NDArray[np.int32]:
        """Return the label of each row."""
        labels: NDArray[np.int32] = with_noise(self.lookup(block), self.outliers.is_noise(self.scores_of(block)))
        return labels


@dataclass(frozen=True, eq=False)
class Belonging:
    """How much the rows of a block belong to any cluster."""

    scores_of: OutlierScores
    outliers: Outliers

    def __call__(self, block: Block) -> NDArray[np.float64]:
        """Return a number from 0 to 1 for each row."""
        return self.outliers.belongs(self.scores_of(block))


CELLS = 512  # of the scores; if the bracket misses the threshold, they show where it is
MARGIN = 6.0  # standard deviations of a sample's quantile, to either side
BELOW_ALL, ABOVE_ALL = -1.0, 2.0
BELOW_ONE = float(np.nextafter(1.0, 0.0))


def outliers_of(
    plan: NoisePlan, source: Source, engine: Engine, compression: Compression, n_threads: int
) -> tuple[Outliers, NDArray[np.float64] | None]:
    """Return what is known about outliers and, if noise is asked for, the scores of rows in memory.

    Rows that are not in memory are read again only if the sample cannot decide.
    """
    signatures = compression.signatures
    parts = near(compression.tree_router, n_threads), signatures.weights, signatures.spread
    scores_of = outlier_scores_of(*parts)
    known = (scores_of.typical, plan.min_cluster_share)
    if not plan.share:
        return Outliers(*known), None
    if compression.ids is not None:
        rows = _rows_in_memory(source, engine, scores_of, on_host(compression.ids))
        threshold = _threshold(plan, rows)
        return Outliers(*known, threshold, rows.noise_weights(threshold, signatures.weights)), rows.scores
    if compression.sample is None:
        centres = compression.router.centres
        ids = np.arange(len(centres), dtype=np.int32)
        rows = _Scored(ids, scores_of.unscaled.of(centres), signatures.weights)
    else:
        rows = _rows_near_threshold(plan, source, engine, compression, scores_of)
    threshold = _threshold(plan, rows)
    return Outliers(*known, threshold, rows.noise_weights(threshold, signatures.weights)), None


def outliers_of_graph(
    plan: NoisePlan, scores: NDArray[np.float64], weights: NDArray[np.float64], typical: float
) -> Outliers:
    """Return what is known about outliers of a given graph; rows without neighbours, of score 1, always are noise."""
    rows = _Scored(np.arange(len(scores), dtype=np.int32), scores, weights)
    if not plan.share and scores.max() < 1.0:
        return Outliers(typical, plan.min_cluster_share)
    threshold = min(_threshold(plan, rows), BELOW_ONE) if plan.share else BELOW_ONE
    return Outliers(typical, plan.min_cluster_share, threshold, rows.noise_weights(threshold, weights))


@dataclass(frozen=True, eq=False)
class _Scored:
    """Scores of some rows, and the weight of all others, which are known to score higher or lower."""

    ids: NDArray[np.int32]
    scores: NDArray[np.float64]
    weights: NDArray[np.float64]
    above: NDArray[np.float64] | None = None
    below: float = 0.0

    @property
    def weight_above(self) -> float:
        """The weight of the other rows that score higher."""
        return 0.0 if self.above is None else float(self.above.sum())

    def noise_weights(self, threshold: float, most: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the weight of noise at each number that the router gives; `most` is the weight of all rows there."""
        noise = self.scores > threshold
        weights = _added_up(self.ids[noise], self.weights[noise], len(most))
        # Sums in another order may differ in their last bit.
        return np.minimum(weights if self.above is None else weights + self.above, most)


def _rows_in_memory(source: Source, engine: Engine, scores_of: OutlierScores, ids: NDArray[np.int32]) -> _Scored:
    def score(block: Block) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        return scores_of(block), _weights(block)

    parts = list(engine.map(score, source, stage="populate"))
    scores, weights = (np.concatenate(part) for part in zip(*parts, strict=True))
    scores.setflags(write=False)  # labels follow from them
    return _Scored(ids, scores, weights)


def _weights(block: Block) -> NDArray[np.float64]:
    return np.ones(block.n_rows) if block.weights is None else np.asarray(block.weights, np.float64)


def _added_up(numbers: NDArray[Any], weights: NDArray[np.float64], n_numbers: int) -> NDArray[np.float64]:
    total: NDArray[np.float64] = np.bincount(numbers, weights, n_numbers).astype(np.float64, copy=False)
    return total


def _threshold(plan: NoisePlan, rows: _Scored) -> float:
    """Return the smallest score that is exceeded by rows of at most the planned weight."""
    counted = rows.weights > 0
    values, place = np.unique(rows.scores[counted], return_inverse=True)
    weights = np.bincount(place, rows.weights[counted])
    above = rows.weight_above + np.append(np.cumsum(weights[::-1])[::-1][1:], 0.0)
    most = plan.most(float(weights.sum()) + rows.weight_above + rows.below)
    return float(values[np.argmax(above <= most)]) if (above <= most).any() else float(values[-1])


# --- rows that are not in memory --------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Tally:
    """What one pass finds: the weight in each cell of scores, and details of the rows in the bracket."""

    cells: NDArray[np.float64]
    above: NDArray[np.float64]
    ids: NDArray[np.int32]
    scores: NDArray[np.float64]
    weights: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class _TallyBlock:
    """Scores the rows of a block, counts them in cells, and keeps those above `low` and up to `high`."""

    scores_of: OutlierScores
    router: Router
    names: tuple[str, ...] | None
    edges: NDArray[np.float64]
    low: float
    high: float

    def __call__(self, block: Block) -> _Tally:
        ids = self.router.assign(block.X, self.names, block.start)
        scores, weights = self.scores_of(block), _weights(block)
        cells = _added_up(np.searchsorted(self.edges, scores), weights, len(self.edges) + 1)
        over = scores > self.high
        above = _added_up(ids[over], weights[over], len(self.scores_of.weights))
        kept = (scores > self.low) & ~over
        return _Tally(cells, above, ids[kept], scores[kept], weights[kept])


def _added(parts: Sequence[_Tally]) -> _Tally:
    return _Tally(
        np.sum([part.cells for part in parts], axis=0),
        np.sum([part.above for part in parts], axis=0),
        *(np.concatenate([getattr(part, name) for part in parts]) for name in ("ids", "scores", "weights")),
    )


def _rows_near_threshold(
    plan: NoisePlan, source: Source, engine: Engine, compression: Compression, scores_of: OutlierScores
) -> _Scored:
    """Return rows whose scores enclose the threshold: one pass, and a second one if the sample was misleading."""
    assert compression.sample is not None
    scores, shares = _sorted_scores(scores_of, compression.sample)
    edges = np.unique(scores[np.linspace(0, len(scores) - 1, CELLS).astype(np.intp)])
    bracket = _bracket(scores, shares, float(plan.share))
    for is_last in (False, True):
        tally_block = _TallyBlock(scores_of, compression.tree_router, source.feature_names, edges, *bracket)
        tally = _added(list(engine.map(tally_block, source, stage="populate", merge=_added)))
        total, above, inside = (float(part.sum()) for part in (tally.cells, tally.above, tally.weights))
        if is_last or above <= plan.most(total) < above + inside:
            break
        bracket = _cell(edges, tally.cells, plan.most(total))
    below = total - above - inside
    return _Scored(tally.ids, tally.scores, tally.weights, tally.above, below)


def _sorted_scores(scores_of: OutlierScores, sample: Sample) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the scores of sampled rows in ascending order, and each one's share of the weight."""
    blocks = ThreadEngine(1).map(scores_of.unscaled, as_source(sample.X), stage="populate")
    scores = np.concatenate(list(blocks))
    order = np.argsort(scores, kind="stable")
    weights = np.ones(len(scores)) if sample.weights is None else sample.weights[order]
    return scores[order], weights / weights.sum()


def _bracket(scores: NDArray[np.float64], shares: NDArray[np.float64], share: float) -> tuple[float, float]:
    """Return two scores that almost surely enclose the threshold, judged by the sorted scores of a sample."""
    heaviest, alike = float(shares.max()), float(shares @ shares)
    margin = MARGIN * np.sqrt(share * (1.0 - share) * alike) + 2.0 * heaviest
    reached = np.cumsum(shares)
    first = int(np.searchsorted(reached, 1.0 - share - margin)) - 1
    last = int(np.searchsorted(reached, 1.0 - share + margin))
    low = float(scores[first]) if first >= 0 else BELOW_ALL
    return low, float(scores[last]) if last < len(scores) else ABOVE_ALL


def _cell(edges: NDArray[np.float64], cells: NDArray[np.float64], most: float) -> tuple[float, float]:
    """Return the ends of the cell that holds the threshold: the highest with too much weight above its low end."""
    reached = np.cumsum(cells[::-1])[::-1]
    cell = int(np.flatnonzero(reached > most)[-1])
    ends = [BELOW_ALL, *edges.tolist(), ABOVE_ALL]
    return ends[cell], ends[cell + 1]
