"""Any finite rows are clustered as their rescaled copy would be, or refused by the column; numbers have bounds."""

from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

from dc2 import KASP, RASP, Compressor, DC2Clustering, RPFCluster
from dc2.compress.compression import edge_weights
from dc2.errors import InputError, ParameterError
from dc2.report.cluster_statistics import ClusterStatistics, variance_kept
from dc2.report.profiles import cluster_profile
from dc2.spectral import RPF

RNG = np.random.default_rng(0)
X = np.concatenate([RNG.normal(centre, 0.3, size=(60, 3)) for centre in (0, 5, 10)])
SMALL = {"n_signatures": 30, "random_state": 0}
MODELS = {
    "DC2Clustering": DC2Clustering(3, random_state=0),
    "DC2Clustering-signatures": DC2Clustering(3, **SMALL),
    "RPFCluster": RPFCluster(3, similarity=RPF(30), **SMALL),
    "RPFCluster-gaussian": RPFCluster(3, similarity="gaussian", **SMALL),
    "RPFCluster-standard": RPFCluster(3, similarity=RPF(30), scale="standard", **SMALL),
    "RPFCluster-robust": RPFCluster(3, similarity=RPF(30), scale="robust", **SMALL),
    "RASP": RASP(3, **SMALL),
    "KASP": KASP(3, **SMALL),
}
every_model = pytest.mark.parametrize("name", MODELS)
# Powers of two: the copy holds the very same digits.
EXPONENTS = (-1000, -700, -320, -200, -110, 110, 150, 200, 320, 512, 700, 1015)


@every_model
@pytest.mark.parametrize("exponent", EXPONENTS)
def test_rows_of_any_size_are_clustered_as_their_rescaled_copy(name, exponent):
    scaled = np.ldexp(X, exponent)
    model = clone(MODELS[name]).fit(scaled)
    np.testing.assert_array_equal(model.labels_, clone(MODELS[name]).fit(X).labels_)
    np.testing.assert_array_equal(model.predict(scaled), model.labels_)
    assert np.isfinite(model.predict_proba(scaled)).all()


@every_model
@pytest.mark.parametrize("exponent", [-120, -60, 60, 120])
def test_float32_rows_of_any_size_are_clustered_as_their_rescaled_copy(name, exponent):
    rows = np.round(X, 2).astype(np.float32)
    model = clone(MODELS[name]).fit(np.ldexp(rows, exponent))
    np.testing.assert_array_equal(model.labels_, clone(MODELS[name]).fit(rows).labels_)


@every_model
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_new_rows_far_beyond_all_others_have_finite_answers(name, dtype):
    model = clone(MODELS[name]).fit(X.astype(dtype))
    far = X[:20].astype(dtype)
    far[7, 1] = np.finfo(dtype).max / 1e4
    assert np.isfinite(model.predict_proba(far)).all()
    np.testing.assert_array_equal(np.delete(model.predict(far), 7), np.delete(model.predict(X[:20]), 7))


def test_a_value_that_would_hide_all_others_is_refused_by_its_column():
    outlying = X.copy()
    outlying[5, 2] = 1e155
    with pytest.raises(InputError, match=r"scale='robust'.*column 2"):
        clone(MODELS["RPFCluster-robust"]).fit(outlying)
    assert clone(MODELS["RPFCluster-standard"]).fit(outlying).n_clusters_ == 3


@pytest.mark.parametrize("factor", [5e-324, 1e-300, 1e152, 1e200, 1e304])
def test_facts_of_points_of_any_size_are_those_of_ordinary_points(factor):
    whole = np.round(100 * X)  # denormal numbers hold them too
    scaled = whole * factor
    plain, extreme = (clone(MODELS["DC2Clustering"]).fit(rows) for rows in (whole, scaled))
    given = [
        ClusterStatistics(
            rows,
            rows,
            np.full(len(X), 7.0),
            np.zeros(len(X)),
            plain.labels_,
            ("a", "b", "c"),
            plain.n_clusters_,
        )
        for rows in (whole, scaled)
    ]
    ours, theirs = (cluster_profile(clusters) for clusters in given)
    np.testing.assert_allclose(theirs.difference, ours.difference, rtol=1e-6)
    assert all(np.isfinite(theirs.middles(column)[0]).all() for column in range(3))
    assert variance_kept(extreme.signatures_) == pytest.approx(variance_kept(plain.signatures_))


@every_model
def test_weights_of_any_size_leave_probabilities_finite(name):
    weights = 10.0 ** RNG.uniform(-30, 30, len(X))
    probabilities = clone(MODELS[name]).fit(X, sample_weight=weights).predict_proba(X)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)


def test_ties_to_signatures_that_are_infinitely_far_are_alike():
    np.testing.assert_array_equal(edge_weights(np.full((1, 3), np.inf)), np.full((1, 3), np.exp(-1.0)))


@pytest.mark.parametrize("value", [10**6 + 1, 2**63, 10**30])
@pytest.mark.parametrize(
    ("model", "parameter"),
    [
        (Compressor(10), "sharpen"),
        (Compressor(10), "refine"),
        (Compressor(10), "n_jobs"),
        (RPFCluster(3), "similarity__n_trees"),
    ],
)
def test_numbers_that_would_run_for_ever_are_refused(model, parameter, value):
    model = clone(model)
    if "__" in parameter:
        model.set_params(similarity=RPF())
    with pytest.raises(ParameterError, match="must be at most"):
        model.set_params(**{parameter: value}).fit(X)


@pytest.mark.parametrize(
    "model", [Compressor(2**31), DC2Clustering(n_signatures=2**63), RPFCluster(n_signatures=10**30)]
)
def test_more_signatures_than_can_be_numbered_are_refused(model: Any):
    with pytest.raises(ParameterError, match="n_signatures must be at most 2147483647"):
        clone(model).fit(X)
