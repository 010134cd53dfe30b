"""Fit a kernel machine: search on a sample, fit centres to all rows, then fit the residuals part by part."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.random import SeedSequence
from numpy.typing import NDArray

from dc2.compress.compressor import Compressor
from dc2.compress.sampling import take_sample
from dc2.engines.map_rows import RunOptions, engine_for
from dc2.engines.threads import ThreadEngine
from dc2.errors import InputError
from dc2.io.model_file import saved_record
from dc2.io.resolve import as_source
from dc2.io.source import Block, Source
from dc2.learn.kernel_functions import ColumnMetric, KernelAt, KernelShape, gradient_sizes, spread_of
from dc2.learn.kernel_rows import (
    SEARCHED,
    RowInfo,
    RowsOfFit,
    Targets,
    add_points,
    add_residuals,
    add_rows,
    joined,
    rows_of_parts,
    usable,
)
from dc2.learn.kernel_search import WORTH_A_STEP, Chosen, KernelSearch, SearchSpace, Trial
from dc2.learn.kernel_solver import (
    EXACT_ROWS,
    PART_CENTRES,
    ExactRidge,
    Floats,
    Fold,
    MachinesOfParts,
    PartMachine,
    Points,
    ProjectedRidge,
    by_leaf,
    conjugate_gradients,
    fit_part,
    kernel_matrix,
    normal_sums,
    part_fold,
    predicted,
    residual_sums,
    total,
)  # fmt: skip
from dc2.learn.metadata_routing import check_length
from dc2.parameters import usable_threads
from dc2.random import tree_seed
from dc2.trees.neighbours import distinct_rows
from dc2.trees.tree import RPTree

SAMPLE_BYTES, FEWEST_SAMPLED, MOST_SAMPLED = 128 * 2**20, 20_000, 2**16
MOST_HELD = 5000
"""Most held-out rows: the standard error of an error of 5% is then a third of a point."""
FOLDS = 5
FIRST_CENTRES, MOST_CENTRES = 1000, 8192
ROWS_PER_CENTRE = 8
PASS_COST = 4e12
"""Largest product of rows and squared centres of an automatic choice: a pass takes about a minute of one core."""
PAIR_COST = 100
"""Time of the kernel between a row and a centre, in units of that product."""
WORTH_ITERATING = 2
"""Rows that are more than so many times the sample are read several times, with the sample as preconditioner."""
CONVERGED, MOST_PASSES = 1e-2, 12
"""Iterations end when the squared error of the solution is so small a share of the loss; one more step follows."""
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
    """A fitted machine: its centres are in the units of the metric, its outputs times `scale` plus `offset` predict."""

    metric: ColumnMetric
    shape: KernelShape
    centres: NDArray[Any]  # (n_centres, n_features)
    coefficients: NDArray[Any]  # (n_centres, n_outputs)
    offset: Floats
    scale: Floats
    parts: MachinesOfParts | None
    ridge: float
    importances: Floats  # the share of each column in the gradient, per standard deviation of the column
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

    def predictor(self, names: tuple[str, ...] | None) -> Callable[[Block], Floats]:
        """Return the function that predicts the rows of a block, of shape (n_rows, n_outputs)."""
        return partial(self._outputs, self.shape.at(self.centres), names)  # a forest is grown once

    def _outputs(self, kernel: KernelAt, names: tuple[str, ...] | None, block: Block) -> Floats:
        X = self.metric.apply(usable(block, names).astype(self.centres.dtype, copy=False))
        outputs = predicted(kernel, self.coefficients, X)
        if self.parts is not None:
            outputs += self.parts.outputs(X)
        return np.asarray(outputs * self.scale + self.offset)


@dataclass(frozen=True)
class MachinePlan:
    """The parameters of a fit; of the numbers, None is chosen automatically."""

    space: SearchSpace
    n_centres: int | None
    n_parts: int | None


@dataclass(frozen=True, eq=False)
class Fitted:
    """A machine, and the outputs for held-out rows of a machine that was not fitted on them."""

    machine: KernelMachine
    held: Points
    outputs: Floats


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
    search = KernelSearch(plan.space, scorer(targets.n_classes), tree_seed(seeds) % 2**31, unit)
    order = np.random.default_rng(seeds).permutation(len(points))
    if whole and len(points) <= SEARCHED and (plan.n_centres is None or plan.n_centres >= len(points)):
        return _fitted_on_all(points, order, search, offset, scale)
    n_held = min(MOST_HELD, len(points) // FOLDS)
    held, pool = np.sort(order[:n_held]), order[n_held:]
    numbers, n_rows, weight = sample.rows[held], sample.n_rows, sample.total_weight
    if whole:
        source = as_source(points.X, sample_weight=points.weights)
        engine, targets = engine_for(source, options), Targets(points.Y * scale + offset)
        numbers, n_rows, weight = held.astype(np.int64), len(points), float(points.weights.sum())
    known = RowInfo(source.feature_names, targets, offset, scale, numbers)
    rows = RowsOfFit(source, engine, known, n_rows, weight, points.take(pool), points.take(held))
    chosen = search.best([Fold(rows.pool.take(slice(SEARCHED)), rows.searched())])
    held_out, metric = rows.held.measured_by(chosen.metric), chosen.metric
    return _Fit(
        rows, chosen, search, plan, usable_threads(options.n_jobs), seeds, rows.pool.measured_by(metric), held_out
    ).run()


def scorer(n_classes: int) -> Callable[[Floats, Points], tuple[float, float]]:
    """Return the function that computes the loss and the error of outputs."""

    def score(outputs: Floats, points: Points) -> tuple[float, float]:
        loss = float(np.average(((points.Y - outputs) ** 2).mean(axis=1), weights=points.weights))
        if not n_classes:
            return loss, loss
        shares = points.Y + points.base
        right = np.take_along_axis(shares, (outputs + points.base).argmax(axis=1)[:, None], axis=1)[:, 0]
        return loss * n_classes / 2, float(np.average(1 - right, weights=points.weights))

    return score


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
    offset: Floats,
    scale: Floats,
) -> Fitted:
    """Fit a machine whose centres are all points."""
    everything, number_of = np.arange(len(points)), np.empty(len(points), int)
    number_of[order] = everything % FOLDS
    parts = [np.flatnonzero(number_of == fold) for fold in range(min(FOLDS, len(points)))]
    others = [np.setdiff1d(everything, part) if len(points) > 1 else everything for part in parts]
    folds = [Fold(points.take(rest), points.take(part)) for rest, part in zip(others, parts, strict=True)]
    chosen = search.best(folds)
    measured = points.measured_by(chosen.metric)
    ridge = ExactRidge(kernel_matrix(chosen.shape, measured.X), measured.Y, measured.weights)
    coefficients = ridge.coefficients(chosen.ridge).astype(points.X.dtype)
    machine = KernelMachine(
        chosen.metric, chosen.shape, measured.X, coefficients, offset, scale, None, chosen.ridge,
        _importances(chosen.shape, measured.X, coefficients, measured.X), tuple(search.path),
    )  # fmt: skip
    return Fitted(machine, points.take(np.concatenate(parts)), np.concatenate(chosen.outputs))


def _importances(shape: KernelShape, centres: NDArray[Any], coefficients: NDArray[Any], X: NDArray[Any]) -> Floats:
    """Return the share of each column in the gradient, per standard deviation of the column."""
    if shape.name == "rpf":
        return np.full(centres.shape[1], np.nan)
    sizes = gradient_sizes(shape, centres, coefficients, X) * spread_of(X - X.mean(axis=0, dtype=np.float64))
    return np.asarray(sizes / (sizes.sum() or 1.0))


@dataclass(frozen=True, eq=False)
class _OnCentres:
    """A machine of all rows but the held-out ones; `with_held_out` returns the coefficients for all."""

    centres: NDArray[Any]
    coefficients: Floats
    ridge: float
    loss: float
    error: float
    outputs: Floats
    with_held_out: Callable[[], Floats]


@dataclass(frozen=True, eq=False)
class _Fit:
    """The fit of many rows; `pool` and `held` are those of the rows, in the units of the metric."""

    rows: RowsOfFit
    chosen: Chosen
    search: KernelSearch
    plan: MachinePlan
    n_threads: int
    seeds: SeedSequence
    pool: Points
    held: Points

    def run(self) -> Fitted:
        """Fit the machine on centres, then its parts."""
        chosen, known = self.chosen, self.rows.known
        found = self._on_centres()
        parts, outputs = self._in_parts(found)
        coefficients = (found.with_held_out() if parts is None else found.coefficients).astype(found.centres.dtype)
        importances = _importances(chosen.shape, found.centres, coefficients, self.pool.X[:SEARCHED])
        machine = KernelMachine(
            chosen.metric, chosen.shape, found.centres, coefficients, known.offset, known.scale, parts, found.ridge,
            importances, tuple(self.search.path),
        )  # fmt: skip
        return Fitted(machine, self.rows.held, outputs)

    def _record_trial(
        self, stage: str, shape: KernelShape, ridge: float, n_centres: int, n_parts: int, loss: float, error: float
    ) -> None:
        name, bandwidth = shape.name, shape.bandwidth
        trial = Trial(stage, self.chosen.metric.name, name, bandwidth, ridge, n_centres, n_parts, loss, error)
        self.search.path.append(trial)

    # --- one machine on centres ------------------------------------------------------------------------------

    def _on_centres(self) -> _OnCentres:
        """Double the centres while that lowers the loss."""
        at = partial(self._with_centres, self._signatures_are_better())
        if self.plan.n_centres is not None:
            return at(min(self.plan.n_centres, len(self.pool)))
        cap = self._most_centres()
        doublings = max(0, round(np.log2(cap / FIRST_CENTRES)))
        best = at(cap >> doublings)
        for left in reversed(range(doublings)):
            found = at(cap >> left)
            pays = found.loss < WORTH_DOUBLING * best.loss
            best = min(best, found, key=lambda one: one.loss)
            if not pays:
                break
        return best

    def _signatures_are_better(self) -> bool:
        """Return whether signatures are better centres than rows; they are not if rows have no structure."""
        count = min(FIRST_CENTRES, self.plan.n_centres or FIRST_CENTRES, len(self.pool) // 4)
        train = self.pool.take(slice(ROWS_PER_CENTRE * count))
        held = self.rows.searched().measured_by(self.chosen.metric)

        def loss(centres: NDArray[Any], stage: str) -> float:
            return self.search.on_centres(Fold(train, held, centres), self.chosen, stage).loss

        by_rows = loss(self.pool.X[:count], "rows")
        return loss(signatures_of(self.pool, count, self.search.seed), "signatures") < by_rows

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

    def _with_centres(self, by_signatures: bool, count: int) -> _OnCentres:
        rows, pool, held, shape = self.rows, self.pool, self.held, self.chosen.shape
        centres = signatures_of(pool, count, self.search.seed) if by_signatures else pool.X[:count]
        at, K = shape.at(centres), kernel_matrix(shape, centres)
        if self._iterates:
            sample, engine = as_source(pool.X, sample_weight=pool.weights), ThreadEngine(self.n_threads)
            adder: Callable[[Block], Floats] = partial(add_points, at, len(K), pool.Y)
            parts = engine.map(adder, sample, stage="search", result_bytes=K.nbytes)
        else:
            adder = partial(add_rows, rows.known, self.chosen.metric, at, len(K))
            parts = rows.engine.map(adder, rows.source, stage="conquer", merge=total, result_bytes=K.nbytes)
        sums = total(parts)  # in block order, whichever thread was first: they do not depend on n_jobs
        path = ProjectedRidge(sums, K)

        def with_held_out(ridge: float) -> Floats:
            more = normal_sums(at, len(K), held.X, held.Y, held.weights)
            return ProjectedRidge(sums + more, K).coefficients(ridge)

        def tried(ridge: float) -> _OnCentres:
            found = self._on_these(at, centres, path.coefficients(ridge), ridge, partial(with_held_out, ridge))
            if not self._iterates:
                self._record_trial("centres", shape, ridge, len(K), 1, found.loss, found.error)
            return found

        found: _OnCentres = self.search.best_ridge(tried, self.chosen.ridge)
        return self._iterated(found, at, K, path) if self._iterates else found

    def _on_these(
        self, at: KernelAt, centres: NDArray[Any], coefficients: Floats, ridge: float,
        with_held_out: Callable[[], Floats],
    ) -> _OnCentres:  # fmt: skip
        outputs = predicted(at, coefficients, self.held.X)
        loss, error = self.search.score(outputs, self.held)
        return _OnCentres(centres, coefficients, ridge, loss, error, outputs, with_held_out)

    def _iterated(self, found: _OnCentres, at: KernelAt, K: Floats, path: ProjectedRidge) -> _OnCentres:
        """Improve a machine of the sample until it is that of all rows; each step takes one pass."""
        rows, held, ridge = self.rows, self.held, found.ridge
        weight = rows.total_weight - held.weights.sum()

        def summed(coefficients: Floats, *, against_targets: bool) -> Floats:
            adder = partial(add_residuals, rows.known, self.chosen.metric, at, coefficients, against_targets)
            sums = total(rows.engine.map(adder, rows.source, stage="conquer", merge=total))
            change = ridge * (K @ coefficients)
            return sums - change if against_targets else sums + change

        solved = path.solver(ridge, weight / self.pool.weights.sum())
        squared_error = np.average(((held.Y - found.outputs) ** 2).sum(axis=1), weights=held.weights)
        a, rest, step = conjugate_gradients(
            found.coefficients, summed(found.coefficients, against_targets=True), solved,
            partial(summed, against_targets=False), CONVERGED * weight * squared_error, MOST_PASSES - 1,
        )  # fmt: skip

        def with_held_out() -> Floats:
            return np.asarray(a + step * solved(rest + residual_sums(at, a, held.X, held.Y, held.weights)))

        found = self._on_these(at, found.centres, a + step * solved(rest), ridge, with_held_out)
        self._record_trial("centres", self.chosen.shape, ridge, len(K), 1, found.loss, found.error)
        return found

    # --- residuals, part by part ------------------------------------------------------------------------------

    def _n_parts(self) -> tuple[int, bool]:
        """Return the number of parts, and whether all rows are centres, which the size of the model limits."""
        n_rows, n_parts = self.rows.n_rows, self.plan.n_parts
        row_bytes = self.pool.X.shape[1] * self.pool.X.itemsize + 8 * self.rows.known.targets.n_outputs
        affordable = MODEL_BYTES / row_bytes
        exact = n_rows <= affordable
        if n_parts is not None:
            return n_parts, exact and n_rows <= n_parts * EXACT_ROWS
        if self.chosen.shape.name == "rpf":
            return 1, False
        if exact:
            return 2 ** int(np.ceil(np.log2(n_rows / EXACT_ROWS))), True
        return 2 ** int(np.log2(max(1, affordable / PART_CENTRES))), False

    def _in_parts(self, found: _OnCentres) -> tuple[MachinesOfParts | None, Floats]:
        """Return machines of parts, or None if they do not lower the loss, and all outputs for held-out rows."""
        rows, pool, metric = self.rows, self.pool, self.chosen.metric
        n_parts, exact = self._n_parts()
        if n_parts < 2:
            return None, found.outputs
        tree = RPTree.grow(
            pool.X, max_leaves=n_parts, cut="median", sharpen=2, sample_weight=pool.weights, rng=self.seeds
        )
        row_bytes = pool.X.shape[1] * pool.X.itemsize + 16 * rows.known.targets.n_outputs + 16
        at_once = max(1, int(GROUP_BYTES / row_bytes * tree.n_leaves / rows.n_rows))
        shape, ridge, at = self.chosen.shape, self.chosen.ridge, self.chosen.shape.at(found.centres)
        machines: list[PartMachine] = []
        scored: list[NDArray[np.int64]] = []
        for first in range(0, tree.n_leaves, at_once):
            group = range(first, min(first + at_once, tree.n_leaves))
            gather = partial(rows_of_parts, rows.known, metric, at, found.coefficients, tree, group)
            numbers, leaves, points = joined(list(rows.engine.map(gather, rows.source, stage="conquer")))
            if first == 0:
                shape, ridge = self._part_parameters(numbers, leaves, points, exact)
            indices, held = dict(by_leaf(leaves)), rows.known.held(numbers)
            own = [indices.get(part, NONE) for part in group]
            fit_one = partial(fit_part, points, held, exact, shape, ridge)
            with ThreadPoolExecutor(self.n_threads, thread_name_prefix="dc2") as threads:
                machines += threads.map(fit_one, own, [(self.search.seed, part) for part in group])
            scored += [numbers[some][held[some]] for some in own]

        starts = np.cumsum([0, *(len(machine.centres) for machine in machines)]).astype(np.int64)
        order = np.argsort(np.concatenate(scored))
        outputs = found.outputs + np.concatenate([machine.outputs for machine in machines])[order]
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
            return self.chosen.shape, self.chosen.ridge
        best = self.search.bandwidth_and_ridge(folds, self.chosen)
        return best.shape, best.ridge


def signatures_of(pool: Points, count: int, seed: int) -> NDArray[Any]:
    """Return the signatures of points."""
    compressor = Compressor(count, refine=5, sample_size=None, n_jobs=1, random_state=seed)
    return compressor.fit(pool.X, sample_weight=pool.weights).signatures_.points.astype(pool.X.dtype)
