"""Laws of communities: exactly as many clusters as asked for, none where there are none, the same for any threads."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.sparse.csgraph import connected_components
from scipy.spatial.distance import cdist, squareform
from sklearn.datasets import make_blobs, make_circles, make_moons
from sklearn.metrics import adjusted_rand_score
from sklearn.neighbors import NearestNeighbors

from dc2 import DC2Clustering, core
from dc2.errors import InputError, ParameterError
from dc2.graph import resolutions
from dc2.graph.communities import better_cut, find_communities
from dc2.graph.fixed_k import clouds_apart, merged
from dc2.graph.layers import CommunityResult, by_weight
from dc2.graph.n_clusters import RequestedClusters
from dc2.graph.neighbor_graph import SharedRowsGraph, neighbors_per_row, shared_rows_graph
from dc2.graph.resolutions import GraphNodes, join_isolated, large_enough, nearest_of_isolated, sweep_resolutions
from dc2.graph.select_k import NEARLY_EQUAL, Evidence, candidates, resampled


def neighbours(X):
    m = neighbors_per_row(len(X), 1, X.shape[1])
    near = NearestNeighbors(n_neighbors=min(m, len(X))).fit(X).kneighbors(X, return_distance=False)
    for row in range(len(X)):  # among equal rows another one may come first
        place = int(np.flatnonzero(near[row] == row)[0]) if row in near[row] else -1
        near[row, place], near[row, 0] = near[row, 0], row
    return near.astype(np.int32)


def nodes_of(X, node_weights=None, seed=0, n_threads=1) -> GraphNodes:
    node_weights = np.ones(len(X)) if node_weights is None else node_weights
    return GraphNodes(shared_rows_graph(neighbours(X), node_weights, len(X)), X, node_weights, seed, n_threads)


def conquered(X, requested=None, node_weights=None, seed=0, n_threads=1) -> CommunityResult:
    return find_communities(nodes_of(X, node_weights, seed, n_threads), requested or RequestedClusters())


def rechosen(before: CommunityResult, nodes: GraphNodes, requested: RequestedClusters) -> CommunityResult:
    return find_communities(nodes, requested, before)


@pytest.fixture(scope="module")
def blobs():
    return make_blobs([120, 100, 80, 60], n_features=3, centers=10 * np.eye(4, 3), random_state=0)


@pytest.fixture(scope="module")
def blobs_result(blobs):
    return conquered(blobs[0])


# --- the graph ---------------------------------------------------------------------------------------------------


@given(st.integers(0, 10**6), st.integers(1, 40), st.integers(1, 6), st.integers(1, 30))
def test_edges_count_the_rows_near_both_ends(seed, n_rows, m, n_more):
    rng = np.random.default_rng(seed)
    n_nodes = m + n_more
    near = np.array([rng.permutation(n_nodes)[:m] for _ in range(n_rows)], dtype=np.int32)
    weights = rng.integers(0, 5, n_rows).astype(float)
    graph = shared_rows_graph(near, weights, n_nodes)
    expected = np.zeros((n_nodes, n_nodes))
    for row, weight in zip(near, weights, strict=True):
        expected[np.ix_(row, row)] += weight
    np.fill_diagonal(expected, 0)
    np.testing.assert_array_equal(graph.matrix().toarray(), expected)
    np.testing.assert_array_equal(graph.volumes, expected.sum(axis=1))
    assert (graph.weights > 0).all()


def test_whole_weights_count_as_repeated_rows():
    near = np.random.default_rng(0).permuted(np.tile(np.arange(20), (50, 1)), axis=1)[:, :4].astype(np.int32)
    weights = np.random.default_rng(1).integers(0, 4, 50)
    weighted = shared_rows_graph(near, weights.astype(float), 20)
    repeated = shared_rows_graph(np.repeat(near, weights, axis=0), None, 20)
    for name in ("indptr", "indices", "weights"):
        np.testing.assert_array_equal(getattr(weighted, name), getattr(repeated, name))


@given(st.floats(1e-300, 1e300))
def test_weights_of_any_size_give_whole_edges_that_add_up_exactly(scale):
    near = np.array([[0, 1, 2], [1, 2, 3], [2, 3, 0]], dtype=np.int32)
    weights = np.array([0.3, 1.7, 1 / 7]) * scale
    graph = shared_rows_graph(near, weights, 4)
    assert (graph.weights == np.rint(graph.weights)).all()
    assert graph.weights.sum() < 2.0**53
    ratios = graph.row_weights / graph.row_weights.sum()
    np.testing.assert_allclose(ratios, weights / weights.sum(), rtol=1e-9)


def test_a_bootstrap_by_parts_is_that_of_nodes(blobs):
    nodes = nodes_of(blobs[0])
    drawn = resampled(nodes.search, nodes.graph, seed=1)
    parts = drawn.levels[0]
    indptr, indices, weights = core.join_nodes(drawn.graph.rows, parts.part, parts.n_parts)
    np.testing.assert_array_equal(parts.matrix.indptr, indptr)
    np.testing.assert_array_equal(parts.matrix.indices, indices)
    np.testing.assert_array_equal(parts.matrix.data, weights)


def test_parts_show_the_clusters_of_many_nodes(monkeypatch):
    X, y = make_blobs(1500, n_features=3, centers=8, cluster_std=0.4, random_state=1)
    monkeypatch.setattr(resolutions, "ENOUGH_PARTS", 40)  # as if there were far more nodes
    nodes = nodes_of(X)
    assert len(nodes.search.levels) > 1
    assert nodes.search.ends_on_parts(0.5)
    one, two = (find_communities(replace(nodes, n_threads=n), RequestedClusters()) for n in (1, 3))
    assert adjusted_rand_score(y, one.labels) > 0.99
    np.testing.assert_array_equal(one.labels, two.labels)
    given = find_communities(nodes, RequestedClusters.exactly(8))
    assert adjusted_rand_score(y, given.labels) > 0.99


# --- a number given ----------------------------------------------------------------------------------------------


@settings(max_examples=10, deadline=None)
@given(st.integers(1, 40), st.integers(1, 3), st.integers(0, 1000))
def test_every_number_up_to_that_of_nodes_is_given_exactly(n_nodes, width, seed):
    X = np.random.default_rng(seed).normal(size=(n_nodes, width))
    result, nodes = conquered(X), nodes_of(X)
    for k in range(1, n_nodes + 1):
        again = rechosen(result, nodes, RequestedClusters.exactly(k))
        assert again.n_clusters == k
        np.testing.assert_array_equal(np.unique(again.labels), np.arange(k))


def test_more_clusters_than_nodes_are_as_many_as_nodes():
    assert conquered(np.arange(5.0)[:, None], RequestedClusters.exactly(9)).n_clusters == 5


def test_the_true_number_gives_the_true_clusters(blobs, blobs_result):
    y = blobs[1]
    assert adjusted_rand_score(y, rechosen(blobs_result, nodes_of(blobs[0]), RequestedClusters.exactly(4)).labels) == 1


def test_clusters_are_connected_unless_there_are_fewer_than_parts(blobs, blobs_result):
    nodes = nodes_of(blobs[0])
    graph = nodes.graph
    n_parts = connected_components(graph.matrix())[0]
    for k in range(n_parts, 30):
        labels = rechosen(blobs_result, nodes, RequestedClusters.exactly(k)).labels
        for cluster in range(k):
            inside = labels == cluster
            assert connected_components(graph.matrix()[inside][:, inside])[0] == 1


def test_parts_join_by_their_nearest_points():
    X = np.concatenate([np.linspace(0, 1, 20), np.linspace(5, 6, 20), np.linspace(8, 9, 20), np.linspace(30, 31, 20)])
    result = conquered(X[:, None], RequestedClusters.exactly(2))
    np.testing.assert_array_equal(result.labels, np.repeat([0, 1], [60, 20]))
    three = rechosen(result, nodes_of(X[:, None]), RequestedClusters.exactly(3)).labels
    np.testing.assert_array_equal(three, np.repeat([1, 0, 2], [20, 40, 20]))


@pytest.fixture(scope="module")
def overlapping():
    """Two wide clouds side by side, which overlap, and a third apart."""
    draw = np.random.default_rng(3)
    y = np.repeat([0, 1, 2], [500, 400, 150])
    X = draw.normal(size=(len(y), 2)) * [1, 3] + np.array([[0, 0], [3.5, 1], [15, 0]])[y]
    return X, y


@pytest.mark.parametrize("known", [RequestedClusters(), RequestedClusters.exactly(7)])
def test_a_number_gives_the_same_clusters_whatever_was_found_before(overlapping, known):
    nodes = nodes_of(overlapping[0][::5])
    before = find_communities(nodes, known)
    for k in (*range(1, 12), 40, 100, 209, nodes.graph.n_nodes):
        first = find_communities(nodes, RequestedClusters.exactly(k))
        again = rechosen(before, nodes, RequestedClusters.exactly(k))
        np.testing.assert_array_equal(first.labels, again.labels)


def test_clusters_with_fewer_rows_than_a_row_has_neighbours_are_found_by_their_number():
    X, y = make_blobs(800, n_features=12, centers=100, cluster_std=0.5, random_state=0)
    nodes = nodes_of(X)
    assert nodes.graph.near.shape[1] > 8
    assert adjusted_rand_score(y, find_communities(nodes, RequestedClusters.exactly(100)).labels) > 0.5


def test_a_cut_with_fewer_edges_is_better_unless_it_separates_nearly_nothing(blobs):
    X, y = blobs
    graph = nodes_of(np.concatenate([X, 100 + X[:8]])).graph
    crowd = np.zeros(8, dtype=np.int64)
    clean = np.concatenate([y >= 2, crowd]).astype(np.int32)
    through_a_cluster = np.concatenate([X[:, 1] > X[y == 1, 1].mean(), crowd]).astype(np.int32)
    a_few = np.repeat([0, 1], [len(X), 8]).astype(np.int32)
    assert better_cut(graph, clean, through_a_cluster)
    assert not better_cut(graph, through_a_cluster, clean)
    assert not better_cut(graph, a_few, through_a_cluster)


def test_a_model_asked_again_for_a_number_gives_what_a_fit_gives(overlapping):
    model = DC2Clustering(random_state=0).fit(overlapping[0])
    for k in (2, 3, 50, 300):
        np.testing.assert_array_equal(
            model.recluster(k).labels_, DC2Clustering(k, random_state=0).fit(overlapping[0]).labels_
        )


def test_the_border_through_two_clouds_is_that_of_their_gaussians(overlapping):
    X, y = overlapping
    best = np.where(X[:, 0] > 9, 2, X[:, 0] > 1.75)  # equally likely half way between the means, nearly
    labels = conquered(X, RequestedClusters.exactly(3)).labels
    assert adjusted_rand_score(best, labels) > 0.9
    assert adjusted_rand_score(y, labels) > adjusted_rand_score(y, best) - 0.02


@pytest.mark.parametrize("noise", [0.05, 0.1])
def test_no_border_is_moved_across_a_gap_between_curves(noise):
    X, y = make_moons(800, noise=noise, random_state=0)
    nodes = nodes_of(X)
    np.testing.assert_array_equal(clouds_apart(nodes, y.astype(np.int32)), y)
    assert adjusted_rand_score(y, conquered(X, RequestedClusters.exactly(2)).labels) > 0.98


def test_moved_borders_do_not_depend_on_threads_or_the_unit_of_weights(overlapping):
    X, _ = overlapping
    node_weights = np.random.default_rng(0).integers(1, 4, len(X)).astype(float)
    labels = conquered(X, RequestedClusters.exactly(3), node_weights).labels
    assert not np.array_equal(labels, conquered(X, RequestedClusters.exactly(3)).labels), "weights matter"
    np.testing.assert_array_equal(labels, conquered(X, RequestedClusters.exactly(3), 8 * node_weights).labels)
    np.testing.assert_array_equal(labels, conquered(X, RequestedClusters.exactly(3), node_weights, n_threads=4).labels)


@settings(max_examples=40, deadline=None)
@example(13, 2, 142)
@given(st.integers(2, 30), st.integers(1, 20), st.integers(0, 1000))
def test_merging_joins_the_most_strongly_connected_pair_each_time(n_nodes, k, seed):
    X = np.random.default_rng(seed).normal(size=(n_nodes, 2))
    graph = shared_rows_graph(neighbours(X), None, n_nodes)
    start = np.arange(n_nodes, dtype=np.int32)
    if k >= n_nodes or connected_components(graph.matrix())[0] > 1:
        return
    W, volume, groups = graph.matrix().toarray(), graph.volumes.copy(), {i: [i] for i in range(n_nodes)}
    while len(groups) > k:
        pairs = [(-W[i, j] / min(volume[i], volume[j]), i, j) for i in groups for j in groups if i < j and W[i, j]]
        _, i, j = min(pairs)
        W[i] += W[j]
        W[:, i] += W[:, j]
        volume[i] += volume[j]
        groups[i] += groups.pop(j)
    expected = np.empty(n_nodes)
    for name, members in groups.items():
        expected[members] = name
    assert adjusted_rand_score(expected, merged(graph, X, start, k)) == 1


@settings(max_examples=40, deadline=None)
@given(st.integers(2, 60), st.integers(1, 3), st.integers(0, 1000))
def test_parts_without_edges_join_as_single_linkage_does(n_nodes, width, seed):
    X = np.random.default_rng(seed).normal(size=(n_nodes, width))
    graph = shared_rows_graph(np.arange(n_nodes, dtype=np.int32)[:, None], None, n_nodes)
    start = (np.arange(n_nodes) // 2).astype(np.int32)
    k = 1 + seed % (int(start.max()) + 1)
    gaps = cdist(X, X)
    gaps[start[:, None] == start] = 0
    expected = fcluster(linkage(squareform(gaps, checks=False), "single"), k, "maxclust")
    assert adjusted_rand_score(expected, merged(graph, X, start, k)) == 1


# --- a number found ----------------------------------------------------------------------------------------------


def test_separate_blobs_are_found_and_numbered_by_mass(blobs, blobs_result):
    np.testing.assert_array_equal(blobs_result.labels, blobs[1])
    assert not blobs_result.verdict.one_cluster
    assert blobs_result.verdict.supported


@pytest.mark.parametrize("make", [make_moons, lambda n, **kw: make_circles(n, factor=0.4, **kw)])
def test_shapes_are_found(make):
    X, y = make(600, noise=0.05, random_state=0)
    assert adjusted_rand_score(y, conquered(X).labels) > 0.98


@pytest.mark.parametrize("width", [1, 2, 5, 20])
@pytest.mark.parametrize("draw", ["normal", "random"])
def test_one_cloud_is_one_cluster(draw, width):
    X = getattr(np.random.default_rng(width), draw)(size=(500, width))
    result = conquered(X)
    assert result.n_clusters == 1
    assert result.verdict.one_cluster
    assert result.verdict.runner_up is None or result.verdict.runner_up.score <= 0


def test_many_clusters_are_found():
    X, y = make_blobs(6000, centers=200, n_features=6, cluster_std=0.1, random_state=0)
    result = conquered(X)
    assert result.n_clusters == 200
    assert adjusted_rand_score(y, result.labels) == 1


def test_a_range_bounds_the_answer(blobs, blobs_result):
    assert rechosen(blobs_result, nodes_of(blobs[0]), RequestedClusters(2, 3)).n_clusters in (2, 3)
    assert rechosen(blobs_result, nodes_of(blobs[0]), RequestedClusters(6, 9)).n_clusters in range(6, 10)
    assert rechosen(blobs_result, nodes_of(blobs[0]), RequestedClusters(2, None)).n_clusters == 4


@pytest.mark.parametrize("n_nodes", [1, 2, 3, 5])
def test_a_handful_of_nodes_is_one_cluster(n_nodes):
    X = np.random.default_rng(0).normal(size=(n_nodes, 2))
    assert conquered(X).n_clusters == 1


def test_a_graph_without_edges_is_ordinary():
    X = np.arange(6.0)[:, None]
    graph = shared_rows_graph(np.arange(6, dtype=np.int32)[:, None], None, 6)
    nodes = GraphNodes(graph, X, np.ones(6), seed=0, n_threads=1)
    assert find_communities(nodes, RequestedClusters()).n_clusters == 1
    assert find_communities(nodes, RequestedClusters.exactly(3)).n_clusters == 3


def test_weights_times_a_constant_change_nothing(blobs):
    X, _ = blobs
    node_weights = np.random.default_rng(0).integers(1, 4, len(X)).astype(float)
    once, often = conquered(X, node_weights=node_weights), conquered(X, node_weights=8 * node_weights)
    np.testing.assert_array_equal(once.labels, often.labels)


@pytest.mark.parametrize("noise", [0.5, 2.0])
def test_of_numbers_with_nearly_equal_scores_the_finest_is_chosen(blobs, noise):
    nodes = nodes_of(blobs[0] + np.random.default_rng(1).normal(size=blobs[0].shape) * noise)
    sweep = sweep_resolutions(nodes)
    first, *others = candidates(sweep, Evidence(nodes, sweep), RequestedClusters())
    enough = NEARLY_EQUAL * max(candidate.score for candidate in (first, *others))
    assert first.score >= enough
    assert all(c.score < enough for c in others if c.plateau.n_clusters > first.plateau.n_clusters)


def test_threads_change_nothing(blobs):
    X = blobs[0] + np.random.default_rng(1).normal(size=blobs[0].shape) * 2
    one, many = conquered(X, n_threads=1), conquered(X, n_threads=4)
    np.testing.assert_array_equal(one.labels, many.labels)
    for name, values in one.resolution_path.items():
        np.testing.assert_array_equal(values, many.resolution_path[name])


def test_choosing_again_is_choosing(blobs):
    X, _ = blobs
    result = rechosen(conquered(X, RequestedClusters.exactly(3)), nodes_of(X), RequestedClusters())
    np.testing.assert_array_equal(result.labels, conquered(X).labels)


# --- isolated nodes ----------------------------------------------------------------------------------------------


def test_no_solid_community_means_that_the_largest_is():
    np.testing.assert_array_equal(large_enough(np.array([1.0, 2.0, 1.0])), [False, True, False])


def test_many_small_communities_are_solid():
    assert large_enough(np.full(5000, 5.0)).all()


def test_isolated_nodes_join_what_they_are_connected_to_and_else_the_nearest():
    near = np.array([[0, 1], [1, 2], [2, 3], [3, 0], [4, 5], [5, 6], [6, 7], [7, 4], [8, 4]], dtype=np.int32)
    graph: SharedRowsGraph = shared_rows_graph(near, None, 10)
    points = np.array([0, 0, 0, 0, 50, 50, 50, 50, 1, 2.0])[:, None]
    labels = np.array([0, 0, 0, 0, 1, 1, 1, 1, 2, 3], dtype=np.int32)
    joined = join_isolated(graph, labels, np.ones(10), points)
    # 8 is near the first four but connected to the others; 9 has no edges, and 8 is nearest to it.
    np.testing.assert_array_equal(joined, [0, 0, 0, 0, 1, 1, 1, 1, 1, 1])


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 60), st.sampled_from([2, 40]), st.integers(0, 1000))
def test_isolated_nodes_join_the_same_homes_when_their_nearest_are_known(isolated, width, seed):
    draw = np.random.default_rng(seed)
    n_nodes = 120 + isolated
    points = draw.normal(size=(n_nodes, width)).astype(np.float32)
    near = (
        np.arange(120, dtype=np.int32)[:, None] // 40 * 40
        + draw.permuted(np.tile(np.arange(40), (120, 1)), axis=1)[:, :5]
    )
    graph = shared_rows_graph(near.astype(np.int32), None, n_nodes)
    labels = np.concatenate([np.arange(120) // 40, 3 + np.arange(isolated)]).astype(np.int32)
    searched = join_isolated(graph, labels, np.ones(n_nodes), points)
    known = join_isolated(graph, labels, np.ones(n_nodes), points, nearest_of_isolated(graph, points))
    np.testing.assert_array_equal(known, searched)
    assert searched.max() == 2


# --- layers ------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def nested_rows():
    offsets = 3.6 * np.array([[0, 0], [1, 0], [0, 1]])
    centers = np.concatenate([corner + offsets for corner in 15 * np.array([[0, 0], [1, 0], [0, 1]])])
    return make_blobs(1800, centers=centers, random_state=0)[0]


@pytest.fixture(scope="module")
def nested(nested_rows):
    return conquered(nested_rows)


def test_layers_are_nested_around_the_chosen_partition(nested):
    check_nested(nested)


def check_nested(nested):
    np.testing.assert_array_equal(nested.layers[nested.chosen_layer], nested.labels)
    root = np.zeros(len(nested.labels), np.int32)
    for fine, coarse, parent in zip(nested.layers, (*nested.layers[1:], root), nested.cluster_tree, strict=True):
        np.testing.assert_array_equal(parent[fine], coarse)
        assert fine.max() > coarse.max() or nested.n_clusters == 1
    assert len(nested.heights) == len(nested.layers) + 1
    assert (np.diff(nested.heights) >= 0).all()


def test_both_scales_of_nested_blobs_are_layers(nested):
    assert {3, 9} <= {int(layer.max()) + 1 for layer in nested.layers}


@pytest.mark.parametrize("n_clusters", [1, 2, 4, 5, 9, 30, (4, 6)])
def test_another_number_keeps_the_layers_of_the_fit(nested_rows, n_clusters):
    model = DC2Clustering(random_state=0).fit(nested_rows)
    fitted = model.layers_
    other = model.recluster(n_clusters)._record.conquest.communities
    check_nested(other)
    numbers = {int(layer.max()) + 1 for layer in other.layers}
    assert numbers >= {int(layer.max()) + 1 for layer in fitted}
    assert model.recluster(layer=model.layer_).n_clusters_ == other.n_clusters
    back = model.recluster("auto").layers_
    assert len(back) == len(fitted)
    assert all(map(np.array_equal, back, fitted))


@given(st.lists(st.integers(0, 5), min_size=1, max_size=30))
def test_numbers_go_by_mass_then_by_first_node(labels):
    node_weights = np.random.default_rng(0).integers(1, 3, len(labels)).astype(float)
    numbered = by_weight(np.array(labels, dtype=np.int32), node_weights)
    weight = np.bincount(numbered, node_weights)
    first = [int(np.argmax(numbered == k)) for k in range(len(weight))]
    keys = [(-w, f) for w, f in zip(weight, first, strict=True)]
    assert keys == sorted(keys)
    assert adjusted_rand_score(labels, numbered) == 1


# --- requested numbers -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bounds", [(0, 3), (5, 2), (-1, None)])
def test_impossible_numbers_are_refused(bounds):
    with pytest.raises(ParameterError, match=str(bounds[0])):
        RequestedClusters(*bounds)


def test_edges_that_go_one_way_only_are_refused():
    graph = shared_rows_graph(np.array([[0, 1], [1, 2], [0, 2]], np.int32), None, 3)
    graph.check()
    with pytest.raises(InputError, match="not the same in both directions"):
        replace(graph, weights=graph.weights + np.eye(1, len(graph.weights))[0]).check()


@pytest.mark.parametrize("k", [2, 5, 11, 12, 20])
def test_no_cluster_of_a_given_number_stands_for_no_rows(k):
    rows = np.random.default_rng(0).normal(size=(20, 2))
    node_weights = np.where(np.arange(20) % 5 < 3, 1.0, 0.0)
    labels = conquered(rows, RequestedClusters.exactly(k), node_weights).labels
    assert (np.bincount(labels, node_weights) > 0).all()
    assert labels.max() + 1 == min(k, 12)
