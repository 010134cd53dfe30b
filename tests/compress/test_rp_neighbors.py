"""RPNeighbors: scikit-learn's contract for nearest neighbours, on the search of the package."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import issparse
from sklearn.datasets import load_digits
from sklearn.manifold import Isomap
from sklearn.neighbors import KNeighborsTransformer, NearestNeighbors
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

import dc2
from dc2 import RPNeighbors
from dc2.errors import InputError, ParameterError

DIGITS = load_digits().data.astype(np.float32)
MANY = np.random.default_rng(0).normal(size=(6_000, 24)).astype(np.float32) @ np.diag(np.linspace(1, 0.1, 24)).astype(
    np.float32
)
NEW = MANY[::20] + np.float32(0.05)


@parametrize_with_checks([RPNeighbors(3, random_state=0), RPNeighbors(3, mode="connectivity", random_state=0)])
def test_scikit_learn_checks_pass(estimator, check):
    check(estimator)


def recall(rows, found, X, k, metric="euclidean"):
    """The share of neighbours that are as near as the true ones."""
    distances, _ = NearestNeighbors(n_neighbors=k, metric=metric, algorithm="brute").fit(rows).kneighbors(X)
    return (found <= distances[:, -1:] * (1 + 1e-4) + 1e-6).mean()


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**32), n=st.integers(3, 120), width=st.integers(1, 9), rounded=st.booleans(),
    dtype=st.sampled_from([np.float32, np.float64]), metric=st.sampled_from(["euclidean", "cosine"]),
)  # fmt: skip
def test_few_rows_have_the_distances_of_scikit_learn_also_among_duplicates(seed, n, width, rounded, dtype, metric):
    rng = np.random.default_rng(seed)
    X, Y = rng.normal(size=(n, width)).astype(dtype), rng.normal(size=(7, width)).astype(dtype)
    if rounded:
        X = np.round(X) + dtype(0.25)
    k = int(rng.integers(1, n))
    ours = RPNeighbors(k, metric=metric, random_state=0, n_jobs=1).fit(X)
    exact = NearestNeighbors(n_neighbors=k, metric=metric, algorithm="brute").fit(X.astype(float))
    tolerance = 1e-3 if dtype == np.float32 else 1e-6
    for queries in (None, Y):
        distances, ids = ours.kneighbors(queries)
        assert distances.dtype == dtype
        expected = exact.kneighbors(None if queries is None else queries.astype(float))[0]
        np.testing.assert_allclose(distances, expected, atol=tolerance)
        assert all(len(set(row)) == k for row in ids.tolist())
    assert (ours.kneighbors()[1] != np.arange(n)[:, None]).all()


def test_many_rows_find_the_stated_share_of_neighbours():
    model = RPNeighbors(15, recall=0.97, random_state=0).fit(MANY)
    assert model.recall_ >= 0.97
    assert recall(MANY, model.kneighbors(NEW)[0], NEW, 15) >= 0.95  # other rows than those that were tried
    among = np.insert(model.kneighbors()[0][:300], 0, 0, axis=1)
    assert recall(MANY, among, MANY[:300], 16) >= 0.98


def test_more_recall_takes_a_wider_beam():
    few, more = (RPNeighbors(recall=share, random_state=0).fit(MANY) for share in (0.5, 0.995))
    assert few.beam_ < more.beam_
    assert few.recall_ < more.recall_


def test_cosine_distances_are_those_of_scikit_learn():
    model = RPNeighbors(10, metric="cosine", random_state=0).fit(DIGITS)
    assert recall(DIGITS, model.kneighbors(DIGITS[:200] + 1)[0], DIGITS[:200] + 1, 10, "cosine") >= 0.97


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.uint8])
def test_every_kind_of_number_is_searched_in_the_precision_it_needs(dtype):
    X = DIGITS.astype(dtype)
    distances, _ = RPNeighbors(4, random_state=0).fit(X).kneighbors(X[:50])
    assert distances.dtype == (np.float64 if dtype == np.float64 else np.float32)
    assert (distances[:, 0] == 0).all()


def test_very_large_and_small_values_keep_their_distances():
    for size in (1e-160, 1e160):
        distances, _ = RPNeighbors(1, random_state=0).fit([[0.0], [size], [3 * size]]).kneighbors()
        np.testing.assert_allclose(distances.ravel() / size, [1, 1, 2])


def test_threads_and_repetition_make_no_difference():
    one = RPNeighbors(recall=0.9, n_jobs=1, random_state=3).fit(MANY)
    for n_jobs in (1, 3):
        other = RPNeighbors(recall=0.9, n_jobs=n_jobs, random_state=3).fit(MANY)
        for queries in (None, NEW):
            for ours, theirs in zip(one.kneighbors(queries), other.kneighbors(queries), strict=True):
                np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("mode", ["distance", "connectivity"])
def test_the_graph_is_that_of_kneighbors_transformer(mode):
    X = MANY[:400].astype(float)
    ours, theirs = (
        RPNeighbors(6, mode=mode, random_state=0).fit(X),
        KNeighborsTransformer(n_neighbors=6, mode=mode).fit(X),
    )
    for found, expected in (
        (ours.transform(NEW), theirs.transform(NEW)),
        (RPNeighbors(6, mode=mode).fit_transform(X), theirs.fit_transform(X)),
        (ours.kneighbors_graph(), theirs.kneighbors_graph()),
        (ours.kneighbors_graph(NEW, 3, mode), theirs.kneighbors_graph(NEW, 3, mode)),
    ):
        assert issparse(found)
        np.testing.assert_allclose(found.toarray(), expected.toarray(), atol=1e-6)
    assert len(ours.get_feature_names_out()) == 400


def test_it_replaces_the_transformer_of_a_pipeline():
    X = MANY[:400]
    ours, theirs = (
        make_pipeline(transformer, Isomap(n_neighbors=8, metric="precomputed")).fit_transform(X)
        for transformer in (RPNeighbors(8, random_state=0), KNeighborsTransformer(n_neighbors=8))
    )
    np.testing.assert_allclose(np.abs(ours), np.abs(theirs), atol=1e-3)


def test_a_saved_and_a_pickled_model_give_the_same_neighbours(tmp_path):
    X = np.concatenate([MANY[:700], MANY[:100]])
    model = RPNeighbors(5, metric="cosine", random_state=0).fit(X)
    model.save(tmp_path / "neighbours.dc2")
    for again in (dc2.load(tmp_path / "neighbours.dc2"), pickle.loads(pickle.dumps(model))):
        assert (again.recall_, again.beam_, again.n_samples_fit_) == (model.recall_, model.beam_, 800)
        for queries in (None, NEW):
            for ours, theirs in zip(model.kneighbors(queries), again.kneighbors(queries), strict=True):
                np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize(
    ("parameters", "named"),
    [
        ({"n_neighbors": 0}, "n_neighbors"),
        ({"metric": "manhattan"}, "metric"),
        ({"mode": "ones"}, "mode"),
        ({"recall": 1.0}, "recall"),
        ({"n_jobs": 0}, "n_jobs"),
    ],
)
def test_an_impossible_parameter_is_named(parameters, named):
    with pytest.raises(ParameterError, match=named):
        RPNeighbors(**parameters).fit(DIGITS)


def test_rows_that_cannot_be_searched_are_refused():
    with pytest.raises(InputError, match="NaN"):
        RPNeighbors().fit([[0.0], [np.nan]])
    with pytest.raises(InputError, match="row 1"):
        RPNeighbors(metric="cosine").fit([[1.0], [0.0]])
    model = RPNeighbors(2).fit([[0.0], [1.0]])
    with pytest.raises(InputError, match="n_neighbors=2"):
        model.kneighbors()
    with pytest.raises(InputError, match="features"):
        model.kneighbors([[0.0, 1.0]], 1)
    with pytest.raises(ParameterError, match="Fit with n_neighbors=60"):
        RPNeighbors(5).fit(MANY).kneighbors(n_neighbors=60)
