"""Laws of rows that come from data frames."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet
import pytest

from dc2.errors import InputError, InputTypeError
from dc2.io import as_source

FRAMES = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.table}


def rows_of(source, block_bytes=2**20):
    return np.concatenate([block.X for block in source.blocks(block_bytes)])


@pytest.mark.parametrize("make", FRAMES.values(), ids=FRAMES)
class TestFrames:
    """Data frames of every kind behave alike."""

    def test_names_and_columns_are_kept_in_order(self, make):
        frame = make({"b": [1.0, 2.0], "a": [3.0, 4.0], "c": [5.0, 6.0]})
        assert as_source(frame).feature_names == ("b", "a", "c")
        chosen = as_source(frame, columns=["c", "b"])
        assert chosen.feature_names == ("c", "b")
        assert rows_of(chosen).tolist() == [[5, 1], [6, 2]]
        assert as_source(frame, drop="a").feature_names == ("b", "c")

    def test_columns_of_several_types_go_through_the_promotion_rule(self, make):
        narrow = make({"i": np.array([1, 2], np.int16), "f": np.array([0.5, 1], np.float32), "t": [True, False]})
        assert as_source(narrow).dtype == np.float32
        assert rows_of(as_source(narrow)).tolist() == [[1, 0.5, 1], [2, 1, 0]]
        assert as_source(make({"i": np.array([1, 2]), "f": np.array([0.5, 1], np.float32)})).dtype == np.float64

    def test_text_is_refused_with_the_names_and_the_way_out(self, make):
        frame = make({"x": [1.0, 2.0], "name": ["a", "b"], "town": ["c", "d"]})
        with pytest.raises(InputTypeError, match=r"not numeric: 'name', 'town' .*columns= or drop=.*OneHotEncoder"):
            as_source(frame)
        assert as_source(frame, drop=["name", "town"]).feature_names == ("x",)

    def test_columns_that_are_not_there_are_named_beside_those_that_are(self, make):
        with pytest.raises(InputError, match="no column 'y', 'z'; it has 'x'"):
            as_source(make({"x": [1.0]}), columns=["x", "y", "z"])

    def test_extra_columns_travel_with_the_rows(self, make):
        frame = make({"id": ["p", "q", "r"], "x": [1.0, 2.0, 3.0]})
        source = as_source(frame, extra=["id"])
        assert source.feature_names == ("x",)
        blocks = list(source.blocks(16))
        assert [block.extra.column("id").to_pylist() for block in blocks] == [["p", "q"], ["r"]]


@pytest.mark.parametrize(
    "frame",
    [
        pl.DataFrame({"a": [1.0, 2.0, 3.0], "b": [1, None, None]}),
        pa.table({"a": [1.0, 2.0, 3.0], "b": [1, None, None]}),
        pd.DataFrame({"a": [1.0, 2.0, 3.0], "b": pd.array([1, None, None], dtype="Int64")}),
        pl.DataFrame({"a": [1.0, 2.0, 3.0], "b": [True, None, None]}),
    ],
)
def test_missing_values_are_refused_with_column_count_and_row(frame):
    with pytest.raises(InputError, match=r"missing values.*rows 0 to 2: column 'b' has 2 \(first in row 1\)"):
        as_source(frame)
    assert as_source(frame, columns=["a"]).n_features == 1


def test_integers_of_128_bits_are_refused_with_the_way_out():
    frame = pl.DataFrame({"x": [1.0], "big": pl.Series([1], dtype=pl.Int128)})
    with pytest.raises(InputTypeError, match=r"128 bits.*: 'big'\. Cast them first"):
        as_source(frame)
    assert as_source(frame, drop=["big"]).n_features == 1


def test_names_of_several_types_are_refused_with_the_way_out():
    with pytest.raises(InputTypeError, match=r"several types, such as 'a' and 1\..*astype\(str\)"):
        as_source(pd.DataFrame({"a": [1.0], 1: [2.0]}))


def test_columns_numbered_by_pandas_have_no_names():
    X = np.arange(6.0).reshape(3, 2)
    source = as_source(pd.DataFrame(X))
    assert source.feature_names is None
    np.testing.assert_array_equal(rows_of(source, 16), X)


def test_columns_of_the_same_name_are_refused(tmp_path):
    with pytest.raises(InputError, match="same name"):
        as_source(pd.DataFrame(np.zeros((2, 2)), columns=["a", "a"]))
    (tmp_path / "x.csv").write_text("a,b,a\n1,2,3\n")
    with pytest.raises(InputError, match="several columns named 'a'"):
        as_source(tmp_path / "x.csv")
