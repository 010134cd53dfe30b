"""Laws of must_link and cannot_link."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score

import dc2
from dc2 import DC2Clustering
from dc2.errors import InputError, ParameterError

X, TRUTH = make_blobs(300, centers=4, n_features=8, random_state=3)


def fit(must: Any = None, cannot: Any = None, y: Any = None, rows: Any = X, **parameters: Any) -> DC2Clustering:
    return DC2Clustering(random_state=0, **parameters).fit(rows, y, must_link=must, cannot_link=cannot)


def kept(labels: np.ndarray, must: np.ndarray, cannot: np.ndarray) -> bool:
    together, apart = labels[must], labels[cannot]
    return bool((together[:, 0] == together[:, 1]).all() and (apart[:, 0] != apart[:, 1]).all())


@settings(max_examples=8, deadline=None)
@given(seed=st.integers(0, 1000), n_must=st.integers(0, 12), n_cannot=st.integers(1, 12))
def test_every_link_that_contradicts_no_other_is_kept(seed: int, n_must: int, n_cannot: int):
    draw = np.random.default_rng(seed)
    side = draw.integers(0, 3, len(X))  # links agree with these sides, which have nothing to do with the rows
    pairs = draw.integers(0, len(X), (4000, 2))
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    same = side[pairs[:, 0]] == side[pairs[:, 1]]
    must, cannot = pairs[same][:n_must], pairs[~same][:n_cannot]
    assert kept(fit(must, cannot).labels_, must, cannot)


def test_links_that_agree_with_the_clusters_change_nothing():
    free = DC2Clustering(random_state=0).fit(X)
    first = [np.flatnonzero(free.labels_ == cluster)[:2] for cluster in range(4)]
    linked = fit(must=first, cannot=[(first[0][0], first[1][0]), (first[2][0], first[3][0])])
    np.testing.assert_array_equal(linked.labels_, free.labels_)


def test_a_must_link_joins_clusters_and_a_cannot_link_cuts_one_at_its_gap():
    ends = [np.flatnonzero(cluster == TRUTH)[0] for cluster in range(4)]
    joined = fit(must=[(ends[0], ends[1])])
    assert adjusted_rand_score(np.where(TRUTH == 1, 0, TRUTH), joined.labels_) > 0.98
    cut = fit(cannot=[(ends[0], ends[1])], n_clusters=3).labels_
    whole = DC2Clustering(3, random_state=0).fit_predict(X)
    if whole[ends[0]] == whole[ends[1]]:
        assert adjusted_rand_score(TRUTH, cut) > 0.98
    two, halves = make_blobs(200, centers=[[0, 0], [6, 0]], random_state=0)
    apart = (np.flatnonzero(halves == 0)[0], np.flatnonzero(halves == 1)[0])
    assert adjusted_rand_score(halves, fit(cannot=[apart], rows=two, n_clusters=(1, 2)).labels_) > 0.9


def test_links_and_labels_go_together():
    y = np.full(len(X), -1)
    y[np.flatnonzero(TRUTH == 0)[:3]] = 7
    lone = np.flatnonzero(TRUTH == 1)[0]
    model = fit(must=[(np.flatnonzero(y == 7)[0], lone)], y=y)
    assert model.classes_[model.labels_[lone]] == 7


def test_links_survive_saving_and_reclustering(tmp_path):
    must, cannot = np.array([[0, 1], [2, 3]]), np.array([[0, 2], [4, 5]])
    model = fit(must, cannot)
    assert not hasattr(model, "classes_")
    model.save(tmp_path / "model.dc2")
    loaded = dc2.load(tmp_path / "model.dc2").recluster((2, 6))
    assert loaded.n_clusters_ == model.recluster((2, 6)).n_clusters_
    assert kept(model.labels_, must, cannot)


@pytest.mark.parametrize(
    ("arguments", "fact"),
    [
        ({"must": [(0, 1), (1, 2)], "cannot": [(0, 2)]}, "rows 0 and 2"),
        ({"cannot": [(4, 4)]}, "rows 4 and 4"),
        ({"must": [(0, 300)]}, "300"),
        ({"cannot": [(-1, 3)]}, "-1"),
        ({"must": [0, 1, 2]}, "pairs"),
        ({"must": [(0.5, 1)]}, "pairs"),
        ({"must": [(0, 1)], "y": [1, 2] + [-1] * 298}, "label 1"),
        ({"cannot": [(0, 1)], "y": [1, 1] + [-1] * 298}, "rows 0 and 1"),
        ({"cannot": [(0, 1)], "n_clusters": 1}, "n_clusters=1"),
        ({"must": [(0, 1)], "max_cluster_size": 100}, "sizes"),
    ],
)
def test_contradictions_are_named(arguments: dict[str, Any], fact: str):
    with pytest.raises((InputError, ParameterError), match=fact):
        fit(**arguments)


def test_equal_rows_cannot_be_apart():
    rows = np.concatenate([X, X[:1]])
    with pytest.raises(InputError, match="rows 0 and 300"):
        fit(cannot=[(0, 300)], rows=rows)
