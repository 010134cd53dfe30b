"""Laws of columns that hold codes, times of day, repeats and mostly missing values."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from dc2 import TablePreparer
from support.table_data import flights

TABLE, _ = flights(6_000)


@pytest.fixture(scope="module")
def preparer() -> TablePreparer:
    return TablePreparer().fit(TABLE)


def test_codes_are_categories_and_quantities_are_not(preparer: TablePreparer) -> None:
    said = preparer.decisions_
    assert said["AirlineID"].startswith("category, codes")
    assert "scaled" in said["Distance"]
    assert "scaled" in said["AirTime"]


def test_counts_and_ages_stay_numbers() -> None:
    draw = np.random.default_rng(0)
    group = draw.integers(0, 5, 4000)
    frame = pd.DataFrame(
        {
            "visits": draw.poisson(np.array([2, 12, 6, 20, 1])[group]),
            "age": np.rint(draw.normal(np.array([25, 40, 55, 35, 68])[group], 3)),
            "basket": draw.normal(np.array([1, 5, 2, 9, 3])[group], 0.5),
        }
    )
    assert all("scaled" in words for words in TablePreparer().fit(frame).decisions_.values())


def test_of_a_code_a_name_and_a_number_that_say_the_same_one_text_is_kept(preparer: TablePreparer) -> None:
    said = preparer.decisions_
    assert said["StateFips"] == said["StateName"] == "left out: says the same as 'State'"
    assert "same" not in said["State"]


def test_times_of_the_form_hhmm_are_a_circle(preparer: TablePreparer) -> None:
    assert "cycle" in preparer.decisions_["DepTime"]
    names = preparer.get_feature_names_out().tolist()
    circle = [place for place, name in enumerate(names) if name.startswith("DepTime")]
    midnight = preparer.transform(TABLE.head(3).assign(DepTime=[2359, 1, 1200]))[:, circle]
    assert np.linalg.norm(midnight[0] - midnight[1]) < 0.2 * np.linalg.norm(midnight[0] - midnight[2])


def test_a_mostly_missing_column_is_present_or_missing(preparer: TablePreparer) -> None:
    assert preparer.decisions_["NASDelay"].startswith("mostly missing")
    assert "missing" in preparer.decisions_["Tail"]
    own = ["NASDelay" in name for name in preparer.get_feature_names_out()]
    rows = preparer.transform(TABLE.head(3).assign(NASDelay=[1.0, 500.0, np.nan]))[:, own]
    assert (rows[0] == rows[1]).all()
    assert (rows[0] != rows[2]).any()


@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_categories_of_digits_are_categories(kind: str) -> None:
    draw = np.random.default_rng(0)
    codes = draw.integers(0, 4, 400)
    other = codes * 2.0 + draw.normal(size=400)
    if kind == "pandas":
        frame = pd.DataFrame({"c": pd.Categorical(codes), "x": other})
    else:
        frame = pl.DataFrame({"c": pl.Series(codes.astype(str)).cast(pl.Categorical), "x": other})
    assert TablePreparer().fit(frame).decisions_["c"].startswith("category, 4 values")
