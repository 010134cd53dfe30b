"""Graphs that tests share, in rows: (indptr, indices, weights)."""

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.datasets import make_blobs, make_circles, make_moons
from sklearn.neighbors import NearestNeighbors

Graph = tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float64]]

# Zachary's karate club: each member's friends of higher number.
KARATE = {
    0: [1, 2, 3, 4, 5, 6, 7, 8, 10, 11, 12, 13, 17, 19, 21, 31], 1: [2, 3, 7, 13, 17, 19, 21, 30],
    2: [3, 7, 8, 9, 13, 27, 28, 32], 3: [7, 12, 13], 4: [6, 10], 5: [6, 10, 16], 6: [16], 8: [30, 32, 33],
    9: [33], 13: [33], 14: [32, 33], 15: [32, 33], 18: [32, 33], 19: [33], 20: [32, 33], 22: [32, 33],
    23: [25, 27, 29, 32, 33], 24: [25, 27, 31], 25: [31], 26: [29, 33], 27: [33], 28: [31, 33], 29: [32, 33],
    30: [32, 33], 31: [32, 33], 32: [33],
}  # fmt: skip


def in_rows(matrix: sp.sparray) -> Graph:
    rows = sp.csr_array(matrix)
    rows.sum_duplicates()
    rows.eliminate_zeros()
    return rows.indptr.astype(np.int64), rows.indices.astype(np.int32), rows.data.astype(np.float64)


def as_matrix(graph: Graph) -> sp.csr_array:
    indptr, indices, weights = graph
    return sp.csr_array((weights, indices, indptr), shape=(len(indptr) - 1, len(indptr) - 1))


def from_edges(n: int, i: NDArray[np.integer], j: NDArray[np.integer], weights: NDArray[np.floating]) -> Graph:
    one_way = sp.coo_array((weights, (i, j)), shape=(n, n)).tocsr()
    return in_rows(one_way + one_way.T)


def neighbours(X: NDArray[np.floating], m: int) -> sp.csr_array:
    """The 0/1 matrix of each row's m nearest rows, itself among them."""
    n = len(X)
    near = NearestNeighbors(n_neighbors=m).fit(X).kneighbors(X, return_distance=False)
    return sp.csr_array((np.ones(n * m), (np.repeat(np.arange(n), m), near.ravel())), shape=(n, n))


def shared_rows_graph(X: NDArray[np.floating], m: int = 10) -> Graph:
    B = neighbours(X, m)
    W = sp.csr_array(B.T @ B)
    W.setdiag(0)
    return in_rows(W)


def neighbour_graph(X: NDArray[np.floating], m: int = 10) -> Graph:
    B = neighbours(X, m)
    B.setdiag(0)
    return in_rows(B + B.T)


def random_graph(n: int, edges: int, seed: int, heaviest: int = 1) -> Graph:
    rng = np.random.default_rng(seed)
    i, j = rng.integers(0, n, (2, edges))
    apart = i != j
    return from_edges(n, i[apart], j[apart], rng.integers(1, heaviest + 1, apart.sum()).astype(float))


def ring_of_cliques(cliques: int, size: int) -> Graph:
    first = size * np.arange(cliques)
    bridges = sp.coo_array((np.ones(cliques), (first, np.roll(first, -1) + 1)), shape=(cliques * size,) * 2).tocsr()
    return in_rows(sp.kron(sp.eye_array(cliques), np.ones((size, size)) - np.eye(size)) + bridges + bridges.T)


def grid(side: int) -> Graph:
    line = sp.diags_array([np.ones(side - 1), np.ones(side - 1)], offsets=[-1, 1])
    return in_rows(sp.kron(line, sp.eye_array(side)) + sp.kron(sp.eye_array(side), line))


def karate_club() -> Graph:
    i, j = np.array([(i, j) for i, friends in KARATE.items() for j in friends]).T
    return from_edges(34, i, j, np.ones(len(i)))


def shapes(n: int, seed: int) -> NDArray[np.float64]:
    """Two moons beside seven clouds."""
    moons, _ = make_moons(n // 2, noise=0.06, random_state=seed)
    clouds, _ = make_blobs(n - n // 2, centers=7, cluster_std=0.6, random_state=seed)
    return np.concatenate([moons, clouds * 0.3 + [3, 0]])


def battery() -> dict[str, Graph]:
    rng = np.random.default_rng(0)
    return {
        "shapes": shared_rows_graph(shapes(1000, 0)),
        "more shapes": shared_rows_graph(shapes(2000, 1)),
        "circles": shared_rows_graph(make_circles(800, noise=0.03, factor=0.5, random_state=0)[0]),
        "square": shared_rows_graph(rng.random((1000, 2))),
        "one cloud": shared_rows_graph(rng.normal(size=(800, 10))),
        "clouds of 16 columns": shared_rows_graph(make_blobs(1500, 16, centers=30, random_state=0)[0]),
        "clouds that overlap": shared_rows_graph(make_blobs(1000, 50, centers=8, cluster_std=6, random_state=0)[0], 15),
        "neighbours": neighbour_graph(shapes(1000, 2)),
        "random": random_graph(500, 2000, seed=0),
        "random, weighted": random_graph(500, 2500, seed=1, heaviest=9),
        "random, isolated nodes": random_graph(500, 500, seed=2),
        "ring of cliques": ring_of_cliques(30, 6),
        "karate club": karate_club(),
        "grid": grid(25),
    }
