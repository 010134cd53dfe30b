"""Forests: how often two points share a leaf, by any way of counting."""

import pickle

import numpy as np
import pytest

from dc2 import RPForest
from dc2.errors import InputError, ParameterError
from dc2.trees.forest import forest_leaf_size


@pytest.fixture(scope="module")
def points():
    return np.random.default_rng(0).standard_normal((90, 3))


@pytest.fixture(scope="module")
def forest(points):
    return RPForest.grow(points, n_trees=40, rng=0)


def test_counts_are_the_trees_in_which_two_points_share_a_leaf(forest):
    leaves = forest.leaves
    assert leaves.shape == (40, 90)
    np.testing.assert_array_equal(forest.counts(), (leaves[:, :, None] == leaves[:, None, :]).sum(axis=0))


def test_counts_and_shares_are_symmetric_and_full_on_the_diagonal(forest):
    counts, share = forest.counts(), forest.share()
    np.testing.assert_array_equal(counts, counts.T)
    np.testing.assert_array_equal(np.diag(counts), 40)
    np.testing.assert_array_equal(np.diag(share), 1.0)
    np.testing.assert_array_equal(share, counts / 40)


def test_the_share_of_a_forest_is_a_kernel(forest):
    assert np.linalg.eigvalsh(forest.share()).min() > -1e-10


def test_near_points_share_more_leaves_than_far_ones(points, forest):
    distances = np.linalg.norm(points[:, None] - points[None], axis=2)
    share = forest.share()
    near, far = distances < np.quantile(distances, 0.1), distances > np.quantile(distances, 0.9)
    assert share[near].mean() > 5 * share[far].mean()


def test_known_points_given_as_new_ones_are_counted_alike(points, forest):
    np.testing.assert_array_equal(forest.apply(points), forest.leaves)
    np.testing.assert_array_equal(forest.counts(points[10:30]), forest.counts()[10:30])
    np.testing.assert_array_equal(forest.share(points[10:30]), forest.share()[10:30])


@pytest.mark.parametrize("n_jobs", [1, 3, 8, 100])
def test_threads_change_nothing(points, forest, n_jobs):
    other = RPForest.grow(points, n_trees=40, rng=0, n_jobs=n_jobs)
    np.testing.assert_array_equal(other.leaves, forest.leaves)
    np.testing.assert_array_equal(other.counts(n_jobs=n_jobs), forest.counts(n_jobs=1))


def test_a_tree_depends_on_its_number_and_not_on_how_many_follow(points, forest):
    few = RPForest.grow(points, n_trees=5, rng=0)
    np.testing.assert_array_equal(few.leaves, forest.leaves[:5])
    assert len({leaves.tobytes() for leaves in forest.leaves}) == forest.n_trees == 40


@pytest.mark.parametrize(("n_points", "leaf_size"), [(10, 5), (100, 5), (300, 15), (600, 30), (10_000, 30)])
def test_the_automatic_leaf_size_is_a_twentieth_of_the_points_within_5_and_30(n_points, leaf_size):
    assert forest_leaf_size("auto", n_points) == leaf_size


def test_no_leaf_holds_leaf_size_points(points):
    for size in (2, 7):
        forest = RPForest.grow(points, n_trees=10, leaf_size=size, rng=0)
        assert max(np.bincount(leaves).max() for leaves in forest.leaves) < size


def test_points_that_are_all_the_same_share_every_leaf():
    np.testing.assert_array_equal(RPForest.grow(np.ones((7, 2)), n_trees=5, leaf_size=2, rng=0).share(), 1.0)


def test_weights_mean_repeats(points):
    weights = np.random.default_rng(1).integers(1, 4, len(points))
    options = {"n_trees": 20, "leaf_size": 12, "rng": 0}
    weighted = RPForest.grow(points, sample_weight=weights, **options)
    repeated = RPForest.grow(np.repeat(points, weights, axis=0), **options)
    np.testing.assert_array_equal(np.repeat(weighted.leaves, weights, axis=1), repeated.leaves)


def test_points_of_no_weight_grow_nothing_but_have_their_place(points):
    weights = np.arange(len(points)) % 2
    options = {"n_trees": 20, "leaf_size": 5, "rng": 0}
    weighted = RPForest.grow(points, sample_weight=weights, **options)
    without = RPForest.grow(points[weights > 0], **options)
    assert weighted.counts().shape == (90, 90)
    np.testing.assert_array_equal(weighted.leaves[:, weights > 0], without.leaves)


def test_a_pickled_forest_is_the_same_forest(points, forest):
    copy = pickle.loads(pickle.dumps(forest))
    np.testing.assert_array_equal(copy.counts(points), forest.counts())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_trees": 0}, "n_trees must be a whole number of at least 1; got 0"),
        ({"leaf_size": -3}, "leaf_size must be a finite number above 0; got -3"),
        ({"cut": "best"}, "cut must be one of"),
        ({"n_jobs": 0}, "n_jobs is 0"),
        ({"n_jobs": "all"}, "n_jobs .*'all'"),
    ],
)
def test_impossible_parameters_are_named(points, options, message):
    with pytest.raises(ParameterError, match=message):
        RPForest.grow(points, **({"n_trees": 3} | options))


def test_points_of_another_width_are_refused_with_both_numbers(forest):
    with pytest.raises(InputError, match="X has 2 columns, but the forest was grown on 3"):
        forest.counts(np.zeros((4, 2)))
