"""Agreement: how similar the partitions of resampled rows are to each other."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array

from dc2 import core
from dc2.communities.graph import TieGraph, reweighted

_RESAMPLED_NODES = 8000
_FEWEST, _MOST = 2, 6
_DENSE = 16  # pairs of clusters for each node, up to which counting all pairs is faster
_STEPS = 16  # weights are whole numbers, in units of 1/16
# A Bayesian bootstrap draws exponential weights; these are 256 evenly spaced quantiles.
_EXPONENTIAL = np.array([round(-_STEPS * math.log((i + 0.5) / 256)) for i in range(256)], dtype=np.float64)


def resamples(n_nodes: int) -> int:
    """Return how many resamples to take: more for few nodes, where chance matters more and a search costs less."""
    return min(max(round(_RESAMPLED_NODES / n_nodes), _FEWEST), _MOST)


def resampled(graph: TieGraph, seed: int) -> TieGraph:
    """Return the graph that other rows from the same source might have made, by a Bayesian bootstrap.

    All rows with the same nearest node share one weight, drawn from the exponential distribution. If rows are the
    nodes, this is one draw per row. If a node stands for many rows, separate draws would average out, and even an
    arbitrary cut between nodes would look certain.
    """
    return reweighted(graph, drawn_weights(seed, graph.n_nodes)[graph.near[:, 0]])


def drawn_weights(seed: int, n_nodes: int) -> NDArray[np.float64]:
    """Return the weights of a Bayesian bootstrap, drawn by hash: whole numbers with a mean of 16."""
    places = (core.hash_rows(seed, 0, n_nodes) >> np.uint64(56)).astype(np.intp)
    drawn: NDArray[np.float64] = _EXPONENTIAL[places]
    return drawn


def agreement(a: NDArray[np.int32], b: NDArray[np.int32], weights: NDArray[np.float64]) -> float:
    """Return the adjusted Rand index of two partitions; a pair counts by the product of its weights.

    Two partitions into one cluster agree fully. Weights are whole numbers, so their sums are exact in any order.

    Examples
    --------
    >>> import numpy as np
    >>> halves = np.array([0, 0, 1, 1], dtype=np.int32)
    >>> agreement(halves, 1 - halves, np.ones(4))
    1.0
    """
    total = weights.sum()
    if not total > 0:
        return 1.0
    same = float(((_in_both(a, b, weights) / total) ** 2).sum())
    in_a = float(((np.bincount(a, weights) / total) ** 2).sum())
    in_b = float(((np.bincount(b, weights) / total) ** 2).sum())
    by_chance = in_a * in_b
    most = (in_a + in_b) / 2
    if most - by_chance <= 1e-12:
        return 1.0
    return (same - by_chance) / (most - by_chance)


def _in_both(a: NDArray[np.int32], b: NDArray[np.int32], weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the weight in every cluster of one partition and every cluster of another; zeros may be left out."""
    n_a, n_b = int(a.max()) + 1, int(b.max()) + 1
    found: NDArray[np.float64]
    if n_a * n_b <= _DENSE * len(a):
        found = np.bincount(a.astype(np.int64) * n_b + b, weights).astype(np.float64, copy=False)
    else:
        found = coo_array((weights, (a, b))).tocsr().data
    return found
