"""Leiden's algorithm, slow and obvious: the definition of truth for `native/leiden.cpp`.

Communities of large modularity (Traag, Waltman, van Eck, "From Louvain to Leiden", 2019): nodes move to better
communities, communities are divided into well connected parts, parts become the nodes of a smaller graph, which is
improved in turn.

Graphs are those of `graph_reference.py`. The strength of a node is the plain sum of its row: an entry of the diagonal
counts once. Where nodes become one, all entries among them, in both directions, add up on the
diagonal, so strengths and their total stay what they are. Every gain is computed by the same few operations in the same
order, equal gains are decided by the smaller number, and every draw is a hash of (seed, counter): the same labels
everywhere.
"""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array

from dc2.core.reference import hash_at, hash_rows, running_sum


class Graph(NamedTuple):
    """A graph in compressed sparse rows; the native core checks it once, when it is constructed."""

    indptr: NDArray[np.int64]
    indices: NDArray[np.int32]
    weights: NDArray[np.float64]


def count_shared_rows(near: NDArray[np.int32], weights: NDArray[np.float64], n_nodes: int, n_threads: int = 1) -> Graph:
    """Connect any two nodes by the summed weight of the rows that are near both.

    A node that comes twice in a row of `near`, as parts of nodes may, counts twice, and is connected with itself; no
    edges have weight 0.
    """
    n_rows, m = near.shape
    starts = np.arange(0, near.size + 1, m)
    ones = csr_array((np.ones(near.size), near.ravel(), starts), shape=(n_rows, n_nodes))
    weighed = csr_array((np.repeat(weights, m), near.ravel(), starts), shape=(n_rows, n_nodes))
    product = (ones.T @ weighed).tocoo()
    loops = np.bincount(near.ravel(), np.repeat(weights, m), minlength=n_nodes)  # of each place with itself
    nodes = np.arange(n_nodes)
    edges = np.concatenate([product.data, -loops])
    return _in_rows(edges, np.concatenate([product.row, nodes]), np.concatenate([product.col, nodes]), n_nodes)


def join_nodes(graph: Graph, labels: NDArray[np.int32], n_communities: int) -> Graph:
    """Make one node of every community; entries inside one add up, in both directions, on the diagonal."""
    rows = np.repeat(labels, np.diff(graph.indptr))
    return _in_rows(graph.weights, rows, labels[graph.indices], n_communities)


def leaving_edges(graph: Graph, labels: NDArray[np.int32]) -> NDArray[np.float64]:
    """Return the weight of each node's edges to other communities."""
    nodes = np.repeat(np.arange(len(labels)), np.diff(graph.indptr))
    across = labels[nodes] != labels[graph.indices]
    return np.bincount(nodes[across], graph.weights[across], minlength=len(labels)).astype(np.float64, copy=False)


def borders(
    graph: Graph,
    labels: NDArray[np.int32],
    n_communities: int,
    sparsity: NDArray[np.float64],
    within: NDArray[np.float64],
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.float64], NDArray[np.float64]]:
    """Return the pairs of communities that edges connect, how closely, and how sparse it is between them.

    The closeness of an edge is its weight over the roots of both strengths, at least 1. Its rise is how much sparser
    its ends are, on average, than the inside of the sparser community. Closeness adds up, and so do rises times
    closeness.
    """
    nodes = np.repeat(np.arange(len(labels)), np.diff(graph.indptr))
    roots = 1.0 / np.sqrt(np.maximum(np.bincount(nodes, graph.weights, minlength=len(labels)), 1.0))
    across = (labels[nodes] < labels[graph.indices]) & (graph.weights > 0)
    i, j, weights = nodes[across], graph.indices[across], graph.weights[across]
    a, b = labels[i], labels[j]
    close = weights * roots[i] * roots[j]
    rise = close * ((sparsity[i] + sparsity[j]) / 2 - np.maximum(within[a], within[b]))
    pairs, pair = np.unique(a.astype(np.int64) * n_communities + b, return_inverse=True)
    first, second = (ends.astype(np.int32) for ends in np.divmod(pairs, max(n_communities, 1)))
    return first, second, *(np.bincount(pair, values, minlength=len(pairs)) * 1.0 for values in (close, rise))


def modularity(graph: Graph, labels: NDArray[np.int32], resolution: float) -> float:
    """Return the modularity of a partition into communities, of numbers below that of nodes."""
    n = len(labels)
    rows = np.repeat(labels, np.diff(graph.indptr))
    volumes = np.bincount(rows, graph.weights, minlength=n)
    inner = np.bincount(rows, graph.weights * (rows == labels[graph.indices]), minlength=n)
    total = volumes.sum()
    if not total > 0:
        return 0.0
    shares = volumes / total
    return float(running_sum(inner / total - resolution * shares * shares))


def _in_rows(
    weights: NDArray[np.float64], rows: NDArray[np.integer], columns: NDArray[np.integer], n_nodes: int
) -> Graph:
    matrix = coo_array((weights, (rows, columns)), shape=(n_nodes, n_nodes)).tocsr()
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    return Graph(matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32), matrix.data)


ROUNDS = 3  # on graphs of parts, which are small: rounds are cheap there and gain much
SHAKES = 2  # in a row without a gain end the search
SLACK = 2.0**-40  # gains that differ by less than this share of what they are made of are equal

Row = list[tuple[int, float]]


def leiden(
    graph: Graph, resolution: float, seed: int, start: NDArray[np.int32] | None, iterations: int
) -> NDArray[np.int32]:
    """Return communities of large modularity, each connected, numbered by first appearance.

    `start` holds communities to begin with, of numbers below that of nodes; None: every node alone. `iterations` is
    their largest number; 0: nodes move, and that is all; -1: until nothing better is found. Where nothing changes any
    more, half of the best communities are taken apart, and the search goes on from there.
    """
    indptr = graph.indptr
    n = len(indptr) - 1
    entries = list(zip(graph.indices.tolist(), graph.weights.tolist(), strict=True))
    rows = [entries[indptr[i] : indptr[i + 1]] for i in range(n)]
    strengths = [sum((weight for _, weight in row), 0.0) for row in rows]
    community = list(range(n)) if start is None else start.tolist()
    level = _Level(rows, strengths, _renumbered(community))
    search = _Search(resolution, sum(strengths, 0.0) or 1.0, seed)
    best: list[int] = []
    best_quality = -np.inf

    def keep_better() -> bool:
        nonlocal best, best_quality
        quality = modularity(graph, np.array(level.community, np.int32), resolution)
        better = quality > best_quality + (1.0 + resolution) * SLACK
        if better:
            best, best_quality = level.community, quality
        return better

    in_vain, done = -1, 0  # what is found first is no shake
    while done != iterations and in_vain < SHAKES:
        done += 1
        improved = search.improve(level, rounds=1)
        if _split(level) or improved:
            continue
        in_vain = 0 if keep_better() else in_vain + 1
        level.community = search.shaken(best)
    if in_vain < SHAKES:  # the last parts have moved, and nodes have not followed yet
        search.move_nodes(level)
        _split(level)
        if not best:
            best = level.community
        else:
            keep_better()
    return np.array(best, np.int32)


@dataclass
class _Level:
    """A graph and its communities."""

    rows: list[Row]
    strength: list[float]
    community: list[int]


@dataclass
class _Search:
    resolution: float
    total: float
    seed: int
    steps: int = field(default=0, init=False)

    def improve(self, here: _Level, rounds: int) -> bool:
        """Move nodes, make nodes of the parts of communities, improve those in turn; return whether any moved."""
        changed, again = False, True
        while again and rounds > 0:
            rounds -= 1
            moved = self.move_nodes(here)
            changed |= moved
            here.community = _renumbered(here.community)
            if len(set(here.community)) == len(here.rows):
                break
            part = _renumbered(self.refine(here))
            if len(set(part)) == len(here.rows):  # refinement found nothing to join
                part = here.community
            above = _aggregated(here, part)
            improved = self.improve(above, ROUNDS)
            here.community = [above.community[p] for p in part]
            changed |= improved
            again = moved or improved
        return changed

    def move_nodes(self, here: _Level) -> bool:
        """Move nodes, in random order, to the community of largest gain, until none has a better one."""
        n = len(here.rows)
        community = here.community
        volume, size = _volumes(here), [community.count(c) for c in range(n)]
        empty = [c for c in reversed(range(n)) if size[c] == 0]
        order, _ = self.shuffled(n)
        queue, waiting = deque(order), set(order)
        moved = False
        while queue:
            i = queue.popleft()
            waiting.remove(i)
            old, new = community[i], self.best_community(here, i, volume, empty)
            if new == old:
                continue
            moved = True
            volume[old] -= here.strength[i]
            volume[new] += here.strength[i]
            size[new] += 1
            if size[new] == 1:
                empty.pop()
            size[old] -= 1
            if size[old] == 0:
                empty.append(old)
            community[i] = new
            for j, _ in here.rows[i]:
                if j not in waiting and community[j] != new:
                    waiting.add(j)
                    queue.append(j)
        return moved

    def best_community(self, here: _Level, i: int, volume: list[float], empty: list[int]) -> int:
        """Return the community with the largest gain for a node; an empty one if it is better off alone."""
        weights_to = _summed_weights((here.community[j], weight) for j, weight in here.rows[i] if j != i)
        own, strength = here.community[i], here.strength[i]
        pull = self.pull(strength)
        stay = weights_to.pop(own, 0.0) - pull * (volume[own] - strength)
        best, best_gain = -1, 0.0  # alone
        for c, weight in weights_to.items():
            gain = weight - pull * volume[c]
            if gain > best_gain or (gain == best_gain and c < best):
                best, best_gain = c, gain
        if not best_gain > stay + strength * (1.0 + self.resolution) * SLACK:
            return own
        return best if best >= 0 else empty[-1]

    def refine(self, here: _Level) -> list[int]:
        """Divide communities into well connected parts; return each node's part, known by the node that it began with.

        Nodes, in random order, that are still alone join a part of their community, more likely one of large gain.
        """
        n = len(here.rows)
        community = here.community
        community_volume = _volumes(here)
        part = list(range(n))
        size, volume = [1] * n, list(here.strength)
        inner = [[(j, w) for j, w in here.rows[i] if j != i and community[j] == community[i]] for i in range(n)]
        # The weight between each part and the rest of its community.
        cut = [sum((weight for _, weight in row), 0.0) for row in inner]

        def well_connected(p: int) -> bool:
            return cut[p] >= self.pull(volume[p]) * (community_volume[community[p]] - volume[p])

        order, stream = self.shuffled(n)
        draws = hash_rows(stream, 0, n)
        for i in order:
            if part[i] != i or size[i] != 1 or not well_connected(i):
                continue
            weights_to = _summed_weights((part[j], weight) for j, weight in inner[i])
            pull = self.pull(here.strength[i])
            best, best_key = i, 0.0
            for p, weight in weights_to.items():
                gain = weight - pull * volume[p]
                if not gain > 0 or not well_connected(p):
                    continue
                key = gain * (1.0 + _uniform(int(draws[i]), p))
                if key > best_key or (key == best_key and p < best):
                    best, best_key = p, key
            if best != i:
                part[i] = best
                size[best] += 1
                volume[best] += here.strength[i]
                cut[best] += cut[i] - 2 * weights_to[best]
        return part

    def shaken(self, community: list[int]) -> list[int]:
        """Make each node of about half of the communities, chosen at random, a community of its own."""
        alone = hash_rows(self.next_stream(), 0, len(community)) >> np.uint64(63)
        return _renumbered([-1 - i if alone[c] else c for i, c in enumerate(community)])

    def pull(self, strength: float) -> float:
        """Return the weight to each unit of volume that the null model expects of so much strength."""
        return self.resolution * strength / self.total

    def shuffled(self, n: int) -> tuple[list[int], int]:
        """Return 0..n-1 in random order, and the stream of random numbers that belongs to this step."""
        stream = self.next_stream()
        draws = hash_rows(stream, 0, n).tolist()
        order = list(range(n))
        for i in reversed(range(1, n)):
            j = ((draws[i] >> 32) * (i + 1)) >> 32
            order[i], order[j] = order[j], order[i]
        return order, stream

    def next_stream(self) -> int:
        """Return the seed of the random numbers of the next step."""
        self.steps += 1
        return int(hash_rows(self.seed, self.steps - 1, self.steps)[0])


def _uniform(stream: int, counter: int) -> float:
    return float(hash_at(stream, np.array([counter]))[0] >> np.uint64(11)) * 2.0**-53


def _summed_weights(entries: Iterable[tuple[int, float]]) -> dict[int, float]:
    """Sum weights by target, in order of first appearance."""
    sums: dict[int, float] = {}
    for to, weight in entries:
        sums[to] = sums.get(to, 0.0) + weight
    return sums


def _volumes(level: _Level) -> list[float]:
    """Return the sum of strengths in each community, as many as there are nodes."""
    volume = [0.0] * len(level.rows)
    for c, strength in zip(level.community, level.strength, strict=True):
        volume[c] += strength
    return volume


def _renumbered(labels: list[int]) -> list[int]:
    """Number labels by first appearance."""
    number: dict[int, int] = {}
    return [number.setdefault(label, len(number)) for label in labels]


def _aggregated(here: _Level, part: list[int]) -> _Level:
    """Make one node of every part; its community is that of its nodes."""
    members: list[list[int]] = [[] for _ in set(part)]
    for i, p in enumerate(part):
        members[p].append(i)
    rows = [_summed_weights((part[j], weight) for i in nodes for j, weight in here.rows[i]) for nodes in members]
    return _Level(
        rows=[list(row.items()) for row in rows],
        strength=[sum((here.strength[i] for i in nodes), 0.0) for nodes in members],
        community=[here.community[nodes[0]] for nodes in members],
    )


def _split(level: _Level) -> bool:
    """Split communities that are not connected, and number them; return whether there were any."""
    number: dict[int, int] = {}
    count = 0
    for root in range(len(level.rows)):
        if root in number:
            continue
        reached = {root}
        while reached:
            i = reached.pop()
            number[i] = count
            reached |= {
                j
                for j, weight in level.rows[i]
                if weight > 0 and level.community[j] == level.community[i] and j not in number
            }
        count += 1
    before = len(set(level.community))
    level.community = [number[i] for i in range(len(level.rows))]
    return count > before
