"""How good communities are, with the number of clusters given and not given: a line for each set, means for each kind.

Run ``python benchmarks/communities.py [--kind KIND] [--seed SEED] [--most ROWS]``. Sets are dealt alternately to two
halves: rules that are tuned on one can be judged on the other.
"""

from __future__ import annotations

import argparse
import time
from collections import defaultdict
from typing import Any

import numpy as np
from community_data import Set, sets
from numpy.typing import NDArray
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score
from sklearn.neighbors import NearestNeighbors

from dc2 import Compressor
from dc2.graph.communities import find_communities
from dc2.graph.n_clusters import RequestedClusters
from dc2.graph.neighbor_graph import SharedRowsGraph, neighbors_per_row, shared_rows_graph
from dc2.graph.resolutions import GraphNodes

LINE = "{:28} {:12} {:>6} {:>3} {:>5} {:>9} {:>6.3f} {:>6.3f} {:>6.3f} {:>6.3f} {:>6.2f} {:>6.2f} {:>7.2f}"
HEAD = LINE.replace(".3f", "").replace(".2f", "")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kind", help="only sets of one kind, such as shape")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--most", type=int, default=20_000, help="leave out sets with more rows")
    arguments = parser.parse_args()
    names = (
        "set",
        "kind",
        "nodes",
        "m",
        "k",
        "true",
        "ARI",
        "NMI",
        "ARI k",
        "NMI k",
        "score",
        "agree",
        "seconds",
    )
    print(HEAD.format(*names))
    outcomes: dict[tuple[str, str], list[tuple[float, float, bool]]] = defaultdict(list)
    for i, one in enumerate(sets()):
        if arguments.kind not in (None, one.kind):
            continue
        X, labellings = one.load()
        if len(X) <= arguments.most:
            half = "half A" if i % 2 == 0 else "half B"
            outcomes[one.kind, half].append(run(one, X, labellings, arguments.seed))
    for (kind, half), rows in sorted(outcomes.items()):
        found, given, exact = (np.mean(column) for column in zip(*rows, strict=True))
        print(f"{kind:12} {half} {len(rows):3} sets: k not given {found:.3f}, exact {exact:.0%}; k given {given:.3f}")


def run(one: Set, X: NDArray[Any], labellings: list[NDArray[Any]], seed: int) -> tuple[float, float, bool]:
    """Print a line, and return the ARI with k not given and given, and whether k was found."""
    graph, points, node_weights, node = nodes(one, X)
    start = time.perf_counter()
    found_in = GraphNodes(graph, points, node_weights, seed, n_threads=2)
    result = find_communities(found_in, RequestedClusters())
    seconds = time.perf_counter() - start
    numbers = [len(np.unique(y[y > 0])) for y in labellings]
    again = {k: find_communities(found_in, RequestedClusters.exactly(k), result).labels for k in set(numbers)}
    found = max(scores(result.labels[node], y) for y in labellings)
    given = max(scores(again[k][node], y) for k, y in zip(numbers, labellings, strict=True))
    verdict = result.verdict
    facts = (
        one.name,
        one.kind,
        len(points),
        graph.near.shape[1],
        result.n_clusters,
        "/".join(map(str, numbers)),
    )
    print(LINE.format(*facts, *found, *given, verdict.score, verdict.agreement, seconds), flush=True)
    return found[0], given[0], result.n_clusters in numbers


def scores(labels: NDArray[Any], truth: NDArray[Any]) -> tuple[float, float]:
    """Return ARI and NMI over rows that are not noise."""
    scored = truth > 0
    return adjusted_rand_score(truth[scored], labels[scored]), normalized_mutual_info_score(
        truth[scored], labels[scored]
    )


def nodes(one: Set, X: NDArray[Any]) -> tuple[SharedRowsGraph, NDArray[Any], NDArray[np.float64], NDArray[Any]]:
    """Return the neighbour graph, the points and weights of its nodes, and each row's node."""
    if one.signatures:
        router = Compressor(one.signatures, populate="nearest", refine=2, random_state=0).fit(X).router_
        m = neighbors_per_row(len(router.centres), len(X) / len(router.centres), X.shape[1])
        near = router.nearest_few(X, m)[0]
        node_weights = np.bincount(near[:, 0], minlength=len(router.centres)).astype(np.float64)
        return shared_rows_graph(near, None, len(node_weights)), router.centres, node_weights, near[:, 0]
    points, node, counts = np.unique(X, axis=0, return_inverse=True, return_counts=True)
    m = neighbors_per_row(len(points), 1, X.shape[1])
    near = NearestNeighbors(n_neighbors=m).fit(points).kneighbors(points, return_distance=False)
    near = own_first(near.astype(np.int32))
    node_weights = counts.astype(np.float64)
    return shared_rows_graph(near, node_weights, len(points)), points, node_weights, node.ravel()


def own_first(near: NDArray[np.int32]) -> NDArray[np.int32]:
    """Put each row first among its own nearest; if rounding has left it out, it replaces the last."""
    own = np.arange(len(near), dtype=np.int32)[:, None]
    lost = (near != own).all(axis=1)
    near[lost, -1] = own[lost, 0]
    return np.take_along_axis(near, np.argsort(near != own, axis=1, kind="stable"), axis=1)


if __name__ == "__main__":
    main()
