"""Laws of metric="precomputed": clusters of a graph of neighbours, without the rows."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import make_blobs, make_moons
from sklearn.metrics import adjusted_rand_score, pairwise_distances
from sklearn.neighbors import KNeighborsTransformer
from sklearn.pipeline import make_pipeline

import dc2
from dc2 import DC2Clustering
from dc2.errors import InputError, ParameterError
from dc2.graph import NeighborGraph

BLOBS = make_blobs(600, centers=4, n_features=5, random_state=0)
MOONS = make_moons(600, noise=0.05, random_state=0)


def neighbours(X: Any, k: int = 15) -> sp.csr_matrix:
    return KNeighborsTransformer(n_neighbors=k).fit_transform(X)


def of_graph(**parameters: Any) -> DC2Clustering:
    return DC2Clustering(metric="precomputed", random_state=0, **parameters)


@pytest.fixture(scope="module")
def fitted() -> DC2Clustering:
    return of_graph().fit(neighbours(BLOBS[0]))


@pytest.mark.parametrize("data", [BLOBS, MOONS], ids=["blobs", "moons"])
def test_a_graph_of_neighbours_gives_the_clusters_of_the_rows(data):
    X, _ = data
    of_rows = DC2Clustering(random_state=0).fit(X)
    of_neighbours = of_graph().fit(neighbours(X))
    assert of_neighbours.n_clusters_ == of_rows.n_clusters_
    assert adjusted_rand_score(of_rows.labels_, of_neighbours.labels_) > 0.98


def test_similarities_in_the_order_of_distances_give_the_same_graph():
    graph = neighbours(BLOBS[0])
    alike = graph.copy()
    alike.data = np.exp(-(alike.data**2) / 8)
    by_distance, by_similarity = of_graph().fit(graph), of_graph(precomputed="similarities").fit(alike)
    assert (by_distance.similarity_.matrix() != by_similarity.similarity_.matrix()).nnz == 0
    np.testing.assert_array_equal(by_distance.labels_, by_similarity.labels_)


def test_neighbours_without_distances_are_enough():
    graph = KNeighborsTransformer(mode="connectivity", n_neighbors=15).fit_transform(MOONS[0])
    found = of_graph(precomputed="similarities").fit(graph)
    assert adjusted_rand_score(MOONS[1], found.labels_) > 0.98


def test_all_distances_of_a_dense_matrix_give_the_clusters_of_the_nearest():
    X = BLOBS[0]
    dense = of_graph().fit(pairwise_distances(X))
    sparse = of_graph().fit(neighbours(X, 20))
    np.testing.assert_array_equal(dense.labels_, sparse.labels_)


def test_one_half_of_a_symmetric_matrix_is_enough():
    graph = neighbours(BLOBS[0])
    both = graph.maximum(graph.T)
    whole, half = of_graph().fit(both), of_graph().fit(sp.triu(both))
    np.testing.assert_array_equal(whole.labels_, half.labels_)


@settings(max_examples=5, deadline=None)
@given(exponent=st.integers(-30, 30), fmt=st.sampled_from(["csr", "csc", "coo", "lil"]))
def test_the_unit_and_the_format_make_no_difference(exponent: int, fmt: str):
    graph = neighbours(MOONS[0][:200])
    np.testing.assert_array_equal(
        of_graph(n_clusters=3).fit((graph * 2.0**exponent).asformat(fmt)).labels_,
        of_graph(n_clusters=3).fit(graph).labels_,
    )


def test_rows_that_at_most_two_others_can_be_reached_from_are_in_no_cluster():
    apart = sp.block_diag([neighbours(MOONS[0]), sp.csr_array((2, 2)), np.ones((3, 3)) - np.eye(3)]).tocsr()
    found = of_graph().fit(apart)
    assert (found.labels_[-5:] == -1).all()
    assert (found.labels_[:-5] >= 0).all()
    assert found.summary()["rows"].tolist()[-1] == 5


def test_noise_is_the_rows_farthest_from_their_neighbours():
    X = np.concatenate([BLOBS[0], [[60.0] * 5, [-60.0] * 5]])
    found = of_graph(noise=2 / len(X)).fit(neighbours(X))
    assert np.flatnonzero(found.labels_ == -1).tolist() == [len(X) - 2, len(X) - 1]


def test_weights_count_in_the_sizes():
    weights = np.arange(1.0, 601.0)
    found = of_graph().fit(neighbours(BLOBS[0]), sample_weight=weights)
    np.testing.assert_allclose(found.summary()["rows"], np.bincount(found.labels_, weights))


def test_what_needs_no_coordinates_works(fitted, tmp_path: Path):
    graph = neighbours(BLOBS[0])
    model = of_graph().fit(graph)
    assert [len(layer) for layer in model.layers_] == [600] * len(model.layers_)
    assert model.verdict_.n_clusters == model.n_clusters_ == 4
    assert model.overall_stability_ > 0.9
    model.report(tmp_path / "report.html")
    model.save(tmp_path / "model.dc2")
    loaded = dc2.load(tmp_path / "model.dc2")
    assert loaded.recluster(3).n_clusters_ == 3
    np.testing.assert_array_equal(loaded.signature_labels_, model.recluster(3).labels_)
    np.testing.assert_array_equal(loaded.predict(graph), model.predict(graph))


def test_in_a_pipeline_new_rows_get_the_cluster_of_their_nearest():
    X, y = MOONS
    pipeline = make_pipeline(KNeighborsTransformer(n_neighbors=15), of_graph()).fit(X[::2])
    np.testing.assert_array_equal(pipeline.predict(X[::2]), pipeline[-1].labels_)
    assert adjusted_rand_score(y[1::2], pipeline.predict(X[1::2])) > 0.98


@pytest.mark.parametrize("method", ["predict_proba", "transform", "outlier_scores", "map"])
def test_what_needs_coordinates_says_so(fitted, method: str):
    with pytest.raises(ParameterError, match="precomputed"):
        getattr(fitted, method)(neighbours(BLOBS[0]))
    with pytest.raises(ParameterError, match="precomputed"):
        _ = fitted.representatives_


GRAPH = neighbours(BLOBS[0][:50])


def with_entry(value: float) -> sp.csr_matrix:
    graph = GRAPH.copy()
    graph.data[7] = value
    return graph


def out_of_range() -> sp.csr_matrix:
    graph = GRAPH.copy()
    graph.indices[3] = 50
    return graph


def asymmetric() -> np.ndarray:
    dense = pairwise_distances(BLOBS[0][:50])
    dense[3, 5] += 1
    return dense


@pytest.mark.parametrize(
    ("matrix", "fact"),
    [
        (with_entry(np.nan), "nan"),
        (with_entry(np.inf), "inf"),
        (with_entry(-1.0), "-1"),
        (out_of_range(), "sparse"),
        (GRAPH[:, :40], "40"),
        (asymmetric(), r"\[3, 5\]"),
        (sp.csr_array((50, 50)), "neighbours"),
        (np.array([["a", "b"], ["b", "a"]]), "numbers"),
    ],
    ids=["nan", "inf", "negative", "range", "square", "asymmetric", "empty", "text"],
)
def test_a_matrix_that_is_no_graph_is_refused(matrix, fact: str):
    with pytest.raises(InputError, match=fact):
        of_graph().fit(matrix)


def test_a_pair_with_two_distances_is_refused():
    graph = sp.csr_array(GRAPH.maximum(GRAPH.T))
    graph[0, graph.indices[1]] += 1
    with pytest.raises(InputError, match="must have one value"):
        of_graph().fit(graph)


def test_neighbours_of_other_rows_are_refused(fitted):
    with pytest.raises(InputError, match="600"):
        fitted.predict(GRAPH)


def test_a_dense_matrix_has_a_largest_size(monkeypatch):
    monkeypatch.setattr("dc2.graph.precomputed.MOST_DENSE", 40)
    with pytest.raises(InputError, match="40"):
        of_graph().fit(pairwise_distances(BLOBS[0][:50]))


@pytest.mark.parametrize(
    "parameters",
    [{"scale": "standard"}, {"n_signatures": 100}, {"similarity": "rpf"}, {"precomputed": "both"}],
    ids=lambda parameters: next(iter(parameters)),
)
def test_parameters_for_rows_are_refused(parameters: dict[str, Any]):
    with pytest.raises(ParameterError, match=next(iter(parameters))):
        of_graph(**parameters).fit(GRAPH)


def test_the_number_of_neighbours_is_that_of_the_similarity():
    found = of_graph(similarity=NeighborGraph(n_neighbors=6)).fit(GRAPH)
    assert found.similarity_.n_neighbors == 6
