"""Laws of the top of the hierarchy: clusters without edges between them are ordered by distance, up to one root."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from dc2 import DC2Clustering


def numbers(model: DC2Clustering) -> list[int]:
    return [int(layer.max()) + 1 for layer in model.layers_]


def labels_of(model: DC2Clustering, n_clusters: int) -> np.ndarray:
    return model.recluster(layer=numbers(model).index(n_clusters)).labels_


def test_clusters_in_far_groups_have_a_layer_of_the_groups():
    draw = np.random.default_rng(0)
    groups = 200 * np.linalg.qr(draw.normal(size=(6, 6)))[0]
    centres = np.repeat(groups, 5, axis=0) + 12 * draw.normal(size=(30, 6))
    y = draw.integers(0, 30, 3000)
    model = DC2Clustering(random_state=0).fit(centres[y] + draw.normal(size=(3000, 6)))
    assert {6, 30} <= set(numbers(model))
    assert adjusted_rand_score(y // 5, labels_of(model, 6)) == 1


def test_shapes_cut_by_gaps_in_sampling_are_whole_in_a_layer():
    draw = np.random.default_rng(0)
    turn, y = draw.uniform(0, 6, 3000), draw.integers(0, 4, 3000)
    shape = np.stack([np.cos(turn * np.pi / 3), np.sin(turn * np.pi / 3)], axis=1)
    X = shape + 6 * np.array([[0, 0], [1, 0], [0, 1], [1, 1]])[y] + draw.normal(0, 0.02, (3000, 2))
    sampled = turn % 1 < 0.8
    model = DC2Clustering(random_state=0).fit(X[sampled])
    assert adjusted_rand_score(y[sampled], labels_of(model, 4)) == 1


def test_the_tree_ends_in_one_root_and_heights_never_fall():
    draw = np.random.default_rng(0)
    X = draw.normal(size=(600, 3)) + 30 * np.repeat(np.eye(3), 200, axis=0)
    for n_clusters in ("auto", 2, 1):
        model = DC2Clustering(n_clusters, random_state=0).fit(X)
        assert len(model.cluster_tree_) == len(model.layers_)
        assert not model.cluster_tree_[-1].any()
        assert len(model.layer_heights_) == len(model.layers_) + 1
        assert (np.diff(model.layer_heights_) >= 0).all()


@pytest.mark.parametrize(
    ("n_rows", "columns", "clusters", "k"),
    [(600, 4, 12, 12), (600, 4, 12, 90), pytest.param(10_000, 16, 200, 200, marks=pytest.mark.slow)],
)
def test_asking_again_for_a_number_gives_what_a_fit_with_it_gives(n_rows, columns, clusters, k):
    draw = np.random.default_rng(0)
    y = draw.integers(clusters, size=n_rows)
    X = (3 * draw.normal(size=(clusters, columns))[y] + draw.normal(size=(n_rows, columns))).astype(np.float32)
    again = DC2Clustering(random_state=0).fit(X).recluster(k)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # 90 clusters do not show
        once = DC2Clustering(k, random_state=0).fit(X)
    assert np.array_equal(again.labels_, once.labels_)
    assert again.n_clusters_ == k
