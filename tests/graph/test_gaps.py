"""Laws of gaps: empty space between groups is found whatever their densities; chance gaps are none."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import adjusted_rand_score
from sklearn.neighbors import NearestNeighbors

from dc2 import DC2Clustering
from dc2.graph.gaps import GapTree
from dc2.graph.neighbor_graph import shared_rows_graph
from dc2.graph.resolutions import GraphNodes


def gaps(X: np.ndarray, n_near: int = 10) -> GapTree:
    X = np.asarray(X, dtype=np.float64)
    near = NearestNeighbors(n_neighbors=n_near).fit(X).kneighbors(X, return_distance=False).astype(np.int32)
    near[:, 0] = np.arange(len(X))
    nodes = GraphNodes(shared_rows_graph(near, None, len(X)), X, np.ones(len(X)), seed=0, n_threads=1)
    return GapTree.of(nodes, X.shape[1])


def ring(draw: np.random.Generator, n: int, radius: float, noise: float) -> np.ndarray:
    turn = draw.uniform(0, 2 * np.pi, n)
    return radius * np.stack([np.cos(turn), np.sin(turn)], axis=1) + draw.normal(0, noise, (n, 2))


def rings(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw a dense ring inside a sparse one, whose rows are farther apart than the gap is wide."""
    draw = np.random.default_rng(seed)
    X = np.concatenate([ring(draw, 900, 1.0, 0.02), ring(draw, 150, 1.6, 0.02)])
    return X, np.repeat([0, 1], [900, 150])


@pytest.mark.parametrize("seed", range(3))
def test_rings_of_very_different_densities_are_two_clusters(seed):
    X, y = rings(seed)
    model = DC2Clustering(2, random_state=0).fit(X)
    assert adjusted_rand_score(y, model.labels_) == 1
    assert model.verdict_.supported


def test_signatures_show_gaps_as_rows_do():
    draw = np.random.default_rng(0)
    X = np.concatenate([ring(draw, 6000, 1.0, 0.03), ring(draw, 1500, 1.6, 0.03)])
    model = DC2Clustering(2, n_signatures=600, random_state=0).fit(X)
    assert not model.similarity_.graph.rows_are_nodes
    assert adjusted_rand_score(np.repeat([0, 1], [6000, 1500]), model.labels_) > 0.999


@settings(max_examples=20)
@given(seed=st.integers(0, 10_000), columns=st.integers(1, 6), kind=st.integers(0, 3))
def test_clouds_cubes_heavy_tails_and_rings_have_no_gaps(seed, columns, kind):
    draw = np.random.default_rng(seed)
    n = int(draw.integers(100, 600))
    X = draw.normal(size=(n, columns))
    if kind == 1:
        X = draw.uniform(size=(n, columns))
    elif kind == 2:
        X = draw.standard_t(3, size=(n, columns))
    elif kind == 3:
        X = ring(draw, n, 1.0, 0.1)
    assert gaps(X).n_groups == 1


@settings(max_examples=10)
@given(seed=st.integers(0, 1000), shift=st.floats(-1e3, 1e3), size=st.floats(0.01, 100))
def test_groups_do_not_depend_on_order_place_and_unit(seed, shift, size):
    draw = np.random.default_rng(seed)
    k = int(draw.integers(2, 5))
    y = draw.integers(k, size=300)
    X = np.column_stack([20.0 * y, np.zeros(300)]) + draw.normal(size=(300, 2))
    order = draw.permutation(300)
    found = gaps(X)
    assert found.n_groups == k
    assert adjusted_rand_score(y, found.groups(k)) == 1
    same = gaps(size * (X[order] + shift))
    assert adjusted_rand_score(y[order], same.groups(same.n_groups)) == 1


def test_groups_are_nested_and_as_many_as_asked_for():
    draw = np.random.default_rng(0)
    X = np.concatenate([draw.normal(place, 1.0, (80, 2)) for place in (0, 15, 40, 90, 200)])
    found = gaps(X)
    finer = found.groups(found.n_groups)
    for k in range(found.n_groups, 0, -1):
        groups = found.groups(k)
        assert groups.max() + 1 == k
        assert len(np.unique(np.column_stack([finer, groups]), axis=0)) == finer.max() + 1
        finer = groups


def test_gaps_are_a_layer_where_they_are_not_the_choice():
    draw = np.random.default_rng(0)
    parts = [draw.normal([20 * i + 5 * j, 0], 1, (150, 2)) for i in range(2) for j in range(2)]
    model = DC2Clustering(random_state=0).fit(np.concatenate(parts))
    halves = np.repeat([0, 1], 300)
    assert any(adjusted_rand_score(halves, layer) == 1 for layer in model.layers_)
