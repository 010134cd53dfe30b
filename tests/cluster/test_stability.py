"""Stability: real clusters are found again, pieces of a cloud are not."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dc2
from dc2 import KASP, RASP, DC2Clustering, RPFCluster
from dc2.graph.conquest import came_back, stability
from dc2.spectral import RPF
from support.cluster_data import blobs

FAR = np.repeat([[0.0, 0.0], [30.0, 30.0]], 400, axis=0) + np.random.default_rng(0).normal(size=(800, 2))
CLOUD = np.random.default_rng(1).normal(size=(2000, 4))

CLUSTERERS = {
    "dc2": lambda k: DC2Clustering(k, random_state=0),
    "dc2, compressed": lambda k: DC2Clustering(k, n_signatures=200, random_state=0),
    "rpf": lambda k: RPFCluster(k, n_signatures=200, similarity=RPF(50), random_state=0),
    "rasp": lambda k: RASP(k, n_signatures=100, random_state=0),
    "kasp": lambda k: KASP(k, n_signatures=100, random_state=0),
}


@pytest.mark.parametrize("name", CLUSTERERS)
def test_two_far_blobs_come_back_whole_and_a_cloud_cut_in_five_does_not(name):
    apart = CLUSTERERS[name](2).fit(FAR)
    np.testing.assert_array_equal(apart.stability_, [1.0, 1.0])
    assert apart.overall_stability_ == 1.0
    cut = CLUSTERERS[name](5).fit(CLOUD)
    assert cut.stability_.shape == (5,)
    assert cut.stability_.mean() < 0.7
    assert cut.overall_stability_ < 0.7


def test_stability_does_not_depend_on_threads_and_survives_a_file(tmp_path):
    one = DC2Clustering(4, n_jobs=1, random_state=3).fit(CLOUD)
    three = DC2Clustering(4, n_jobs=3, random_state=3).fit(CLOUD)
    np.testing.assert_array_equal(one.stability_, three.stability_)
    one.save(tmp_path / "model.dc2")
    np.testing.assert_array_equal(dc2.load(tmp_path / "model.dc2").stability_, three.stability_)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(one)).stability_, three.stability_)


def test_stability_is_found_once_and_anew_for_other_clusters():
    model = DC2Clustering(2, random_state=0).fit(FAR)
    first = model.stability_
    assert model.stability_ is first
    model.recluster(6)
    assert model.stability_.shape == (6,)
    assert model.overall_stability_ < 1.0
    model.fit(CLOUD)
    assert model.stability_ is not first


def test_every_layer_and_every_given_number_has_a_stability():
    X, _ = blobs(600, 3)
    model = DC2Clustering(random_state=0).fit(X)
    for layer in range(len(model.layers_)):
        model.recluster(layer=layer)
        assert model.stability_.shape == (model.n_clusters_,)
    for k in (1, 7, 599):
        model.recluster(k)
        assert model.stability_.shape == (k,)
        assert ((model.stability_ >= 0) & (model.stability_ <= 1)).all()


def test_one_cluster_always_comes_back():
    assert DC2Clustering(1).fit(CLOUD).stability_.tolist() == [1.0]
    assert RPFCluster(1, n_signatures=20).fit(CLOUD).stability_.tolist() == [1.0]


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(0, 5)), min_size=1))
def test_a_cluster_comes_back_whole_in_itself_and_never_more_than_whole(nodes):
    labels, other, node_weights = (np.array(column) for column in zip(*nodes, strict=True))
    labels, other = (np.unique(array, return_inverse=True)[1].astype(np.int32) for array in (labels, other))
    found = stability(labels, [labels, other], node_weights.astype(float))
    assert ((found.per_cluster >= 0.5) & (found.per_cluster <= 1.0)).all()
    assert found.per_cluster.min() <= found.overall + 1e-12
    np.testing.assert_array_equal(came_back(labels, labels, np.ones(len(labels))), 1.0)
