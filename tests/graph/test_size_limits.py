"""Laws of min_cluster_size, max_cluster_size and balance."""

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score

import dc2
from dc2 import DC2Clustering
from dc2.errors import ParameterError
from dc2.graph.n_clusters import RequestedClusters
from dc2.graph.size_limits import SizeLimits
from dc2.report.reproduce import command_line

X, Y = make_blobs([40, 60, 100, 200], n_features=3, centers=None, cluster_std=0.7, random_state=1)


def sizes_of(rows: Any = X, **parameters: Any) -> np.ndarray:
    return np.bincount(DC2Clustering(random_state=0, **parameters).fit(rows).labels_)


@settings(max_examples=15, deadline=None)
@given(low=st.integers(1, 150), high=st.integers(1, 400), k=st.none() | st.integers(1, 8))
def test_every_possible_pair_of_limits_is_kept(low: int, high: int, k: int | None):
    requested = RequestedClusters() if k is None else RequestedClusters.exactly(k)
    try:
        SizeLimits(low, high).bounds(400.0, 1.0, requested)
    except ParameterError:
        assume(False)
    sizes = sizes_of(n_clusters="auto" if k is None else k, min_cluster_size=low, max_cluster_size=high)
    assert low <= sizes.min() <= sizes.max() <= high
    assert k is None or len(sizes) == k


@given(low=st.integers(1, 60), high=st.integers(1, 60), n=st.integers(1, 60), k=st.none() | st.integers(1, 60))
def test_limits_are_refused_only_if_no_numbers_add_up(low: int, high: int, n: int, k: int | None):
    possible = any(j * low <= n <= j * high for j in (range(1, n + 1) if k is None else [k]))
    requested = RequestedClusters() if k is None else RequestedClusters.exactly(k)
    if possible:
        SizeLimits(low, high).bounds(float(n), 1.0, requested)
    else:
        with pytest.raises(ParameterError, match=r"\d"):
            SizeLimits(low, high).bounds(float(n), 1.0, requested)


def test_clusters_within_the_limits_stay_as_they_are():
    free = DC2Clustering(random_state=0).fit(X)
    limited = DC2Clustering(random_state=0, min_cluster_size=40, max_cluster_size=0.5).fit(X)
    np.testing.assert_array_equal(limited.labels_, free.labels_)
    assert str(limited.verdict_) == str(free.verdict_)


def test_a_small_cluster_joins_as_a_whole():
    free = DC2Clustering(random_state=0).fit_predict(X)
    limited = DC2Clustering(random_state=0, min_cluster_size=50).fit_predict(X)
    assert all(len(np.unique(limited[free == cluster])) == 1 for cluster in np.unique(free))
    assert np.bincount(limited).min() >= 50


def test_a_large_cluster_is_cut_where_fewest_edges_cross():
    blobs, truth = make_blobs([100, 100], centers=[[0, 0], [6, 0]], random_state=0)
    whole = DC2Clustering(n_clusters=1, random_state=0).fit(blobs)
    assert whole.n_clusters_ == 1
    cut = DC2Clustering((1, 2), max_cluster_size=100, random_state=0).fit_predict(blobs)
    assert adjusted_rand_score(truth, cut) > 0.95


@pytest.mark.parametrize(("balance", "k"), [(1, 5), (1.0, 7), (1.3, 4), (2, 3)])
def test_balance_limits_the_largest_by_the_smallest(balance: float, k: int):
    sizes = sizes_of(n_clusters=k, balance=balance)
    assert len(sizes) == k
    assert sizes.max() <= max(np.ceil(balance * sizes.min()), sizes.min() + 1)


def test_balance_keeps_the_number_found():
    free = DC2Clustering(random_state=0).fit(X)
    assert len(sizes_of(balance=1.2)) == free.n_clusters_


def test_weights_and_shares_count_as_rows_do():
    weights = np.full(len(X), 3.0)
    by_weight = DC2Clustering(random_state=0, max_cluster_size=300).fit(X, sample_weight=weights)
    by_share = DC2Clustering(random_state=0, max_cluster_size=0.25).fit(X)
    np.testing.assert_array_equal(by_weight.labels_, by_share.labels_)
    assert np.bincount(by_share.labels_).max() <= 100


def test_signatures_stay_together_within_the_limits():
    rows, _ = make_blobs(4000, centers=3, n_features=3, random_state=0)
    found = DC2Clustering(n_signatures=400, max_cluster_size=800, random_state=0).fit(rows)
    assert np.bincount(found.labels_).max() <= 800


def test_limits_hold_after_loading_and_reclustering(tmp_path):
    model = DC2Clustering(random_state=0, max_cluster_size=120).fit(X)
    model.save(tmp_path / "model.dc2")
    loaded = dc2.load(tmp_path / "model.dc2").recluster(6)
    assert np.bincount(loaded.signature_labels_).max() <= 120
    assert loaded.n_clusters_ == 6
    assert len(loaded.layers_[loaded.layer_]) == len(X)


@pytest.mark.parametrize(
    "parameters",
    [
        {"min_cluster_size": 401},
        {"min_cluster_size": 50, "max_cluster_size": 40},
        {"min_cluster_size": 0.6, "n_clusters": 2},
        {"max_cluster_size": 100, "n_clusters": 3},
        {"min_cluster_size": 90, "max_cluster_size": 95},
        {"min_cluster_size": 0},
        {"max_cluster_size": -5},
        {"min_cluster_size": "many"},
        {"max_cluster_size": float("nan")},
        {"balance": 0.5},
        {"balance": 2, "max_cluster_size": 100},
        {"max_cluster_size": 100, "similarity": "rpf", "n_signatures": 50},
    ],
    ids=str,
)
def test_impossible_limits_are_refused(parameters: dict[str, Any]):
    with pytest.raises(ParameterError, match=r"(?i)size|balance"):
        DC2Clustering(**parameters, random_state=0).fit(X)


def test_equal_rows_that_are_too_many_are_refused_by_their_number():
    rows = np.concatenate([X, np.repeat(X[:1], 99, axis=0)])
    with pytest.raises(ParameterError, match="100"):
        DC2Clustering(max_cluster_size=90, random_state=0).fit(rows)


def test_the_command_that_repeats_a_model_has_the_limits():
    command = command_line(DC2Clustering(min_cluster_size=20, max_cluster_size=0.5))
    assert command is not None
    assert "--min-cluster-size 20 --max-cluster-size 0.5" in command
