"""Noise: the share of the rows that belong to no cluster, and what knows of it."""

import json
import pickle
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dc2
from dc2 import Compressor, DC2Clustering
from dc2.cli import main
from dc2.cluster.noise import NoisePlan
from dc2.errors import ParameterError
from dc2.io import as_source
from dc2.report import ClusterProfileDisplay, ClusterStatistics, SignatureMapDisplay, write_report

SMALL = {"n_signatures": 60, "random_state": 0, "n_jobs": 2}


def rows(n_rows: int = 1500, seed: int = 0) -> np.ndarray:
    """Three blobs, and one row in thirty anywhere."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, 3)) + 9.0 * rng.integers(0, 3, (n_rows, 1))
    X[::30] = rng.uniform(-10, 30, (len(X[::30]), 3))
    return X


def in_one(answers):
    return answers if isinstance(answers, np.ndarray) else np.concatenate(list(answers))


@settings(max_examples=30)
@given(
    share=st.decimals(0, "0.9", places=3).map(float),
    weights=st.lists(st.integers(0, 3), min_size=40, max_size=40).filter(any),
    few=st.booleans(),
)
def test_the_threshold_is_the_smallest_score_that_at_most_the_share_exceeds(share, weights, few):
    X, weights = rows(40)[:, :2].round(0 if few else 6), np.array(weights, float)
    model = DC2Clustering(1, noise=share, random_state=0).fit(X, sample_weight=weights)
    scores, most = model.outlier_scores_, Fraction(str(share)) * int(weights.sum())
    if not share:
        assert (model.labels_ >= 0).all()
        return
    counted = np.unique(scores[weights > 0])
    fitting = [score for score in counted if weights[scores > score].sum() <= most]
    assert model.noise_threshold_ == min(fitting)
    assert np.array_equal(model.labels_ == -1, scores > model.noise_threshold_)
    assert np.array_equal(model.predict(X), model.labels_)


@pytest.mark.parametrize("share", [0.07, 0.1, 0.29, 0.57])
@pytest.mark.parametrize("parameters", [{}, {"n_signatures": 60}], ids=["rows are nodes", "compressed"])
def test_without_ties_exactly_the_share_is_noise(share, parameters):
    X = rows(1000)
    model = DC2Clustering(3, noise=share, random_state=0, **parameters).fit(X)
    assert len(np.unique(model.outlier_scores_)) == len(X)
    assert (model.labels_ == -1).sum() == round(1000 * share)  # 0.29 * 1000 is 290, despite rounding


def test_no_noise_gives_no_noise_and_reads_no_row_again():
    passes = []

    def blocks():
        passes.append(1)
        yield rows()

    source = as_source(blocks)
    model = DC2Clustering(3, **SMALL).fit(source)
    without, passes[:] = len(passes), []
    assert in_one(model.predict(rows())).min() == 0
    assert not hasattr(model, "noise_threshold_")
    assert not hasattr(model, "noise_weights_")
    DC2Clustering(3, noise=0.1, **SMALL).fit(as_source(blocks))
    assert len(passes) == without + 1


@pytest.mark.parametrize("parameters", [{"random_state": 0}, SMALL], ids=["rows are nodes", "compressed"])
@pytest.mark.parametrize("weighted", [False, True])
def test_rows_in_files_have_the_noise_of_rows_in_memory(parameters, weighted, tmp_path):
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    X, weights = rows(), np.random.default_rng(1).integers(0, 4, 1500).astype(float)
    table = pyarrow.table({"a": X[:, 0], "b": X[:, 1], "c": X[:, 2], "w": weights})
    for i, start in enumerate(range(0, 1500, 400)):
        parquet.write_table(table.slice(start, 400), tmp_path / f"{i}.parquet")
    columns = table.select(["a", "b", "c"]).to_pandas()
    files = as_source(str(tmp_path / "*.parquet"), drop=["w"], sample_weight="w" if weighted else None)
    here = DC2Clustering(3, noise=0.05, **parameters).fit(columns, sample_weight=weights if weighted else None)
    there = DC2Clustering(3, noise=0.05, block_bytes=2000, **parameters).fit(files)
    assert there.noise_threshold_ == here.noise_threshold_
    assert np.array_equal(there.noise_weights_, here.noise_weights_)
    assert np.array_equal(in_one(there.predict(columns)), here.labels_)
    lost = np.bincount(here.labels_ + 1, weights if weighted else None)[0]
    assert here.noise_weights_.sum() == lost


@pytest.mark.parametrize("first_rows", ["ordinary", "far out"])
def test_a_sample_that_misleads_costs_a_pass_and_changes_nothing(first_rows, monkeypatch):
    from dc2.cluster import noise as noise_threshold

    X = rows()
    here = DC2Clustering(3, noise=0.05, **SMALL).fit(X)
    wrong = (0.99, 2.0) if first_rows == "far out" else (-1.0, 0.01)
    monkeypatch.setattr(noise_threshold, "_bracket", lambda *_: wrong)
    there = DC2Clustering(3, noise=0.05, **SMALL).fit(as_source(lambda: iter([X[:700], X[700:]])))
    assert there.noise_threshold_ == here.noise_threshold_
    assert np.array_equal(there.noise_weights_, here.noise_weights_)


@pytest.mark.parametrize("parameters", [{}, SMALL], ids=["rows are nodes", "compressed"])
def test_weights_equal_repeats(parameters):
    X, weights = rows(700), np.random.default_rng(1).integers(1, 4, 700)
    weighted = DC2Clustering(3, noise=0.05, **{"random_state": 0, **parameters}).fit(X, sample_weight=weights)
    repeated = DC2Clustering(3, noise=0.05, **{"random_state": 0, **parameters}).fit(np.repeat(X, weights, axis=0))
    assert weighted.noise_threshold_ == repeated.noise_threshold_
    assert np.array_equal(np.repeat(weighted.labels_, weights), repeated.labels_)


def test_equal_rows_share_a_label():
    X = np.repeat(rows(300).round(0), 3, axis=0)
    labels = DC2Clustering(3, noise=0.1, random_state=0).fit_predict(X).reshape(-1, 3)
    assert (labels == labels[:, :1]).all()
    assert 0 < (labels == -1).mean() <= 0.1


@pytest.mark.parametrize("noise", [1e-9, 0.05])
def test_a_copy_far_away_is_all_noise(noise):
    X = rows()
    model = DC2Clustering(3, noise=noise, **SMALL).fit(X)
    assert (model.predict(X + 1e4) == -1).all()
    assert model.predict_proba(X + 1e4).sum(axis=1).max() < 0.1


def test_probabilities_of_ordinary_rows_add_up_to_one_and_of_noise_to_less():
    X = rows()
    model = DC2Clustering(3, noise=0.05, **SMALL).fit(X)
    total, noise = model.predict_proba(X).sum(axis=1), model.labels_ == -1
    assert total[~noise] == pytest.approx(1.0)
    assert (total[noise] < 1.0).all()
    farther = np.argsort(model.outlier_scores_[noise])
    assert (np.diff(total[noise][farther]) <= 1e-12).all()


def test_other_clusters_keep_the_noise():
    X = rows()
    model = DC2Clustering(noise=0.05, random_state=0).fit(X)
    noise, threshold = model.labels_ == -1, model.noise_threshold_
    assert model.recluster(2).noise_threshold_ == threshold
    assert np.array_equal(model.labels_ == -1, noise)
    assert model.n_clusters_ == 2
    model.recluster(layer=0)
    assert np.array_equal(model.labels_, model.labels_of_layer(0))


def unequal_blobs() -> np.ndarray:
    rng = np.random.default_rng(0)
    return np.concatenate([rng.normal(size=(n, 2)) + 50.0 * i for i, n in enumerate((500, 400, 30))])


def test_clusters_that_are_too_small_are_noise_besides():
    X = unequal_blobs()
    model = DC2Clustering(3, noise=0.02, min_cluster_share=0.1, random_state=0).fit(X)
    by_score = model.outlier_scores_ > model.noise_threshold_
    assert by_score.sum() == int(0.02 * 930)
    assert np.array_equal(model.labels_ == -1, by_score | (np.arange(930) >= 900))
    assert model.n_clusters_ == 3
    assert set(model.signature_labels_.tolist()) == {-1, 0, 1}
    assert np.array_equal(model.predict(X), model.labels_)
    assert model.predict_proba(X).shape == (930, 3)
    assert (model.predict_proba(X[900:]).sum(axis=1) < 1e-6).all()
    assert model.noise_weights_.sum() == (model.labels_ == -1).sum()
    assert (DC2Clustering(3, min_cluster_share=0.9, random_state=0).fit_predict(X) >= 0).sum() == 500


def test_saved_and_pickled_models_keep_the_threshold(tmp_path):
    X = rows()
    model = DC2Clustering(3, noise=0.05, min_cluster_share=0.01, **SMALL).fit(X)
    model.save(tmp_path / "model.dc2")
    for other in (dc2.load(tmp_path / "model.dc2"), pickle.loads(pickle.dumps(model))):
        assert other.noise_threshold_ == model.noise_threshold_
        assert np.array_equal(other.predict(X), model.labels_)
        assert np.array_equal(other.outlier_scores(X), model.outlier_scores_)
        with pytest.raises(AttributeError, match=r"outlier_scores\(X\)"):
            _ = other.outlier_scores_


@pytest.mark.parametrize("value", [-0.1, 1, 1.0, 2.0, np.nan, np.inf, "0.1", None, True])
def test_shares_that_are_none_are_refused(value):
    with pytest.raises(ParameterError, match="noise="):
        DC2Clustering(noise=value).fit(None)
    if value is not None:
        with pytest.raises(ParameterError, match="min_cluster_share="):
            DC2Clustering(min_cluster_share=value).fit(None)


@pytest.mark.parametrize("share", [0.05, np.float32(0.05), np.float64(0.05)])
def test_a_share_is_the_decimal_that_was_written(share):
    assert NoisePlan.of(share, None).share == Fraction(1, 20)


def test_signatures_have_no_rows_to_be_noise():
    signatures = Compressor(50, random_state=0).fit(rows()).signatures_
    with pytest.raises(ParameterError, match=r"noise=0.05 .*no rows"):
        DC2Clustering(3, noise=0.05).fit_signatures(signatures)
    model = DC2Clustering(3, random_state=0).fit_signatures(signatures)
    assert model.outlier_scores(rows() + 100).min() > model.outlier_scores(signatures.points).max()


def test_random_dealing_has_no_neighbourhoods():
    X, dealt = rows(), Compressor(n_partitions=2, divide="sampling")
    with pytest.raises(ParameterError, match="one tree"):
        DC2Clustering(3, similarity="gaussian", n_signatures=40, compressor=dealt, noise=0.1).fit(X)
    model = DC2Clustering(3, similarity="gaussian", n_signatures=40, compressor=dealt).fit(X)
    with pytest.raises(ParameterError, match="one tree"):
        model.outlier_scores(X)


def test_facts_and_report_count_rows_that_are_in_no_cluster(tmp_path):
    X = rows()
    model = DC2Clustering(3, noise=0.05, min_cluster_share=0.01, random_state=0).fit(X)
    clusters = ClusterStatistics.of(model)
    assert clusters.noise == (model.labels_ == -1).sum() == 75
    assert clusters.sizes.tolist() == np.bincount(model.labels_ + 1)[1:].tolist()
    assert clusters.total == len(X)
    page = write_report(model, tmp_path / "report.html").read_text("utf-8")
    assert "75 rows are in no cluster" in page


def test_plots_and_report_draw_the_clusters_that_are_left(tmp_path):
    pytest.importorskip("matplotlib")
    model = DC2Clustering(3, min_cluster_share=0.1, random_state=0).fit(unequal_blobs())
    display = SignatureMapDisplay.from_estimator(model)
    assert len(display.clusters_) == 2
    assert len(display.noise_.get_offsets()) == (display.labels < 0).sum() > 0
    assert ClusterProfileDisplay.from_estimator(model).difference.shape == (2, 2)
    page = write_report(model, tmp_path / "report.html").read_text("utf-8")
    assert "30 rows are in no cluster" in page


def test_signatures_whose_rows_are_all_noise_are_drawn_as_noise(tmp_path):
    X = np.concatenate([rows(), np.random.default_rng(1).uniform(50, 90, size=(5, rows().shape[1]))])
    model = DC2Clustering(3, noise=0.02, random_state=0).fit(X)
    facts = ClusterStatistics.of(model)
    out = facts.labels < 0
    np.testing.assert_array_equal(out, model.noise_weights_ >= model.signatures_.weights)
    assert facts.weights[out].sum() == (model.labels_ == -1).sum()
    assert sorted(facts.drawn.tolist()) == list(range(len(out)))
    assert not out[facts.compared].any()
    page = write_report(model, tmp_path / "report.html").read_text("utf-8")
    assert page.count('href="#mark-noise"') == out.sum() > 0
    drawn = model.map(X)
    far = drawn[drawn["row"] >= len(X) - 5]
    assert (far["label"] == -1).all()


def test_the_command_line_says_how_many_rows_are_in_no_cluster(tmp_path, capsys):
    data, labels, model = (str(tmp_path / name) for name in ("rows.npy", "labels.npy", "model.dc2"))
    np.save(data, rows())
    with pytest.raises(SystemExit) as done:
        main(["cluster", data, "-k", "3", "-o", labels, "--model", model, "--noise", "0.05", "--json"])
    assert done.value.code in (0, None)
    clusters = json.loads(capsys.readouterr().out)["clusters"]
    assert clusters[-1] == {"label": -1, "rows": 75}
    assert (np.load(labels) == -1).sum() == 75
    with pytest.raises(SystemExit):
        main(["info", model])
    assert "none" in capsys.readouterr().out
    with pytest.raises(SystemExit) as done:
        main(["cluster", data, "-o", str(tmp_path / "more.npy"), "--noise", "1.5"])
    assert done.value.code == 2
    assert "--noise 1.5" in capsys.readouterr().err.replace("\n", " ")


def test_the_command_line_leaves_out_clusters_that_are_too_small(tmp_path, capsys):
    data, labels = str(tmp_path / "rows.npy"), str(tmp_path / "labels.npy")
    np.save(data, unequal_blobs())
    with pytest.raises(SystemExit) as done:
        main(["cluster", data, "-k", "3", "-o", labels, "--min-cluster-share", "0.1", "--json"])
    assert done.value.code in (0, None)
    clusters = json.loads(capsys.readouterr().out)["clusters"]
    assert [cluster["label"] for cluster in clusters] == [0, 1, -1]
    assert clusters[-1]["rows"] == (np.load(labels) == -1).sum() == 30
