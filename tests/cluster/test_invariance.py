"""Changes of rows that should not matter change nothing where clusters are clear."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import adjusted_rand_score

from dc2 import KASP, DC2Clustering, RPFCluster
from dc2.spectral import Gaussian
from support.row_changes import CHANGES, clear_clusters

SEEDS = st.integers(0, 2**32 - 1)


@pytest.mark.parametrize("what", CHANGES)
@settings(max_examples=4)
@given(SEEDS, st.integers(1, 5), st.integers(1, 6), st.integers(40, 80))
def test_clear_clusters_stay_whatever_does_not_matter_changes(what, seed, k, width, rows):
    rng = np.random.default_rng(seed)
    X, truth = clear_clusters(rng, k, width, rows)
    changed, places = CHANGES[what](X, rng)
    labels = DC2Clustering(random_state=int(seed) % 1000).fit_predict(changed)
    assert adjusted_rand_score(truth[places], labels) == 1


@settings(max_examples=5)
@given(SEEDS, st.integers(2, 4), st.sampled_from([-6, 0, 6, 9]), st.sampled_from([0.0, 1e3, 1e7]))
def test_gaussian_similarities_find_clear_clusters_at_any_offset_and_scale(seed, k, power, offset):
    X, truth = clear_clusters(np.random.default_rng(seed), k, 3, 60)
    moved = (X + offset) * 10.0**power
    sigma = 40.0 * 100.0**power
    for model in (
        RPFCluster(k, n_signatures=40, similarity=Gaussian(sigma=sigma), random_state=0),
        RPFCluster(k, n_signatures=40, similarity=Gaussian(), random_state=0),
        KASP(k, n_signatures=40, similarity=Gaussian(sigma=sigma), random_state=0),
    ):
        assert adjusted_rand_score(truth, model.fit_predict(moved)) == 1, model


@settings(max_examples=6)
@given(SEEDS, st.integers(2, 3), st.sampled_from([1, 6, 10]), st.integers(1, 4))
def test_groups_of_few_distinct_rows_are_clusters_if_their_number_is_given(seed, k, distinct, width):
    """A group of one distinct row that repeats is a group like any other."""
    rng = np.random.default_rng(seed)
    X, truth = clear_clusters(rng, k, width, distinct)
    often = rng.integers(20, 60, len(X))
    labels = DC2Clustering(k, random_state=0).fit_predict(np.repeat(X, often, axis=0))
    assert adjusted_rand_score(np.repeat(truth, often), labels) == 1
