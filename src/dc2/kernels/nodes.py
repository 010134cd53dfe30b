"""Nodes: what a similarity compares. They are signatures, or rows where these are few."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import pairwise_distances_argmin

__all__ = ["NearRows", "Nodes", "nodes_at"]

BLOCK_ROWS = 1024
SAFE_EXPONENT = 100  # float32 holds such values, and 26 bits below them


@dataclass(frozen=True, eq=False)
class NearRows:
    """Rows, and the nodes that each lies nearest to.

    Attributes
    ----------
    ids : ndarray of shape (n_rows, n_near), int32
        Nearest first.
    weights : ndarray of shape (n_rows,), float64, or None
        How often each row counts; once for None.
    """

    ids: NDArray[np.int32]
    weights: NDArray[np.float64] | None


@dataclass(frozen=True, eq=False)
class Nodes:
    """Points to be compared with each other.

    Attributes
    ----------
    points : ndarray of shape (n_nodes, n_features), float32
        About their mean, and divided by a power of two where float32 could not hold them. A node without rows stands
        where the nearest one with rows stands.
    masses : ndarray of shape (n_nodes,), float64
        The rows, or their weight, that each stands for.
    near : callable
        From a number m to rows with their m nearest nodes.
    are_rows : bool
        Whether each node is a distinct row, and stands for no others.
    """

    points: NDArray[np.float32]
    masses: NDArray[np.float64]
    near: Callable[[int], NearRows]
    are_rows: bool = False

    def __len__(self) -> int:
        return len(self.points)

    @property
    def relative_masses(self) -> NDArray[np.float64]:
        """Masses with mean 1; a node without rows keeps its place, but carries next to no weight."""
        if not self.masses.any():
            return np.ones(len(self.masses))
        relative: NDArray[np.float64] = np.maximum(self.masses, 1e-9 * self.masses.mean())
        relative *= len(relative) / relative.sum()
        return relative


def nodes_at(
    points: NDArray[Any],
    masses: NDArray[np.float64],
    near: Callable[[int], NearRows],
    are_rows: bool = False,
) -> Nodes:
    """Return nodes at given points.

    They are float32 about their mean, so that clusters do not depend on the last bits of sums. A node that lost all its
    rows to nearer ones may lie between clusters and would become a cluster of its own; so it moves to the nearest node
    that has rows.
    """
    filled, empty = np.flatnonzero(masses > 0), np.flatnonzero(masses <= 0)
    standing = np.arange(len(points))
    if len(filled) and len(empty):
        standing[empty] = filled[pairwise_distances_argmin(points[empty], points[filled])]
    return Nodes(_centred(points, standing), masses, near, are_rows)


def _centred(points: NDArray[Any], standing: NDArray[np.intp]) -> NDArray[np.float32]:
    """Return points about their mean, divided by a power of two if float32 could not hold them: only proportions count.

    Block by block, since a copy in float64 could be far larger than the rows.
    """
    blocks = [slice(start, start + BLOCK_ROWS) for start in range(0, len(standing), BLOCK_ROWS)]
    mean = np.sum([points[standing[block]].sum(axis=0, dtype=np.float64) for block in blocks], axis=0) / len(standing)

    def off(block: slice) -> NDArray[np.float64]:
        return np.asarray(points[standing[block]].astype(np.float64) - mean)

    largest = max(float(np.abs(off(block)).max(initial=0.0)) for block in blocks)
    exponent = int(np.frexp(largest)[1])
    centred = np.empty(points.shape, np.float32)
    for block in blocks:
        centred[block] = np.ldexp(off(block), -exponent) if abs(exponent) > SAFE_EXPONENT else off(block)
    return centred
