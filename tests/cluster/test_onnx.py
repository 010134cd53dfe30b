"""The ONNX graph of a model labels rows as predict does, but for the few whose nearest signature the search misses."""

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import make_blobs

from dc2 import KASP, Compressor, DC2Clustering, TablePreparer
from dc2.cli import main
from dc2.errors import ParameterError

pytest.importorskip("onnx")
runtime = pytest.importorskip("onnxruntime")
BLOCK = 10_000
X, _ = make_blobs(100_000, 10, centers=30, cluster_std=2.5, random_state=0)


def run(path, **columns):
    """The outputs of a graph for inputs by name, block by block."""
    session = runtime.InferenceSession(path, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    n_rows = len(next(iter(columns.values())))
    blocks = [
        session.run(None, {name: values[start : start + BLOCK] for name, values in columns.items()})
        for start in range(0, n_rows, BLOCK)
    ]
    return dict(zip(names, map(np.concatenate, zip(*blocks, strict=True)), strict=True))


def exact_labels(model, rows):
    """The label of the nearest signature, all compared; and whether another is nearly as near."""
    centres = model.router_.centres.astype(np.float64)
    scaling = model.router_.scaling
    scaled = (rows if scaling is None else scaling.apply(rows)).astype(np.float64)
    squared = np.stack([((scaled - centre) ** 2).sum(axis=1) for centre in centres], axis=1)
    nearest, second = np.partition(squared, 1, axis=1)[:, :2].T
    return model.signature_labels_[squared.argmin(axis=1)], second - nearest < 1e-5 * second


@pytest.mark.parametrize(
    ("dtype", "settings"), [(np.float32, {"scale": "standard"}), (np.float64, {"metric": "cosine"})]
)
def test_labels_of_many_rows_are_those_of_the_nearest_signature(tmp_path, dtype, settings):
    rows = X.astype(dtype)
    model = DC2Clustering(n_signatures=500, random_state=0, **settings).fit(rows)
    labels = run(model.to_onnx(tmp_path / "model.onnx"), X=rows)["label"]
    expected, close = exact_labels(model, rows[:2000])
    assert np.array_equal(labels[:2000][~close], expected[~close])
    assert close.mean() < 0.01
    assert (labels == model.predict(rows)).mean() > 0.99  # the search finds 98% of the nearest


def test_rows_that_are_signatures_get_their_own_labels(tmp_path):
    rows = X[:2000]
    model = DC2Clustering(30, random_state=0).fit(rows)
    assert np.array_equal(run(model.to_onnx(tmp_path / "model.onnx"), X=rows)["label"], model.labels_)


def test_small_clusters_are_labelled_as_by_predict(tmp_path):
    model = DC2Clustering(30, n_signatures=400, min_cluster_share=0.03, random_state=0).fit(X[:5000])
    found = run(model.to_onnx(tmp_path / "model.onnx"), X=X[:5000])["label"]
    assert (found == model.predict(X[:5000])).mean() > 0.98
    assert 0.03 < (found == -1).mean() < 0.9


def test_labels_are_the_numbers_that_clusters_kept_through_updates(tmp_path):
    model = DC2Clustering(30, random_state=0).fit(X[:2000])
    model.update(X[2000:2200] + 100)
    labels = run(model.to_onnx(tmp_path / "model.onnx"), X=X[:2000])["label"]
    assert np.array_equal(labels, model.predict(X[:2000]))


def test_what_an_onnx_graph_cannot_do_is_refused(tmp_path):
    noisy = DC2Clustering(3, noise=0.05, random_state=0).fit(X[:500])
    with pytest.raises(ParameterError, match="noise"):
        noisy.to_onnx(tmp_path / "model.onnx")
    staged = DC2Clustering(3, random_state=0).fit(X[:500])
    staged.update(X[500:600] + 100, move=False)
    with pytest.raises(ParameterError, match="move=False"):
        staged.to_onnx(tmp_path / "model.onnx")
    assert not (tmp_path / "model.onnx").exists()


@pytest.mark.parametrize("size", [1e-30, 1e30])
def test_very_small_and_large_values_are_scaled_alike(tmp_path, size):
    rows = X[:2000] * size
    model = DC2Clustering(30, scale="standard", random_state=0).fit(rows)
    assert np.array_equal(run(model.to_onnx(tmp_path / "model.onnx"), X=rows)["label"], model.labels_)


def test_places_on_the_globe(tmp_path):
    rng = np.random.default_rng(0)
    places = np.column_stack([np.degrees(np.arcsin(rng.uniform(-1, 1, 5000))), rng.uniform(-180, 180, 5000)])
    frame = pd.DataFrame(places[:, ::-1], columns=["longitude", "latitude"])
    model = DC2Clustering(20, n_signatures=300, metric="haversine", random_state=0).fit(frame)
    labels = run(model.to_onnx(tmp_path / "model.onnx"), X=frame.to_numpy())["label"]
    assert (labels == model.predict(frame)).mean() > 0.99


def test_centres_of_kmeans(tmp_path):
    rows = X[:200]
    model = KASP(3, n_signatures=10, random_state=0).fit(rows)
    assert np.array_equal(run(model.to_onnx(tmp_path / "model.onnx"), X=rows)["label"], model.predict(rows))


def mixed_table(n=2000):
    rng = np.random.default_rng(0)
    group = rng.integers(0, 3, n)
    table = pd.DataFrame(
        {"age": 20.0 + 20 * group + rng.normal(size=n), "income": np.exp(3 * group + rng.normal(size=n))}
    )
    table["plan"] = np.array(["basic", "silver", "gold"])[np.where(rng.random(n) < 0.9, group, 0)]
    table.loc[rng.random(n) < 0.1, "age"] = np.nan
    table.loc[rng.random(n) < 0.1, "plan"] = None
    return table


def test_a_prepared_table_has_an_input_for_each_column(tmp_path):
    table = mixed_table()
    model = DC2Clustering(3, prepare=TablePreparer(), random_state=0).fit(table)
    new = pd.concat([table, pd.DataFrame({"age": [np.nan], "income": [np.nan], "plan": ["unseen"]})])
    inputs = {name: new[[name]].to_numpy(np.float64) for name in ("age", "income")}
    inputs["plan"] = new[["plan"]].fillna("").to_numpy(object)
    labels = run(model.to_onnx(tmp_path / "model.onnx"), **inputs)["label"]
    with pytest.warns(match="unseen"):
        assert (labels == model.predict(new)).mean() > 0.999


def test_what_a_graph_cannot_do_is_refused(tmp_path):
    target = tmp_path / "model.onnx"
    leaf = DC2Clustering(n_signatures=50, compressor=Compressor(populate="leaf"), random_state=0).fit(X[:3000])
    with pytest.raises(ParameterError, match="populate"):
        leaf.to_onnx(target)
    table = mixed_table().assign(when=pd.Timestamp("2020-01-01") + pd.to_timedelta(np.arange(2000) % 700, "D"))
    table["when"] += pd.to_timedelta(100 * table["age"].fillna(40), "D")
    dated = DC2Clustering(3, prepare=TablePreparer(), random_state=0).fit(table)
    with pytest.raises(ParameterError, match="'when'"):
        dated.to_onnx(target)
    assert not target.exists()


def test_the_command_writes_the_same_file(tmp_path):
    model = DC2Clustering(30, random_state=0).fit(X[:1000])
    model.save(tmp_path / "model.dc2")
    written = model.to_onnx(tmp_path / "a.onnx").read_bytes()
    with pytest.raises(SystemExit, match="0"):
        main(["export", str(tmp_path / "model.dc2"), str(tmp_path / "b.onnx")])
    assert (tmp_path / "b.onnx").read_bytes() == written
    with pytest.raises(ParameterError, match=r"a\.onnx"):
        model.to_onnx(tmp_path / "a.onnx", overwrite=False)
