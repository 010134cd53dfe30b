"""Laws of fit(X, y): labels of some rows."""

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import make_blobs, make_moons
from sklearn.metrics import adjusted_rand_score
from sklearn.neighbors import KNeighborsTransformer

import dc2
from dc2 import DC2Clustering
from dc2.errors import InputError, ParameterError
from dc2.graph.constraints import RowLabels

X, TRUTH = make_blobs(600, centers=5, n_features=8, random_state=3)
FREE = DC2Clustering(random_state=0).fit(X)


def some(share: float = 0.05, classes: Any = range(5), seed: int = 0) -> np.ndarray:
    known = (np.random.default_rng(seed).random(len(X)) < share) & np.isin(TRUTH, list(classes))
    return np.where(known, TRUTH, -1)


def fit(y: Any, rows: Any = X, **parameters: Any) -> DC2Clustering:
    return DC2Clustering(random_state=0, **parameters).fit(rows, y)


@settings(max_examples=8, deadline=None)
@given(seed=st.integers(0, 1000), shuffled=st.booleans())
def test_labelled_rows_are_in_the_cluster_with_their_name(seed: int, shuffled: bool):
    y = some(seed=seed)
    if shuffled:  # labels that have nothing to do with the rows are kept too
        y = np.random.default_rng(seed).permutation(y)
    model = fit(y)
    known = y >= 0
    assert model.classes_[model.labels_[known]].tolist() == y[known].tolist()
    assert [name for name in model.classes_ if name is not None] == sorted(
        np.unique(y[known]).tolist(), key=model.classes_.tolist().index
    )


def test_clusters_that_nobody_labelled_are_found():
    model = fit(some(classes=[0, 3]))
    assert sorted(name for name in model.classes_ if name is not None) == [0, 3]
    assert model.n_clusters_ == FREE.n_clusters_
    assert adjusted_rand_score(TRUTH, model.labels_) > 0.98


def test_labels_divide_a_cluster_and_join_two():
    rows, half = make_moons(600, noise=0.05, random_state=0)
    y = np.full(600, -1)
    y[::20] = (rows[::20, 0] > 0.5).astype(int)  # left and right, across both moons
    model = DC2Clustering(random_state=0).fit(rows, y)
    assert model.n_clusters_ == 2
    assert adjusted_rand_score(rows[:, 0] > 0.5, model.labels_) > adjusted_rand_score(rows[:, 0] > 0.5, half) + 0.1


def test_more_labels_never_make_the_rest_worse():
    rows, truth = make_moons(1500, noise=0.12, random_state=0)
    order = np.random.default_rng(0).permutation(len(rows))
    rest, scores = order[300:], []
    for labelled in (0, 10, 100, 300):
        y = np.full(len(rows), -1)
        y[order[:labelled]] = truth[order[:labelled]]
        scores.append(adjusted_rand_score(truth[rest], fit(y, rows).labels_[rest]))
    assert np.diff(scores).min() > -0.01
    assert scores[-1] > scores[0] + 0.05


@pytest.mark.parametrize(
    "y",
    [
        some().astype(float),
        np.where(some() < 0, np.nan, some()),
        [None if label < 0 else int(label) for label in some()],
        np.ma.masked_equal(some(), -1),
        pd.Series(np.where(some() < 0, None, some())).astype("Int64"),
    ],
    ids=["float", "nan", "none", "masked", "Int64"],
)
def test_unknown_labels_are_written_in_any_usual_way(y: Any):
    model = fit(y)
    np.testing.assert_array_equal(model.labels_, fit(some()).labels_)
    assert {name for name in model.classes_ if name is not None} == {0, 1, 2, 3, 4}


@pytest.mark.parametrize("library", [pd, pl], ids=["pandas", "polars"])
def test_a_column_of_a_frame_holds_the_labels(library: Any):
    names = np.array(["ant", "bee", "cat", "dog", "eel"], dtype=object)
    column = [None if label < 0 else names[label] for label in some()]
    frame = library.DataFrame({f"x{i}": X[:, i] for i in range(8)} | {"kind": column})
    model = fit("kind", frame)
    assert model.feature_names_in_.tolist() == [f"x{i}" for i in range(8)]
    assert {name for name in model.classes_ if name is not None} == set(names)
    np.testing.assert_array_equal(model.labels_, fit(some()).labels_)


@pytest.mark.parametrize("y", [None, TRUTH, np.full(600, -1), np.zeros(600)], ids=["none", "all", "unknown", "zeros"])
def test_labels_of_all_rows_or_of_none_change_nothing(y: Any):
    model = fit(y)
    np.testing.assert_array_equal(model.labels_, FREE.labels_)
    assert not hasattr(model, "classes_")


def test_labelled_rows_of_signatures_keep_their_labels():
    rows, truth = make_blobs(4000, centers=4, n_features=8, random_state=0)
    y = np.where(np.random.default_rng(0).random(4000) < 0.05, truth, -1)
    y[0] = (truth[0] + 1) % 4  # another label than its signature has
    model = fit(y, rows, n_signatures=300)
    assert model.classes_[model.labels_[y >= 0]].tolist() == y[y >= 0].tolist()
    assert adjusted_rand_score(truth, model.predict(rows)) > 0.99


def test_labels_of_rows_in_a_file_name_its_clusters(tmp_path):
    path = tmp_path / "rows.csv"
    pd.DataFrame(X).add_prefix("x").to_csv(path, index=False)
    of_file, in_memory = fit(some(), path), fit(some())
    assert of_file.classes_.tolist() == in_memory.classes_.tolist()
    np.testing.assert_array_equal(np.concatenate(list(of_file.predict(path))), in_memory.predict(X))


def test_labels_of_a_given_graph():
    graph = KNeighborsTransformer(n_neighbors=15).fit_transform(X)
    model = fit(some(classes=[1]), graph, metric="precomputed")
    assert adjusted_rand_score(TRUTH, model.labels_) > 0.98
    assert [name for name in model.classes_ if name is not None] == [1]


def test_names_are_in_the_summary_and_survive_saving_and_reclustering(tmp_path):
    model = fit(some(classes=[2, 4]))
    assert model.summary()["class"].dropna().tolist() == [name for name in model.classes_ if name is not None]
    model.save(tmp_path / "model.dc2")
    loaded = dc2.load(tmp_path / "model.dc2")
    assert loaded.classes_.tolist() == model.classes_.tolist()
    for k in (3, 7):
        assert loaded.recluster(k).n_clusters_ == k
        assert {2, 4} <= set(loaded.classes_.tolist())


def test_noise_is_no_label():
    model = fit(some(), noise=0.2)
    known = some() >= 0
    assert (model.labels_ == -1).any()
    assert (model.labels_[known] >= 0).all()


def test_fit_predict_takes_labels_too():
    np.testing.assert_array_equal(DC2Clustering(random_state=0).fit_predict(X, some()), fit(some()).labels_)


@pytest.mark.parametrize(
    ("y", "parameters", "fact"),
    [
        (some()[:-1], {}, "599"),
        (some(), {"n_clusters": 3}, "5 labels"),
        (some(), {"similarity": "rpf", "n_signatures": 50}, "similarity"),
        (some(), {"max_cluster_size": 300}, "sizes"),
        ("kind", {}, "kind"),
    ],
    ids=["length", "number", "similarity", "limits", "column"],
)
def test_what_contradicts_is_refused(y: Any, parameters: dict[str, Any], fact: str):
    with pytest.raises((InputError, ParameterError), match=fact):
        fit(y, **parameters)


def test_a_label_whose_rows_all_equal_rows_of_another_is_refused():
    y = np.full(700, -1)
    y[600:650], y[650] = 0, 1
    rows = np.concatenate([X, np.repeat(X[:1], 100, axis=0)])
    with pytest.raises(InputError, match="label 1"):
        fit(y, rows)


def test_a_column_that_is_not_there_is_named():
    with pytest.raises(ParameterError, match="'kind'"):
        fit("kind", pd.DataFrame(X).add_prefix("x"))


def test_labels_are_sorted_and_plain():
    assert RowLabels.of(np.array([2.0, -1, 0, np.nan])).names == (0, 2)
    assert RowLabels.of([True, None, False]).names == (False, True)
