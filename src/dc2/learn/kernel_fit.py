"""Fit a kernel machine: search on a sample, fit centres to all rows, then fit the residuals part by part."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.random import SeedSequence
from numpy.typing import NDArray

from dc2.compress.compressor import Compressor
from dc2.compress.sampling import distinct_rows, take_sample
from dc2.core.gpu.device_rows import DeviceRows
from dc2.engines.engine import Engine
from dc2.engines.map_rows import RunOptions, engine_for
from dc2.engines.threads import ThreadEngine
from dc2.errors import InputError
from dc2.io.model_file import saved_record
from dc2.io.resolve import as_source
from dc2.io.source import Block, Source
from dc2.learn.kernel_functions import ColumnMetric, KernelAt, KernelShape, beside, gradient_sizes, spread_of
from dc2.learn.kernel_parts import EXACT_ROWS, PART_CENTRES, MachinesOfParts, PartMachine, by_leaf, fit_part, part_fold
from dc2.learn.kernel_search import WORTH_A_STEP, Chosen, Fold, KernelSearch, Points, SearchSpace, Trial, best_ridge
from dc2.learn.kernel_solver import (
    ExactRidge,
    ProjectedRidge,
    conjugate_gradients,
    kernel_matrix,
    normal_sums,
    predicted,
    residual_sums,
    total,
)
from dc2.learn.metadata_routing import check_length
from dc2.parameters import usable_threads
from dc2.random import tree_seed
from dc2.trees.tree import RPTree, raise_unusable, values_usable

SAMPLE_BYTES, FEWEST_SAMPLED, MOST_SAMPLED = 128 * 2**20, 20_000, 2**16
MOST_HELD = 5000
"""Most held-out rows: the standard error of an error of 5% is then a third of a point."""
SEARCHED = 2500
"""Most training rows and most held-out rows of the search. A fit of at most so many rows has no parts."""
FOLDS = 5
FIRST_CENTRES, MOST_CENTRES = 1000, 8192
ROWS_PER_CENTRE = 8
PASS_COST = 4e12
"""Largest product of rows and squared centres of an automatic choice: a pass takes about a minute of one core."""
PAIR_COST = 100
"""Time of the kernel between a row and a centre, in units of that product."""
WORTH_ITERATING = 2
"""Rows that are more than so many times the sample are read several times, with the sample as preconditioner."""
CONVERGED, MOST_PASSES = 1e-3, 12
"""Iterations end when the squared error of the solution is so small a share of the loss."""
WORTH_DOUBLING = 0.98
"""Centres are doubled as long as the loss falls below this share of the loss before."""
MODEL_BYTES = 128 * 2**20
GROUP_BYTES = 256 * 2**20
PILOT_ROWS = 600
"""Held-out rows that choose the bandwidth and the ridge of parts; as many parts are used as needed."""
NONE = np.empty(0, np.intp)


@saved_record
@dataclass(frozen=True, eq=False)
class KernelMachine:
    """A fitted machine.

    Attributes
    ----------
    metric : ColumnMetric
    shape : KernelShape
    centres : ndarray of shape (n_centres, n_features)
        In the units of the metric.
    coefficients : ndarray of shape (n_centres, n_outputs)
    offset, scale : ndarray of shape (n_outputs,)
        Predictions are outputs times the scale, plus the offset.
    parts : MachinesOfParts or None
    ridge : float
    importances : ndarray of shape (n_features,)
        Root mean square of the gradient along each column, times the column's spread; they sum to one.
    path : tuple of Trial
        The machines that the search evaluated.
    """

    metric: ColumnMetric
    shape: KernelShape
    centres: NDArray[Any]
    coefficients: NDArray[Any]
    offset: NDArray[np.float64]
    scale: NDArray[np.float64]
    parts: MachinesOfParts | None
    ridge: float
    importances: NDArray[np.float64]
    path: tuple[Trial, ...]

    def check(self) -> None:
        """Raise if the parts do not fit together; called when read from a model file."""
        n_outputs = len(self.offset)
        if (
            self.centres.ndim != 2
            or self.coefficients.shape != (len(self.centres), n_outputs)
            or self.scale.shape != self.offset.shape
            or self.metric.factor.shape != (self.centres.shape[1],)
            or self.importances.shape != self.metric.factor.shape
            or (self.parts is not None and self.parts.centres.shape[1] != self.centres.shape[1])
            or (self.parts is not None and self.parts.coefficients.shape[1] != n_outputs)
            or not all(np.isfinite(array).all() for array in (self.centres, self.coefficients, self.offset, self.scale))
        ):
            raise InputError("the parts of a KernelMachine do not fit together.")

    def outputs(self, block: Block, names: tuple[str, ...] | None = None) -> NDArray[np.float64]:
        """Return the predictions for the rows of a block, of shape (n_rows, n_outputs)."""
        X = self.metric.apply(usable(block, names).astype(self.centres.dtype, copy=False))
        outputs = predicted(self.shape.at(self.centres), self.coefficients, X)
        if self.parts is not None:
            outputs += self.parts.outputs(X)
        return np.asarray(outputs * self.scale + self.offset)


@dataclass(frozen=True, eq=False)
class Targets:
    """The targets of all rows: class codes, or numbers in one column for each output."""

    values: NDArray[Any]
    n_classes: int = 0

    @property
    def n_outputs(self) -> int:
        """Number of outputs of a machine."""
        return self.n_classes or int(self.values.shape[1])

    def of(self, some: Any) -> NDArray[np.float64]:
        """Return the targets of some rows; for classes, their indicators."""
        values = self.values[some]
        targets: NDArray[np.float64] = np.eye(self.n_classes)[values] if self.n_classes else values.astype(np.float64)
        return targets


@dataclass(frozen=True)
class MachinePlan:
    """The parameters of a fit.

    Attributes
    ----------
    search space : SearchSpace
    n_centres : int or None
        None chooses it automatically.
    n_parts : int or None
    """

    space: SearchSpace
    n_centres: int | None
    n_parts: int | None


@dataclass(frozen=True, eq=False)
class Fitted:
    """A machine, and the outputs for held-out rows of a machine that was not fitted on them."""

    machine: KernelMachine
    held: Points
    outputs: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class _Rows:
    """All rows, the training rows of the sample, and its held-out rows."""

    source: Source
    engine: Engine
    known: _Known
    n_rows: int
    total_weight: float
    pool: Points  # in random order
    held: Points  # in the order of rows

    def searched(self) -> Points:
        """Return a random subset of the held-out rows; the first ones may be all alike."""
        if len(self.held) <= SEARCHED:
            return self.held
        return self.held.take(np.random.default_rng(len(self.held)).permutation(len(self.held))[:SEARCHED])


@dataclass(frozen=True, eq=False)
class _Known:
    """Targets and row numbers for the rows of any block; small enough to be sent to workers."""

    names: tuple[str, ...] | None
    targets: Targets
    offset: NDArray[np.float64]
    scale: NDArray[np.float64]
    held_numbers: NDArray[np.int64]  # ascending

    def of(self, numbers: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the targets of some rows, minus the offset, in units of the scale."""
        return np.asarray((self.targets.of(numbers) - self.offset) / self.scale)

    def taught(
        self, block: Block, X: Any, metric: ColumnMetric
    ) -> tuple[Any, NDArray[np.float64], NDArray[np.float64] | None]:
        """Return the rows of a block that are not held out, in the units of a metric, their targets and weights."""
        numbers = np.arange(block.start, block.stop)
        kept = np.flatnonzero(~self.held(numbers))
        weights = None if block.weights is None else block.weights[kept]
        X = metric.apply(X)
        return X if len(kept) == len(X) else X[beside(X, kept)], self.of(numbers[kept]), weights

    def held(self, numbers: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return which rows are held out."""
        return np.isin(numbers, self.held_numbers, assume_unique=True)


def fit_machine(
    source: Source, targets: Targets, plan: MachinePlan, options: RunOptions, seeds: SeedSequence
) -> Fitted:
    """Fit a machine to all rows.

    With few rows, cross-validation chooses the parameters, and all rows become centres. With many, some rows of a
    sample are held out and choose the parameters. Then dc2 doubles the number of centres of the machine of all rows
    while that lowers the loss, and fits its residuals part by part.
    """
    engine = engine_for(source, options)
    size = int(np.clip(SAMPLE_BYTES // (source.n_features * source.dtype.itemsize), FEWEST_SAMPLED, MOST_SAMPLED))
    sample = take_sample(source, engine, size, tree_seed(seeds))
    check_length(len(targets.values), sample.n_rows)
    raw = targets.of(sample.rows)
    weights = np.ones(len(raw)) if sample.weights is None else sample.weights
    offset = np.average(raw, axis=0, weights=weights)
    scale = np.ones(targets.n_outputs)
    if not targets.n_classes:
        spread = spread_of(raw - offset, weights)
        scale = np.where(spread > 0, spread, 1.0)
    points = Points(sample.X, (raw - offset) / scale, weights, np.broadcast_to(offset / scale, raw.shape))
    whole = sample.n_rows <= size
    if whole:
        points = _distinct(points)
    unit = 10.0 ** min(0, round(np.log10(weights.mean())))
    search = KernelSearch(scorer(targets.n_classes), tree_seed(seeds) % 2**31, unit)
    order = np.random.default_rng(seeds).permutation(len(points))
    if whole and len(points) <= SEARCHED and (plan.n_centres is None or plan.n_centres >= len(points)):
        return _fitted_on_all(points, order, search, plan, offset, scale)
    n_held = min(MOST_HELD, len(points) // FOLDS)
    held, pool = np.sort(order[:n_held]), order[n_held:]
    if whole:
        source = as_source(points.X, sample_weight=points.weights)
        engine = engine_for(source, options)
        targets = Targets(points.Y * scale + offset)
    numbers = held.astype(np.int64) if whole else sample.rows[held]
    n_rows = len(points) if whole else sample.n_rows
    known = _Known(source.feature_names, targets, offset, scale, numbers)
    weight = points.weights.sum() if whole else sample.total_weight
    rows = _Rows(source, engine, known, n_rows, weight, points.take(pool), points.take(held))
    chosen = search.best([Fold(rows.pool.take(slice(SEARCHED)), rows.searched())], plan.space)
    return _Fit(rows, chosen, search, plan, usable_threads(options.n_jobs), seeds).run()


def scorer(n_classes: int) -> Callable[[NDArray[np.float64], Points], tuple[float, float]]:
    """Return the function that computes the loss and the error of outputs."""

    def score(outputs: NDArray[np.float64], points: Points) -> tuple[float, float]:
        off = points.Y - outputs
        loss = float(np.average((off**2).mean(axis=1), weights=points.weights))
        if not n_classes:
            return loss, loss
        loss *= n_classes / 2
        shares = points.Y + points.base
        right = np.take_along_axis(shares, (outputs + points.base).argmax(axis=1)[:, None], axis=1)[:, 0]
        return loss, float(np.average(1 - right, weights=points.weights))

    return score


def usable(block: Block, names: tuple[str, ...] | None) -> NDArray[Any]:
    """Return the rows of a block; raise if a value is not finite."""
    X = block.X
    if not values_usable(X):
        raise_unusable(X, names, block.start)
    return X


def _distinct(points: Points) -> Points:
    """Return each distinct row once, in sorted order, with the weight and the mean target of its repeats."""
    found = distinct_rows(points.X)
    weights = np.bincount(found.of_row, points.weights, len(found)).astype(np.float64)
    totals = [np.bincount(found.of_row, points.weights * column, len(found)) for column in points.Y.T]
    X = points.X[found.first]
    order = np.lexsort(X.T[::-1])
    Y = np.stack(totals, axis=1) / weights[:, None]
    return Points(X[order], Y[order], weights[order], points.base[: len(order)])


def _fitted_on_all(
    points: Points,
    order: NDArray[np.intp],
    search: KernelSearch,
    plan: MachinePlan,
    offset: NDArray[np.float64],
    scale: NDArray[np.float64],
) -> Fitted:
    """Fit a machine whose centres are all points."""
    number_of = np.empty(len(points), int)
    number_of[order] = np.arange(len(points)) % FOLDS
    parts = [np.flatnonzero(number_of == fold) for fold in range(min(FOLDS, len(points)))]
    folds = [
        Fold(points.take(np.setdiff1d(np.arange(len(points)), part)) if len(points) > 1 else points, points.take(part))
        for part in parts
    ]
    chosen = search.best(folds, plan.space)
    measured = points.measured_by(chosen.metric)
    ridge = ExactRidge(kernel_matrix(chosen.shape, measured.X), measured.Y, measured.weights)
    coefficients = ridge.coefficients(chosen.ridge).astype(points.X.dtype)
    machine = KernelMachine(
        chosen.metric, chosen.shape, measured.X, coefficients, offset, scale, None, chosen.ridge,
        importances_of(chosen, measured.X, coefficients, measured.X), tuple(search.path),
    )  # fmt: skip
    return Fitted(machine, points.take(np.concatenate(parts)), np.concatenate(chosen.outputs))


def importances_of(
    chosen: Chosen, centres: NDArray[Any], coefficients: NDArray[Any], X: NDArray[Any]
) -> NDArray[np.float64]:
    """Return the share of each column in the gradient, per standard deviation of the column."""
    if chosen.shape.name == "rpf":
        return np.full(centres.shape[1], np.nan)
    sizes = gradient_sizes(chosen.shape, centres, coefficients, X) * spread_of(X - X.mean(axis=0, dtype=np.float64))
    total = sizes.sum()
    shares: NDArray[np.float64] = sizes / total if total > 0 else np.zeros(len(sizes))
    return shares


@dataclass(eq=False)
class _Fit:
    """The fit of many rows."""

    rows: _Rows
    chosen: Chosen
    search: KernelSearch
    plan: MachinePlan
    n_threads: int
    seeds: SeedSequence

    def run(self) -> Fitted:
        rows, chosen = self.rows, self.chosen
        self.metric, self.shape = chosen.metric, chosen.shape
        self.held, self.pool = rows.held.measured_by(self.metric), rows.pool.measured_by(self.metric)
        self.by_signatures = self._signatures_are_better()
        found = self._on_centres()
        centres, coefficients = found.centres, found.coefficients
        parts, outputs = self._in_parts(found)
        if parts is None:
            coefficients = found.with_held_out()
        coefficients = coefficients.astype(centres.dtype)
        machine = KernelMachine(
            self.metric, self.shape, centres, coefficients, rows.known.offset, rows.known.scale, parts, found.ridge,
            importances_of(chosen, centres, coefficients, self.pool.X[:SEARCHED]), tuple(self.search.path),
        )  # fmt: skip
        return Fitted(machine, rows.held, outputs)

    # --- one machine on centres ------------------------------------------------------------------------------

    def _on_centres(self) -> _OnCentres:
        """Double the centres while that lowers the loss; each number takes one pass."""
        wanted = self.plan.n_centres
        if wanted is not None:
            return self._with_centres(min(wanted, len(self.pool)))
        cap = self._most_centres()
        doublings = max(0, round(np.log2(cap / FIRST_CENTRES)))
        best = self._with_centres(cap >> doublings)
        for left in reversed(range(doublings)):
            found = self._with_centres(cap >> left)
            pays = found.loss < WORTH_DOUBLING * best.loss
            best = min(best, found, key=lambda one: one.loss)
            if not pays:
                break
        return best

    def _signatures_are_better(self) -> bool:
        """Return whether signatures are better centres than rows; they are not if rows have no structure."""
        count = min(FIRST_CENTRES, self.plan.n_centres or FIRST_CENTRES, len(self.pool) // 4)
        train = self.pool.take(slice(ROWS_PER_CENTRE * count))
        held = self.rows.searched().measured_by(self.metric)
        tried = [
            self.search.on_centres(Fold(train, held, centres), self.chosen, self.plan.space, stage)
            for stage, centres in (
                ("rows", self.pool.X[:count]), ("signatures", signatures_of(self.pool, count, self.search.seed)),
            )
        ]  # fmt: skip
        return tried[1].loss < tried[0].loss

    @property
    def _iterates(self) -> bool:
        """Whether rows are so many that a sample is a good preconditioner."""
        return self.rows.n_rows > WORTH_ITERATING * len(self.pool)

    def _most_centres(self) -> int:
        n_rows, n_summed = self.rows.n_rows, len(self.pool) if self._iterates else self.rows.n_rows
        per_centre = PAIR_COST * n_rows if self._iterates else 0  # the root of n_summed m^2 + per_centre m = PASS_COST
        root = np.sqrt(per_centre**2 + 4.0 * n_summed * PASS_COST)
        affordable = max(FIRST_CENTRES, (root - per_centre) / (2 * n_summed))
        useful = max(4 * FIRST_CENTRES, n_rows / ROWS_PER_CENTRE)
        return int(min(len(self.pool), MOST_CENTRES, affordable, useful))

    def _with_centres(self, count: int) -> _OnCentres:
        rows, pool, held, metric = self.rows, self.pool, self.held, self.metric
        centres = signatures_of(pool, count, self.search.seed) if self.by_signatures else pool.X[:count]
        at, K = self.shape.at(centres), kernel_matrix(self.shape, centres)
        size = K.nbytes
        if self._iterates:
            sample, engine = as_source(pool.X, sample_weight=pool.weights), ThreadEngine(self.n_threads)
            parts = engine.map(partial(_add_points, at, len(K), pool.Y), sample, stage="search", result_bytes=size)
        else:
            adder = _Adder(rows.known, metric, at, len(K))
            parts = rows.engine.map(adder, rows.source, stage="conquer", merge=total, result_bytes=size)
        sums = total(parts)  # in block order, whichever thread was first: they do not depend on n_jobs
        path = ProjectedRidge(sums, K)

        def with_held_out(ridge: float) -> NDArray[np.float64]:
            more = normal_sums(at, len(K), held.X, held.Y, held.weights)
            return ProjectedRidge(sums + more, K).coefficients(ridge)

        def tried(ridge: float) -> _OnCentres:
            found = self._on_these(at, centres, path.coefficients(ridge), ridge, partial(with_held_out, ridge))
            if not self._iterates:
                self._record_trial("centres", self.shape, ridge, len(K), 1, found.loss, found.error)
            return found

        found: _OnCentres = best_ridge(tried, self.chosen.ridge, self.search.unit, self.plan.space.ridge)
        return self._iterated(found, at, K, path) if self._iterates else found

    def _on_these(
        self,
        at: KernelAt,
        centres: NDArray[Any],
        coefficients: NDArray[np.float64],
        ridge: float,
        with_held_out: Callable[[], NDArray[np.float64]],
    ) -> _OnCentres:
        outputs = predicted(at, coefficients, self.held.X)
        loss, error = self.search.score(outputs, self.held)
        return _OnCentres(centres, coefficients, ridge, loss, error, outputs, with_held_out)

    def _iterated(self, found: _OnCentres, at: KernelAt, K: NDArray[np.float64], path: ProjectedRidge) -> _OnCentres:
        """Improve a machine of the sample until it is that of all rows; each step takes one pass."""
        rows, held, ridge = self.rows, self.held, found.ridge
        weight = rows.total_weight - held.weights.sum()

        def summed(coefficients: NDArray[np.float64], *, against_targets: bool) -> NDArray[np.float64]:
            adder = _ResidualAdder(rows.known, self.metric, at, coefficients, against_targets)
            parts = rows.engine.map(adder, rows.source, stage="conquer", merge=total)
            sums = total(parts)
            change = ridge * (K @ coefficients)
            return sums - change if against_targets else sums + change

        solved = path.solver(ridge, weight / self.pool.weights.sum())
        squared_error = np.average(((held.Y - found.outputs) ** 2).sum(axis=1), weights=held.weights)
        a, rest, step = conjugate_gradients(
            found.coefficients, summed(found.coefficients, against_targets=True), solved,
            partial(summed, against_targets=False), CONVERGED * weight * squared_error, MOST_PASSES - 1,
        )  # fmt: skip

        def with_held_out() -> NDArray[np.float64]:
            return np.asarray(a + step * solved(rest + residual_sums(at, a, held.X, held.Y, held.weights)))

        found = self._on_these(at, found.centres, a + step * solved(rest), ridge, with_held_out)
        self._record_trial("centres", self.shape, ridge, len(K), 1, found.loss, found.error)
        return found

    def _record_trial(
        self, stage: str, shape: KernelShape, ridge: float, n_centres: int, n_parts: int, loss: float, error: float
    ) -> None:
        self.search.path.append(
            Trial(stage, self.metric.name, shape.name, shape.bandwidth, ridge, n_centres, n_parts, loss, error)
        )

    # --- residuals, part by part ------------------------------------------------------------------------------

    def _n_parts(self) -> tuple[int, bool]:
        """Return the number of parts, and whether all rows are centres, which the size of the model limits."""
        row_bytes = self.pool.X.shape[1] * self.pool.X.itemsize + 8 * self.rows.known.targets.n_outputs
        affordable = MODEL_BYTES / row_bytes
        exact = self.rows.n_rows <= affordable
        if self.plan.n_parts is not None:
            return self.plan.n_parts, exact and self.rows.n_rows <= self.plan.n_parts * EXACT_ROWS
        if self.shape.name == "rpf":
            return 1, False
        if exact:
            return 2 ** int(np.ceil(np.log2(self.rows.n_rows / EXACT_ROWS))), True
        return 2 ** int(np.log2(max(1, affordable / PART_CENTRES))), False

    def _in_parts(self, found: _OnCentres) -> tuple[MachinesOfParts | None, NDArray[np.float64]]:
        """Return machines of parts, or None if they do not lower the loss, and all outputs for held-out rows."""
        rows = self.rows
        n_parts, exact = self._n_parts()
        if n_parts < 2:
            return None, found.outputs
        tree = RPTree.grow(
            self.pool.X, max_leaves=n_parts, cut="median", sharpen=2, sample_weight=self.pool.weights,
            rng=self.seeds,
        )  # fmt: skip
        row_bytes = self.pool.X.shape[1] * self.pool.X.itemsize + 16 * rows.known.targets.n_outputs + 16
        at_once = max(1, int(GROUP_BYTES / row_bytes * tree.n_leaves / rows.n_rows))
        shape, ridge = self.shape, self.chosen.ridge
        machines: list[PartMachine] = []
        scored: list[NDArray[np.int64]] = []
        for first in range(0, tree.n_leaves, at_once):
            last = min(first + at_once, tree.n_leaves)
            at = self.shape.at(found.centres)
            gather = _Gatherer(self.metric, at, found.coefficients, tree, (first, last), rows.known)
            numbers, leaves, points = _joined(list(rows.engine.map(gather, rows.source, stage="conquer")))
            if first == 0:
                shape, ridge = self._part_parameters(numbers, leaves, points, exact)
            indices = dict(by_leaf(leaves))

            held = rows.known.held(numbers)
            own = [indices.get(part, NONE) for part in range(first, last)]
            fit_one = partial(fit_part, points, held, exact, shape, ridge)
            seeds = [(self.search.seed, part) for part in range(first, last)]
            machines += _threaded(fit_one, self.n_threads, own, seeds)
            scored += [numbers[some][held[some]] for some in own]
        return self._if_better(found, tree, shape, ridge, machines, np.concatenate(scored))

    def _if_better(
        self,
        found: _OnCentres,
        tree: RPTree,
        shape: KernelShape,
        ridge: float,
        machines: list[PartMachine],
        scored: NDArray[np.int64],
    ) -> tuple[MachinesOfParts | None, NDArray[np.float64]]:
        """Return machines of parts if they lower the loss on held-out rows, and the outputs for these."""
        starts = np.cumsum([0, *(len(machine.centres) for machine in machines)]).astype(np.int64)
        outputs = found.outputs + np.concatenate([machine.outputs for machine in machines])[np.argsort(scored)]
        loss, error = self.search.score(outputs, self.held)
        self._record_trial("parts", shape, ridge, int(starts[-1]), tree.n_leaves, loss, error)
        if loss >= WORTH_A_STEP * found.loss:
            return None, found.outputs
        centres = np.concatenate([machine.centres for machine in machines])
        coefficients = np.concatenate([machine.coefficients for machine in machines])
        return MachinesOfParts(tree, shape, centres, coefficients, starts), outputs

    def _part_parameters(
        self, numbers: NDArray[np.int64], leaves: NDArray[np.int32], points: Points, exact: bool
    ) -> tuple[KernelShape, float]:
        """Return the bandwidth and the ridge with the lowest loss on held-out rows of some parts."""
        held = self.rows.known.held(numbers)
        folds: list[Fold] = []
        for part, own in by_leaf(leaves):
            fold = part_fold(points.take(own), held[own], exact, (self.search.seed, part))
            if len(fold.train) and len(fold.held):
                folds.append(fold)
            if sum(len(fold.held) for fold in folds) >= PILOT_ROWS:
                break
        if not folds:
            return self.shape, self.chosen.ridge
        space = replace(self.plan.space, kernels=(self.shape.name,))
        best = self.search.bandwidth_and_ridge(folds, self.chosen, space)
        return best.shape, best.ridge


@dataclass(frozen=True, eq=False)
class _OnCentres:
    centres: NDArray[Any]
    coefficients: NDArray[np.float64]
    ridge: float
    loss: float
    error: float
    outputs: NDArray[np.float64]
    with_held_out: Callable[[], NDArray[np.float64]]
    """Returns the coefficients for all rows with the held-out ones."""


def signatures_of(pool: Points, count: int, seed: int) -> NDArray[Any]:
    """Return the signatures of points."""
    compressor = Compressor(count, refine=5, sample_size=None, n_jobs=1, random_state=seed)
    return compressor.fit(pool.X, sample_weight=pool.weights).signatures_.points.astype(pool.X.dtype)


def _add_points(at: KernelAt, n_centres: int, targets: NDArray[np.float64], block: Block) -> NDArray[np.float64]:
    return normal_sums(at, n_centres, block.X, targets[block.start : block.stop], block.weights, block.start)


@dataclass(frozen=True, eq=False)
class _Adder:
    """Sums over the rows of a block that are not held out; small enough to be sent to workers."""

    known: _Known
    metric: ColumnMetric
    kernel: KernelAt
    n_centres: int

    def __call__(self, block: Block) -> NDArray[np.float64]:
        X, targets, weights = self.known.taught(block, usable(block, self.known.names), self.metric)
        return normal_sums(self.kernel, self.n_centres, X, targets, weights, block.start)


@dataclass(frozen=True, eq=False)
class _ResidualAdder:
    """K' (Y - K a), or K' K a, over the rows of a block that are not held out, on the GPU if they are there."""

    known: _Known
    metric: ColumnMetric
    kernel: KernelAt
    coefficients: NDArray[np.float64]
    against_targets: bool

    def __call__(self, block: Block) -> NDArray[np.float64]:
        rows = block.rows
        if not isinstance(rows, DeviceRows) or not self.kernel.on_device:
            return self._sums(block, usable(block, self.known.names))
        with rows.device.use():
            X = rows.X.astype(rows.dtype, copy=False)
            return self._sums(block, X if values_usable(X) else usable(block, self.known.names))

    def _sums(self, block: Block, X: Any) -> NDArray[np.float64]:
        X, targets, weights = self.known.taught(block, X, self.metric)
        return residual_sums(
            self.kernel, self.coefficients, X, targets if self.against_targets else None, weights, block.start
        )


@dataclass(frozen=True, eq=False)
class _Gatherer:
    """Takes the rows of some parts out of a block, with the residuals of a machine."""

    metric: ColumnMetric
    kernel: KernelAt
    coefficients: NDArray[np.float64]
    tree: RPTree
    parts: tuple[int, int]
    known: _Known

    def __call__(self, block: Block) -> tuple[NDArray[np.int64], NDArray[np.int32], Points]:
        X = self.metric.apply(usable(block, self.known.names))
        leaves = self.tree.route(X)
        weights = np.ones(len(X)) if block.weights is None else block.weights
        taken = np.flatnonzero((leaves >= self.parts[0]) & (leaves < self.parts[1]) & (weights > 0))
        X, numbers = X[taken], block.start + taken
        base = predicted(self.kernel, self.coefficients, X)
        rest = self.known.of(numbers) - base
        return numbers, leaves[taken], Points(X, rest, weights[taken], base + self.known.offset / self.known.scale)


def _joined(parts: list[Any]) -> tuple[NDArray[np.int64], NDArray[np.int32], Points]:
    numbers, leaves, points = zip(*parts, strict=True)
    arrays = zip(*((p.X, p.Y, p.weights, p.base) for p in points), strict=True)
    return np.concatenate(numbers), np.concatenate(leaves), Points(*map(np.concatenate, arrays))


def _threaded(function: Callable[..., Any], n_threads: int, *items: Sequence[Any]) -> list[Any]:
    if n_threads == 1:
        return list(map(function, *items))
    with ThreadPoolExecutor(n_threads, thread_name_prefix="dc2") as pool:
        return list(pool.map(function, *items))
