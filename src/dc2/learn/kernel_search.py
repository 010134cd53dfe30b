"""Search the metric, the kernel, the bandwidth and the ridge on held-out rows of a sample."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError
from scipy.optimize import minimize_scalar

from dc2.io.model_file import saved_record
from dc2.learn.kernel_functions import ColumnMetric, KernelShape, gradient_sizes, median_distance
from dc2.learn.kernel_solver import ExactRidge, Floats, Fold, Points, kernel_matrix

RIDGES = 10.0 ** np.arange(-4, 5)
FIRST_RIDGE = 1e-2
RPF_BANDWIDTHS = (0.4, 0.2, 0.1)
"""The kernel of one pair of rows must not vanish for almost all others, as it may for clustering."""
LEARNING_ROUNDS = 3
WORTH_A_STEP = 0.995
"""A smaller gain is noise of the held-out rows. Without it the search would not end if the bandwidth hardly matters."""
GIVE_UP = 1.1
"""A bandwidth with a first loss above this multiple of the best is not tried with other ridges."""
MOST_STEPS = 6  # of doubling or halving a bandwidth: a factor of 64 either way


@saved_record
@dataclass(frozen=True)
class Trial:
    """One machine that the search evaluated.

    Attributes
    ----------
    stage : {"search", "rows", "signatures", "centres", "parts"}
        "rows" and "signatures" are compared as centres on the sample; "centres" are machines of all rows.
    metric, kernel : str
    bandwidth, ridge : float
    n_centres, n_parts : int
    loss : float
        On held-out rows: the share of variance not explained, or half the squared error of the class indicators.
    error : float
        The share of wrong classes; of regression the same as the loss.
    """

    stage: str
    metric: str
    kernel: str
    bandwidth: float
    ridge: float
    n_centres: int
    n_parts: int
    loss: float
    error: float


@dataclass(frozen=True)
class SearchSpace:
    """The candidates; a bandwidth or a ridge that the user has fixed is not searched."""

    metrics: tuple[str, ...]
    kernels: tuple[str, ...]
    bandwidth: float | None
    ridge: float | None


@dataclass(frozen=True, eq=False)
class Chosen:
    """The best machine of a search, and its outputs for the held-out points of each fold."""

    metric: ColumnMetric
    shape: KernelShape
    ridge: float
    loss: float
    outputs: list[Floats]


@dataclass(eq=False)
class KernelSearch:
    """Coordinate search: the metric, then each kernel with its bandwidth, always with the best ridge.

    `score` returns the loss and the error of outputs; ridges are multiples of the unit.
    """

    space: SearchSpace
    score: Callable[[Floats, Points], tuple[float, float]]
    seed: int
    unit: float = 1.0
    path: list[Trial] = field(default_factory=list)

    def best(self, folds: Sequence[Fold]) -> Chosen:
        """Return the best machine on held-out points."""
        names, kernels = self.space.metrics, self.space.kernels
        metrics = [self._metric(name, folds) for name in names if name != "learned"]
        metrics = metrics or [self._metric("scaled", folds)]
        if len(metrics) > 1:
            middle = (kernels[len(kernels) // 2],)
            metrics = [_least(self._along_bandwidths(folds, one, middle, 0) for one in metrics).metric]
        best = self._along_bandwidths(folds, metrics[0], kernels)
        if "learned" not in names or best.shape.name == "rpf":
            return best
        for _ in range(LEARNING_ROUNDS):
            metric = best.metric.sharpened(self._gradient_sizes(folds[0], best))
            found = self._along_bandwidths(folds, metric, (best.shape.name,))
            first_learned = names == ("learned",) and best.metric.name != "learned"
            if found.loss >= WORTH_A_STEP * best.loss and not first_learned:
                break
            best = found
        return best

    def bandwidth_and_ridge(self, folds: Sequence[Fold], start: Chosen) -> Chosen:
        """Return the best bandwidth and ridge of a kernel for points in the units of the metric."""
        return self._climbed(folds, start.metric, start.shape.name, start.shape.bandwidth)

    def on_centres(self, fold: Fold, start: Chosen, stage: str) -> Chosen:
        """Return the machine on given centres with the best ridge."""
        return self._with_best_ridge([fold], start.metric, start.shape, start, stage)

    def _metric(self, name: str, folds: Sequence[Fold]) -> ColumnMetric:
        parts = [folds[0].train, folds[0].held] if len(folds) > 1 else [folds[0].train]  # all points of the folds
        X, weights = np.concatenate([p.X for p in parts]), np.concatenate([p.weights for p in parts])
        return ColumnMetric.measured(name, X, weights)

    def _along_bandwidths(
        self, folds: Sequence[Fold], metric: ColumnMetric, kernels: Sequence[str], most_steps: int = MOST_STEPS
    ) -> Chosen:
        measured = [Fold(fold.train.measured_by(metric), fold.held.measured_by(metric)) for fold in folds]
        middle = median_distance(measured[0].train.X)
        return _least(self._climbed(measured, metric, name, middle, most_steps) for name in kernels)

    def _climbed(
        self, folds: Sequence[Fold], metric: ColumnMetric, kernel: str, start: float, most_steps: int = MOST_STEPS
    ) -> Chosen:
        """Double or halve the bandwidth as long as the loss falls; the rpf-kernel has three bandwidths."""

        def at(bandwidth: float, best: Chosen | None = None) -> Chosen:
            return self._with_best_ridge(folds, metric, KernelShape(kernel, bandwidth, self.seed), best)

        if self.space.bandwidth is not None:
            return at(self.space.bandwidth)
        if kernel == "rpf":
            return _least(map(at, RPF_BANDWIDTHS))
        best = at(start)
        for factor in (0.5, 2.0):
            steps = 0
            while steps < most_steps:
                found = at(best.shape.bandwidth * factor, best)
                if found.loss >= WORTH_A_STEP * best.loss:
                    break
                best, steps = found, steps + 1
            if steps:
                break
        return best

    def _with_best_ridge(
        self, folds: Sequence[Fold], metric: ColumnMetric, shape: KernelShape, best: Chosen | None,
        stage: str = "search",
    ) -> Chosen:  # fmt: skip
        """Return the machine with the best ridge; stop if the first ridge is much worse than the best machine."""
        solvers = [fold.solver(shape) for fold in folds]
        kernels = [shape.at(centres)(fold.held.X) for (centres, _), fold in zip(solvers, folds, strict=True)]
        weights = [fold.held.weights.sum() for fold in folds]

        def tried(ridge: float) -> Chosen:
            try:
                outputs = [
                    (K @ solver.coefficients(ridge).astype(K.dtype)).astype(np.float64)
                    for (_, solver), K in zip(solvers, kernels, strict=True)
                ]
            except LinAlgError:  # too small a ridge for equal rows
                return Chosen(metric, shape, ridge, np.inf, [])
            scored = [self.score(some, fold.held) for some, fold in zip(outputs, folds, strict=True)]
            loss, error = (float(value) for value in np.average(scored, axis=0, weights=weights))
            n_centres, bandwidth = kernels[0].shape[1], shape.bandwidth
            self.path.append(Trial(stage, metric.name, shape.name, bandwidth, ridge, n_centres, 1, loss, error))
            return Chosen(metric, shape, ridge, loss, outputs)

        start = FIRST_RIDGE * self.unit if best is None else best.ridge
        give_up = np.inf if best is None or stage != "search" else GIVE_UP * best.loss
        found: Chosen = self.best_ridge(tried, start, give_up)
        return found

    def best_ridge(self, tried: Callable[[float], Any], start: float, give_up: float = np.inf) -> Any:
        """Search along the grid of ridges as long as the loss falls; stop if the first loss is above `give_up`."""
        if self.space.ridge is not None:
            return tried(self.space.ridge)
        ridges = RIDGES * self.unit
        index = int(np.abs(np.log10(ridges / start)).argmin())
        best = tried(float(ridges[index]))
        if best.loss > give_up:
            return best
        for step in (1, -1):
            at = index + step
            while 0 <= at < len(ridges):
                found = tried(float(ridges[at]))
                if not found.loss < best.loss:
                    break
                best, at = found, at + step
            if at != index + step:
                break
        return best

    def _gradient_sizes(self, fold: Fold, best: Chosen) -> Floats:
        train = fold.train.measured_by(best.metric)
        ridge = ExactRidge(kernel_matrix(best.shape, train.X), train.Y, train.weights)
        return gradient_sizes(best.shape, train.X, ridge.coefficients(best.ridge), train.X)


def _least(found: Any) -> Chosen:
    best: Chosen = min(found, key=lambda chosen: chosen.loss)
    return best


def calibration_of(outputs: Floats, shares: Floats, weights: Floats) -> tuple[float, float]:
    """Return the floor and the exponent of `probabilities` with the lowest log loss on held-out rows."""

    def log_loss(log_exponent: float, floor: float) -> float:
        logs = np.log(probabilities(outputs, floor, float(np.exp(log_exponent))))
        return float(-(weights @ (shares * logs).sum(axis=1)) / weights.sum())

    bounds = np.log(0.1), np.log(30.0)
    tried = [
        (minimize_scalar(log_loss, args=(floor,), bounds=bounds, method="bounded"), float(floor))
        for floor in np.geomspace(1e-4, 0.5 / outputs.shape[1], 10)
    ]
    best, floor = min(tried, key=lambda one: one[0].fun)
    return floor, float(np.exp(best.x))


def probabilities(outputs: Floats, floor: float, exponent: float) -> Floats:
    """Return shares of the classes in proportion to max(output, floor) ** exponent; the outputs estimate shares."""
    powers = np.maximum(outputs, floor)
    powers /= powers.max(axis=1, keepdims=True)
    powers **= exponent
    powers = np.maximum(powers, np.finfo(np.float64).tiny)
    shares: Floats = powers / powers.sum(axis=1, keepdims=True)
    return shares
