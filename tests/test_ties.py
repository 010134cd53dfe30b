"""Ties: signatures are alike if the same rows lie near both."""

import numpy as np
import pytest
from sklearn.datasets import make_blobs, make_moons

import dc2
from dc2 import Compressor, RPFCluster, clustering_accuracy
from dc2.compress.sample import Sample
from dc2.compress.ties import TIES, shared_rows, tie_weights


@pytest.fixture(scope="module")
def blobs():
    return make_blobs(6000, centers=4, n_features=6, random_state=0)


def compressed(X, n_signatures=40):
    return Compressor(n_signatures, populate="nearest", random_state=0).fit(X).router_


def sample_of(X, weights=None):
    total = float(len(X) if weights is None else weights.sum())
    return Sample(np.arange(len(X)), X, weights, len(X), total)


def test_the_ties_of_a_row_weigh_one_together_and_nearer_ones_more():
    weights = tie_weights(np.array([[1.0, 2.0, 3.0], [0.0, 0.0, 0.0]], np.float32))
    np.testing.assert_allclose(weights.sum(axis=1), 1.0)
    assert (np.diff(weights[0]) < 0).all()
    np.testing.assert_allclose(weights[1], 1 / 3)


def test_shared_rows_are_those_of_the_definition(blobs):
    X, _ = blobs
    router = compressed(X)
    ids, squared = router.nearest_few(X, TIES)
    B = np.zeros((len(X), len(router.centres)))
    np.put_along_axis(B, ids.astype(np.intp), tie_weights(squared), axis=1)
    B = B[:: max(1, len(X) // (64 * B.shape[1]))]
    product = B.T @ B
    expected = product / np.sqrt(np.outer(np.diagonal(product), np.diagonal(product)))
    shared = shared_rows(router, sample_of(X), 2)
    np.testing.assert_allclose(shared, expected, rtol=1e-5)
    np.testing.assert_array_equal(shared, shared.T)
    np.testing.assert_array_equal(np.diagonal(shared), 1.0)


def test_where_no_row_is_tied_to_a_signature_all_its_entries_are_one(blobs):
    X, y = blobs
    shared = shared_rows(compressed(X), sample_of(X[y == 0]), 1)
    untied = (shared == 1.0).all(axis=0)
    assert untied.any()
    assert not untied.all()
    assert (shared[untied] == 1.0).all()


def test_integer_weights_are_repeats(blobs):
    X, _ = blobs
    router, X = compressed(X), X[:1000]
    repeats = np.random.default_rng(0).integers(1, 4, len(X))
    weighted = shared_rows(router, sample_of(X, repeats.astype(np.float64)), 1)
    np.testing.assert_allclose(
        weighted, shared_rows(router, sample_of(np.repeat(X, repeats, axis=0)), 1), rtol=1e-5
    )


def test_one_thread_gives_what_eight_give(blobs):
    X, _ = blobs
    router = compressed(X)
    np.testing.assert_array_equal(shared_rows(router, sample_of(X), 1), shared_rows(router, sample_of(X), 8))


@pytest.mark.parametrize("populate", ["leaf", "nearest"])
def test_ties_find_shapes_and_survive_predict_recluster_and_saving(tmp_path, populate):
    X, y = make_moons(40_000, noise=0.06, random_state=0)
    model = RPFCluster(2, n_signatures=300, similarity="ties", populate=populate, random_state=0).fit(X)
    assert clustering_accuracy(y, model.labels_) > 0.99
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    model.save(tmp_path / "model.dc2")
    loaded = dc2.load(tmp_path / "model.dc2")
    assert loaded.recluster(bandwidth=0.05).n_clusters_ == 2
    assert clustering_accuracy(y, loaded.predict(X)) > 0.99


def test_the_similarity_is_that_of_the_forest_times_the_shared_rows(blobs):
    X, _ = blobs
    forest = RPFCluster(4, n_signatures=60, bandwidth=0.05, random_state=0).fit(X)
    ties = RPFCluster(4, n_signatures=60, bandwidth=0.05, similarity="ties", random_state=0).fit(X)
    with_ties, without = ties._signature_similarity(0.05), forest._signature_similarity(0.05)
    assert (with_ties <= without).all()
    assert (with_ties < without).any()


def test_what_ties_cannot_do_is_refused_at_once(blobs):
    X, _ = blobs
    with pytest.raises(ValueError, match="fit_signatures has none"):
        RPFCluster(2, similarity="ties").fit_signatures(Compressor(20).fit(X).signatures_)
    with pytest.raises(ValueError, match="divide='projection'"):
        RPFCluster(2, similarity="ties", divide="sampling", n_partitions=2).fit(X)
    with pytest.raises(ValueError, match="similarity"):
        RPFCluster(2, similarity="cosine").fit(X)
