"""Search the metric, the kernel, the bandwidth and the ridge on held-out rows of a sample."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError
from scipy.optimize import minimize_scalar

from dc2.io.model_file import saved_record
from dc2.learn.kernel_functions import ColumnMetric, KernelShape, gradient_sizes, median_distance
from dc2.learn.kernel_solver import ExactRidge, ProjectedRidge, kernel_matrix, normal_sums

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


@dataclass(frozen=True, eq=False)
class Points:
    """Rows with targets.

    Attributes
    ----------
    X : ndarray of shape (n, n_features)
    Y : ndarray of shape (n, n_outputs), float64
        Targets, or the shares of the classes, minus the base.
    weights : ndarray of shape (n,), float64
    base : ndarray of shape (n, n_outputs), float64
        The part of the targets that is known already: Y is the residual.
    """

    X: NDArray[Any]
    Y: NDArray[np.float64]
    weights: NDArray[np.float64]
    base: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.X)

    def take(self, some: Any) -> Points:
        """Return a subset."""
        return Points(self.X[some], self.Y[some], self.weights[some], self.base[some])

    def measured_by(self, metric: ColumnMetric) -> Points:
        """Return the points in the units of a metric."""
        return replace(self, X=metric.apply(self.X))


@dataclass(frozen=True, eq=False)
class Fold:
    """Training points and held-out points.

    Attributes
    ----------
    train, held : Points
    centres : ndarray of shape (n_centres, n_features) or None
        None takes all training points.
    """

    train: Points
    held: Points
    centres: NDArray[Any] | None = None

    def solver(self, shape: KernelShape) -> tuple[NDArray[Any], ExactRidge | ProjectedRidge]:
        """Return the centres and a solver, which gives their coefficients for any ridge."""
        train = self.train
        if self.centres is None:
            return train.X, ExactRidge(kernel_matrix(shape, train.X), train.Y, train.weights)
        sums = normal_sums(shape.at(self.centres), len(self.centres), train.X, train.Y, train.weights)
        return self.centres, ProjectedRidge(sums, kernel_matrix(shape, self.centres))


@dataclass(frozen=True)
class SearchSpace:
    """The search space; a value that the user has fixed is not searched.

    Attributes
    ----------
    metrics, kernels : tuple of str
        The candidates.
    bandwidth, ridge : float or None
    """

    metrics: tuple[str, ...]
    kernels: tuple[str, ...]
    bandwidth: float | None
    ridge: float | None


@dataclass(frozen=True, eq=False)
class Chosen:
    """The best machine of a search.

    Attributes
    ----------
    outputs : list of ndarray
        Outputs for the held-out points of each fold.
    """

    metric: ColumnMetric
    shape: KernelShape
    ridge: float
    loss: float
    outputs: list[NDArray[np.float64]]


Scorer = Callable[[NDArray[np.float64], Points], tuple[float, float]]
"""Called with outputs and points; returns the loss and the error."""


@dataclass(eq=False)
class KernelSearch:
    """Coordinate search: the metric, then each kernel with its bandwidth, always with the best ridge."""

    score: Scorer
    seed: int
    unit: float = 1.0  # of ridges
    path: list[Trial] = field(default_factory=list)

    def best(self, folds: Sequence[Fold], space: SearchSpace) -> Chosen:
        """Return the best machine on held-out points."""
        measured = {name: self._metric(name, folds) for name in space.metrics if name != "learned"}
        if not measured:
            measured = {"scaled": self._metric("scaled", folds)}
        first_kernel = space.kernels[len(space.kernels) // 2]
        metrics = list(measured.values())
        if len(metrics) > 1:
            starts = [self._along_bandwidths(folds, metric, (first_kernel,), space, most_steps=0) for metric in metrics]
            metrics = [min(starts, key=lambda chosen: chosen.loss).metric]
        best = self._along_bandwidths(folds, metrics[0], space.kernels, space)
        if "learned" not in space.metrics or best.shape.name == "rpf":
            return best
        only_learned = space.metrics == ("learned",)
        for _ in range(LEARNING_ROUNDS):
            metric = best.metric.sharpened(self._gradient_sizes(folds[0], best))
            found = self._along_bandwidths(folds, metric, (best.shape.name,), space)
            if found.loss >= WORTH_A_STEP * best.loss and not (only_learned and best.metric.name != "learned"):
                break
            best = found
        return best

    def bandwidth_and_ridge(self, folds: Sequence[Fold], start: Chosen, space: SearchSpace) -> Chosen:
        """Return the best bandwidth and ridge for points in the units of the metric."""
        return min(
            (self._climbed(folds, start.metric, name, start.shape.bandwidth, space) for name in space.kernels),
            key=lambda chosen: chosen.loss,
        )

    def on_centres(self, fold: Fold, start: Chosen, space: SearchSpace, stage: str) -> Chosen:
        """Return the machine on given centres with the best ridge."""
        return self._with_best_ridge([fold], start.metric, start.shape, start, space, stage)

    def _metric(self, name: str, folds: Sequence[Fold]) -> ColumnMetric:
        parts = [folds[0].train, folds[0].held] if len(folds) > 1 else [folds[0].train]  # all points of the folds
        X, weights = np.concatenate([p.X for p in parts]), np.concatenate([p.weights for p in parts])
        return ColumnMetric.measured(name, X, weights)

    def _along_bandwidths(
        self,
        folds: Sequence[Fold],
        metric: ColumnMetric,
        kernels: Iterable[str],
        space: SearchSpace,
        most_steps: int = MOST_STEPS,
    ) -> Chosen:
        measured = [Fold(fold.train.measured_by(metric), fold.held.measured_by(metric)) for fold in folds]
        middle = median_distance(measured[0].train.X)
        return min(
            (self._climbed(measured, metric, name, middle, space, most_steps) for name in kernels),
            key=lambda chosen: chosen.loss,
        )

    def _climbed(
        self,
        folds: Sequence[Fold],
        metric: ColumnMetric,
        kernel: str,
        start: float,
        space: SearchSpace,
        most_steps: int = MOST_STEPS,
    ) -> Chosen:
        """Double or halve the bandwidth as long as the loss falls; the rpf-kernel has three bandwidths."""

        def at(bandwidth: float, best: Chosen | None) -> Chosen:
            return self._with_best_ridge(folds, metric, KernelShape(kernel, bandwidth, self.seed), best, space)

        if space.bandwidth is not None:
            return at(space.bandwidth, None)
        if kernel == "rpf":
            return min((at(bandwidth, None) for bandwidth in RPF_BANDWIDTHS), key=lambda chosen: chosen.loss)
        best = at(start, None)
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
        self,
        folds: Sequence[Fold],
        metric: ColumnMetric,
        shape: KernelShape,
        best: Chosen | None,
        space: SearchSpace,
        stage: str = "search",
    ) -> Chosen:
        """Return the machine with the best ridge; stop if the first ridge is much worse than the best machine."""
        solvers = [fold.solver(shape) for fold in folds]
        kernels = [shape.at(centres)(fold.held.X) for (centres, _), fold in zip(solvers, folds, strict=True)]
        n_centres = len(kernels[0].T)

        def tried(ridge: float) -> Chosen:
            try:
                outputs = [
                    (K @ solver.coefficients(ridge).astype(K.dtype)).astype(np.float64)
                    for (_, solver), K in zip(solvers, kernels, strict=True)
                ]
            except LinAlgError:  # too small a ridge for equal rows
                return Chosen(metric, shape, ridge, np.inf, [])
            loss, error = self._scored(outputs, [fold.held for fold in folds])
            self.path.append(Trial(stage, metric.name, shape.name, shape.bandwidth, ridge, n_centres, 1, loss, error))
            return Chosen(metric, shape, ridge, loss, outputs)

        start = FIRST_RIDGE * self.unit if best is None else best.ridge
        give_up = np.inf if best is None or stage != "search" else GIVE_UP * best.loss
        found: Chosen = best_ridge(tried, start, self.unit, space.ridge, give_up)
        return found

    def _scored(self, outputs: Sequence[NDArray[np.float64]], held: Sequence[Points]) -> tuple[float, float]:
        """Return the loss and the error over all folds, by weight."""
        scored = [self.score(some, points) for some, points in zip(outputs, held, strict=True)]
        weights = [points.weights.sum() for points in held]
        return float(np.average([j[0] for j in scored], weights=weights)), float(
            np.average([j[1] for j in scored], weights=weights)
        )

    def _gradient_sizes(self, fold: Fold, best: Chosen) -> NDArray[np.float64]:
        train = fold.train.measured_by(best.metric)
        ridge = ExactRidge(kernel_matrix(best.shape, train.X), train.Y, train.weights)
        return gradient_sizes(best.shape, train.X, ridge.coefficients(best.ridge), train.X)


def best_ridge(
    tried: Callable[[float], Any], start: float, unit: float, fixed: float | None, give_up: float = np.inf
) -> Any:
    """Search along the grid of ridges as long as the loss falls; stop if the first loss is above `give_up`.

    A unit below 1 shifts the grid: where weights are small, so is the ridge that suits them.
    """
    if fixed is not None:
        return tried(fixed)
    ridges = RIDGES * unit
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


def calibration_of(
    outputs: NDArray[np.float64], shares: NDArray[np.float64], weights: NDArray[np.float64]
) -> tuple[float, float]:
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


def probabilities(outputs: NDArray[np.float64], floor: float, exponent: float) -> NDArray[np.float64]:
    """Return shares of the classes in proportion to max(output, floor) ** exponent; the outputs estimate shares."""
    powers = np.maximum(outputs, floor)
    powers /= powers.max(axis=1, keepdims=True)
    powers **= exponent
    powers = np.maximum(powers, np.finfo(np.float64).tiny)
    shares: NDArray[np.float64] = powers / powers.sum(axis=1, keepdims=True)
    return shares
