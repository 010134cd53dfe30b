"""Laws of tables: tables as people have them are prepared, which is reported, with the same labels in any blocks."""

import os
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score

import dc2
from dc2 import DC2Clustering, TablePreparer
from dc2.errors import InputError, InputTypeError, MissingValuesError, ParameterError, PreparationNote
from dc2.report import ClusterStatistics
from dc2.tables.column_transforms import impute
from support.table_data import customers

TABLE, GROUPS = customers(6_000)
pytestmark = pytest.mark.filterwarnings("ignore::dc2.errors.ClustersDoNotShowWarning")


@pytest.fixture(scope="module")
def preparer() -> TablePreparer:
    return TablePreparer().fit(TABLE)


def fitted(X: Any, k: Any = 5, **parameters: Any) -> DC2Clustering:
    with pytest.warns(PreparationNote, match="prepared"):
        return DC2Clustering(k, random_state=0, **parameters).fit(X)


def test_the_groups_of_a_customer_table_are_found_at_the_first_try() -> None:
    table, groups = customers(20_000)
    found = adjusted_rand_score(groups, fitted(table).labels_)
    numbers = table.select_dtypes("number")
    words = pd.get_dummies(table[["plan", "city", "country", "active"]].astype(str)).astype(float)
    both = pd.concat([numbers.fillna(numbers.mean()), words], axis=1).to_numpy()
    rows = (both - both.mean(axis=0)) / np.where(both.std(axis=0) > 0, both.std(axis=0), 1)
    assert found >= 0.90
    assert found >= adjusted_rand_score(groups, KMeans(5, n_init=3, random_state=0).fit_predict(rows))


def test_every_column_is_decided_on_in_words(preparer: TablePreparer) -> None:
    said = preparer.decisions_
    assert list(said) == list(TABLE.columns)
    assert "many distinct values" in said["customer"]
    assert "missing values" in said["age"]
    assert "heavily skewed" in said["income"]
    assert said["plan"].startswith("category, 3 values")
    assert said["country"] == "left out: always 'IT'"
    for column in ("city", "signup", "active"):
        assert said[column] == "left out: tells nothing about any other column"


def test_categories_weigh_less_than_the_spacing_of_rows_in_the_numbers(preparer: TablePreparer) -> None:
    spread = preparer.transform(TABLE).std(axis=0)
    assert spread[4:].max() < 0.1 * spread[:4].min()


def test_chunks_equal_the_whole(preparer: TablePreparer) -> None:
    parts = [preparer.transform(TABLE.iloc[start : start + 700]) for start in range(0, len(TABLE), 700)]
    np.testing.assert_array_equal(np.concatenate(parts), preparer.transform(TABLE))


@pytest.mark.parametrize("kind", [pl.from_pandas, lambda table: pl.from_pandas(table).to_arrow()])
def test_every_kind_of_frame_gives_the_same_numbers(kind: Any, preparer: TablePreparer) -> None:
    other = TablePreparer().fit(kind(TABLE))
    assert other.decisions_ == preparer.decisions_
    np.testing.assert_array_equal(other.transform(kind(TABLE)), preparer.transform(TABLE))


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_files_give_the_labels_of_the_frame(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"rows.{suffix}"
    TABLE.to_csv(path, index=False) if suffix == "csv" else TABLE.to_parquet(path)
    labels = np.concatenate(list(fitted(path, block_bytes=2**16).predict(path)))
    np.testing.assert_array_equal(labels, fitted(TABLE).labels_)


def test_a_saved_model_prepares_new_rows_as_it_did(tmp_path: Path) -> None:
    model = fitted(TABLE)
    model.save(tmp_path / "model.dc2")
    loaded = dc2.load(tmp_path / "model.dc2")
    np.testing.assert_array_equal(loaded.predict(TABLE), model.labels_)
    assert loaded.preparer_.decisions_ == model.preparer_.decisions_
    assert loaded.feature_names_in_.tolist() == list(TABLE.columns)


def test_numbers_without_blanks_are_left_alone() -> None:
    frame = TABLE[["visits", "basket"]].assign(active=TABLE["active"])
    frame["basket"] /= 50  # of one scale
    model = DC2Clustering(3, random_state=0).fit(frame)
    assert not hasattr(model, "preparer_")
    rows = frame.to_numpy(np.float64)
    np.testing.assert_array_equal(model.labels_, DC2Clustering(3, random_state=0).fit(rows).labels_)


def test_numbers_with_blanks_are_prepared_and_arrays_are_not() -> None:
    frame = TABLE[["age", "visits"]]
    assert hasattr(fitted(frame, 3), "preparer_")
    with pytest.raises(MissingValuesError):
        DC2Clustering(3, prepare=None).fit(frame)
    with pytest.raises(MissingValuesError):
        DC2Clustering(3).fit(frame.to_numpy())


def test_a_table_that_is_prepared_is_not_scaled_again() -> None:
    with pytest.raises(ParameterError, match="scale='standard'"):
        DC2Clustering(3, scale="standard").fit(TABLE)


def test_predict_needs_the_columns_by_name() -> None:
    model = fitted(TABLE)
    with pytest.raises(InputTypeError, match="named columns"):
        model.predict(np.zeros((3, 10)))
    with pytest.raises(InputError, match="no column 'plan'"):
        model.predict(TABLE.drop(columns="plan"))


def test_other_estimators_name_the_preparer() -> None:
    with pytest.raises(InputTypeError, match="TablePreparer"):
        dc2.Compressor().fit(TABLE.dropna())


def test_unseen_levels_are_other_and_counted(preparer: TablePreparer) -> None:
    new = TABLE.head(50).assign(plan=["platinum"] * 7 + ["gold"] * 43)
    assert preparer.count_unseen(new) == {"plan": 7}
    with pytest.warns(PreparationNote, match="7 in 'plan'"):
        rows = preparer.transform(new)
    assert np.isfinite(rows).all()


def test_words_among_numbers_are_refused_with_their_rows_unless_overruled() -> None:
    mixed = TABLE[["visits"]].assign(code=["7", "8"] * 3000)
    mixed.loc[[17, 230], "code"] = "many"
    with pytest.raises(InputError, match=r"numbers and words: 'many', in 2 of .* \(rows 17, 230, counted from 0\)"):
        TablePreparer().fit(mixed)
    assert "category" in TablePreparer(["code"]).fit(mixed).decisions_["code"]


def test_usual_words_for_missing_are_blanks() -> None:
    frame = pd.DataFrame({"x": ["1.5", "NA", "?", "4", "2", "n/a", "null", "3"] * 10, "y": np.arange(80) % 7})
    preparer = TablePreparer().fit(frame)
    assert "missing values (50.0%)" in preparer.decisions_["x"]


def test_ids_constants_and_repeats_are_left_out() -> None:
    visits = TABLE["visits"]
    frame = pd.DataFrame(
        {
            "row": range(len(visits)),
            "visits": visits,
            "twice": 2 * visits + 1,
            "one": 1,
            "plan": TABLE["plan"],
        }
    )
    said = TablePreparer().fit(frame).decisions_
    assert "an id" in said["row"]
    assert said["twice"] == "left out: nearly the same as 'visits'"
    assert said["one"] == "left out: always 1"


def test_a_table_of_categories_alone_is_placed_by_correspondence_analysis() -> None:
    draw = np.random.default_rng(0)
    group = draw.integers(0, 3, 3000)
    columns = {
        f"c{number}": np.where(draw.random(3000) < 0.8, group, draw.integers(0, 3, 3000)).astype(str)
        for number in range(8)
    }
    frame = pd.DataFrame(columns).replace({"0": "red", "1": "green", "2": "blue"})
    preparer = TablePreparer().fit(frame)
    rows = preparer.transform(frame)
    assert rows.shape[1] <= 8
    assert adjusted_rand_score(group, KMeans(3, n_init=3, random_state=0).fit_predict(rows)) > 0.9


def test_ids_of_letters_are_ids() -> None:
    ids = [f"C{row:05}" for row in range(100)]
    table = pd.DataFrame({"customer_id": ids, "comment": ids, "x": np.arange(100) ** 0.5 % 1})
    said = TablePreparer().fit(table).decisions_
    assert said["customer_id"] == "left out: an id, every row has its own"
    assert "text with many distinct values" in said["comment"]


class TestManyLevels:
    """A column with more levels than there can be columns."""

    draw = np.random.default_rng(0)
    group = draw.integers(0, 4, 2000)
    table = pd.DataFrame(
        {
            "spend": draw.normal(4 * group, 1),
            "state": [f"S{12 * one + other:02}" for one, other in zip(group, draw.integers(0, 12, 2000), strict=True)],
            "plan": np.array(["gold", "red", "blue", "free"])[group],
            "side": np.array(["east", "west"])[group // 2],
        }
    )

    def test_others_keep_columns_of_their_own(self) -> None:
        names = TablePreparer().fit(self.table).get_feature_names_out().tolist()
        assert {"plan=gold", "plan=red", "plan=blue", "plan=free"} <= set(names)
        shared = [name for name in names if name.startswith("state ")]
        assert len(names) == 7 + len(shared)
        assert all(re.fullmatch(r"state \d \(S\d\d.* against S\d\d.*\)", name) for name in shared)

    def test_shares_of_other_levels_are_told_in_units(self) -> None:
        preparer = TablePreparer().fit(self.table)
        names, values = preparer.in_units(preparer.transform(self.table))
        for column, level in (("plan", "gold"), ("plan", "free"), ("side", "east")):
            has_it = values[:, names.index(f"{column}={level}")]
            np.testing.assert_allclose(has_it, self.table[column] == level, atol=1e-6)

    def test_levels_at_the_ends_of_a_component_lie_apart(self) -> None:
        preparer = TablePreparer().fit(self.table)
        place = preparer.get_feature_names_out().tolist()
        for column, name in enumerate(place):
            if name.startswith("state "):
                high, low = name[name.index("(") + 1 : -1].split(" against ")
                rows = preparer.transform(self.table)[:, column]
                means = [rows[self.table["state"].isin(end.split(", "))].mean() for end in (high, low)]
                assert means[0] > 0 > means[1]

    def test_what_sets_clusters_apart_names_levels(self) -> None:
        told = fitted(self.table, 4).summary()["sets_apart"].str.cat()
        assert "plan=gold" in told


def test_cycles_of_time_show_where_they_tell_something() -> None:
    hours = np.arange(4000) % 24
    times = pd.Timestamp("2021-03-01") + pd.to_timedelta(np.arange(4000), "h")
    load = np.sin(2 * np.pi * hours / 24) + np.random.default_rng(0).normal(0, 0.1, 4000)
    preparer = TablePreparer().fit(pd.DataFrame({"time": times, "load": load}))
    assert "the hour as a cycle" in preparer.decisions_["time"]
    assert "month" not in preparer.decisions_["time"]


def test_set_output_names_the_columns(preparer: TablePreparer) -> None:
    frame = TablePreparer().set_output(transform="pandas").fit_transform(TABLE)
    assert list(frame.columns) == preparer.get_feature_names_out().tolist()


def test_weights_of_rows_go_with_a_table() -> None:
    with pytest.warns(PreparationNote):
        model = DC2Clustering(5, random_state=0).fit(TABLE, sample_weight=np.ones(len(TABLE)))
    np.testing.assert_array_equal(model.labels_, fitted(TABLE).labels_)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["connect-4.data.gz", "census-income.data.gz"])
def test_public_tables_go_in_at_the_first_try(name: str, tmp_path: Path) -> None:
    path = Path(os.environ.get("DC2_DATA", "")) / name
    if not path.is_file():
        pytest.skip(f"{name} is not there")
    rows = tmp_path / "rows.csv.gz"
    rows.symlink_to(path)
    with pytest.warns(PreparationNote):
        model = DC2Clustering(3, random_state=0).fit(pd.read_csv(rows, header=None).add_prefix("x"))
    assert model.n_clusters_ == 3


def test_what_is_told_is_in_the_units_of_the_table(tmp_path: Path) -> None:
    table, _ = customers(3000)
    model = fitted(table)
    facts = ClusterStatistics.of(model)
    means = facts.profile.middles(facts.profile.names.index("age"))[0]
    assert np.allclose(np.sort(means), [25, 35, 40, 55, 68], atol=2)
    shares = facts.profile.middles(facts.profile.names.index("plan=gold"))[0]
    assert 0.6 < shares.max() < 0.9
    ages = model.representatives_["age"]
    assert ((ages > 15) & (ages < 80)).all()
    page = model.report(tmp_path / "report.html").read_text("utf-8")
    assert "What was done with the columns" in page
    assert "heavily skewed" in page
    assert "customer (text with many distinct values" in page


def test_units_of_the_table_are_what_preparing_undoes(preparer: TablePreparer) -> None:
    names, values = preparer.in_units(preparer.transform(TABLE))
    for name in ("age", "income", "visits", "basket"):
        there = TABLE[name].notna()
        np.testing.assert_allclose(values[there, names.index(name)], TABLE[name][there], rtol=2e-3, atol=0.05)
    np.testing.assert_allclose(values[:, names.index("plan=gold")], TABLE["plan"] == "gold")


def test_points_in_time_are_told_as_years() -> None:
    days = pd.to_datetime(["2020-01-01", "2021-01-01", "2022-01-01"] * 20)
    table = pd.DataFrame({"when": days, "n": [1.0, 5, 9] * 20 + np.random.default_rng(0).normal(size=60)})
    preparer = TablePreparer().fit(table)
    names, values = preparer.in_units(preparer.transform(table))
    assert "when (year)" in names
    np.testing.assert_allclose(values[:3, names.index("when (year)")], [2020, 2021, 2022], atol=0.01)


@pytest.mark.parametrize(
    "taken",
    [
        lambda frame: frame.convert_dtypes(),
        lambda frame: frame.astype({"plan": "string"}),
        lambda frame: frame.assign(plan=frame["plan"].astype("string").mask(frame.index % 50 == 0)),
        lambda frame: (
            frame[["a", "b"]].round().astype("Int64").apply(lambda column: column.mask(frame.index % 50 == 0))
        ),
        lambda frame: pl.from_pandas(frame).lazy(),
    ],
    ids=["nullable", "string", "string with NA", "Int64 with NA", "lazy"],
)
@pytest.mark.filterwarnings("ignore::dc2.errors.PreparationNote")
def test_tables_of_newer_types_are_prepared_too(taken: Any) -> None:
    rng = np.random.default_rng(0)
    group = np.repeat([0, 1], 300)
    frame = pd.DataFrame(
        {
            "a": rng.normal(20 * group, 1),
            "b": rng.normal(-20 * group, 1),
            "plan": np.where(rng.random(600) < 0.9, np.where(group, "pro", "basic"), "gold"),
        }
    )
    labels = DC2Clustering(2, random_state=0).fit(taken(frame)).labels_
    assert adjusted_rand_score(group, labels) > 0.9


@pytest.mark.parametrize("share", [0.2, 0.5, 0.8])
@pytest.mark.filterwarnings("ignore::dc2.errors.PreparationNote")
def test_two_groups_in_a_column_are_not_taken_for_skew(share: float) -> None:
    rng = np.random.default_rng(0)
    group = (rng.random(1000) < share).astype(int)
    frame = pd.DataFrame({"a": rng.normal(20 * group), "b": rng.normal(-20 * group), "word": "same"})
    model = DC2Clustering(random_state=0).fit(frame)
    assert adjusted_rand_score(group, model.labels_) == 1.0
    skewed = TablePreparer().fit(frame.assign(a=rng.lognormal(size=1000)))
    assert skewed.decisions_["a"].startswith("heavily skewed")


@pytest.mark.filterwarnings("ignore::dc2.errors.PreparationNote")
def test_blanks_make_no_clusters_of_their_own(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    group = rng.integers(0, 3, 2000)
    frame = pd.DataFrame(
        {
            "age": rng.normal(np.array([25, 45, 65])[group], 4),
            "income": rng.lognormal(np.array([9.5, 11, 10.2])[group], 0.25),
        }
    )
    frame["age"] = frame["age"].mask(rng.random(len(frame)) < 0.06)
    model = DC2Clustering(random_state=0).fit(frame)
    assert model.n_clusters_ == 3
    assert adjusted_rand_score(group, model.labels_) > 0.9
    np.testing.assert_array_equal(model.predict(frame), model.labels_)
    model.save(tmp_path / "model.dc2")
    np.testing.assert_array_equal(dc2.load(tmp_path / "model.dc2").predict(frame), model.labels_)


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame])
@pytest.mark.filterwarnings("ignore::dc2.errors.PreparationNote")
def test_the_summary_of_a_prepared_table_is_a_frame_of_its_kind(kind: Any) -> None:
    rows = np.random.default_rng(0).normal(size=(200, 2))
    table = kind({"a": rows[:, 0], "b": rows[:, 1], "word": ["x", "y"] * 100})
    assert isinstance(DC2Clustering(2, random_state=0).fit(table).summary(), kind)


def test_predict_counts_levels_that_were_not_there_in_fit(tmp_path: Path) -> None:
    model = fitted(TABLE)
    new = TABLE.head(1000).assign(plan=["platinum"] * 7 + ["gold"] * 993)
    with pytest.warns(PreparationNote, match="'other': 7 in 'plan'"):
        labels = model.predict(new)
    path = tmp_path / "new.csv"
    new.to_csv(path, index=False)
    model.set_params(block_bytes=2**14, n_jobs=2)
    with pytest.warns(PreparationNote, match="'other': 7 in 'plan'"):
        from_file = np.concatenate(list(model.predict(path)))
    np.testing.assert_array_equal(from_file, labels)
    with pytest.warns(PreparationNote, match="'other': 7 in 'plan'"):
        model.predict_to(path, tmp_path / "labels.csv")


@pytest.mark.filterwarnings("error")
def test_predict_says_nothing_of_levels_that_were_there(tmp_path: Path) -> None:
    with pytest.warns(PreparationNote, match="prepared"):
        model = DC2Clustering(5, random_state=0).fit(TABLE)
    np.testing.assert_array_equal(model.predict(TABLE), model.labels_)


def test_predict_needs_no_column_that_was_left_out(tmp_path: Path) -> None:
    model = fitted(TABLE)
    left_out = [name for name, words in model.preparer_.decisions_.items() if words.startswith("left out")]
    assert len(left_out) == 5
    few = TABLE.drop(columns=left_out)
    np.testing.assert_array_equal(model.predict(few), model.labels_)
    few.to_csv(tmp_path / "few.csv", index=False)
    np.testing.assert_array_equal(np.concatenate(list(model.predict(tmp_path / "few.csv"))), model.labels_)
    with pytest.raises(InputError, match="'age'"):
        model.predict(few.drop(columns="age"))


def test_a_typical_row_has_levels_and_no_shares() -> None:
    model = fitted(TABLE)
    typical = [record["typical"] for record in ClusterStatistics.of(model).summary]
    assert not any("=1" in words.split(", ") or words.count("=") != words.count(", ") + 1 for words in typical)
    assert any("plan=" in words for words in typical)
    for words in typical:
        assert words.count("plan=") <= 1


@given(
    st.integers(1, 300),
    st.integers(1, 11),
    st.integers(1, 40),
    st.sampled_from([0, 1, 6]),
    st.integers(0, 99),
)
def test_blanks_take_what_the_first_of_the_nearest_donors_has(
    n_rows: int, width: int, n_donors: int, digits: int, seed: int
) -> None:
    draw = np.random.default_rng(seed)
    rows = draw.normal(size=(n_rows, width)).round(digits)  # few digits: many complete rows are equally near
    complete_rows = draw.normal(size=(n_donors, width)).round(digits)
    blank = draw.random((n_rows, width)) < draw.choice([0.0, 0.1, 0.9])
    expected = rows.copy()
    for row, lacks in zip(expected, blank, strict=True):
        if not lacks.all():
            squared = [
                sum((row[~lacks][i] - donor[i]) ** 2 for i in range((~lacks).sum()))
                for donor in complete_rows[:, ~lacks]
            ]
            row[lacks] = complete_rows[int(np.argmin(squared))][lacks]
    impute(rows, blank, complete_rows)
    np.testing.assert_array_equal(rows, expected)


def test_dask_frames_are_refused_with_the_way_out() -> None:
    dd = pytest.importorskip("dask.dataframe")
    frames = dd.from_pandas(TABLE, npartitions=3)
    for fit in (TablePreparer().fit, DC2Clustering(5, prepare=TablePreparer()).fit):
        with pytest.raises(InputTypeError, match="map_partitions"):
            fit(frames)
    with pytest.raises(InputTypeError, match="TablePreparer"):
        DC2Clustering(5).fit(frames)
    preparer = TablePreparer().set_output(transform="pandas").fit(frames.head(20_000, npartitions=-1))
    numbers = frames.map_partitions(preparer.transform, meta=preparer.transform(frames.head(1)))
    np.testing.assert_array_equal(numbers.compute().to_numpy(), preparer.transform(TABLE).to_numpy())
