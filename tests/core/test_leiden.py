"""Leiden's algorithm: the native core and its twin are one, communities are connected, and nobody finds better ones."""

import random
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import connected_components

from dc2 import core
from dc2.core import graph_reference as reference
from dc2.graph.neighbor_graph import SharedRowsGraph
from dc2.graph.resolutions import Search, small_parts
from support.graph_data import (
    Graph,
    as_matrix,
    battery,
    from_edges,
    grid,
    random_graph,
    ring_of_cliques,
    shapes,
    shared_rows_graph,
)

native = pytest.importorskip("dc2.core._native")

SEEDS = st.integers(0, 2**64 - 1)
RESOLUTIONS = st.sampled_from([0.0, 0.002, 0.1, 0.5, 1.0, 2.0, 6.0, 1e3])
ITERATIONS = st.sampled_from([-1, 0, 1, 2])


@st.composite
def graphs(draw: st.DrawFn, most_nodes: int = 40) -> Graph:
    """Small graphs with loops, edges of no weight, edges given twice, isolated nodes, light and heavy ones."""
    n = draw(st.integers(0, most_nodes))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    i, j = rng.integers(0, max(n, 1), (2, n and draw(st.integers(0, 3 * n))))
    weights = rng.integers(0, draw(st.sampled_from([2, 5, 2**40])), len(i)).astype(float)
    to, back, both = np.append(i, j), np.append(j, i), np.append(weights, weights)
    order = np.argsort(to, kind="stable")
    indptr = np.append(0, np.cumsum(np.bincount(to, minlength=n)[:n]))
    return indptr.astype(np.int64), back[order].astype(np.int32), both[order]


def start_for(graph: Graph, seed: int, kind: str) -> np.ndarray | None:
    n = len(graph[0]) - 1
    rng = np.random.default_rng(seed)
    few = {"none": 0, "one": 1, "few": 4, "many": n}[kind]
    return rng.integers(0, max(min(few, n), 1), n).astype(np.int32) if few else None


STARTS = st.sampled_from(["none", "one", "few", "many"])


@given(graph=graphs(), resolution=RESOLUTIONS, seed=SEEDS, kind=STARTS, iterations=ITERATIONS)
@settings(max_examples=300, deadline=None)
def test_both_cores_find_the_same_communities(graph, resolution, seed, kind, iterations):
    start = start_for(graph, seed, kind)
    ours = native.leiden(native.Graph(*graph), resolution, seed, start, iterations)
    theirs = reference.leiden(reference.Graph(*graph), resolution, seed, start, iterations)
    assert ours.dtype == theirs.dtype == np.int32
    assert ours.tolist() == theirs.tolist()
    assert native.modularity(native.Graph(*graph), ours, resolution) == reference.modularity(
        reference.Graph(*graph), ours, resolution
    )


@pytest.mark.parametrize("resolution", [0.05, 1.0, 4.0])
@pytest.mark.parametrize("graph", [shared_rows_graph(shapes(300, 0)), grid(12), random_graph(200, 700, 0, heaviest=3)])
def test_both_cores_find_the_same_communities_on_several_levels(graph, resolution):
    ours = native.leiden(native.Graph(*graph), resolution, 7, None, -1)
    assert ours.tolist() == reference.leiden(reference.Graph(*graph), resolution, 7, None, -1).tolist()


@given(graph=graphs(), resolution=RESOLUTIONS, seed=SEEDS, kind=STARTS, iterations=ITERATIONS)
@settings(deadline=None)
def test_every_community_is_connected_and_labels_are_numbered_by_first_appearance(
    graph, resolution, seed, kind, iterations
):
    labels = native.leiden(native.Graph(*graph), resolution, seed, start_for(graph, seed, kind), iterations)
    values, first = np.unique(labels, return_index=True)
    assert values.tolist() == list(range(len(values)))
    assert (np.diff(first) > 0).all()
    matrix = as_matrix(graph)
    for label in values:
        members = labels == label
        assert connected_components(matrix[members][:, members], return_labels=False) == 1


@given(graph=graphs(), resolution=RESOLUTIONS, seed=SEEDS, kind=STARTS, iterations=ITERATIONS)
@settings(deadline=None)
def test_modularity_is_never_below_that_of_the_start(graph, resolution, seed, kind, iterations):
    start = start_for(graph, seed, kind)
    labels = native.leiden(native.Graph(*graph), resolution, seed, start, iterations)
    before = np.arange(len(labels), dtype=np.int32) if start is None else start
    gained = native.modularity(native.Graph(*graph), labels, resolution) - native.modularity(
        native.Graph(*graph), before, resolution
    )
    assert gained >= -1e-12 * max(resolution, 1)


@given(graph=graphs(), resolution=st.sampled_from([0.1, 1.0, 2.0]), seed=SEEDS)
@settings(deadline=None)
def test_what_has_converged_is_its_own_answer_or_gets_better(graph, resolution, seed):
    once = native.leiden(native.Graph(*graph), resolution, seed, None, -1)
    again = native.leiden(native.Graph(*graph), resolution, seed + 1 & 2**64 - 1, once, -1)
    gained = native.modularity(native.Graph(*graph), again, resolution) - native.modularity(
        native.Graph(*graph), once, resolution
    )
    assert gained >= -1e-12
    if gained < 1e-12:
        assert again.tolist() == once.tolist()


@given(graph=graphs(), seed=SEEDS)
@settings(deadline=None)
def test_modularity_is_what_its_formula_says(graph, seed):
    matrix = as_matrix(graph).toarray()
    labels = start_for(graph, seed, "few")
    same = labels[:, None] == labels
    total = matrix.sum()
    strength = matrix.sum(axis=1)
    expected = (same * (matrix - 0.7 * np.outer(strength, strength) / total)).sum() / total if total else 0.0
    for module in (native, reference):
        assert module.modularity(module.Graph(*graph), labels, 0.7) == pytest.approx(expected, abs=1e-12)


def test_loops_count_once_so_a_graph_of_communities_has_the_modularity_of_their_nodes():
    graph = random_graph(60, 200, seed=0, heaviest=5)
    labels = native.leiden(native.Graph(*graph), 1.0, 0, None, -1)
    indicator = np.eye(labels.max() + 1)[labels]
    merged = indicator.T @ as_matrix(graph).toarray() @ indicator
    i, j = np.nonzero(np.ones_like(merged))
    k = len(merged)
    communities = (k * np.arange(k + 1), j.astype(np.int32), merged[i, j])
    alone = np.arange(k, dtype=np.int32)
    assert native.modularity(native.Graph(*communities), alone, 1.0) == pytest.approx(
        native.modularity(native.Graph(*graph), labels, 1.0)
    )
    assert native.leiden(native.Graph(*communities), 1.0, 0, None, -1).tolist() == alone.tolist()


def test_a_ring_of_cliques_falls_into_its_cliques():
    labels = core.leiden(core.Graph(*ring_of_cliques(12, 5)), 1.0, 0, None, -1)
    assert labels.tolist() == np.repeat(np.arange(12), 5).tolist()


def test_disconnected_parts_of_a_graph_are_never_one_community():
    graph = from_edges(6, np.array([0, 1]), np.array([2, 3]), np.ones(2))
    for resolution in (0.0, 1e-9, 1.0):
        assert core.leiden(core.Graph(*graph), resolution, 0, np.zeros(6, np.int32), -1).tolist() == [
            0,
            1,
            0,
            1,
            2,
            3,
        ]


@pytest.mark.parametrize("module", [native, reference])
@pytest.mark.parametrize("n", [0, 1, 3])
def test_graphs_without_edges_are_ordinary(module, n):
    graph = (np.zeros(n + 1, np.int64), np.zeros(0, np.int32), np.zeros(0))
    labels = module.leiden(module.Graph(*graph), 1.0, 0, None, -1)
    assert labels.tolist() == list(range(n))
    assert module.modularity(module.Graph(*graph), labels, 1.0) == 0.0


def test_threads_find_the_same_communities():
    graph = shared_rows_graph(shapes(1500, 3))
    jobs = [(resolution, seed) for resolution in (0.01, 0.3, 3.0) for seed in range(4)]
    alone = [native.leiden(native.Graph(*graph), *job, None, -1).tolist() for job in jobs]
    with ThreadPoolExecutor(4) as pool:
        together = pool.map(lambda job: native.leiden(native.Graph(*graph), *job, None, -1).tolist(), jobs)
    assert list(together) == alone


@pytest.mark.parametrize("points", [shapes(2000, 4), shapes(1000, 5)])
def test_a_search_by_small_parts_loses_next_to_nothing(points):
    graph = shared_rows_graph(points)
    whole = SharedRowsGraph(*graph, np.zeros((1, 1), np.int32), np.ones(1))
    search = Search.of(whole, small_parts(whole, 0), 0)
    resolutions = np.geomspace(0.002, 4, 16)
    by_parts = [search.communities(resolution) for resolution in resolutions]
    alone = [native.leiden(native.Graph(*graph), resolution, 0, None, 3) for resolution in resolutions]
    ours, theirs = (
        np.array([native.modularity(native.Graph(*graph), *found) for found in zip(labels, resolutions, strict=True)])
        for labels in (by_parts, alone)
    )
    assert np.mean(ours / theirs) > 0.999
    assert np.min(ours / theirs) > 0.985


PATH = (np.array([0, 1, 3, 4]), np.array([1, 0, 2, 1], np.int32), np.ones(4))


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"indptr": np.zeros(0, np.int64)}, "indptr"),
        ({"indptr": np.array([0, 3, 1, 4])}, "indptr"),
        ({"indptr": np.array([0, 1, 3, 5])}, "indptr"),
        ({"indptr": np.array([1, 1, 3, 4])}, "indptr"),
        ({"indptr": np.array([0, -1, 3, 4])}, "indptr"),
        ({"indptr": np.array([0, 2**62, 3, 4])}, "indptr"),
        ({"indices": np.array([1, 0, 3, 1], np.int32)}, "indices"),
        ({"indices": np.array([1, 0, -1, 1], np.int32)}, "indices"),
        ({"indices": np.array([1, 0, 2], np.int32)}, "indices and weights"),
        ({"indices": np.array([1, 0, 0, 1], np.int32)}, "both directions"),
        ({"weights": np.array([1.0, 1.0, 1.0, 2.0])}, "both directions"),
        ({"weights": np.array([1.0, 1.0, np.nan, np.nan])}, "weights"),
        ({"weights": np.array([1.0, 1.0, np.inf, np.inf])}, "weights"),
        ({"weights": np.array([1.0, 1.0, -1.0, -1.0])}, "weights"),
        ({"weights": np.array([1.0, 1.0, 0.5, 0.5])}, "whole"),
        ({"weights": np.array([1.0, 1.0, 2.0**53, 2.0**53])}, "2\\^53"),
        ({"resolution": -1.0}, "resolution"),
        ({"resolution": np.nan}, "resolution"),
        ({"resolution": np.inf}, "resolution"),
        ({"start": np.array([0, 1, 3], np.int32)}, "labels"),
        ({"start": np.array([0, 1, -1], np.int32)}, "labels"),
        ({"start": np.array([0, 1], np.int32)}, "labels"),
        ({"iterations": -2}, "iterations"),
    ],
)
def test_arrays_that_are_no_graph_are_refused(wrong, says):
    right = dict(zip(("indptr", "indices", "weights"), PATH, strict=True))
    options = {"resolution": 1.0, "seed": 0, "start": None, "iterations": -1}
    assert native.leiden(native.Graph(**right), **options).tolist() == [0, 0, 0]
    with pytest.raises(ValueError, match=says):
        native.leiden(
            native.Graph(**{name: wrong.get(name, array) for name, array in right.items()}),
            **{name: wrong.get(name, option) for name, option in options.items()},
        )


# --- others ---------------------------------------------------------------------------------------------------------

BATTERY = battery()
BATTERY_RESOLUTIONS = (0.002, 0.03, 0.3, 1.0, 2.0, 6.0)


def igraph_communities(graph: Graph, resolution: float, iterations: int) -> np.ndarray:
    igraph = pytest.importorskip("igraph")
    matrix = as_matrix(graph).tocoo()
    once = matrix.row < matrix.col
    theirs = igraph.Graph(n=matrix.shape[0], edges=np.stack([matrix.row, matrix.col])[:, once].T.tolist())
    igraph.set_random_number_generator(random.Random(0))
    found = theirs.community_leiden(
        "modularity", weights=matrix.data[once].tolist(), resolution=resolution, n_iterations=iterations
    )
    return np.array(found.membership, np.int32)


def scikit_network_communities(graph: Graph, resolution: float) -> np.ndarray:
    clustering = pytest.importorskip("sknetwork.clustering")
    indptr, indices, weights = graph
    matrix = csr_matrix((weights, indices, indptr.astype(np.int32)))
    # Not its Leiden, whose refinement now and then does not end.
    return clustering.Louvain(resolution=resolution, random_state=0).fit_predict(matrix).astype(np.int32)


@pytest.mark.parametrize("resolution", BATTERY_RESOLUTIONS)
@pytest.mark.parametrize("name", BATTERY)
def test_nobody_finds_communities_of_clearly_larger_modularity(name, resolution):
    graph = BATTERY[name]
    ours = native.modularity(
        native.Graph(*graph), native.leiden(native.Graph(*graph), resolution, 0, None, -1), resolution
    )
    others = {
        "igraph, 4 iterations": igraph_communities(graph, resolution, 4),
        "igraph": igraph_communities(graph, resolution, -1),
        "scikit-network": scikit_network_communities(graph, resolution),
    }
    theirs = {other: native.modularity(native.Graph(*graph), labels, resolution) for other, labels in others.items()}
    best = max(theirs.values())
    assert ours >= best - 0.001 * abs(best), (ours, theirs)
