"""Limits on the sizes of clusters: small ones join the neighbour they share most with, large ones are cut in parts."""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, diags_array
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import eigsh

from dc2.errors import ParameterError
from dc2.graph.n_clusters import RequestedClusters
from dc2.graph.resolutions import GraphNodes
from dc2.parameters import one_blas_thread

ROUNDING = 1e-9  # relative, of sums of weights
SMALL = 64  # nodes up to which all eigenvectors are computed
MANY_PARTS = 8  # beyond that a cut leaves at least a quarter of the parts on each side


@dataclass(frozen=True)
class Bounds:
    """The least and the greatest weight of a cluster, and how many clusters there may be."""

    low: float
    high: float
    fewest: int = 1
    most: float = math.inf

    def parts(self, weight: float) -> tuple[int, float]:
        """Return the fewest and the most clusters that a weight can be cut into; none if the first is larger."""
        fewest = max(1, math.ceil(weight / self.high * (1 - ROUNDING)))
        return fewest, math.floor(weight / self.low * (1 + ROUNDING)) if self.low else math.inf

    def check(self, total: float, heaviest: float) -> None:
        """Raise if so much weight cannot be divided so, or if its heaviest node is too heavy."""
        low, high, all_ = self.low, self.high, f"{total:,.10g}"
        if low > high:
            raise ParameterError(
                f"min_cluster_size is {low:,.10g} of {all_} rows, but max_cluster_size {high:,.10g}. Raise the maximum."
            )
        if heaviest > high * (1 + ROUNDING):
            raise ParameterError(
                f"max_cluster_size is {high:,.10g}, but equal rows or rows of one signature, which stay together, are "
                f"{heaviest:,.10g}. Raise it, or n_signatures."
            )
        fewest, most = self.parts(total)
        if max(fewest, self.fewest) > min(most, self.most):
            possible = f", at most {most:,} possible" if most < math.inf else ""
            asked = f"{self.fewest} to {self.most}" if self.fewest < self.most else f"{self.fewest}"
            clusters = f", and n_clusters asks for {asked}" if self.fewest > 1 or self.most < math.inf else ""
            raise ParameterError(
                f"Cluster sizes: {all_} rows cannot be divided into clusters of {low:,.10g} to {high:,.10g}: at least "
                f"{fewest:,} are needed{possible}{clusters}. Widen the limits."
            )


@dataclass(frozen=True)
class SizeLimits:
    """The limits that a user gave: rows or weight from 1 on, below that shares; or the largest over the smallest."""

    least: float | None = None
    most: float | None = None
    balance: float | None = None

    @classmethod
    def of(cls, min_cluster_size: Any, max_cluster_size: Any, balance: Any) -> SizeLimits:
        """Check the parameters, or raise."""
        given = {"min_cluster_size": min_cluster_size, "max_cluster_size": max_cluster_size, "balance": balance}
        for name, value in given.items():
            least = 1 if name == "balance" else 0
            number = isinstance(value, Real) and not isinstance(value, bool) and least <= float(value) < math.inf
            if value is not None and not (number and value):
                what = "at least 1" if least else "above 0: rows or weight from 1 on, below 1 a share"
                raise ParameterError(f"{name}={value!r} must be a number {what}, or None.", parameter=name, value=value)
        if balance is not None and (min_cluster_size is not None or max_cluster_size is not None):
            raise ParameterError(
                f"balance={balance!r} sets both limits. Leave out min_cluster_size and max_cluster_size."
            )
        return cls(min_cluster_size, max_cluster_size, balance)

    @property
    def given(self) -> bool:
        """Whether there are any limits."""
        return self != NO_LIMITS

    def bounds(self, total: float, heaviest: float, requested: RequestedClusters, found: int = 0) -> Bounds:
        """Return the limits in units of weight, or raise if none can be met with so much weight and this heaviest node.

        Sizes are balanced for the number `found` if none is requested.
        """
        whole = float(total).is_integer()
        if self.balance is not None:
            k = requested.low if requested.exact else max(found, 1)
            mean = total / k
            low, high = 2 * mean / (1 + self.balance), 2 * mean * self.balance / (1 + self.balance)
            if whole:
                low, high = min(math.ceil(low), math.floor(mean)), max(math.floor(high), math.ceil(mean))
            bounds = Bounds(low, high, k, k)
        else:
            low = 0.0 if self.least is None else self.least * (total if self.least < 1 else 1.0)
            high = total if self.most is None else self.most * (total if self.most < 1 else 1.0)
            if whole:
                low, high = math.ceil(low * (1 - ROUNDING)), math.floor(high * (1 + ROUNDING))
            bounds = Bounds(low, high, requested.low, math.inf if requested.high is None else requested.high)
        bounds.check(total, heaviest)
        return bounds


NO_LIMITS = SizeLimits()


def within_limits(nodes: GraphNodes, labels: NDArray[np.int32], bounds: Bounds) -> NDArray[np.int32]:
    """Return clusters whose weights are within bounds; clusters that are so already stay if their number may.

    A cluster that no cuts bring within the bounds joins that with which it shares most edges; then large ones are cut.
    """
    labels, parts = _joined(nodes, labels, bounds)
    for cluster in np.flatnonzero(np.array(parts) > 1).tolist():
        labels = divided(nodes, labels, cluster, parts[cluster], bounds)
    return labels


def divided(
    nodes: GraphNodes, labels: NDArray[np.int32], cluster: int, parts: int, bounds: Bounds = Bounds(0.0, math.inf)
) -> NDArray[np.int32]:
    """Return clusters of which one is cut into parts; the others keep their numbers."""
    answer, members = labels.copy(), np.flatnonzero(labels == cluster)
    cut = _cut(nodes.graph.matrix(), members, nodes.node_weights, min(parts, len(members)), bounds)
    for number, part in enumerate(cut[1:], start=int(labels.max()) + 1):
        answer[part] = number
    return answer


def _joined(nodes: GraphNodes, labels: NDArray[np.int32], bounds: Bounds) -> tuple[NDArray[np.int32], list[int]]:
    """Join clusters until each can be cut within the bounds; return them, and into how many parts to cut each."""
    while True:
        labels = np.unique(labels, return_inverse=True)[1].astype(np.int32)
        sizes = np.bincount(labels, nodes.node_weights)
        ranges = [bounds.parts(size) for size in sizes.tolist()]
        poor = [fewest > most for fewest, most in ranges]
        if not any(poor):
            if sum(fewest for fewest, _ in ranges) <= bounds.most and sum(most for _, most in ranges) >= bounds.fewest:
                return labels, _allotted(sizes, ranges, bounds.fewest)
            poor = [True] * len(sizes)
        if len(sizes) == 1:
            raise _no_cut(sizes[0], bounds)
        labels = join_most_connected(nodes, labels, int(np.lexsort((sizes, ~np.array(poor)))[0]))


def join_most_connected(nodes: GraphNodes, labels: NDArray[np.int32], cluster: int) -> NDArray[np.int32]:
    """Return clusters of which one has joined that with which it shares most edges, or the nearest if none does."""
    members = labels == cluster
    edges = np.bincount(labels, nodes.graph.matrix() @ members.astype(np.float64), int(labels.max()) + 1)
    edges[cluster] = -1.0
    if edges.max() > 0:
        return np.where(members, np.int32(edges.argmax()), labels)
    off = nodes.points - nodes.points[members].mean(axis=0)
    nearest = np.where(members, np.inf, np.einsum("ij,ij->i", off, off)).argmin()
    return np.where(members, labels[nearest], labels)


def _allotted(sizes: NDArray[Any], ranges: list[tuple[int, float]], fewest: int) -> list[int]:
    """Return into how many parts to cut each cluster: as few as possible; more of the largest if more are asked for."""
    parts = [least for least, _ in ranges]
    while sum(parts) < fewest:
        share = [size / n if n < most else 0.0 for size, n, (_, most) in zip(sizes, parts, ranges, strict=True)]
        parts[int(np.argmax(share))] += 1
    return parts


def _cut(
    matrix: csr_array, members: NDArray[np.intp], weights: NDArray[np.float64], parts: int, bounds: Bounds
) -> list[NDArray[np.intp]]:
    """Cut a cluster in two where fewest edges cross for the edges on both sides, until there are so many parts."""
    if parts == 1:
        return [members]
    inside = csr_array(matrix[members][:, members])
    order = _in_line(inside)
    reached = np.cumsum(weights[members][order])
    left = _possible(reached, parts, bounds)
    if not left.any():
        raise _no_cut(float(reached[-1]), bounds)
    costs = np.where(left > 0, _costs(inside, order), np.inf)
    place = int(costs.argmin())
    one, other = np.sort(members[order[: place + 1]]), np.sort(members[order[place + 1 :]])
    number = int(left[place])
    return _cut(matrix, one, weights, number, bounds) + _cut(matrix, other, weights, parts - number, bounds)


def parting(matrix: csr_array, members: NDArray[np.intp], pairs: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return one side of the cut of a cluster that parts pairs of its members: few edges cross for the pairs parted."""
    inside = csr_array(matrix[members][:, members])
    order = _in_line(inside)
    place = np.empty(len(order), np.intp)
    place[order] = np.arange(len(order))
    ends = np.sort(place[pairs], axis=1)
    parted = np.cumsum(np.bincount(ends[:, 0], minlength=len(order)) - np.bincount(ends[:, 1], minlength=len(order)))
    costs = np.where(parted > 0, _costs(inside, order) / np.maximum(parted, 1), np.inf)
    return members[order[int(costs.argmin()) + 1 :]]


def _possible(reached: NDArray[np.float64], parts: int, bounds: Bounds) -> NDArray[np.int64]:
    """Return for each place of a cut into how many parts the left side can be cut then; 0 if a cut is not possible."""
    left, total = np.zeros(len(reached), np.int64), reached[-1]
    margin = parts // 4 if parts > MANY_PARTS else 1
    low, high = bounds.low * (1 - ROUNDING), bounds.high * (1 + ROUNDING)
    for number in range(margin, parts - margin + 1):
        rest, others = total - reached, parts - number
        fits = (number * low <= reached) & (reached <= number * high) & (others * low <= rest) & (rest <= others * high)
        left[fits] = number
    left[-1] = 0
    return left


def _costs(inside: csr_array, order: NDArray[np.intp]) -> NDArray[np.float64]:
    """Return the conductance of the cut behind each place of an order."""
    place = np.empty(len(order), np.intp)
    place[order] = np.arange(len(order))
    edges = inside.tocoo()
    first, last = place[edges.row], place[edges.col]
    forward = first < last
    starts = np.bincount(first[forward], edges.data[forward], len(order))
    ends = np.bincount(last[forward], edges.data[forward], len(order))
    crossing = np.cumsum(starts - ends)
    volume = np.cumsum(np.asarray(inside.sum(axis=1)).ravel()[order])
    return np.asarray(crossing / np.maximum(np.minimum(volume, volume[-1] - volume), 1e-300))


def _in_line(inside: csr_array) -> NDArray[np.intp]:
    """Return the nodes in the order of the second eigenvector of their graph, one connected part after the other."""
    part = connected_components(inside, directed=False)[1]
    line = np.zeros(len(part))
    for one in range(int(part.max()) + 1):
        own = np.flatnonzero(part == one)
        line[own] = _fiedler(csr_array(inside[own][:, own]))
    return np.asarray(np.lexsort((line, part)))


def _fiedler(graph: csr_array) -> NDArray[np.float64]:
    """Return the second eigenvector of the random walk on a connected graph."""
    n = graph.shape[0]
    if n < 3:
        return np.arange(n, dtype=np.float64)
    root = np.sqrt(np.asarray(graph.sum(axis=1)).ravel())
    scaled = diags_array(1 / root) @ graph @ diags_array(1 / root)
    with one_blas_thread():  # the same bits for any number of threads
        if n <= SMALL:
            vector = np.linalg.eigh(scaled.toarray())[1][:, -2]
        else:
            start = np.cos(np.arange(n))
            vector = eigsh(scaled, k=2, which="LA", v0=start, tol=1e-6, maxiter=20 * n)[1][:, 0]
    vector = vector / root
    return np.asarray(vector * (np.sign(vector[np.abs(vector).argmax()]) or 1.0))


def _no_cut(weight: float, bounds: Bounds) -> ParameterError:
    return ParameterError(
        f"Cluster sizes: {weight:,.10g} rows cannot be cut into parts of {bounds.low:,.10g} to {bounds.high:,.10g}: "
        "signatures and equal rows stay together. Widen the limits, or raise n_signatures."
    )
