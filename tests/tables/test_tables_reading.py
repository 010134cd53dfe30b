"""How columns of a table are read: what is a number, a missing value or a date, and what is refused by name."""

import numpy as np
import pandas as pd
import pytest

from dc2 import DC2Clustering, TablePreparer
from dc2.errors import InputError


@pytest.mark.parametrize("numbers", [["1,5", "22,75", "3,0"], ["1,234", "0,500", "9,100"]])
def test_numbers_with_commas_are_refused_and_not_taken_for_words(numbers: list[str]) -> None:
    frame = pd.DataFrame({"a": numbers * 20, "b": np.arange(60.0)})
    with pytest.raises(InputError, match=r"column 'a' holds numbers with commas, such as '1,"):
        DC2Clustering(random_state=0).fit(frame)


@pytest.mark.parametrize("word", ["unknown", "n. d.", "*"])
def test_a_few_words_among_numbers_below_one_are_refused_too(word: str) -> None:
    rng = np.random.default_rng(0)
    column = [f"{value:.2f}" for value in rng.random(400)]
    column[7] = word
    with pytest.raises(InputError, match=r"numbers and words: .*, in 1 of 400 sampled rows \(rows 7, counted from 0\)"):
        TablePreparer().fit(pd.DataFrame({"x": column, "y": rng.normal(size=400)}))


def test_a_dash_is_a_blank() -> None:
    values = [f"{value:.3f}" for value in np.random.default_rng(0).random(200)]
    table = pd.DataFrame({"x": ["-" if i % 4 == 0 else values[i] for i in range(200)], "y": np.arange(200.0) % 7})
    assert "missing values (25.0%)" in TablePreparer().fit(table).decisions_["x"]


@pytest.mark.parametrize(
    ("texts", "numbers"),
    [
        (["5.1%", "30.2 %", "7%"], [5.1, 30.2, 7]),
        (["$1,234.50", "$9.99", "-$2"], [1234.5, 9.99, -2]),
        (["1,103", "12,345,678", "9"], [1103, 12_345_678, 9]),
    ],
)
def test_numbers_with_signs_or_in_groups_are_numbers(texts: list[str], numbers: list[float]) -> None:
    rng = np.random.default_rng(0)
    others = {"y": rng.normal(size=300)}
    written = TablePreparer().fit(pd.DataFrame({"x": texts * 100, **others}))
    plain = TablePreparer().fit(pd.DataFrame({"x": numbers * 100, **others}))
    assert repr(texts[0]) in written.decisions_["x"] or repr(texts[1]) in written.decisions_["x"]
    new = pd.DataFrame({"x": texts, "y": 0.0})
    assert (written.transform(new) == plain.transform(new.assign(x=numbers))).all()


def test_two_currencies_in_a_column_are_refused() -> None:
    table = pd.DataFrame({"x": ["$5", "€7"] * 50, "y": np.arange(100.0)})
    with pytest.raises(InputError, match="column 'x' holds numbers with a sign"):
        TablePreparer().fit(table)


def test_dates_are_read_with_slashes_and_others_are_left_out_by_name() -> None:
    days = pd.date_range("2020-01-01", periods=300)
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "slashes": days.strftime("%Y/%m/%d"),
            "dots": days.strftime("%d.%m.%Y"),
            "words": days.strftime("%b %d, %Y"),
            "x": np.repeat([0.0, 5.0, 2.0], 100) + rng.normal(size=300),
        }
    )
    said = TablePreparer().fit(table).decisions_
    assert said["slashes"].startswith("points in time")
    for name in ("dots", "words"):
        assert said[name].startswith("left out: dates such as ")
