"""The clusterers among others: scikit-learn, sources and files, and signatures made elsewhere."""

import pickle

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.base import clone
from sklearn.metrics import adjusted_rand_score
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from dc2 import KASP, Compressor, DC2Clustering, RPFCluster, TablePreparer, clustering_accuracy
from dc2.compress import Signatures
from dc2.errors import InputError, InputTypeError, PreparationNote
from dc2.spectral import RPF
from support.cluster_data import RIVAL, SMALL, blobs, every_clusterer, moons

# scikit-learn


@every_clusterer
def test_clone_keeps_parameters_and_forgets_the_fit(model):
    fitted = clone(model).fit(blobs()[0])
    copy = clone(fitted)
    assert repr(copy.get_params()) == repr(fitted.get_params())
    assert not hasattr(copy, "signature_labels_")


@every_clusterer
def test_a_pickled_model_predicts_the_same_and_holds_nothing_as_long_as_the_rows(model):
    X, _ = blobs(30_000)
    model = clone(model).fit(X)
    pickled = pickle.dumps(model)
    again = pickle.loads(pickled)
    np.testing.assert_array_equal(model.predict(X), again.predict(X))
    assert len(pickled) < 4 * len(X)
    with pytest.raises(AttributeError, match="predict_to"):
        _ = again.labels_


def test_grid_search_finds_the_number_of_signatures_and_trees():
    X, y = moons(2000)
    search = GridSearchCV(
        RPFCluster(2, similarity=RPF(), random_state=0),
        {"n_signatures": [5, 200], "similarity__n_trees": [50]},
        scoring=lambda model, X, y: adjusted_rand_score(y, model.predict(X)),
        cv=2,
    )
    assert search.fit(X, y).best_params_["n_signatures"] == 200


def test_it_is_the_last_or_a_middle_step_of_a_pipeline():
    X, y = moons()
    X = X * [1.0, 1000.0]
    last = make_pipeline(StandardScaler(), RPFCluster(2, **SMALL))
    assert clustering_accuracy(y, last.fit_predict(X)) > 0.99
    np.testing.assert_array_equal(last.predict(X), last[-1].labels_)
    middle = make_pipeline(RPFCluster(2, **SMALL), StandardScaler())
    assert middle.fit_transform(X).shape == (len(X), 2)


def test_frames_give_names_in_and_out():
    X, _ = moons(500)
    frame = pd.DataFrame(X, columns=["x", "y"])
    model = RPFCluster(2, **SMALL).fit(frame)
    assert model.feature_names_in_.tolist() == ["x", "y"]
    assert model.get_feature_names_out().tolist() == ["rpfcluster0", "rpfcluster1"]
    assert list(model.set_output(transform="pandas").transform(frame)) == ["rpfcluster0", "rpfcluster1"]


@pytest.mark.parametrize(
    "model", [RPFCluster(2, **SMALL), Compressor(20, random_state=0)], ids=lambda m: type(m).__name__
)
def test_blocks_that_are_yet_to_be_read_stay_blocks_whatever_set_output_asks_for(model):
    X, _ = moons(500)
    model = clone(model).set_output(transform="pandas").fit(X)
    blocks = list(model.transform(lambda: iter([X[:200], X[200:]])))
    assert all(isinstance(block, np.ndarray) for block in blocks)
    np.testing.assert_array_equal(np.concatenate(blocks), model.transform(X).to_numpy())


# Sources and files


@pytest.fixture
def parquet(tmp_path):
    X, _ = moons(30_000)
    frame = pd.DataFrame(X.astype(np.float32), columns=["x", "y"]).assign(name=np.arange(len(X)))
    path = tmp_path / "rows.parquet"
    frame.to_parquet(path, row_group_size=7_000)
    return path, frame


@pytest.mark.parametrize("populate", ["leaf", "nearest"])
def test_streaming_from_a_file_equals_the_array(parquet, populate):
    from dc2.io import as_source

    path, frame = parquet
    way = {"compressor": Compressor(populate=populate), **SMALL}
    whole = RPFCluster(2, **way).fit(frame[["x", "y"]])
    streamed = RPFCluster(2, block_bytes=40_000, **way).fit(as_source(path, columns=["x", "y"]))
    np.testing.assert_array_equal(whole.signatures_.points, streamed.signatures_.points)
    np.testing.assert_array_equal(whole.signature_labels_, streamed.signature_labels_)
    blocks = streamed.predict(as_source(path, columns=["x", "y"]))
    np.testing.assert_array_equal(whole.labels_, np.concatenate(list(blocks)))


def test_labels_of_a_source_are_written_not_kept(parquet, tmp_path):
    from dc2.io import as_source

    path, frame = parquet
    model = RPFCluster(2, **SMALL).fit(as_source(path, columns=["x", "y"]))
    with pytest.raises(AttributeError, match=r"predict_to\(source, path\)"):
        _ = model.labels_
    out = tmp_path / "labels.parquet"
    assert model.predict_to(path, out, id_columns="name", column="cluster") == len(frame)
    written = pd.read_parquet(out)
    np.testing.assert_array_equal(written["name"], frame["name"])
    np.testing.assert_array_equal(written["cluster"], model.predict(frame[["x", "y"]]))


def test_kasp_says_that_it_needs_rows_in_memory(parquet):
    from dc2.io import as_source

    with pytest.raises(InputTypeError, match="KASP"):
        KASP(2, **RIVAL).fit(as_source(parquet[0], columns=["x", "y"]))


# Signatures made elsewhere


def test_signatures_of_several_sites_are_conquered_together():
    X, y = moons(20_000)
    sites = [Compressor(100, random_state=site).fit(X[site::2]) for site in (0, 1)]
    merged = Signatures.merge(*(site.signatures_ for site in sites))
    model = RPFCluster(2, random_state=0).fit_signatures(merged)
    assert model.signature_labels_.shape == (200,)
    own = model.signature_labels_[100:][sites[1].apply(X[1::2])]
    assert clustering_accuracy(y[1::2], own) > 0.99
    assert clustering_accuracy(y, model.predict(X)) > 0.99
    with pytest.raises(AttributeError, match="predict"):
        _ = model.labels_


def test_fit_signatures_of_a_fit_is_that_fit():
    X, _ = moons()
    model = RPFCluster(2, **SMALL).fit(X)
    again = RPFCluster(2, **SMALL).fit_signatures(model.signatures_)
    np.testing.assert_array_equal(model.signature_labels_, again.signature_labels_)


def test_fit_signatures_takes_signatures_only():
    with pytest.raises(InputError, match="ndarray"):
        RPFCluster(2).fit_signatures(np.eye(5))


def test_blanks_that_show_late_change_nothing_but_the_time(tmp_path):
    rows = np.random.default_rng(0).normal(size=(500, 3)).tolist()
    rows[400][1] = None
    table = pa.table({name: [row[i] for row in rows] for i, name in enumerate("abc")})
    pq.write_table(table, tmp_path / "rows.parquet")
    path, settings = str(tmp_path / "rows.parquet"), {"n_signatures": 40, "random_state": 0}
    prepared = DC2Clustering(3, prepare=TablePreparer(), **settings).fit(path)
    with pytest.warns(PreparationNote):
        found_late = DC2Clustering(3, **settings).fit(path)
    np.testing.assert_array_equal(found_late.signatures_.points, prepared.signatures_.points)
    np.testing.assert_array_equal(found_late.signature_labels_, prepared.signature_labels_)


@pytest.mark.parametrize("bad", [[0.0, 0.0], [np.nan, 1.0]])
def test_rows_of_weight_0_are_refused_from_every_source(bad):
    rows = np.vstack([np.random.default_rng(0).normal(size=(20, 2)) + 5, [bad]])
    weights = np.append(np.ones(20), 0.0)
    for X in (rows, lambda: iter([rows[:9], rows[9:]])):
        with pytest.raises(ValueError, match=r"Row 20|row 20"):
            DC2Clustering(2, metric="cosine").fit(X, sample_weight=weights)
