"""The Gaussian kernel: its formula, its default width, and new points."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist, pdist
from sklearn.base import clone
from sklearn.metrics import adjusted_rand_score
from sklearn.utils.estimator_checks import parametrize_with_checks

from dc2 import KASP, DC2Clustering
from dc2.errors import ParameterError
from dc2.spectral import Gaussian, GaussianKernel


@parametrize_with_checks([GaussianKernel()])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.fixture
def points():
    return np.random.default_rng(0).normal(size=(50, 4))


def test_similarity_is_the_exponential_of_minus_the_squared_distance_over_sigma(points):
    kernel = GaussianKernel(sigma=3.0).fit(points)
    np.testing.assert_allclose(kernel.similarity_, np.exp(-(cdist(points, points) ** 2) / 3.0), rtol=1e-12)
    assert (kernel.similarity_ == kernel.similarity_.T).all()
    assert (kernel.similarity_.diagonal() == 1).all()


def test_default_sigma_is_the_median_squared_distance(points):
    assert GaussianKernel().fit(points).sigma_ == pytest.approx(np.median(pdist(points) ** 2))


def test_repeated_points_do_not_narrow_the_default_sigma():
    points = np.array([[0.0]] * 50 + [[2.0]])
    assert GaussianKernel().fit(points).sigma_ == 4.0


def test_equal_points_and_a_single_point_are_similar_without_a_width_to_measure():
    for points in (np.full((5, 3), 1e8), np.ones((1, 1))):
        kernel = GaussianKernel().fit(points)
        assert kernel.sigma_ == 1.0
        assert (kernel.similarity_ == 1).all()


def test_points_far_from_the_origin_keep_their_distances(points):
    near, far = GaussianKernel().fit(points), GaussianKernel().fit(points + 1e6)
    np.testing.assert_allclose(near.similarity_, far.similarity_, atol=1e-8)


def test_new_points_are_compared_with_the_fitted_ones(points):
    kernel = GaussianKernel().fit(points)
    new = points[:7] + 0.25
    np.testing.assert_allclose(kernel.similarity(points), kernel.similarity_, atol=1e-14)
    np.testing.assert_allclose(kernel.similarity(new), np.exp(-(cdist(new, points) ** 2) / kernel.sigma_), rtol=1e-12)


@pytest.mark.parametrize("sigma", [0, -1.0, np.nan, np.inf, "wide"])
def test_an_impossible_sigma_is_refused(points, sigma):
    with pytest.raises(ParameterError, match="sigma must be"):
        clone(GaussianKernel(sigma=sigma)).fit(points)


def test_an_offset_changes_no_cluster_of_kasp():
    group = np.repeat([0, 1, 2], 100)
    X = np.random.default_rng(0).normal(size=(300, 2)) + np.array([[0, 0], [9, 0], [0, 9]])[group]
    labels = KASP(3, n_signatures=60, random_state=0).fit_predict(X)
    for offset in (1e6, 1e9, 1e10):
        moved = KASP(3, n_signatures=60, random_state=0).fit(X + offset)
        assert adjusted_rand_score(labels, moved.labels_) == 1
        np.testing.assert_array_equal(moved.predict(X + offset), moved.labels_)


def test_a_sigma_in_units_that_float32_cannot_hold_is_refused():
    X = np.random.default_rng(0).normal(size=(100, 2)) * 1000 + 2.0**31
    with pytest.raises(ParameterError, match="float64"):
        DC2Clustering(2, similarity=Gaussian(sigma=1000.0), random_state=0).fit(X.astype(np.float32))
    assert DC2Clustering(2, similarity=Gaussian(sigma=1000.0), random_state=0).fit(X).bandwidth_ == 1000.0
