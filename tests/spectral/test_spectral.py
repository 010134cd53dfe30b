"""Spectral clustering: right on clear data, unmoved by rounding, and always with k clusters."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.cluster import KMeans
from sklearn.datasets import make_blobs, make_circles, make_moons
from sklearn.metrics import adjusted_rand_score
from threadpoolctl import threadpool_limits

from dc2.errors import InputError, ParameterError
from dc2.spectral import assign_kmeans, normalized_affinity, spectral_clustering, top_eigenvectors

ASSIGN = ["kmeans", "ncut"]
BANDWIDTHS = [0.0125, 0.02, 0.025, 0.05, 0.1, 1.0]


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """Small matrices are slower on several threads, and much slower if others use these too."""
    with threadpool_limits(1):
        yield


def gaussian(points, sigma=1.0):
    return np.exp(-np.square(points[:, np.newaxis] - points).sum(axis=-1) / sigma)


def leaf_shares(points, n_trees, leaf_size, seed):
    """Share of random projection trees (median cuts) in which two points share a leaf."""
    rng = np.random.default_rng(seed)
    counts = np.zeros((len(points), len(points)))
    for _ in range(n_trees):
        nodes = [np.arange(len(points))]
        while nodes:
            node = nodes.pop()
            if len(node) <= leaf_size:
                counts[np.ix_(node, node)] += 1
                continue
            ordered = node[np.argsort(points[node] @ rng.standard_normal(points.shape[1]), kind="stable")]
            nodes += [ordered[: len(node) // 2], ordered[len(node) // 2 :]]
    return counts / n_trees


def shaken(similarity, seed):
    noise = np.random.default_rng(seed).standard_normal(similarity.shape)
    return similarity + 1e-15 * (noise + noise.T) / np.sqrt(2)


@pytest.fixture(scope="module")
def shares():
    """Leaf shares of three data sets with their true classes."""
    data = {
        "moons": make_moons(300, noise=0.06, random_state=0),
        "circles": make_circles(300, noise=0.04, factor=0.5, random_state=0),
        "blobs": make_blobs(300, n_features=8, centers=6, random_state=0),
    }
    return {name: (leaf_shares(X, 300, 20, seed=0), y) for name, (X, y) in data.items()}


# --- the parts --------------------------------------------------------------------------------------------


def test_the_largest_eigenvalue_is_one_and_its_eigenvector_the_root_of_the_volumes():
    rng = np.random.default_rng(0)
    similarity, weights = gaussian(rng.normal(size=(40, 2))), rng.uniform(0.5, 3.0, 40)
    eigenvalues, eigenvectors = top_eigenvectors(normalized_affinity(similarity, weights), 1)
    volumes = weights * (similarity @ weights)
    assert_allclose(eigenvalues, 1.0, rtol=1e-12)
    assert_allclose(eigenvectors[:, 0], np.sqrt(volumes / volumes.sum()), rtol=1e-10)


def test_weighted_affinity_has_the_eigenvalues_of_really_repeated_points():
    rng = np.random.default_rng(1)
    points, repeats = rng.normal(size=(30, 2)), rng.integers(1, 5, 30)
    repeated = np.repeat(points, repeats, axis=0)
    weighted, _ = top_eigenvectors(normalized_affinity(gaussian(points), repeats.astype(float)), 12)
    really, _ = top_eigenvectors(normalized_affinity(gaussian(repeated), np.ones(len(repeated))), 12)
    assert_allclose(weighted, really, atol=1e-13)


@pytest.mark.parametrize("bandwidth", BANDWIDTHS)
def test_eigenvectors_are_found_whole_even_where_eigenvalues_coincide(shares, bandwidth):
    for share, _ in shares.values():
        affinity = normalized_affinity(np.exp((share - 1) / bandwidth), np.ones(len(share)))
        eigenvalues, eigenvectors = top_eigenvectors(affinity, 20)
        assert_allclose(eigenvalues, np.linalg.eigvalsh(affinity)[::-1][:20], atol=1e-13)
        assert_allclose(affinity @ eigenvectors, eigenvectors * eigenvalues, atol=1e-13)
        assert_allclose(eigenvectors.T @ eigenvectors, np.eye(20), atol=1e-12)


def test_eigenvectors_of_the_identity_are_found_whole():
    eigenvalues, eigenvectors = top_eigenvectors(np.eye(100), 7)
    assert_array_equal(eigenvalues, np.ones(7))
    assert_allclose(eigenvectors.T @ eigenvectors, np.eye(7), atol=1e-15)


def test_kmeans_is_as_good_as_that_of_scikit_learn():
    rng = np.random.default_rng(0)
    for n_clusters in (3, 10):
        rows = rng.normal(size=(400, 5)) + 2 * rng.normal(size=(n_clusters, 5))[rng.integers(0, n_clusters, 400)]
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        weights = rng.uniform(0.5, 2.0, 400)
        labels = assign_kmeans(rows, n_clusters, weights, np.random.default_rng(0))
        centres = np.array([np.average(rows[labels == c], axis=0, weights=weights[labels == c]) for c in set(labels)])
        reference = KMeans(n_clusters, n_init=10, random_state=0).fit(rows, sample_weight=weights)
        assert weights @ np.square(rows - centres[labels]).sum(axis=1) <= 1.01 * reference.inertia_


# --- clusters that are there are found --------------------------------------------------------------------


@pytest.mark.parametrize("assign", ASSIGN)
@pytest.mark.parametrize("name", ["moons", "circles"])
def test_interleaved_shapes_are_separated(shares, name, assign):
    share, y = shares[name]
    result = spectral_clustering(np.exp((share - 1) / 0.05), 2, assign=assign, random_state=0)
    assert adjusted_rand_score(y, result.labels) > 0.99
    assert not result.degenerate


def test_many_blobs_are_separated(shares):
    share, y = shares["blobs"]
    for bandwidth in (0.025, 0.05, 0.1, 1.0):
        result = spectral_clustering(np.exp((share - 1) / bandwidth), 6, random_state=0)
        assert adjusted_rand_score(y, result.labels) == 1.0


def test_the_widest_eigengap_stands_after_the_true_number_of_clusters(shares):
    for bandwidth in (0.1, 1.0):
        result = spectral_clustering(np.exp((shares["blobs"][0] - 1) / bandwidth), 3, random_state=0)
        assert np.diff(result.eigenvalues)[1:].argmin() + 1 == 5


@pytest.mark.parametrize("assign", ASSIGN)
def test_disconnected_components_are_the_clusters(assign):
    sizes = [12, 3, 7, 1]
    y = np.repeat(np.arange(4), sizes)[np.random.default_rng(0).permutation(23)]
    similarity = np.where(y[:, np.newaxis] == y, 0.5, 0.0)
    np.fill_diagonal(similarity, 1.0)
    result = spectral_clustering(similarity, 4, assign=assign, random_state=0)
    assert adjusted_rand_score(y, result.labels) == 1.0
    assert not result.degenerate
    assert_allclose(result.eigenvalues[:4], 1.0)


def test_ncut_makes_the_lighter_side_a_cluster_and_cuts_the_rest_again():
    points = np.array([0.0, 0.1, 0.2, 0.3, 0.4, 2.0, 2.1, 3.5])[:, np.newaxis]
    labels = spectral_clustering(gaussian(points), 2, assign="ncut").labels
    assert_array_equal(labels, [0, 0, 0, 0, 0, 1, 1, 1])
    # With a weight of ten, those three are the heavier side: the next cut is theirs.
    weights = np.where(points[:, 0] > 1, 10.0, 1.0)
    labels = spectral_clustering(gaussian(points), 3, assign="ncut", weights=weights).labels
    assert_array_equal(labels, [0, 0, 0, 0, 0, 1, 1, 2])


def test_labels_are_numbered_as_they_appear():
    points = np.array([[9.0], [0.0], [9.1], [5.0], [0.1]])
    for seed in range(5):
        labels = spectral_clustering(gaussian(points), 3, random_state=seed).labels
        assert labels.dtype == np.int32
        assert_array_equal(labels, [0, 1, 0, 2, 1])


# --- the same labels whatever should not matter -----------------------------------------------------------


@pytest.mark.parametrize("assign", ASSIGN)
@pytest.mark.parametrize("bandwidth", BANDWIDTHS)
@pytest.mark.parametrize("name", ["moons", "circles", "blobs"])
def test_noise_of_1e_15_changes_no_label(shares, name, bandwidth, assign):
    similarity = np.exp((shares[name][0] - 1) / bandwidth)
    for n_clusters in (2, 6):
        result = spectral_clustering(similarity, n_clusters, assign=assign, random_state=0)
        for seed in range(3):
            noisy = spectral_clustering(shaken(similarity, seed), n_clusters, assign=assign, random_state=0)
            assert_array_equal(noisy.labels, result.labels)
            assert noisy.degenerate == result.degenerate


@given(
    points=arrays(np.float64, st.tuples(st.integers(2, 12), st.integers(1, 2)), elements=st.integers(0, 4)),
    log_sigma=st.floats(-2.5, 2.0),
    n_clusters=st.integers(1, 8),
    assign=st.sampled_from(ASSIGN),
)
@settings(max_examples=150)
def test_equal_distances_and_repeats_give_k_clusters_that_noise_does_not_change(points, log_sigma, n_clusters, assign):
    n_clusters = min(n_clusters, len(points))
    similarity = gaussian(points, 10**log_sigma)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = spectral_clustering(similarity, n_clusters, assign=assign, random_state=0)
    assert len(np.unique(result.labels)) == min(n_clusters, len(np.unique(points, axis=0)))
    assert result.embedding.shape == (len(points), n_clusters)
    assert np.isfinite(result.embedding).all()
    assert np.isfinite(result.eigenvalues).all()
    noisy = spectral_clustering(shaken(similarity, 0), n_clusters, assign=assign, random_state=0)
    assert_array_equal(noisy.labels, result.labels)


@given(
    points=arrays(np.float64, st.tuples(st.integers(2, 10), st.just(2)), elements=st.integers(0, 4)),
    sigma=st.sampled_from([0.05, 1.0, 20.0]),
    assign=st.sampled_from(ASSIGN),
    data=st.data(),
)
@settings(max_examples=100)
def test_weights_mean_repeats(points, sigma, assign, data):
    repeats = data.draw(arrays(np.intp, len(points), elements=st.integers(1, 4)))
    n_clusters = data.draw(st.integers(1, len(points)))
    similarity = gaussian(points, sigma)
    repeated = np.repeat(np.repeat(similarity, repeats, axis=0), repeats, axis=1)
    weighted = spectral_clustering(similarity, n_clusters, assign=assign, weights=repeats, random_state=0)
    really = spectral_clustering(repeated, n_clusters, assign=assign, random_state=0)
    assert_array_equal(np.repeat(weighted.labels, repeats), really.labels)
    assert_allclose(weighted.eigenvalues, really.eigenvalues, atol=1e-13)


def test_weights_mean_repeats_on_a_forest_kernel(shares):
    similarity = np.exp((shares["moons"][0] - 1) / 0.1)
    repeats = np.random.default_rng(0).integers(1, 4, len(similarity))
    repeated = np.repeat(np.repeat(similarity, repeats, axis=0), repeats, axis=1)
    for assign in ASSIGN:
        weighted = spectral_clustering(similarity, 5, assign=assign, weights=repeats, random_state=0)
        really = spectral_clustering(repeated, 5, assign=assign, random_state=0)
        assert_array_equal(np.repeat(weighted.labels, repeats), really.labels)


@pytest.mark.parametrize("assign", ASSIGN)
def test_the_scale_of_similarities_and_of_weights_does_not_matter(shares, assign):
    similarity = np.exp((shares["blobs"][0] - 1) / 0.05)
    weights = np.random.default_rng(0).uniform(1.0, 2.0, len(similarity))
    result = spectral_clustering(similarity, 4, assign=assign, weights=weights, random_state=0)
    for scale in (2.0**-100, 2.0**100):
        scaled = spectral_clustering(scale * similarity, 4, assign=assign, weights=weights, random_state=0)
        heavier = spectral_clustering(similarity, 4, assign=assign, weights=scale * weights, random_state=0)
        assert_array_equal(scaled.labels, result.labels)
        assert_array_equal(heavier.labels, result.labels)


@pytest.mark.parametrize("assign", ASSIGN)
@pytest.mark.parametrize("name", ["moons", "circles", "blobs"])
def test_the_order_of_points_does_not_change_the_partition(shares, name, assign):
    share, y = shares[name]
    similarity = np.exp((share - 1) / 0.05)
    n_clusters = len(np.unique(y))
    labels = spectral_clustering(similarity, n_clusters, assign=assign, random_state=0).labels
    for seed in range(3):
        order = np.random.default_rng(seed).permutation(len(y))
        shuffled = spectral_clustering(similarity[np.ix_(order, order)], n_clusters, assign=assign, random_state=0)
        assert adjusted_rand_score(labels[order], shuffled.labels) == 1.0


def test_threads_do_not_change_labels(shares):
    similarity = np.exp((shares["moons"][0] - 1) / 0.05)
    results = []
    for threads in (1, 2):
        with threadpool_limits(threads):
            results.append(spectral_clustering(similarity, 7, random_state=0))
    assert_array_equal(results[0].labels, results[1].labels)
    assert_array_equal(results[0].embedding, results[1].embedding)


def test_single_precision_gives_the_same_clusters(shares):
    similarity = np.exp((shares["moons"][0] - 1) / 0.05)
    double = spectral_clustering(similarity, 2, random_state=0)
    single = spectral_clustering(similarity.astype(np.float32), 2, random_state=0)
    assert_array_equal(single.labels, double.labels)


# --- where eigenvectors do not decide ---------------------------------------------------------------------


@pytest.mark.parametrize("assign", ASSIGN)
def test_more_components_than_clusters_keep_the_heaviest_and_put_the_others_together(assign):
    sizes = [2, 6, 3, 5, 1]
    group = np.repeat(np.arange(5), sizes)
    similarity = np.where(group[:, np.newaxis] == group, 0.5, 0.0)
    np.fill_diagonal(similarity, 1.0)
    result = spectral_clustering(similarity, 3, assign=assign, random_state=0)
    assert result.degenerate
    assert_array_equal(result.labels, np.array([0, 1, 0, 2, 0])[group])
    # Weights decide what is heavy.
    heavy_last = np.where(group == 4, 100.0, 1.0)
    result = spectral_clustering(similarity, 2, assign=assign, weights=heavy_last, random_state=0)
    assert_array_equal(result.labels, (group == 4).astype(int))


@pytest.mark.parametrize("assign", ASSIGN)
def test_points_all_equally_far_apart_are_still_cut_the_same_way_every_time(assign):
    for tie in (0.0, 1e-30, 0.3, 0.999):
        similarity = np.full((9, 9), tie)
        np.fill_diagonal(similarity, 1.0)
        for n_clusters in (2, 5, 9):
            result = spectral_clustering(similarity, n_clusters, assign=assign, random_state=0)
            assert result.degenerate == (n_clusters < 9)
            assert len(np.unique(result.labels)) == n_clusters
            noisy = spectral_clustering(shaken(similarity, 1), n_clusters, assign=assign, random_state=0)
            assert_array_equal(noisy.labels, result.labels)


@pytest.mark.parametrize("assign", ASSIGN)
def test_a_ring_that_can_be_cut_anywhere_is_cut_in_arcs(assign):
    angles = np.linspace(0, 2 * np.pi, 24, endpoint=False)
    ring = gaussian(np.column_stack([np.cos(angles), np.sin(angles)]), 0.5)
    result = spectral_clustering(ring, 2, assign=assign, random_state=0)
    assert result.degenerate
    assert np.count_nonzero(np.diff(result.labels, append=result.labels[0])) == 2
    assert 8 <= result.labels.sum() <= 16
    assert_array_equal(spectral_clustering(shaken(ring, 0), 2, assign=assign, random_state=0).labels, result.labels)


@pytest.mark.parametrize("assign", ASSIGN)
def test_fewer_distinct_points_than_clusters_get_a_cluster_each(assign):
    points = np.array([[0.0], [1.0], [0.0], [1.0], [0.0]])
    result = spectral_clustering(gaussian(points), 4, assign=assign, random_state=0)
    assert_array_equal(result.labels, [0, 1, 0, 1, 0])
    assert result.degenerate
    assert result.embedding.shape == (5, 4)


@pytest.mark.parametrize("assign", ASSIGN)
def test_distinct_points_are_separated_even_if_the_similarity_has_a_lower_rank(assign):
    x = np.array([1.0, 2.0, 3.0, 4.0])
    result = spectral_clustering(np.outer(x, x), 3, assign=assign, random_state=0)
    assert len(np.unique(result.labels)) == 3


@pytest.mark.parametrize("assign", ASSIGN)
def test_one_cluster_and_as_many_as_points(assign):
    similarity = gaussian(np.arange(6.0)[:, np.newaxis])
    assert not spectral_clustering(similarity, 1, assign=assign).labels.any()
    assert_array_equal(spectral_clustering(similarity, 6, assign=assign).labels, np.arange(6))
    assert_array_equal(spectral_clustering([[1.0]], 1, assign=assign).labels, [0])


# --- what is shown ----------------------------------------------------------------------------------------


def test_twenty_eigenvalues_are_shown_or_one_more_than_clusters_or_all():
    similarity = gaussian(np.random.default_rng(0).normal(size=(60, 2)))
    assert len(spectral_clustering(similarity, 3, random_state=0).eigenvalues) == 20
    assert len(spectral_clustering(similarity, 30, random_state=0).eigenvalues) == 31
    assert len(spectral_clustering(similarity[:5, :5], 3, random_state=0).eigenvalues) == 5
    eigenvalues = spectral_clustering(similarity, 3, random_state=0).eigenvalues
    assert (np.diff(eigenvalues) <= 0).all()


@pytest.mark.parametrize(
    ("similarity", "options", "error", "message"),
    [
        (np.ones((2, 3)), {}, InputError, r"shape \(2, 3\)"),
        ([[1.0, np.nan], [np.nan, 1.0]], {}, InputError, "2 values that are NaN"),
        ([[1.0, -0.5], [-0.5, 1.0]], {}, InputError, "smallest similarity is -0.5"),
        ([[1.0, 0.2], [0.3, 1.0]], {}, InputError, "differ by 0.1"),
        ([[1.0, 0.0], [0.0, 0.0]], {}, InputError, "Row 1 of the similarity is all zeros"),
        (np.eye(2), {"weights": [1.0]}, InputError, "2 points to weigh"),
        (np.eye(2), {"weights": [1.0, 0.0]}, InputError, "between 0 and 1"),
        (np.eye(2), {"n_clusters": 3}, ParameterError, "only 2 points"),
        (np.eye(2), {"n_clusters": 0}, ParameterError, "n_clusters must be"),
        (np.eye(2), {"n_clusters": 1.5}, ParameterError, "n_clusters must be"),
        (np.eye(2), {"assign": "qr"}, ParameterError, "'kmeans', 'ncut'"),
    ],
)
def test_what_cannot_be_clustered_is_refused(similarity, options, error, message):
    with pytest.raises(error, match=message):
        spectral_clustering(similarity, **{"n_clusters": 2, **options})
