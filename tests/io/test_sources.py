"""Laws that hold for every source: the same rows from any kind of data and in any blocks."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dc2.errors import InputError, InputTypeError, ParameterError
from dc2.io import Source, as_source
from dc2.io.source import promoted_dtype, raise_if_not_finite
from support.source_kinds import IN_MEMORY, STREAMED, cut


@pytest.fixture(scope="module")
def folder_for(tmp_path_factory):
    return lambda: tmp_path_factory.mktemp("rows")


def rows_of(source, block_bytes):
    """All rows of a source, after a look at its blocks."""
    blocks = list(source.blocks(block_bytes))
    assert [block.start for block in blocks] == [0, *(block.stop for block in blocks[:-1])]
    assert all(block.X.ndim == 2 and len(block.X) > 0 for block in blocks)
    assert all(block.X.dtype == source.dtype for block in blocks)
    assert all(block.X.nbytes <= block_bytes or len(block.X) == 1 for block in blocks)
    return np.concatenate([block.X for block in blocks])


@pytest.mark.parametrize("kind", [*IN_MEMORY, *STREAMED])
@given(data=st.data())
@settings(max_examples=25)
def test_every_source_gives_the_rows_of_the_array(kind, folder_for, data):
    n_rows = data.draw(st.integers(1, 40), label="rows")
    n_features = data.draw(st.integers(1, 4), label="features")
    dtype = data.draw(st.sampled_from([np.float32, np.float64]), label="dtype")
    at = data.draw(st.lists(st.floats(0.1, 0.9), max_size=3), label="cuts")
    block_bytes = data.draw(st.integers(1, 700), label="block_bytes")
    X = np.random.default_rng(0).normal(size=(n_rows, n_features)).astype(dtype)
    at = [share for share in at if round(share * n_rows) > 0]

    source = as_source((IN_MEMORY | STREAMED)[kind](X, folder_for(), at))

    assert isinstance(source, Source)
    assert source.in_memory == (kind in IN_MEMORY)
    assert source.n_features == n_features
    if kind in ("csv", "csv.gz", "list"):
        assert source.dtype == np.float64  # text knows no float32
    else:
        assert source.dtype == dtype
    np.testing.assert_array_equal(rows_of(source, block_bytes), X.astype(source.dtype))
    np.testing.assert_array_equal(rows_of(source, 2**20), X.astype(source.dtype))
    assert source.n_rows == n_rows


@pytest.mark.parametrize("kind", ["array", "fortran", "strided", "read-only", "memmap", "pandas"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_floats_in_memory_are_not_copied(kind, dtype, tmp_path):
    X = np.ones((50, 3), dtype)
    given_ = IN_MEMORY[kind](X, tmp_path, [])
    held = np.asarray(given_)
    for block in as_source(given_).blocks(200):
        assert np.shares_memory(block.X, held)


@pytest.mark.parametrize("kind", ["fortran", "strided", "pandas", "polars", "pyarrow", "parquet", "npy"])
def test_wide_rows_lie_in_one_place_when_they_are_worked_on(kind, tmp_path):
    X = np.random.default_rng(0).normal(size=(50, 70))
    source = as_source((IN_MEMORY | STREAMED)[kind](X, tmp_path, [0.4]))
    for block in source.blocks(20 * 70 * 8):
        np.testing.assert_array_equal(block.take(np.array([3, 1])), X[block.start + np.array([3, 1])])
        np.testing.assert_array_equal(block.X, X[block.start : block.stop])
        assert block.X.strides[1] == 8
        assert block.X is block.X


@pytest.mark.parametrize("kind", ["npy", "memmap"])
def test_columns_of_arrays_are_chosen_by_index(kind, tmp_path):
    X = np.arange(12.0).reshape(3, 4)
    made = (IN_MEMORY | STREAMED)[kind](X, tmp_path, [])
    np.testing.assert_array_equal(rows_of(as_source(made, columns=[2, 0]), 24), X[:, [2, 0]])
    np.testing.assert_array_equal(rows_of(as_source(made, drop=[-1]), 24), X[:, :3])
    with pytest.raises(InputError, match="only 4 columns"):
        as_source(made, columns=[4])
    with pytest.raises(InputTypeError, match="no column names"):
        as_source(made, columns=["c0"])


@pytest.mark.parametrize(
    ("dtypes", "expected"),
    [
        (["float32", "float16", "bool", "int8", "uint8", "int16", "uint16"], "float32"),
        (["float32", "int32"], "float64"),
        (["uint32"], "float64"),
        (["int64", "bool"], "float64"),
        (["float64", "float16"], "float64"),
    ],
)
def test_float32_only_where_it_holds_every_value(dtypes, expected):
    assert promoted_dtype(map(np.dtype, dtypes)) == expected


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "float16", "int32", "int64", "uint64", "longdouble"])
@pytest.mark.parametrize("kind", ["array", "pandas", "polars", "pyarrow", "parquet", "arrow", "npy"])
def test_all_kinds_of_numbers_are_taken_by_the_same_rule(kind, dtype, tmp_path):
    if dtype == "longdouble" and kind not in ("array", "npy"):
        pytest.skip("Arrow has no such numbers")
    if dtype == "float16" and kind == "parquet":
        dtype = "float32"  # older readers know no half floats in Parquet
    X = np.array([[0, 1], [1, 0], [1, 1]]).astype(dtype)
    source = as_source((IN_MEMORY | STREAMED)[kind](X, tmp_path, []))
    assert source.dtype == promoted_dtype([np.dtype(dtype)])
    np.testing.assert_array_equal(rows_of(source, 16), X.astype(source.dtype))


def test_values_are_not_looked_at_before_a_pass():
    assert as_source(np.full((5, 2), np.nan)).n_rows == 5


@pytest.mark.parametrize(
    ("bad", "error", "message"),
    [
        (np.zeros(3), InputError, "Reshape your data"),
        (np.zeros((2, 2, 2)), InputError, "dim 3"),
        (np.zeros((2, 2), complex), InputError, "Complex data not supported"),
        (np.zeros((0, 3)), InputError, r"0 sample\(s\) \(shape=\(0, 3\)\) while a minimum of 1 is required"),
        (np.zeros((3, 0)), InputError, r"0 feature\(s\) \(shape=\(3, 0\)\) while a minimum of 1 is required"),
        (np.array([["a", "b"]]), InputError, "numeric"),
        (np.array([[{}, 1]], dtype=object), InputTypeError, "argument must be .* string.* number"),
        (np.zeros((2, 2), "datetime64[s]"), InputTypeError, "not numeric"),
        (pd.Series([1.0, 2.0]), InputError, "Series of 2 values, but rows and columns are needed"),
        (pl.Series([1.0, 2.0]), InputError, "Reshape your data"),
        (pd.DataFrame({"x": []}, dtype=float), InputError, r"0 sample\(s\) \(shape=\(0, 1\)\)"),
        (pd.DataFrame(index=range(3)), InputError, r"0 feature\(s\) \(shape=\(3, 0\)\)"),
        ((block for block in [np.zeros((2, 2))]), InputTypeError, "only once.*callable.*partial_fit"),
        (iter([np.zeros((2, 2))]), InputTypeError, "only once.*callable.*partial_fit"),
        (list, InputError, r"0 sample\(s\)"),
        (lambda: 3, InputTypeError, "returned int"),
    ],
)
def test_what_cannot_be_used_is_refused_at_once(bad, error, message):
    with pytest.raises(error, match=message):
        as_source(bad)


def test_numbers_kept_as_objects_are_numbers():
    X = np.array([[1, 2.5], [3, 4]], dtype=object)
    np.testing.assert_array_equal(rows_of(as_source(X), 100), X.astype(float))


def test_values_that_are_not_finite_are_named_with_column_count_and_row():
    X = np.ones((6, 3), np.float32)
    raise_if_not_finite(X)
    X[2, 1] = X[4, 1] = X[5, 2] = np.nan
    with pytest.raises(
        InputError,
        match=r"Input X contains NaN\. In rows 100 to 105: column 'b' has 2 \(first in row 102\), "
        r"column 'c' has 1 \(first in row 105\)",
    ):
        raise_if_not_finite(X, ["a", "b", "c"], start=100)
    X = np.ones((2, 2), np.float32)
    X[1, 0] = -np.inf
    with pytest.raises(InputError, match=r"infinity or a value too large for dtype\('float32'\).*column 0 has 1"):
        raise_if_not_finite(X)


def test_many_columns_with_missing_values_are_counted_not_listed():
    with pytest.raises(InputError, match="and so 15 more columns"):
        raise_if_not_finite(np.full((2, 20), np.nan))


class TestWeights:
    """Weights come as an array beside the rows, or as a column of them."""

    X = np.arange(12.0).reshape(6, 2)

    @pytest.mark.parametrize("kind", ["array", "polars", "parquet", "csv", "callable of arrays"])
    @pytest.mark.parametrize("block_bytes", [1, 40, 1000])
    def test_an_array_of_weights_goes_with_any_rows(self, kind, block_bytes, tmp_path):
        weights = [1, 0, 2.5, 3, 0, 1]
        made = (IN_MEMORY | STREAMED)[kind](self.X, tmp_path, [0.4])
        blocks = list(as_source(made, sample_weight=weights).blocks(block_bytes))
        assert np.concatenate([block.weights for block in blocks]).tolist() == weights
        assert all(block.weights.dtype == np.float64 for block in blocks)
        assert all(len(block.weights) == len(block.X) for block in blocks)

    @pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow", "parquet", "arrow", "csv", "callable of frames"])
    def test_a_column_of_weights_is_no_feature(self, kind, tmp_path):
        made = (IN_MEMORY | STREAMED)[kind](self.X, tmp_path, [0.4])
        source = as_source(made, sample_weight="c1")
        assert source.feature_names == ("c0",)
        blocks = list(source.blocks(16))
        np.testing.assert_array_equal(np.concatenate([block.weights for block in blocks]), self.X[:, 1])
        np.testing.assert_array_equal(np.concatenate([block.X for block in blocks]), self.X[:, :1])

    @pytest.mark.parametrize(
        ("weights", "message"),
        [
            ([1, 2], "2 values but X has 6 rows"),
            (np.ones((6, 1)), "1-dimensional"),
            ([1, 1, -1, 1, -2, 1], r"negative values: 2 of 6, first in row 2 \(-1.0\)"),
            ([1, 1, 1, np.nan, 1, 1], "NaN or infinity: 1 of 6, first in row 3"),
            ([0] * 6, "zero for all 6 rows"),
        ],
    )
    def test_impossible_weights_are_refused_at_once(self, weights, message):
        with pytest.raises(InputError, match=message):
            as_source(self.X, sample_weight=weights)

    def test_weights_that_are_no_numbers_are_refused(self):
        with pytest.raises(InputTypeError, match="numbers"):
            as_source(self.X, sample_weight=["a"] * 6)

    @pytest.mark.parametrize(
        ("column", "message"),
        [([1.0, -1.0], "first in row 1"), ([0.0, 0.0], "zero for all 2 rows"), ([np.nan, 1.0], "NaN")],
    )
    def test_a_column_of_impossible_weights_is_refused_in_the_pass(self, column, message, tmp_path):
        pa.parquet.write_table(pa.table({"x": [1.0, 2.0], "w": column}), tmp_path / "x.parquet")
        source = as_source(tmp_path / "x.parquet", sample_weight="w")
        with pytest.raises(InputError, match=message):
            list(source.blocks(100))

    @pytest.mark.parametrize("n_weights", [5, 7])
    def test_a_stream_of_another_length_than_its_weights_is_refused(self, n_weights):
        source = as_source(lambda: cut(self.X, [0.5]), sample_weight=np.ones(n_weights))
        with pytest.raises(InputError, match=f"sample_weight has {n_weights} values but X has"):
            list(source.blocks(1))

    def test_an_array_has_no_column_of_weights(self):
        with pytest.raises(InputTypeError, match="without column names"):
            as_source(self.X, sample_weight="w")


class TestCallables:
    """A callable gives fresh blocks for each pass."""

    def test_empty_blocks_are_passed_over(self):
        X = np.arange(6.0).reshape(3, 2)
        source = as_source(lambda: [X[:0], X[:1], X[:0], X[1:], X[:0]])
        np.testing.assert_array_equal(rows_of(source, 100), X)

    def test_the_number_of_rows_is_known_after_a_pass(self):
        source = as_source(lambda: [np.zeros((3, 2))] * 2)
        assert source.n_rows is None
        list(source.blocks(100))
        assert source.n_rows == 6

    def test_the_same_iterator_twice_is_refused(self):
        used_up = iter([np.zeros((3, 2))] * 5)
        with pytest.raises(InputError, match="same iterator again"):
            list(as_source(lambda: used_up).blocks(100))

    def test_rows_that_change_between_passes_are_refused(self):
        sizes = iter([3, 3, 4])
        source = as_source(lambda: [np.zeros((next(sizes), 2))])
        list(source.blocks(100))
        with pytest.raises(InputError, match="gave 4 rows, but there were 3"):
            list(source.blocks(100))

    @pytest.mark.parametrize(
        ("later", "message"),
        [
            (np.zeros((1, 3)), "block 1 has 3 columns, but the first has 2"),
            (
                np.zeros((1, 2), np.float64),
                "block 1 has dtype float64, but the first is worked on as float32",
            ),
            (pd.DataFrame({"a": [1.0], "b": [1.0]}), "block 1 is DataFrame, but the first is an array"),
        ],
    )
    def test_arrays_that_do_not_go_with_the_first_are_refused(self, later, message):
        source = as_source(lambda: [np.zeros((2, 2), np.float32), later])
        with pytest.raises((InputError, InputTypeError), match=message):
            list(source.blocks(100))

    @pytest.mark.parametrize(
        ("later", "message"),
        [
            (pd.DataFrame({"a": [1.0]}), "block 1 has no column 'b'"),
            (pd.DataFrame({"a": [1.0], "b": [1.0], "z": [1.0]}), "block 1 has columns that .*'z'"),
            (pd.DataFrame({"a": [1.0], "b": ["x"]}), "block 1 has columns that are not numeric: 'b'"),
            (np.zeros((1, 2)), "block 1 is ndarray, but the first is a data frame"),
        ],
    )
    def test_frames_that_do_not_go_with_the_first_are_refused(self, later, message):
        source = as_source(lambda: [pd.DataFrame({"a": [1.0], "b": [1.0]}), later])
        with pytest.raises((InputError, InputTypeError), match=message):
            list(source.blocks(100))

    @pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table])
    def test_integers_and_floats_may_follow_one_another(self, make):
        source = as_source(lambda: [make({"a": [1, 2]}), make({"a": [0.5]}), make({"a": [3]})])
        assert rows_of(source, 1000).ravel().tolist() == [1, 2, 0.5, 3]


def test_columns_and_drop_together_are_refused():
    with pytest.raises(ParameterError, match="not both"):
        as_source(np.zeros((2, 2)), columns=[0], drop=[1])


def test_a_source_is_its_own_source():
    source = as_source(np.zeros((2, 2)))
    assert as_source(source) is source
    with pytest.raises(ParameterError, match="made already"):
        as_source(source, columns=[0])
