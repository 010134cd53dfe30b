"""The dimension of rows at large scale, and curves, which are one cluster however thick they are."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dc2 import DC2Clustering
from dc2.graph.density import dimension_for_cuts, large_scale_dimension


def noisy_ring(n, columns, noise, seed):
    draw = np.random.default_rng(seed)
    turn = draw.uniform(0, 2 * np.pi, n)
    X = np.zeros((n, columns))
    X[:, 0], X[:, 1] = np.cos(turn), np.sin(turn)
    return X + draw.normal(0, noise, X.shape)


@pytest.mark.parametrize("columns", [2, 4])
def test_a_noisy_ring_is_one_cluster(columns):
    model = DC2Clustering(random_state=0).fit(noisy_ring(5000, columns, 0.05, 5000 + columns))
    assert model.n_clusters_ == 1


@pytest.mark.parametrize(("dimension", "least", "most"), [(1, 1.0, 1.3), (2, 1.6, 2.2), (5, 2.8, 5.5)])
def test_the_dimension_of_cubes(dimension, least, most):
    X = np.random.default_rng(0).uniform(size=(2000, dimension))
    assert least <= large_scale_dimension(X) <= most
    assert large_scale_dimension(1e-30 * X) == pytest.approx(large_scale_dimension(X))


@pytest.mark.parametrize("X", [np.zeros((100, 2)), np.eye(40), np.zeros((3, 2))])
def test_points_that_have_no_dimension(X):
    assert large_scale_dimension(X) == np.inf


@settings(deadline=None)
@given(local=st.floats(1, 50), large=st.floats(1, 50))
def test_cuts_go_by_a_dimension_between_both(local, large):
    found = dimension_for_cuts(local, large)
    assert min(local, large) - 1e-9 <= found <= local + 1e-9


@given(local=st.floats(1, 50))
def test_a_larger_dimension_at_large_never_counts_less(local):
    found = [dimension_for_cuts(local, large) for large in np.linspace(1, 5, 50)]
    assert (np.diff(found) >= -1e-9).all()
