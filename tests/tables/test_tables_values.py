"""A value means the same in fit and in predict, and what means nothing is refused at once."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import adjusted_rand_score

import dc2
from dc2 import DC2Clustering, TablePreparer
from dc2.errors import InputError, ParameterError, PreparationNote
from dc2.report import ClusterStatistics
from dc2.report.profiles import column_remarks

N_ROWS = 400


def two_groups(zero: object, one: object) -> tuple[pd.DataFrame, np.ndarray]:
    draw = np.random.default_rng(0)
    group = draw.integers(0, 2, N_ROWS)
    flags = {f"flag {i}": np.array([zero, one], dtype=object)[group ^ (draw.random(N_ROWS) < 0.05)] for i in range(4)}
    return pd.DataFrame(flags), group


@pytest.mark.parametrize(("zero", "one"), [("0.0", "1.0"), ("0", "1"), ("00.25", "0.50"), ("1e3", "2000.0")])
def test_numbers_written_as_text_are_the_categories_that_words_are(zero: str, one: str) -> None:
    table, _ = two_groups(zero, one)
    words, _ = two_groups("no", "yes")
    preparer = TablePreparer().fit(table)
    rows = preparer.transform(table)
    assert len(np.unique(rows, axis=0)) == len(np.unique(TablePreparer().fit_transform(words), axis=0))
    assert preparer.count_unseen(table) == {}


def test_a_category_is_the_same_as_text_and_as_a_number() -> None:
    table, _ = two_groups("0.0", "1.0")
    as_numbers = table.astype(float)
    preparer = TablePreparer().fit(table)
    np.testing.assert_array_equal(preparer.transform(as_numbers), preparer.transform(table))
    np.testing.assert_array_equal(TablePreparer().fit(as_numbers).transform(table), preparer.transform(table))


@pytest.mark.parametrize("n_signatures", ["auto", 60], ids=["rows are nodes", "compressed"])
@pytest.mark.filterwarnings("ignore::dc2.errors.PreparationNote")
def test_filled_in_values_describe_no_cluster(n_signatures: int | str) -> None:
    draw = np.random.default_rng(0)
    group = draw.integers(0, 3, 1500)
    delay = draw.exponential(20, 1500) + 100 * (group == 0)
    known = draw.random(1500) < np.where(group == 0, 0.2, 0.9)
    table = pd.DataFrame({"size": draw.normal(size=1500) + 9 * group, "delay": np.where(known, delay, np.nan)})
    model = DC2Clustering(3, n_signatures=n_signatures, random_state=0).fit(table)
    profile = ClusterStatistics.of(model).profile
    column = profile.names.index("delay")
    medians, overall = profile.middles(column)
    shares = profile.known(column)
    for cluster in range(3):
        own = model.labels_ == cluster
        np.testing.assert_allclose(medians[cluster], np.median(delay[own & known]), rtol=0.25)
        np.testing.assert_allclose(shares[cluster], known[own].mean(), atol=0.02)
    np.testing.assert_allclose(overall, np.median(delay[known]), rtol=0.15)
    names = ["delay" if np.isfinite(value) else "" for value in model.representatives_["delay"]]
    for cluster, name in enumerate(names):  # a typical row shows a value where rows have one
        assert (name == "delay") == (known[model.labels_ == cluster].mean() > 0.5) or n_signatures == "auto"


@pytest.mark.filterwarnings("ignore::dc2.errors.PreparationNote")
def test_clusters_that_are_one_column_are_pointed_out() -> None:
    draw = np.random.default_rng(0)
    X = draw.normal(size=(900, 3))
    source = np.repeat(["a.csv", "b.csv", "c.csv"], 300)
    table = pd.DataFrame(X, columns=["x", "y", "z"]).assign(source=source)
    model = DC2Clustering(3, prepare=TablePreparer(["source"]), random_state=0).fit(table)
    statistics = ClusterStatistics.of(model)
    labels = statistics.values[:, 3:].argmax(axis=1).astype(np.int32)
    statistics = replace(statistics, labels=labels, n_clusters=3)
    assert any("'source' alone" in remark for remark in column_remarks(statistics, 900))
    apart = np.where(np.arange(900) < 90, 30.0, 0.0) + X[:, 0]
    model = DC2Clustering(2, random_state=0).fit(table[["x", "y", "z"]].assign(day=apart))
    assert any("'day' alone" in remark for remark in ClusterStatistics.of(model).remarks)


@pytest.mark.parametrize("as_file", [False, True], ids=["frame", "file"])
def test_a_table_of_numbers_of_very_different_scales_is_standardised(as_file: bool, tmp_path: Path) -> None:
    draw = np.random.default_rng(0)
    group = np.repeat([0, 1, 2], 200)
    X = draw.normal(size=(600, 3)) + np.array([[0, 0, 9], [8, 0, 9], [0, 8, 9]])[group]
    table = pd.DataFrame(X * [1.0, 1000.0, 0.001], columns=["a", "b", "c"])
    path = tmp_path / "rows.parquet"
    table.to_parquet(path)
    with pytest.warns(PreparationNote, match="scale='standard'"):
        model = DC2Clustering(random_state=0).fit(path if as_file else table)
    assert adjusted_rand_score(group, np.concatenate([*model.predict(path)])) > 0.97
    assert model.router_.scaling.kind == "standard"
    for quiet in (DC2Clustering(prepare=None, random_state=0).fit(table), DC2Clustering().fit(table.to_numpy())):
        assert quiet.router_.scaling is None
    assert DC2Clustering(random_state=0).fit(table[["a"]].assign(b=X[:, 1])).router_.scaling is None
    centred = table - table.mean()  # somebody decided their scale, such as PCA
    assert DC2Clustering(random_state=0).fit(centred).router_.scaling is None


@pytest.mark.parametrize("value", [np.inf, -np.inf])
def test_infinity_is_no_blank(value: float) -> None:
    table, _ = two_groups("no", "yes")
    table["size"] = np.random.default_rng(1).normal(size=N_ROWS)
    preparer = TablePreparer().fit(table)
    table.loc[7, "size"] = value
    for act in (TablePreparer().fit, preparer.transform, DC2Clustering(random_state=0).fit):
        with pytest.raises(InputError, match=r"'size'.* 1 of 400"):
            act(table)


def test_numbers_are_not_taken_for_dates() -> None:
    draw = np.random.default_rng(0)
    days = pd.to_datetime("2020-01-01") + pd.to_timedelta(draw.permutation(N_ROWS), unit="D")
    table = pd.DataFrame({"day": days, "size": days.day_of_year + draw.normal(size=N_ROWS)})
    preparer = TablePreparer().fit(table)
    assert "points in time" in preparer.decisions_["day"]
    with pytest.raises(InputError, match="'day'"):
        preparer.transform(table.assign(day=table["day"].astype("int64")))
    with pytest.raises(InputError, match="'size'"):
        preparer.transform(table.assign(size=days))


@pytest.mark.parametrize("character", ["\x1b", "\x00", "\x9b"])
def test_a_category_with_a_control_character_can_be_saved(character: str, tmp_path) -> None:
    table, _ = two_groups("no", f"y{character}es")
    with pytest.warns(dc2.PreparationNote if hasattr(dc2, "PreparationNote") else UserWarning):
        model = DC2Clustering(random_state=0).fit(table)
    model.save(tmp_path / "model.dc2")
    np.testing.assert_array_equal(dc2.load(tmp_path / "model.dc2").predict(table), model.labels_)


def test_one_category_is_not_called_several() -> None:
    table = pd.DataFrame({"town": ["Rome"] * 300 + [None] * 100, "size": np.r_[np.zeros(300), np.ones(100)]})
    table["size"] += np.random.default_rng(0).normal(scale=0.1, size=N_ROWS)
    assert "1 value," in TablePreparer().fit(table).decisions_["town"]


@pytest.mark.parametrize("verbose", ["a", None, 1.5])
def test_verbose_is_a_number_or_a_function(verbose: object) -> None:
    with pytest.raises(ParameterError, match="verbose="):
        DC2Clustering(verbose=verbose).fit(np.zeros((5, 2)))


@pytest.mark.parametrize("order", [["b", "a"], ["c", "b", "a"], ["a", "b"]])
def test_columns_are_found_by_name_in_any_order(order: list[str]) -> None:
    rows = pd.DataFrame(np.random.default_rng(0).normal(size=(200, 3)), columns=["a", "b", "c"])
    model = DC2Clustering(3, n_signatures=20, random_state=0).fit(rows[["a", "b"]])
    np.testing.assert_array_equal(model.predict(rows[order]), model.labels_)


@pytest.mark.filterwarnings("ignore::dc2.errors.PreparationNote")
def test_representatives_of_a_frame_have_names_and_whole_numbers() -> None:
    draw = np.random.default_rng(0)
    rows = pd.DataFrame({"count": draw.integers(0, 9, 200) + 100 * (np.arange(200) % 2), "size": draw.normal(size=200)})
    found = DC2Clustering(2, random_state=0).fit(rows).representatives_
    assert isinstance(found, pd.DataFrame)
    assert found.columns.tolist() == ["count", "size"]
    assert found["count"].dtype.kind == "i"
    assert found["size"].dtype.kind == "f"
    assert isinstance(DC2Clustering(2, random_state=0).fit(rows.to_numpy()).representatives_, np.ndarray)


def test_nested_columns_are_left_out_with_a_note() -> None:
    table, group = two_groups("no", "yes")
    nested = table.assign(lists=[["a", "b"]] * N_ROWS, records=[{"a": 1}] * N_ROWS)
    with pytest.warns(PreparationNote, match="lists"):
        model = DC2Clustering(2, random_state=0).fit(nested)
    with pytest.warns(PreparationNote):
        plain = DC2Clustering(2, random_state=0).fit(table)
    np.testing.assert_array_equal(model.labels_, plain.labels_)
    assert adjusted_rand_score(group, model.labels_) > 0.9


@pytest.mark.parametrize("unit", ["us", "ns"])
def test_durations_keep_microseconds(unit: str) -> None:
    steps = np.tile([0, 250, 500, 750], N_ROWS // 4)
    durations = pd.DataFrame({"took": (steps * 1000 ** (unit == "ns")).astype(f"timedelta64[{unit}]")})
    rows = TablePreparer().fit_transform(durations.assign(word=np.where(steps < 400, "a", "b")))
    assert any(len(np.unique(column)) == 4 for column in rows.T)
