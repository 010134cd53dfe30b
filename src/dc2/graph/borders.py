"""Borders through clouds: moved to where the Gaussians of the clusters on both sides are equally likely.

The graph finds the gaps between clusters. Where clusters overlap there is no gap, and which of many equally good cuts
the graph prefers depends on chance. The place where two Gaussians, fitted to the clusters, are equally likely depends
on all nodes of both, and is the better border. Where clusters are no clouds, such borders run across gaps and along
curves, and many more edges cross them; then the graph's own borders stay.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dc2.graph.neighbor_graph import SharedRowsGraph
from dc2.graph.resolutions import GraphNodes, edges_between

# Partitions whose normalised cuts differ by no more than this factor are equally good to the graph.
EQUALLY_GOOD = 1.7
ROUNDS, SETTLED = 100, 1e-4  # of expectation maximisation; the gain in log likelihood per node that ends it
MOST_RIVALS = 8  # clusters, besides its own, that a node may move to: those most connected to its own
LEAST_SPREAD = 1e-3  # of a direction, as a share of the mean one
MOST_COLUMNS = 32  # in many, fitting is slow, and such borders made clusters worse


def clouds_apart(nodes: GraphNodes, labels: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return clusters with borders between Gaussians, if the graph finds these about as good; else the given ones.

    Gaussians are fitted only if rows have coordinates, in at most 32 columns, and if each cluster has, on average, more
    nodes than a Gaussian has numbers.

    Parameters
    ----------
    nodes : Nodes
    labels : ndarray of shape (n_nodes,), int32
        Clusters, counted from 0 without gaps.
    """
    n_clusters, width = int(labels.max()) + 1, nodes.points.shape[1]
    numbers = (width + 1) * (width + 2) // 2
    has_few_columns = nodes.graph.lengths is None and width <= MOST_COLUMNS
    if n_clusters == 1 or not has_few_columns or len(labels) < n_clusters * numbers:
        return labels
    cut = normalised_cut(nodes.graph, labels)
    if cut == 0:
        return labels
    node_weights = nodes.node_weights / nodes.node_weights.mean()
    moved = _Mixture.of(nodes, node_weights, labels).settled()
    if len(np.unique(moved[node_weights > 0])) < n_clusters or normalised_cut(nodes.graph, moved) > EQUALLY_GOOD * cut:
        return labels
    return moved


def normalised_cut(graph: SharedRowsGraph, labels: NDArray[np.int32]) -> float:
    """Return the sum over clusters of the share of their edges that leave them."""
    n_clusters = int(labels.max()) + 1
    inside = edges_between(graph, labels, n_clusters).diagonal()
    volumes = np.bincount(labels, graph.volumes, minlength=n_clusters)
    return float((1 - inside / np.maximum(volumes, 1.0))[volumes > 0].sum())


@dataclass(frozen=True, eq=False)
class _Mixture:
    """Pairs of a node and a cluster that it may belong to, sorted by cluster, and the points."""

    points: NDArray[Any]
    node_weights: NDArray[np.float64]
    labels: NDArray[np.int32]
    node: NDArray[np.int64]
    starts: NDArray[np.int64]

    @classmethod
    def of(cls, nodes: GraphNodes, node_weights: NDArray[np.float64], labels: NDArray[np.int32]) -> _Mixture:
        """Let each node move to the clusters that are most connected to its own."""
        rivals = _rivals(nodes.graph, labels)
        order = np.argsort(labels, kind="stable")
        members = np.split(order, np.cumsum(np.bincount(labels))[:-1])
        node = [np.sort(np.concatenate([members[one] for one in with_it])) for with_it in rivals]
        starts = np.concatenate([[0], np.cumsum([len(some) for some in node])])
        points = nodes.points.astype(np.float64) / max(
            float(np.abs(nodes.points).max()), np.finfo(np.float64).tiny
        )  # squares stay finite
        return cls(points - points.mean(axis=0), node_weights, labels, np.concatenate(node), starts)

    def settled(self) -> NDArray[np.int32]:
        """Return each node's likeliest cluster when expectation maximisation has converged."""
        cluster = np.repeat(np.arange(len(self.starts) - 1, dtype=np.int32), np.diff(self.starts))
        belongs = (self.labels[self.node] == cluster).astype(np.float64)
        before = -np.inf
        for _ in range(ROUNDS):
            logs = self._log_densities(belongs)
            best = np.full(len(self.points), -np.inf)
            np.maximum.at(best, self.node, logs)
            belongs = np.exp(logs - best[self.node])
            total = np.bincount(self.node, belongs)
            belongs /= total[self.node]
            likelihood = float(self.node_weights @ (best + np.log(total)) / self.node_weights.sum())
            if likelihood - before < SETTLED:
                break
            before = likelihood
        order = np.lexsort((cluster, -logs, self.node))
        first = np.unique(self.node[order], return_index=True)[1]
        answer: NDArray[np.int32] = cluster[order][first]
        return answer

    def _log_densities(self, belongs: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the log density of each pair's cluster at its node, after fitting Gaussians to shares of nodes.

        Covariances are drawn towards their mean, as if that came from as many more nodes as there are columns and two.
        """
        shares = belongs * self.node_weights[self.node]
        width = self.points.shape[1]
        spans = [slice(a, b) for a, b in zip(self.starts[:-1], self.starts[1:], strict=True)]
        weights = np.array([shares[span].sum() for span in spans])
        weights = np.maximum(weights, np.finfo(np.float64).tiny)
        off, scatter = [], np.empty((len(spans), width, width))
        for i, span in enumerate(spans):
            points = self.points[self.node[span]]
            centre = np.einsum("n,ni->i", shares[span], points) / weights[i]
            off.append(points - centre)
            scatter[i] = np.einsum("ni,nj->ij", off[i] * shares[span][:, None], off[i])
        pooled = scatter.sum(axis=0) / weights.sum()
        pooled += np.eye(width) * max(np.trace(pooled) / width * LEAST_SPREAD, np.finfo(np.float64).tiny)
        extra = width + 2
        logs = np.empty(len(self.node))
        for i, span in enumerate(spans):
            factor = np.linalg.cholesky((scatter[i] + extra * pooled) / (weights[i] + extra))
            scaled = np.einsum("ni,ji->nj", off[i], np.linalg.inv(factor))
            squared = np.einsum("ni,ni->n", scaled, scaled)
            logs[span] = np.log(weights[i] / weights.sum()) - np.log(np.diag(factor)).sum() - squared / 2
        return logs


def _rivals(graph: SharedRowsGraph, labels: NDArray[np.int32]) -> list[NDArray[np.intp]]:
    """Return for each cluster those whose nodes may move to it, itself among them."""
    n_clusters = int(labels.max()) + 1
    edges = edges_between(graph, labels, n_clusters).tocoo()
    order = np.lexsort((edges.col, -edges.data, edges.row != edges.col, edges.row))
    own, other = edges.row[order], edges.col[order]
    rank = np.arange(len(own)) - np.searchsorted(own, own)
    kept = (own != other) & (rank <= MOST_RIVALS)
    source = np.concatenate([np.arange(n_clusters), own[kept]])
    target = np.concatenate([np.arange(n_clusters), other[kept]])
    order = np.lexsort((source, target))
    return np.split(source[order], np.cumsum(np.bincount(target, minlength=n_clusters))[:-1])
