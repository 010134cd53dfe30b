"""Bad input to compression: an error at once that says what is wrong, with the user's own numbers."""

import re
from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from dc2 import Compressor, Signatures, as_source
from dc2.errors import InputError, InputTypeError, ParameterError

X = np.random.default_rng(0).standard_normal((400, 4))

WAYS: list[dict[str, Any]] = [
    {},
    {"sample_size": 20},
    {"populate": "leaf"},
    {"n_partitions": 3, "divide": "sampling"},
]
ALL_WAYS = pytest.mark.parametrize(
    "way", WAYS, ids=lambda way: ", ".join(f"{key}={value}" for key, value in way.items()) or "default"
)


def compressor(**options: Any) -> Compressor:
    return Compressor(**({"n_signatures": 10, "random_state": 0} | options))


def with_values(value: float, rows: list[int], column: int) -> np.ndarray:
    broken = X.copy()
    broken[rows, column] = value
    return broken


# --- values --------------------------------------------------------------------------------------------------------


@ALL_WAYS
@pytest.mark.parametrize("block_bytes", [2**24, 3200])
def test_nan_names_the_column_how_many_and_the_first_row(way, block_bytes):
    broken = with_values(np.nan, [321, 350], 2)
    message = r"Input X contains NaN.*column 2 has [12] \(first in row (321|350)\).*SimpleImputer"
    with pytest.raises(InputError, match=message):
        compressor(block_bytes=block_bytes, **way).fit(broken)
    with pytest.raises(InputError, match=message):
        compressor(block_bytes=block_bytes, **way).fit(X).apply(broken)
    with pytest.raises(InputError, match=message):
        compressor(block_bytes=block_bytes, **way).fit(lambda: iter(np.array_split(broken, 5)))


@ALL_WAYS
@pytest.mark.parametrize("value", [np.inf, -np.inf])
def test_infinity_names_the_column_and_how_many(way, value):
    broken = with_values(value, [7, 8, 399], 3)
    message = r"contains infinity or a value too large.*column 3 has 3 \(first in row 7\)"
    with pytest.raises(InputError, match=message):
        compressor(**way).fit(broken)
    with pytest.raises(InputError, match=message):
        compressor(**way).fit(X).transform(broken)


def test_columns_of_frames_are_called_by_name():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(with_values(np.nan, [5], 1), columns=["age", "height", "weight", "pulse"])
    with pytest.raises(InputError, match=r"column 'height' has 1 \(first in row 5\)"):
        compressor().fit(frame)


@ALL_WAYS
@pytest.mark.parametrize(
    ("dtype", "exponent"),
    [(np.float32, 120), (np.float32, -60), (np.float64, 1020), (np.float64, 600), (np.float64, -400)],
)
def test_any_finite_magnitude_is_compressed_as_its_rescaled_copy_would_be(way, dtype, exponent):
    ordinary = X.astype(dtype)
    extreme = np.ldexp(ordinary, exponent)
    fitted = compressor(**way).fit(extreme)
    np.testing.assert_array_equal(fitted.labels_, compressor(**way).fit(ordinary).labels_)
    np.testing.assert_array_equal(fitted.apply(extreme), compressor(**way).fit(ordinary).apply(ordinary))


@ALL_WAYS
def test_an_error_in_the_rows_leaves_an_earlier_fit_alone(way):
    fitted = compressor(**way).fit(X)
    before = fitted.signatures_.points.copy()
    with pytest.raises(InputError):
        fitted.fit(with_values(np.nan, [3], 0))
    np.testing.assert_array_equal(fitted.signatures_.points, before)


# --- shapes and kinds ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["apply", "transform", "partial_fit"])
@pytest.mark.parametrize("width", [1, 3, 5])
def test_another_width_is_refused_with_both_numbers(method, width):
    fitted = compressor().partial_fit(X)
    with pytest.raises(InputError, match=f"X has {width} features, but Compressor is expecting 4 features"):
        getattr(fitted, method)(np.zeros((10, width)))


def test_other_column_names_are_refused_by_name():
    pd = pytest.importorskip("pandas")
    fitted = compressor().fit(pd.DataFrame(X, columns=list("abcd")))
    with pytest.raises(ValueError, match=r"(?s)feature names should match.*- e.*- d"):
        fitted.apply(pd.DataFrame(X, columns=list("abce")))


def test_text_columns_are_named():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=list("abcd")).assign(city="Basel", code="x1")
    with pytest.raises(InputTypeError, match=r"not numeric: 'city', 'code'.*OneHotEncoder"):
        compressor().fit(frame)


@pytest.mark.parametrize("words", [np.array([["a", "b"], ["c", "d"]]), [["a", "b"], ["c", "d"]]], ids=type)
def test_arrays_of_text_are_refused(words):
    with pytest.raises((InputError, InputTypeError), match=r"(?i)numeric|convert"):
        compressor().fit(words)


@pytest.mark.parametrize(
    ("empty", "message"),
    [
        (X[:0], r"0 sample\(s\)"),
        (X[:, :0], r"0 feature\(s\)"),
        ([], "Expected 2D array|0 sample"),
        (lambda: iter([]), "no rows|0 sample|nothing|empty"),
        (X[0], "Expected 2D array"),
        (X[None], "dim 3|dimension"),
        (X.astype(complex), "Complex data not supported"),
    ],
    ids=[
        "no rows",
        "no columns",
        "an empty list",
        "an empty stream",
        "one dimension",
        "three dimensions",
        "complex",
    ],
)
def test_what_is_not_rows_and_columns_is_refused(empty, message):
    with pytest.raises((InputError, InputTypeError), match=message):
        compressor().fit(empty)


def test_an_iterator_is_refused_because_the_rows_are_needed_twice():
    with pytest.raises(InputTypeError, match=r"only once.*callable.*partial_fit"):
        compressor().fit(iter([X, X]))


def test_a_source_that_gives_other_rows_the_second_time_is_noticed():
    passes = iter([[X], [X], [X[:100]]])  # one to learn the width, one to sample, one to add up
    with pytest.raises(InputError, match=r"100 rows.*400"):
        compressor(sample_size=20).fit(lambda: iter(next(passes)))


# --- weights -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (np.where(np.arange(400) == 9, -2.0, 1.0), r"negative values: 1 of 400, first in row 9 \(-2\.0\)"),
        (np.zeros(400), r"zero for all 400 rows"),
        (np.where(np.arange(400) == 9, np.nan, 1.0), r"NaN or infinity: 1 of 400, first in row 9"),
        (np.full(400, 1e308), r"values above 1e\+100"),
        (np.ones(399), r"399 values but X has 400 rows"),
        (np.ones((400, 2)), r"1-dimensional"),
        (["heavy"] * 400, r"must hold numbers"),
    ],
    ids=["negative", "zero", "nan", "huge", "short", "two columns", "text"],
)
@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_bad_weights_are_named(weights, message, method):
    with pytest.raises((InputError, InputTypeError), match=message):
        getattr(compressor(), method)(X, sample_weight=weights)


def test_a_column_of_weights_needs_a_frame():
    with pytest.raises(InputTypeError, match=r"without column names.*'size'"):
        compressor().fit(X, sample_weight="size")


# --- parameters ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_signatures": 0}, "n_signatures must be a whole number of at least 1; got 0"),
        ({"n_signatures": 2.5}, "n_signatures .*2.5"),
        ({"n_signatures": True}, "n_signatures .*True"),
        ({"n_signatures": None}, "either n_signatures or leaf_size.*n_signatures=None and leaf_size=None"),
        ({"leaf_size": 50}, "either n_signatures or leaf_size.*n_signatures=10 and leaf_size=50"),
        ({"n_signatures": None, "leaf_size": 0}, "leaf_size must be a finite number above 0; got 0"),
        ({"n_signatures": None, "leaf_size": np.inf}, "leaf_size .*inf"),
        ({"n_partitions": 0}, "n_partitions .*at least 1; got 0"),
        ({"n_partitions": 11}, "n_partitions=11 .*n_signatures is 10"),
        ({"divide": "evenly"}, "divide must be one of 'projection', 'sampling'; got 'evenly'"),
        ({"cut": "middle"}, "cut must be one of 'median', 'mean', 'uniform', 'quantile'; got 'middle'"),
        ({"sharpen": -1}, "sharpen .*-1"),
        ({"signature": "median"}, "signature must be one of 'centroid', 'member'; got 'median'"),
        ({"populate": "soft"}, "populate must be one of 'leaf', 'nearest'; got 'soft'"),
        ({"refine": -1}, "refine .*-1"),
        ({"scale": "minmax"}, "scale must be one of None, 'standard', 'robust'; got 'minmax'"),
        ({"sample_size": 0}, "sample_size .*at least 1; got 0"),
        ({"sample_size": "all"}, "sample_size .*'all'"),
        ({"sample_size": 9}, "sample_size=9 .*n_signatures=10"),
        ({"n_jobs": 0}, "n_jobs is 0"),
        ({"n_jobs": "many"}, "n_jobs .*'many'"),
        ({"block_bytes": 0}, "block_bytes .*at least 1; got 0"),
        ({"block_bytes": "16 MB"}, "block_bytes .*'16 MB'"),
        ({"random_state": "lucky"}, "random_state is 'lucky'"),
        ({"random_state": -1}, "random_state is -1"),
    ],
    ids=str,
)
@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_impossible_parameters_are_named_with_their_value(options, message, method):
    with pytest.raises(ParameterError, match=message):
        getattr(compressor(**options), method)(X)


def test_parameters_are_checked_before_the_rows_are_looked_at():
    with pytest.raises(ParameterError, match="n_signatures"):
        compressor(n_signatures=-5).fit(lambda: 1 / 0)


def test_more_partitions_than_rows_to_deal_is_said():
    with pytest.raises(ParameterError, match=r"n_partitions=9 leaves a partition without rows: only 5"):
        compressor(n_partitions=9, divide="sampling").fit(X[:5])


# --- order of things -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["apply", "transform"])
def test_nothing_works_before_fit(method):
    with pytest.raises(NotFittedError):
        getattr(compressor(), method)(X)
    for attribute in ("signatures_", "distortion_", "labels_", "router_"):
        with pytest.raises(AttributeError, match="not fitted yet"):
            getattr(compressor(), attribute)


def test_signatures_of_different_widths_are_not_merged():
    narrow, wide = (Signatures(np.zeros((1, width)), np.ones(1), np.ones(1)) for width in (2, 3))
    with pytest.raises(InputError, match=re.escape("got widths [2, 3]")):
        Signatures.merge(narrow, wide)
    with pytest.raises(InputError, match="at least one"):
        Signatures.merge()


def test_columns_are_chosen_when_a_source_is_made():
    source = as_source(X, columns=[0, 2])
    assert compressor().fit(source).n_features_in_ == 2
