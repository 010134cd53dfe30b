"""Machines of parts: a tree divides the rows, and each part has a machine for the residuals of the first one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dc2.errors import InputError
from dc2.io.model_file import saved_record
from dc2.learn.kernel_functions import KernelShape
from dc2.learn.kernel_search import Fold, Points
from dc2.learn.kernel_solver import ProjectedRidge, kernel_matrix, normal_sums, predicted
from dc2.trees.tree import RPTree

PART_CENTRES = 1024
"""Centres of a part. A row costs its square in time; fewer make more parts, and more rows near the border of one."""
EXACT_ROWS = 1536
"""Most rows of a part if all are centres: solving for them costs no more than 1024 centres do."""
MOST_EXACT = 2 * EXACT_ROWS  # of a part that many equal projections kept whole


@saved_record
@dataclass(frozen=True, eq=False)
class MachinesOfParts:
    """A machine for each leaf of a tree.

    Attributes
    ----------
    tree : RPTree
    shape : KernelShape
    centres : ndarray of shape (n_centres, n_features)
        Of all parts, one after the other.
    coefficients : ndarray of shape (n_centres, n_outputs)
    starts : ndarray of shape (n_parts + 1,), int64
        The index of the first centre of each part.
    """

    tree: RPTree
    shape: KernelShape
    centres: NDArray[Any]
    coefficients: NDArray[Any]
    starts: NDArray[np.int64]

    def check(self) -> None:
        """Raise if the parts do not fit together; called when read from a model file."""
        if (
            self.starts.shape != (self.tree.n_leaves + 1,)
            or self.starts[0] != 0
            or (np.diff(self.starts) < 0).any()
            or not self.starts[-1] == len(self.centres) == len(self.coefficients)
            or self.centres.ndim != 2
            or self.coefficients.ndim != 2
            or self.centres.shape[1] != self.tree.n_features
            or not (np.isfinite(self.centres).all() and np.isfinite(self.coefficients).all())
        ):
            raise InputError("the parts of MachinesOfParts do not fit together.")

    def outputs(self, X: NDArray[Any]) -> NDArray[np.float64]:
        """Return the outputs for rows in the units of the metric, shape (n_rows, n_outputs)."""
        outputs = np.zeros((len(X), self.coefficients.shape[1]))
        for part, rows in by_leaf(self.tree.route(X)):
            own = slice(self.starts[part], self.starts[part + 1])
            if self.starts[part] < self.starts[part + 1]:
                outputs[rows] = predicted(self.shape.at(self.centres[own]), self.coefficients[own], X[rows])
        return outputs


@dataclass(frozen=True, eq=False)
class PartMachine:
    """A part's machine.

    Attributes
    ----------
    centres : ndarray of shape (n_centres, n_features)
    coefficients : ndarray of shape (n_centres, n_outputs)
        Fitted on all rows of the part.
    outputs : ndarray of shape (n_held, n_outputs)
        For the held-out rows, from a machine fitted on the other rows.
    """

    centres: NDArray[Any]
    coefficients: NDArray[Any]
    outputs: NDArray[np.float64]


def part_fold(points: Points, held: NDArray[np.bool_], exact: bool, seed: tuple[int, int]) -> Fold:
    """Return the training rows, the held-out rows and the centres of a part: all rows, or a random subset."""
    fold = Fold(points.take(~held), points.take(held))
    if len(points) <= (MOST_EXACT if exact else PART_CENTRES):
        return fold
    drawn = np.random.default_rng(seed).choice(len(points), PART_CENTRES, replace=False)
    return replace(fold, centres=points.X[np.sort(drawn)])


def fit_part(
    points: Points,
    held: NDArray[np.bool_],
    exact: bool,
    shape: KernelShape,
    ridge: float,
    own: NDArray[np.intp],
    seed: tuple[int, int],
) -> PartMachine:
    """Fit the machine of one part, whose rows have the indices `own` among the points."""
    points, held = points.take(own), held[own]
    fold = part_fold(points, held, exact, seed)
    train, scored = fold.train, fold.held
    outputs = np.zeros(scored.Y.shape)
    if fold.centres is None:
        if len(train) and len(scored):
            centres, solver = fold.solver(shape)
            outputs = predicted(shape.at(centres), solver.coefficients(ridge), scored.X)
        centres, solver = Fold(points, scored).solver(shape)
        return PartMachine(centres, solver.coefficients(ridge).astype(points.X.dtype), outputs)
    centres, at, K = fold.centres, shape.at(fold.centres), kernel_matrix(shape, fold.centres)
    sums = normal_sums(at, len(centres), train.X, train.Y, train.weights)
    outputs = predicted(at, ProjectedRidge(sums, K).coefficients(ridge), scored.X)
    sums += normal_sums(at, len(centres), scored.X, scored.Y, scored.weights)
    return PartMachine(centres, ProjectedRidge(sums, K).coefficients(ridge).astype(points.X.dtype), outputs)


def by_leaf(leaves: NDArray[np.int32]) -> Iterator[tuple[int, NDArray[np.intp]]]:
    """Yield each leaf that has rows, and the indices of its rows, ascending."""
    order = np.argsort(leaves, kind="stable")
    found, first = np.unique(leaves[order], return_index=True)
    ends = [*first[1:].tolist(), len(order)]
    for leaf, start, stop in zip(found.tolist(), first.tolist(), ends, strict=True):
        yield leaf, order[start:stop]
