"""What people try first, and what the message says if it cannot work."""

import re

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.datasets import make_moons

from dc2 import Compressor, DC2Clustering, RPFCluster, TablePreparer, as_source
from dc2.errors import InputError, ParameterError, PreparationNote
from dc2.spectral import RPF

SMALL = {"n_signatures": 60, "similarity": RPF(n_trees=100), "random_state": 0}


@pytest.fixture(scope="module")
def frame():
    return pd.DataFrame(make_moons(600, noise=0.05, random_state=0)[0], columns=["a", "b"])


@pytest.fixture(scope="module")
def model(frame):
    return RPFCluster(2, **SMALL).fit(frame)


@pytest.mark.parametrize("name", ["rows.csv", "rows.parquet"])
def test_labels_never_replace_the_file_that_is_read(frame, model, tmp_path, name):
    path = tmp_path / name
    frame.to_csv(path, index=False) if name.endswith("csv") else frame.to_parquet(path)
    before = path.read_bytes()
    for given in (path, [path], tmp_path / "*"):
        with pytest.raises(ParameterError, match=re.escape(str(path))):
            model.predict_to(given, path)
    assert path.read_bytes() == before


def test_columns_of_a_file_are_found_by_name_whatever_else_it_holds(frame, model, tmp_path):
    frame[["b", "a"]].assign(town="x", w=1.0).to_parquet(tmp_path / "rows.parquet")
    labels = np.concatenate(list(model.predict(tmp_path / "rows.parquet")))
    np.testing.assert_array_equal(labels, model.labels_)


def test_a_file_with_the_weights_that_were_fitted_can_be_predicted(frame, tmp_path):
    frame.assign(w=1.0).to_parquet(tmp_path / "rows.parquet")
    fitted = RPFCluster(2, **SMALL).fit(tmp_path / "rows.parquet", sample_weight="w")
    assert sum(map(len, fitted.predict(tmp_path / "rows.parquet"))) == len(frame)


def test_fit_predict_of_a_file_gives_its_labels(frame, model, tmp_path):
    frame.to_parquet(tmp_path / "rows.parquet")
    labels = RPFCluster(2, **SMALL).fit_predict(tmp_path / "rows.parquet")
    np.testing.assert_array_equal(np.concatenate(list(labels)), model.labels_)


@pytest.mark.parametrize("n_clusters", ["Auto", None, 2.5, {2, 3}])
def test_a_number_of_clusters_that_is_none_is_told_what_it_may_be(frame, n_clusters):
    with pytest.raises(ParameterError, match=r'"auto", or a pair \(low, high\)'):
        RPFCluster(n_clusters).fit(frame)


@pytest.mark.parametrize("separator", [";", "\t", "|"])
def test_other_separators_than_commas_are_seen_and_named(frame, tmp_path, separator):
    frame.to_csv(tmp_path / "rows.csv", sep=separator, index=False)
    with pytest.warns(PreparationNote, match=f"delimiter={re.escape(repr(separator))}"):
        model = Compressor(20).fit(tmp_path / "rows.csv")
    assert model.feature_names_in_.tolist() == list(frame.columns)


def test_the_index_that_pandas_writes_is_not_clustered(frame, tmp_path):
    frame.to_csv(tmp_path / "rows.csv")
    with pytest.warns(PreparationNote, match="no name for column 1"):
        model = Compressor(20).fit(tmp_path / "rows.csv")
    assert model.feature_names_in_.tolist() == list(frame.columns)


def test_masked_values_are_missing_values(frame):
    masked = np.ma.masked_less(frame.to_numpy(), -1.0)
    with pytest.raises(InputError, match=f"masked array with {np.ma.count_masked(masked)} missing"):
        Compressor(20).fit(masked)
    assert len(Compressor(20, random_state=0).fit(np.ma.masked_less(masked, -1e9).data).signatures_) == 20


class TestNumberedColumns:
    """A pandas frame whose columns are numbers: like an array, and prepared like any table."""

    table = pd.DataFrame({0: [1.0, 2.0, 9.0, 8.0] * 20, 1: ["a", "a", "b", "b"] * 20, 2: [0.5, 1.5] * 40})

    def test_columns_are_chosen_by_their_numbers(self):
        assert as_source(self.table, columns=[2, 0]).n_features == 2
        assert as_source(self.table, drop=[1]).n_features == 2
        with pytest.raises(InputError, match="no column '7'; it has '0', '1', '2'"):
            as_source(self.table, columns=[7])

    def test_words_are_prepared_as_under_names_of_text(self):
        named = self.table.rename(columns=str)
        fitted = [DC2Clustering(2, prepare=TablePreparer(), random_state=0).fit(X) for X in (self.table, named)]
        np.testing.assert_array_equal(fitted[0].labels_, fitted[1].labels_)
        np.testing.assert_array_equal(fitted[0].predict(self.table), fitted[1].predict(named))
        assert fitted[0].preparer_.decisions_ == fitted[1].preparer_.decisions_

    def test_a_number_where_a_name_is_needed_is_told_the_name(self):
        with pytest.raises(ParameterError, match="A column numbered 2 is called '2'"):
            TablePreparer(categories=[2]).fit(self.table)
        assert "category" in TablePreparer(categories=["2"]).fit(self.table).decisions_["2"]


@pytest.mark.parametrize("make", [lambda frame: frame["a"], lambda frame: pl.from_pandas(frame)["a"]])
def test_one_column_is_told_how_to_become_a_table(frame, model, make):
    for work in (RPFCluster(2, **SMALL).fit, model.predict, as_source):
        with pytest.raises(InputError, match=r"Series of 600 values.*Reshape your data: table\[\['a'\]\]"):
            work(make(frame))


def test_a_line_of_numbers_is_told_its_shape(model):
    for X in (np.zeros(7), [0.0] * 7):
        with pytest.raises(InputError, match=r"shape \(7,\)\. Reshape your data.* 7 rows of one column"):
            model.predict(X)


def test_a_feature_can_stand_beside_the_labels(frame, model, tmp_path):
    model.predict_to(frame, tmp_path / "labels.csv", id_columns="a")
    np.testing.assert_allclose(pd.read_csv(tmp_path / "labels.csv")["a"], frame["a"])
