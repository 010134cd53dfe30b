"""What RPFCluster chooses by itself, and changing one's mind without the rows."""

import pickle
import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from sklearn.datasets import make_blobs, make_moons
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

import dc2
from dc2 import RPFCluster
from dc2.errors import InputError, ParameterError
from dc2.spectral import RPF
from dc2.spectral.rpf import BANDWIDTHS

SMALL: dict[str, Any] = {"n_signatures": 200, "similarity": RPF(n_trees=200), "random_state": 0}


def at_bandwidth(bandwidth: float | str) -> dict[str, Any]:
    return SMALL | {"similarity": RPF(n_trees=200, bandwidth=bandwidth)}


def blobs(n_clusters: int, n_rows: int = 4000, n_features: int = 2) -> tuple[NDArray[Any], NDArray[Any]]:
    centres = 25.0 * np.random.default_rng(n_clusters).permutation(np.eye(max(n_clusters, n_features)))
    return make_blobs(n_rows, centers=centres[:n_clusters], random_state=0)


@pytest.fixture(scope="module")
def moons() -> NDArray[Any]:
    return make_moons(4000, noise=0.06, random_state=0)[0]


@pytest.fixture
def fitted(moons) -> RPFCluster:
    return RPFCluster(n_clusters="auto", **SMALL).fit(moons)


# The number of clusters


@pytest.mark.parametrize("n_clusters", [2, 3, 6])
def test_blobs_that_stand_apart_are_counted(n_clusters):
    X, y = blobs(n_clusters)
    model = RPFCluster(n_clusters="auto", **SMALL).fit(X)
    assert model.n_clusters_ == n_clusters
    assert adjusted_rand_score(y, model.labels_) > 0.99


def test_two_moons_are_two(fitted):
    assert fitted.n_clusters_ == 2
    assert len(np.unique(fitted.labels_)) == 2


@pytest.mark.parametrize("n_rows", [300, 20_000])
@pytest.mark.parametrize("n_features", [2, 8])
def test_a_gaussian_blob_is_one_cluster(n_rows, n_features):
    X = np.random.default_rng(n_rows).normal(size=(n_rows, n_features))
    model = RPFCluster(n_clusters="auto", **SMALL).fit(X)
    assert model.n_clusters_ == 1
    assert not model.labels_.any()


def test_a_range_bounds_the_number(moons):
    X, _ = blobs(6)
    assert RPFCluster(n_clusters=(2, 20), **SMALL).fit(X).n_clusters_ == 6
    assert 2 <= RPFCluster(n_clusters=(2, 4), **SMALL).fit(X).n_clusters_ <= 4
    assert 7 <= RPFCluster(n_clusters=(7, 9), **SMALL).fit(X).n_clusters_ <= 9
    only = RPFCluster(n_clusters=(3, 3), **SMALL).fit(moons)
    assert only.n_clusters_ == 3
    np.testing.assert_array_equal(only.labels_, RPFCluster(n_clusters=3, **SMALL).fit(moons).labels_)


def test_a_range_beyond_the_number_of_points_ends_there():
    X, _ = blobs(3, 40)
    model = RPFCluster(n_clusters=(2, 1000), **SMALL).fit(X)
    assert model.n_clusters_path_["n_clusters"][-1] <= 40
    assert len(np.unique(model.labels_)) == model.n_clusters_


def test_what_was_considered_is_shown(fitted):
    path = fitted.n_clusters_path_
    assert path["n_clusters"].tolist() == list(range(1, len(path["score"]) + 1))
    assert path["n_clusters"][path["score"].argmax()] == fitted.n_clusters_


def test_a_number_that_was_given_leaves_no_path_of_numbers(fitted):
    fitted.recluster(n_clusters=3)
    assert not hasattr(fitted, "n_clusters_path_")


# The bandwidth


def test_the_bandwidths_considered_are_shown(moons):
    model = RPFCluster(n_clusters=2, **SMALL).fit(moons)
    assert model.bandwidth_path_["bandwidth"].tolist() == list(BANDWIDTHS)
    assert model.bandwidth_path_["score"].shape == (len(BANDWIDTHS),)
    assert model.bandwidth_ in BANDWIDTHS


def test_a_bandwidth_that_was_given_is_used_and_leaves_no_path(moons):
    model = RPFCluster(n_clusters=2, **at_bandwidth(0.07)).fit(moons)
    assert model.bandwidth_ == 0.07
    assert not hasattr(model, "bandwidth_path_")


def test_giving_the_bandwidth_that_was_chosen_changes_nothing(moons):
    chosen = RPFCluster(n_clusters=3, **SMALL).fit(moons)
    given = RPFCluster(n_clusters=3, **at_bandwidth(chosen.bandwidth_)).fit(moons)
    np.testing.assert_array_equal(chosen.signature_labels_, given.signature_labels_)
    np.testing.assert_array_equal(chosen.eigenvalues_, given.eigenvalues_)


def test_giving_the_number_that_was_chosen_changes_nothing(fitted, moons):
    given = RPFCluster(n_clusters=fitted.n_clusters_, **SMALL).fit(moons)
    np.testing.assert_array_equal(fitted.signature_labels_, given.signature_labels_)
    assert fitted.bandwidth_ == given.bandwidth_


@pytest.mark.parametrize("weighted", [False, True])
def test_choices_do_not_depend_on_threads_or_blocks(moons, weighted):
    one, eight = (
        RPFCluster("auto", weighted=weighted, n_jobs=n_jobs, block_bytes=size, **SMALL).fit(moons)
        for n_jobs, size in ((1, 1 << 24), (8, 1 << 14))
    )
    np.testing.assert_array_equal(one.n_clusters_path_["score"], eight.n_clusters_path_["score"])
    np.testing.assert_array_equal(one.labels_, eight.labels_)


# recluster


@pytest.mark.parametrize("choice", [{"n_clusters": 2}, {"n_clusters": 5}, {"bandwidth": 0.08}, {"n_clusters": (3, 9)},
                                    {"n_clusters": 4, "bandwidth": 0.03}, {"n_clusters": "auto"}], ids=str)  # fmt: skip
@pytest.mark.parametrize("weighted", [False, True])
def test_recluster_is_a_fresh_fit_with_what_was_given(moons, choice, weighted):
    model = RPFCluster(3, weighted=weighted, **SMALL).fit(moons).recluster(**choice)
    fresh = RPFCluster(choice.get("n_clusters", 3), weighted=weighted, **at_bandwidth(choice.get("bandwidth", "auto")))
    fresh.fit(moons)
    np.testing.assert_array_equal(model.signature_labels_, fresh.signature_labels_)
    np.testing.assert_array_equal(model.labels_, fresh.labels_)
    np.testing.assert_array_equal(model.eigenvalues_, fresh.eigenvalues_)
    np.testing.assert_array_equal(model.embedding_, fresh.embedding_)
    assert model.similarity_.matrix().tobytes() == fresh.similarity_.matrix().tobytes()
    assert (model.bandwidth_, model.n_clusters_) == (fresh.bandwidth_, fresh.n_clusters_)


def test_after_recluster_labels_are_predictions(fitted, moons):
    fitted.recluster(n_clusters=7)
    np.testing.assert_array_equal(fitted.labels_, fitted.predict(moons))
    assert fitted.transform(moons[:5]).shape == (5, 7)
    assert len(np.unique(fitted.labels_)) == 7


def test_recluster_does_not_touch_the_parameters(fitted):
    before = repr(fitted.get_params())
    fitted.recluster(n_clusters=5, bandwidth=0.03)
    assert repr(fitted.get_params()) == before
    assert (fitted.n_clusters_, fitted.bandwidth_) == (5, 0.03)


def test_recluster_keeps_what_was_asked_for_last(fitted, moons):
    """The last request counts, not the parameter."""
    fitted.recluster(n_clusters=5).recluster(bandwidth=0.08)
    fresh = RPFCluster(5, **at_bandwidth(0.08)).fit(moons)
    np.testing.assert_array_equal(fitted.labels_, fresh.labels_)


def test_a_range_is_the_pair_of_its_ends(moons):
    pair, steps = (RPFCluster(requested, **SMALL).fit(moons) for requested in ((2, 10), range(2, 11)))
    np.testing.assert_array_equal(pair.labels_, steps.labels_)
    for name, values in pair.n_clusters_path_.items():
        np.testing.assert_array_equal(values, steps.n_clusters_path_[name])


def test_rows_so_few_that_no_number_scores_still_have_clusters():
    X = np.random.default_rng(0).normal(size=(6, 1))
    model = RPFCluster((2, 6), similarity=RPF(n_trees=50, leaf_size=30), random_state=0)
    with pytest.warns(ConvergenceWarning, match="only 1 distinct"):
        model.fit(X)
    assert not model.labels_.any()


@given(st.integers(1, 8), st.integers(0, 6), st.integers(1, 12), st.booleans(), st.integers(0, 3))
@settings(max_examples=60)
def test_any_range_over_any_handful_of_rows_finds_a_number_within(low, more, n_rows, equal, seed):
    X = np.round(np.random.default_rng(seed).normal(size=(n_rows, 1)), 0 if equal else 6)
    model = RPFCluster((low, low + more), similarity=RPF(n_trees=8), random_state=seed)
    if n_rows < low:
        with pytest.raises(InputError, match=f"n_clusters={low}"):
            model.fit(X)
        return
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ConvergenceWarning)
        model.fit(X)
    assert 1 <= model.n_clusters_ <= min(low + more, len(np.unique(X)))
    assert model.n_clusters_ >= low or [w.category for w in caught] == [ConvergenceWarning]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_recluster_takes_again_what_a_fit_has_taken():
    rows = np.repeat([[0.0], [1.0]], 5, axis=0)
    for model in (dc2.DC2Clustering(5, random_state=0), RPFCluster(5, n_signatures=8, random_state=0)):
        labels = model.fit(rows).labels_
        assert np.array_equal(model.recluster().labels_, labels)
        with pytest.raises(InputError, match="more clusters than there are signatures"):
            model.recluster(6)


def test_recluster_there_and_back_is_the_first_fit(fitted):
    before = fitted.signature_labels_.copy()
    fitted.recluster(n_clusters=6, bandwidth=0.1).recluster(n_clusters="auto", bandwidth="auto")
    np.testing.assert_array_equal(fitted.signature_labels_, before)


def test_recluster_works_where_the_seed_was_a_generator_or_none(moons):
    for seed in (None, np.random.default_rng(3), np.random.RandomState(3)):
        model = RPFCluster(3, n_signatures=100, similarity=RPF(n_trees=50), random_state=seed).fit(moons)
        before = model.signature_labels_.copy()
        model.recluster(n_clusters=5).recluster(n_clusters=3)
        np.testing.assert_array_equal(model.signature_labels_, before)


def test_recluster_works_after_fit_signatures(moons):
    signatures = RPFCluster(2, **SMALL).fit(moons).signatures_
    model = RPFCluster(2, **SMALL).fit_signatures(signatures).recluster(n_clusters=4)
    assert len(np.unique(model.predict(moons))) == 4


@pytest.mark.parametrize(
    ("choice", "error"),
    [
        ({"n_clusters": 0}, ParameterError),
        ({"n_clusters": "several"}, ParameterError),
        ({"n_clusters": (4, 2)}, ParameterError),
        ({"n_clusters": 201}, ValueError),
        ({"bandwidth": -1.0}, ParameterError),
        ({"bandwidth": "wide"}, ParameterError),
        ({"bandwidth": 0.1, "n_clusters": 2.5}, ParameterError),
    ],
    ids=str,
)
def test_an_impossible_choice_leaves_the_model_as_it_was(fitted, choice, error):
    before = pickle.dumps(fitted)
    labels = fitted.labels_.copy()
    with pytest.raises(error):
        fitted.recluster(**choice)
    assert pickle.dumps(fitted) == before
    np.testing.assert_array_equal(fitted.labels_, labels)


def test_more_clusters_than_signatures_of_few_rows_is_an_error():
    model = RPFCluster(2, random_state=0).fit(blobs(2, 30)[0])
    with pytest.raises(InputError, match="n_clusters=31"):
        model.recluster(n_clusters=31)
    assert model.n_clusters == 2


def test_recluster_before_fit_is_an_error():
    with pytest.raises(Exception, match="not fitted"):
        RPFCluster().recluster(n_clusters=3)


@pytest.mark.parametrize("way", ["pickle", "save"])
def test_a_stored_model_has_its_choices_and_can_be_reclustered(fitted, moons, way, tmp_path):
    if way == "pickle":
        again = pickle.loads(pickle.dumps(fitted))
    else:
        fitted.save(tmp_path / "model.dc2")
        again = dc2.load(tmp_path / "model.dc2")
    assert again.n_clusters_ == fitted.n_clusters_
    for path in ("bandwidth_path_", "n_clusters_path_"):
        for name, values in getattr(fitted, path).items():
            np.testing.assert_array_equal(getattr(again, path)[name], values)
    fitted.recluster(n_clusters=5)
    again.recluster(n_clusters=5)
    np.testing.assert_array_equal(again.predict(moons), fitted.labels_)


# Soft membership


def test_memberships_are_shares_and_mostly_agree_with_the_labels(fitted, moons):
    shares = fitted.predict_proba(moons)
    assert shares.shape == (len(moons), 2)
    assert (shares >= 0).all()
    np.testing.assert_allclose(shares.sum(axis=1), 1.0, rtol=1e-5)
    assert (shares.argmax(axis=1) == fitted.labels_).mean() > 0.98


def test_memberships_follow_recluster(fitted, moons):
    assert fitted.recluster(n_clusters=5).predict_proba(moons[:10]).shape == (10, 5)


def test_memberships_deep_inside_a_blob_are_certain():
    X, _ = blobs(3)
    shares = RPFCluster(3, **SMALL).fit(X).predict_proba(X)
    assert np.median(shares.max(axis=1)) == 1.0
