"""The noise threshold: the smallest outlier score that at most a given share of the rows exceed, exactly."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dc2.cluster.noise import NoisePlan, Outliers
from dc2.compress.compress import Compression, near
from dc2.compress.outliers import OutlierScores, outlier_scores_of
from dc2.compress.populate import on_host
from dc2.compress.sample import Sample
from dc2.engines import Engine
from dc2.engines.threads import ThreadEngine
from dc2.sources import Block, Source, as_source

__all__ = ["outliers_of"]

CELLS = 512  # of the scores; if the bracket misses the threshold, they show where it is
MARGIN = 6.0  # standard deviations of a sample's quantile, to either side
BELOW_ALL, ABOVE_ALL = -1.0, 2.0


def outliers_of(
    plan: NoisePlan, source: Source, engine: Engine, compression: Compression, n_threads: int
) -> tuple[Outliers, NDArray[np.float64] | None]:
    """Return what is known about outliers and, if noise is asked for, the scores of rows in memory.

    Rows that are not in memory are read again only if the sample cannot decide.
    """
    signatures = compression.signatures
    scores_of = outlier_scores_of(near(compression.router, n_threads), signatures.weights, signatures.spread)
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


@dataclass(frozen=True, eq=False)
class _Scored:
    """Scores of some rows, and the weight of all others, which are known to score higher or lower.

    Attributes
    ----------
    ids : ndarray of shape (n_rows,), int32
        The signature of each row.
    scores, weights : ndarray of shape (n_rows,), float64
    above : ndarray of shape (n_ids,), float64, or None
        The weight of other rows that score higher than these.
    below : float
        The weight of other rows that score lower.
    """

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
    router: Any
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
        tally_block = _TallyBlock(scores_of, compression.router, source.feature_names, edges, *bracket)
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
