"""The summary: its rows add up, its typical rows are real, and it comes in the frame that the user works with."""

import html
import pickle
import re
import sys
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.datasets import make_blobs

import dc2
from dc2 import KASP, RASP, DC2Clustering, RPFCluster
from dc2.errors import ClustersDoNotShowWarning, InputError
from dc2.io.columns import as_frame
from dc2.report import ClusterStatistics
from dc2.report.profiles import column_remarks, heaviest_of_clusters
from dc2.spectral import RPF

RNG = np.random.default_rng(0)
X = np.repeat([[0.0, 0.0, 0.0], [30.0, 30.0, 0.0], [0.0, 30.0, 0.0]], [600, 300, 100], axis=0)
X += RNG.normal(size=X.shape)
NAMES = ["temperature", "humidity", "wind"]
CLOUD = RNG.normal(size=(1500, 3))

CLUSTERERS = {
    "rows": DC2Clustering(random_state=0),
    "compressed": DC2Clustering(n_signatures=100, random_state=0),
    "scaled": DC2Clustering(n_signatures=100, scale="standard", random_state=0),
    "rpf": RPFCluster(3, n_signatures=100, similarity=RPF(50), random_state=0),
    "rasp": RASP(3, n_signatures=100, random_state=0),
    "kasp": KASP(3, n_signatures=100, random_state=0),
}


@pytest.mark.parametrize("name", CLUSTERERS)
def test_a_summary_has_a_row_for_each_cluster_and_its_rows_add_up(name):
    model = CLUSTERERS[name].fit(X)
    summary = model.summary()
    assert summary["cluster"].tolist() == list(range(model.n_clusters_))
    assert summary["rows"].tolist() == np.bincount(model.labels_).tolist()
    assert summary["rows"].sum() == len(X)
    assert summary["share"].sum() == pytest.approx(1.0)
    np.testing.assert_array_equal(summary["stability"], model.stability_)
    assert (summary["nearest"] != summary["cluster"]).all()


@pytest.mark.parametrize("name", CLUSTERERS)
def test_representatives_are_rows_of_their_cluster(name):
    model = CLUSTERERS[name].fit(X)
    rows = model.representatives_
    assert rows.shape == (model.n_clusters_, 3)
    nearest = np.abs(X[:, None] - rows).max(axis=2).min(axis=0)
    np.testing.assert_allclose(nearest, 0.0, atol=1e-4)
    assert model.predict(rows).tolist() == list(range(model.n_clusters_))


@pytest.mark.parametrize("divide", ["projection", "sampling"])
def test_members_of_signatures_are_the_same_from_a_file(tmp_path, divide):
    np.save(tmp_path / "rows.npy", X)
    model = RPFCluster.paper(2, n_partitions=2, divide=divide, n_signatures=30, bandwidth=0.05, random_state=0)
    members = model.fit(X)._record.members
    np.testing.assert_array_equal(model.fit(tmp_path / "rows.npy")._record.members, members)


def test_a_saved_model_holds_no_rows_and_shows_signatures_instead(tmp_path):
    model = CLUSTERERS["compressed"].fit(X)
    model.save(tmp_path / "model.dc2")
    for again in (dc2.load(tmp_path / "model.dc2"), pickle.loads(pickle.dumps(model))):
        rows = again.representatives_
        points = model.signatures_.points
        assert all((np.abs(points - row).max(axis=1) < 1e-5).any() for row in rows)
        assert again.summary().drop(columns="typical").equals(model.summary().drop(columns="typical"))


def test_what_sets_a_cluster_apart_is_said_with_medians():
    frame = pd.DataFrame(X, columns=NAMES)
    model = DC2Clustering(random_state=0).fit(frame)
    words = model.summary()["sets_apart"]
    medians = frame.groupby(model.labels_).median()
    for cluster, name in [(0, "low humidity"), (1, "very high temperature")]:
        typical, overall = re.search(f"{name} (-?[0-9.]+) \\(all (-?[0-9.]+)\\)", words[cluster]).groups()
        column = name.split()[-1]
        assert float(typical) == pytest.approx(medians[column][cluster], rel=0.02, abs=0.01)
        assert float(overall) == pytest.approx(frame[column].median(), rel=0.02, abs=0.02)
    assert not words.str.contains("wind").any()
    assert "humidity=" in model.summary()["typical"][0]


def test_a_summary_is_a_frame_of_the_kind_that_the_user_works_with():
    frame = pd.DataFrame(X, columns=NAMES)
    of = DC2Clustering(random_state=0)
    assert isinstance(of.fit(X).summary(), pd.DataFrame)
    assert isinstance(of.fit(frame).summary(), pd.DataFrame)
    assert isinstance(of.fit(pl.from_pandas(frame)).summary(), pl.DataFrame)
    assert isinstance(of.fit(pa.Table.from_pandas(frame)).summary(), pa.Table)
    assert isinstance(of.set_output(transform="polars").fit(frame).summary(), pl.DataFrame)
    loaded = pickle.loads(pickle.dumps(DC2Clustering(random_state=0).fit(pl.from_pandas(frame))))
    assert isinstance(loaded.summary(), pl.DataFrame)


@pytest.mark.parametrize(
    ("gone", "kind"),
    [(("pandas",), "polars"), (("pandas", "polars"), "pyarrow"), (("pandas", "polars", "pyarrow"), None)],
)
def test_without_a_library_for_frames_the_next_one_is_taken(monkeypatch, gone, kind):
    from dc2.io import columns as frames

    monkeypatch.setattr(frames, "find_spec", lambda name: None if name in gone else sys.modules[name].__spec__)
    assert frames.frame_kind(DC2Clustering(), None) == kind
    records = DC2Clustering(random_state=0).fit(X).summary()
    assert kind is not None or [record["rows"] for record in records] == [600, 300, 100]


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow"])
def test_whole_numbers_with_gaps_stay_whole(kind):
    frame = as_frame({"n": [1, None], "x": [0.5, None], "t": ["a", None]}, kind)
    assert next(iter(frame["n"] if kind != "pyarrow" else frame["n"].to_pylist())) == 1


def test_weights_are_counted_and_one_cluster_has_no_nearest():
    model = DC2Clustering(1).fit(X, sample_weight=np.full(len(X), 0.25))
    summary = model.summary()
    assert summary["rows"].tolist() == [250.0]
    assert summary["nearest"].tolist() == [None]


def test_recluster_and_refit_renew_the_summary():
    model = DC2Clustering(random_state=0).fit(X)
    assert len(model.summary()) == 3
    assert len(model.recluster(2).summary()) == 2
    assert model.fit(CLOUD).summary()["rows"].sum() == len(CLOUD)


# --- honest words ---------------------------------------------------------------------------------------------------


def test_a_number_that_does_not_show_is_said_once_and_one_that_does_is_not():
    with pytest.warns(ClustersDoNotShowWarning, match="n_clusters=5") as said:
        model = DC2Clustering(5, random_state=0).fit(CLOUD)
    assert len(said) == 1
    assert said[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.recluster(6)
        DC2Clustering(3, random_state=0).fit(X)
        DC2Clustering(1, random_state=0).fit(CLOUD)
        DC2Clustering(random_state=0).fit(CLOUD)
        DC2Clustering(4, random_state=0).fit(CLOUD[:20])


def test_a_warning_that_is_an_error_leaves_the_model_as_it_was():
    model = DC2Clustering(3, random_state=0).fit(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ClustersDoNotShowWarning):
            model.set_params(n_clusters=5).fit(CLOUD)
    assert model.n_rows_in_ == len(X)


@pytest.mark.filterwarnings("ignore::dc2.errors.PreparationNote")
def test_columns_that_mislead_are_named():
    n = 2000
    table = pd.DataFrame(
        {
            "member": RNG.integers(0, 2, n).astype(float) * 50,
            "size": RNG.normal(size=n),
            "weight": RNG.normal(size=n),
            "year": np.full(n, 2025.0),
        }
    )
    said = " ".join(ClusterStatistics.of(DC2Clustering(random_state=0).fit(table)).remarks)
    assert "'member' alone makes the clusters" in said
    assert "'year' is constant" in said
    with_id = table.assign(customer=np.arange(n, dtype=float)).drop(columns=["member", "year"])
    said = " ".join(ClusterStatistics.of(DC2Clustering(random_state=0).fit(with_id)).remarks)
    assert "'customer' looks like the number of a row" in said
    assert ClusterStatistics.of(DC2Clustering(random_state=0).fit(X)).remarks == []


def test_one_column_or_one_cluster_makes_no_remark():
    ones = np.ones(3)
    for width, labels in ((1, [0, 1, 1]), (2, [0, 0, 0])):
        points = np.arange(3.0)[:, None].repeat(width, axis=1)
        names = tuple("ab"[:width])
        clusters = ClusterStatistics(points, points, ones, ones, np.array(labels, np.int32), names, max(labels) + 1)
        assert column_remarks(clusters, 3) == []


# --- in a notebook --------------------------------------------------------------------------------------------------


def test_a_notebook_shows_the_diagram_and_once_fitted_the_summary():
    model = DC2Clustering(random_state=0)
    assert "very high" not in model._repr_html_()
    model.fit(pd.DataFrame(X, columns=["<b>", "humidity", "wind"]))
    shown = model._repr_html_()
    assert "sk-container" in shown
    assert html.escape("very high <b> ") in shown
    assert "3 clusters stand out" in shown
    assert shown in model._repr_mimebundle_()["text/html"] or "3 clusters" in model._repr_mimebundle_()["text/html"]


def test_signatures_print_in_three_lines():
    printed = repr(DC2Clustering(n_signatures=100, random_state=0).fit(X).signatures_).splitlines()
    assert len(printed) == 3
    assert "100 points of 3 columns" in printed[0]
    assert "1,000 in all" in printed[1]


def test_a_report_shows_itself_inline_or_is_written(tmp_path):
    model = DC2Clustering(random_state=0).fit(X)
    assert model.report()._repr_html_().startswith("<iframe")
    assert "report(path)" in repr(model.report())
    written = model.report(tmp_path / "report.html", title="Weather")
    assert "Weather" in written.read_text("utf-8")


# --- what is drawn --------------------------------------------------------------------------------------------------


def test_too_many_signatures_are_drawn_by_weight_within_clusters():
    labels = np.repeat(np.arange(3, dtype=np.int32), [5000, 4000, 10])
    weights = np.where(labels == 0, 2.0, 1.0) + RNG.random(len(labels)) / 10
    shown = heaviest_of_clusters(labels, weights, 2000)
    counts = np.bincount(labels[shown])
    assert len(set(shown.tolist())) == len(shown) == 2000
    sizes = np.bincount(labels, weights)
    np.testing.assert_allclose(counts[:2] / 2000, sizes[:2] / sizes.sum(), atol=0.01)
    assert counts[2] >= 1
    for cluster in range(3):
        drawn = weights[shown][labels[shown] == cluster]
        assert drawn.min() >= np.sort(weights[labels == cluster])[-len(drawn)]
    assert (np.diff(weights[shown]) <= 0).all()


# --- noise ----------------------------------------------------------------------------------------------------------


def test_noise_is_the_last_row_and_all_rows_add_up():
    for model in (
        DC2Clustering(noise=0.05, random_state=0),
        DC2Clustering(noise=0.05, n_signatures=100, random_state=0),
        DC2Clustering(3, min_cluster_share=0.15, random_state=0),
    ):
        summary = model.fit(X).summary()
        assert summary["rows"].sum() == len(X)
        assert summary["cluster"].iloc[-1] == -1
        counted = np.unique(model.labels_, return_counts=True)
        assert dict(zip(summary["cluster"], summary["rows"], strict=True)) == dict(zip(*counted, strict=True))
        assert summary["sets_apart"].iloc[-1] == "in no cluster"
        assert summary["nearest"].isna().iloc[-1]
        assert model.report()._repr_html_()
        np.testing.assert_array_equal(model.map(X)["label"], model.labels_)


def test_a_range_that_leaves_out_what_stands_out_is_not_said_to_stand_out():
    six = make_blobs(2000, centers=6, n_features=10, random_state=1)[0]
    words = {
        requested: str(DC2Clustering(requested, random_state=0).fit(six).verdict_) for requested in ((2, 30), (8, 12))
    }
    assert words[2, 30] == "Of the numbers asked for: 6 clusters stand out."
    assert "do not stand out" in words[8, 12]


def test_of_a_layer_it_is_said_that_it_was_asked_for():
    corners = np.array([[0, 0], [1, 0], [0, 1]])
    centers = np.concatenate([15 * corner + 3.6 * corners for corner in corners])
    nested = make_blobs(1800, centers=centers, random_state=0)[0]
    model = DC2Clustering(random_state=0).fit(nested)
    chosen, words = model.n_clusters_, str(model.verdict_)
    other = next(i for i, layer in enumerate(model.layers_) if layer.max() + 1 != chosen)
    model.recluster(layer=other)
    assert str(model.verdict_) == words
    assert (
        ClusterStatistics.of(model).verdict
        == f"{model.n_clusters_} clusters, the layer asked for. Of all numbers: {words}"
    )


def test_more_clusters_than_signatures_are_refused_in_these_words():
    model = DC2Clustering(2, n_signatures=20, random_state=0).fit(X)
    with pytest.raises(InputError, match="more clusters than there are signatures"):
        model.recluster(n_clusters=len(model.signatures_) + 1)
