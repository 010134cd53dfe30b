"""Graphs made of rows and of other graphs: the native core and its twin are one."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dc2.core import graph_reference as reference
from dc2.graph.neighbor_graph import shared_rows_graph
from support.graph_data import as_matrix

native = pytest.importorskip("dc2.core._native")


@st.composite
def near_lists(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, int]:
    """Rows with their nearest nodes, none twice in a row, and weights, of which some may be 0."""
    n_nodes = draw(st.integers(1, 30))
    n_rows, m = draw(st.integers(0, 40)), draw(st.integers(1, n_nodes))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    near = np.argsort(rng.random((n_rows, n_nodes)), axis=1)[:, :m].astype(np.int32)
    return near, rng.integers(0, draw(st.sampled_from([2, 5, 2**20])), n_rows).astype(float), n_nodes


def same(ours, theirs) -> bool:
    return all(a.dtype == b.dtype and a.tolist() == b.tolist() for a, b in zip(ours, theirs, strict=True))


@given(rows=near_lists())
@settings(max_examples=200, deadline=None)
def test_both_cores_connect_the_same_nodes(rows):
    ours = native.count_shared_rows(*rows)
    assert same(ours, reference.count_shared_rows(*rows))
    near, weights, n_nodes = rows
    is_near = np.zeros((len(near), n_nodes))
    np.put_along_axis(is_near, near, 1.0, axis=1)
    expected = is_near.T @ (weights[:, None] * is_near)
    np.fill_diagonal(expected, 0.0)
    assert as_matrix(ours).toarray().tolist() == expected.tolist()
    assert (ours[2] > 0).all()


@given(rows=near_lists(), seed=st.integers(0, 2**32))
@settings(max_examples=200, deadline=None)
def test_both_cores_join_the_same_nodes(rows, seed):
    graph = native.count_shared_rows(*rows)
    n_communities = np.random.default_rng(seed).integers(1, rows[2] + 1)
    labels = np.random.default_rng(seed).integers(0, n_communities, rows[2]).astype(np.int32)
    ours = native.join_nodes(native.Graph(*graph), labels, n_communities)
    assert same(ours, reference.join_nodes(reference.Graph(*graph), labels, n_communities))
    assert ours[2].sum() == graph[2].sum()
    native.Graph(*ours)  # is one, too


@given(rows=near_lists(), seed=st.integers(0, 2**32))
@settings(max_examples=200, deadline=None)
def test_rows_near_parts_connect_these_as_their_nodes_are_connected(rows, seed):
    near, weights, n_nodes = rows
    part = np.random.default_rng(seed).integers(0, 5, n_nodes).astype(np.int32)
    part = np.unique(part, return_inverse=True)[1].astype(np.int32)
    joined = native.join_nodes(native.Graph(*native.count_shared_rows(*rows)), part, int(part.max()) + 1)
    for module in (native, reference):
        assert same(module.count_shared_rows(part[near], weights, len(joined[0]) - 1), joined)
    assert same(native.count_shared_rows(part[near], weights, len(joined[0]) - 1, 4), joined)


@given(rows=near_lists(), seed=st.integers(0, 2**32))
@settings(max_examples=200, deadline=None)
def test_both_cores_find_the_same_borders(rows, seed):
    graph, rng = native.count_shared_rows(*rows), np.random.default_rng(seed)
    n_communities = rng.integers(1, rows[2] + 1)
    labels = rng.integers(0, n_communities, rows[2]).astype(np.int32)
    sparsity, within = rng.normal(size=rows[2]), rng.normal(size=n_communities)
    leaving = [module.leaving_edges(module.Graph(*graph), labels) for module in (native, reference)]
    assert same([leaving[0]], [leaving[1]])
    ours, theirs = (
        module.borders(module.Graph(*graph), labels, n_communities, sparsity, within) for module in (native, reference)
    )
    assert same(ours, theirs)
    matrix = as_matrix(graph).toarray()
    assert leaving[0].tolist() == (matrix * (labels[:, None] != labels)).sum(axis=1).tolist()
    between = np.zeros((n_communities, n_communities))
    np.add.at(between, (labels[:, None], labels), matrix)
    assert list(zip(*ours[:2], strict=True)) == list(zip(*np.nonzero(np.triu(between, 1)), strict=True))


@pytest.mark.parametrize(
    ("near", "weights", "n_nodes", "says"),
    [
        ([[0, 3]], [1.0], 3, "near"),
        ([[0, -1]], [1.0], 3, "near"),
        ([[0, 1]], [1.0, 2.0], 3, "weights"),
        ([[0, 1]], [1.0], -1, "n_nodes"),
    ],
)
def test_rows_near_no_node_are_refused(near, weights, n_nodes, says):
    with pytest.raises(ValueError, match=says):
        native.count_shared_rows(np.array(near, np.int32), np.array(weights), n_nodes)


@pytest.mark.parametrize(("labels", "n_communities"), [([0, 2], 2), ([0, -1], 2), ([0], 1), ([0, 0], 3)])
def test_labels_of_no_community_are_refused(labels, n_communities):
    graph = native.Graph(np.array([0, 1, 2]), np.array([1, 0], np.int32), np.ones(2))
    with pytest.raises(ValueError, match=r"labels|communities"):
        native.join_nodes(graph, np.array(labels, np.int32), n_communities)


def test_a_graph_that_only_seems_symmetric_writes_nowhere_else():
    # Weights at which the sums that look for a difference cancel out.
    indptr, indices = np.array([0, 1, 1, 1, 2]), np.array([1, 2], np.int32)
    try:
        graph = native.Graph(indptr, indices, np.array([1442594464.0, 3259714464.0]))
    except ValueError:
        return
    with pytest.raises(ValueError, match="both directions"):
        native.join_nodes(graph, np.arange(4, dtype=np.int32), 4)


def test_arrays_of_a_checked_graph_cannot_be_changed():
    graph = shared_rows_graph(np.array([[0, 1], [1, 2], [2, 0]], np.int32), None, 3)
    for array in (graph.indptr, graph.indices, graph.weights):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 5
