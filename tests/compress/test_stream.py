"""Streams: partial_fit sees every row once and forgets it, and its signatures are right at any time."""

import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from dc2 import Compressor
from dc2.errors import InputError

WAYS: list[dict[str, Any]] = [
    {},
    {"populate": "leaf"},
    {"n_partitions": 3},
    {"n_partitions": 3, "divide": "sampling"},
    {"signature": "member"},
    {"n_signatures": None, "leaf_size": 40},
]
ALL_WAYS = pytest.mark.parametrize(
    "way", WAYS, ids=lambda way: ", ".join(f"{key}={value}" for key, value in way.items()) or "default"
)


def rows(n_rows: int, dtype: Any = np.float64, seed: int = 0) -> NDArray[Any]:
    rng = np.random.default_rng(seed)
    return (rng.standard_normal((n_rows, 3)) @ rng.standard_normal((3, 6))).astype(dtype)


def streamed(chunks: Any, weights: Any = None, **options: Any) -> Compressor:
    compressor = Compressor(**({"n_signatures": 20, "sample_size": 1000, "random_state": 0} | options))
    for number, chunk in enumerate(chunks):
        compressor.partial_fit(chunk, sample_weight=None if weights is None else weights[number])
    return compressor


def assert_right(compressor: Compressor, X: NDArray[Any], weights: Any = None) -> None:
    """Signatures are those of the rows that belong to them."""
    labels, signatures = compressor.apply(X), compressor.signatures_
    weights = np.ones(len(X)) if weights is None else weights
    off = X.astype(np.float64) - signatures.points.astype(np.float64)[labels]
    sizes = np.bincount(labels, weights, len(signatures))
    np.testing.assert_allclose(signatures.weights, sizes)
    assert np.isclose(compressor.distortion_, np.average((off * off).sum(axis=1), weights=weights), rtol=1e-6)
    means = np.stack([np.bincount(labels, weights * x, len(signatures)) for x in X.T], axis=1)
    filled = sizes > 0
    np.testing.assert_allclose(signatures.points[filled], means[filled] / sizes[filled, None], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("way", [{}, {"populate": "nearest"}, {"n_partitions": 3}], ids=str)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_signatures_are_right_before_and_after_the_cuts_are_placed(way, dtype):
    X = rows(5000, dtype)
    compressor = Compressor(20, sample_size=1000, random_state=0, **way)
    for seen in range(500, 5001, 500):
        compressor.partial_fit(X[seen - 500 : seen])
        assert_right(compressor, X[:seen])
    assert compressor.signatures_.points.dtype == dtype


@ALL_WAYS
def test_all_rows_are_counted(way):
    X = rows(3000)
    compressor = streamed(np.array_split(X, 10), **way)
    signatures = compressor.signatures_
    assert signatures.weights.sum() == 3000
    assert compressor.transform(X).shape == X.shape
    with pytest.raises(AttributeError, match="labels_"):
        _ = compressor.labels_


@ALL_WAYS
def test_while_rows_are_held_the_stream_is_a_fit_on_all_of_them(way):
    X = rows(900)
    compressor = streamed(np.array_split(X, 7), **way)
    whole = Compressor(**({"n_signatures": 20, "sample_size": None, "random_state": 0} | way)).fit(X)
    np.testing.assert_array_equal(compressor.apply(X), whole.apply(X))
    np.testing.assert_allclose(compressor.signatures_.points, whole.signatures_.points, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(compressor.distortion_, whole.distortion_, rtol=1e-9)


@given(cuts=st.lists(st.integers(2, 3998), max_size=8), block_bytes=st.sampled_from([2**10, 2**24]))
@settings(max_examples=15)
def test_chunks_of_any_size_give_the_same_bits(cuts, block_bytes):
    X = rows(4000)
    weights = (np.arange(4000) % 5).astype(float)
    for w in (None, weights):
        one = streamed([X], None if w is None else [w])
        many = streamed(
            np.split(X, np.unique(cuts)),
            None if w is None else np.split(w, np.unique(cuts)),
            block_bytes=block_bytes,
        )
        for name in ("points", "weights", "spread"):
            np.testing.assert_array_equal(getattr(one.signatures_, name), getattr(many.signatures_, name))


def test_looking_at_the_signatures_changes_nothing():
    chunks = np.array_split(rows(2000), 8)
    quiet = streamed(chunks)
    watched = Compressor(20, sample_size=1000, random_state=0)
    for chunk in chunks:
        watched.partial_fit(chunk)
        assert watched.distortion_ > 0
    np.testing.assert_array_equal(quiet.signatures_.points, watched.signatures_.points)


def test_rows_are_held_only_until_there_are_enough():
    compressor = streamed(np.array_split(rows(5000), 50))
    stream = compressor._record.stream
    assert stream.held == []
    assert len(stream.sample.X) == 1000


def test_the_users_rows_may_change_after_they_were_given():
    X, weights = rows(400), np.arange(1.0, 401.0)
    given, given_weights = X.copy(), weights.copy()
    compressor = Compressor(20, random_state=0).partial_fit(given, sample_weight=given_weights)
    given[:], given_weights[:] = 0, 1
    assert_right(compressor, X, weights)


def test_weights_are_counted_with_and_without_them_in_turn():
    X = rows(3000)
    weights = np.random.default_rng(0).integers(0, 4, 3000).astype(float)
    chunks = np.array_split(X, 6)
    mixed = [None if i % 2 else chunk for i, chunk in enumerate(np.array_split(weights, 6))]
    compressor = streamed(chunks, mixed)
    effective = np.concatenate([np.ones(500) if w is None else w for w in mixed])
    assert_right(compressor, X, effective)


def test_one_row_at_a_time_is_a_stream_too():
    X = rows(60)
    compressor = streamed(X[:, None, :], n_signatures=5, sample_size=20)
    assert_right(compressor, X)


def test_outliers_in_the_first_rows_hide_nothing():
    X = rows(6000)
    X[3] *= 1e8
    compressor = streamed(np.array_split(X, 6))
    off = X - compressor.transform(X)
    assert np.isclose(compressor.distortion_, (off * off).sum(axis=1).mean(), rtol=1e-6)


def test_a_pickled_stream_goes_on():
    X = rows(3000)
    for split in (500, 2000):  # while rows are held, and after
        compressor = streamed(np.array_split(X[:split], 5))
        copy = pickle.loads(pickle.dumps(compressor)).partial_fit(X[split:])
        compressor.partial_fit(X[split:])
        np.testing.assert_array_equal(copy.signatures_.points, compressor.signatures_.points)


def test_fit_forgets_the_stream_and_no_stream_forgets_a_fit():
    X, other = rows(2000), rows(700, seed=1)
    compressor = streamed([X]).fit(other)
    fresh = Compressor(20, sample_size=1000, random_state=0).fit(other)
    np.testing.assert_array_equal(compressor.signatures_.points, fresh.signatures_.points)
    with pytest.raises(InputError, match="merge"):
        compressor.partial_fit(X)
    assert compressor.signatures_.weights.sum() == 700


def test_a_stream_of_another_width_is_refused():
    compressor = Compressor(20, random_state=0).partial_fit(np.zeros((5, 2)))
    with pytest.raises(InputError, match="X has 6 features, but Compressor is expecting 2"):
        compressor.partial_fit(rows(10))


@pytest.mark.parametrize("placed", [False, True])
def test_a_chunk_with_nan_is_refused_and_the_stream_stays_as_it_was(placed):
    X = rows(3000)
    compressor = streamed([X[:1500] if placed else X[:500]])
    before = compressor.signatures_.weights.copy()
    broken = X[1500:].copy()
    broken[70, 2] = np.nan
    row = 70 + (1500 if placed else 500)
    with pytest.raises(InputError, match=rf"contains NaN.*column 2 has 1 \(first in row {row}\)"):
        compressor.partial_fit(broken)
    np.testing.assert_array_equal(compressor.signatures_.weights, before)


def test_a_first_chunk_that_is_refused_leaves_nothing_fitted():
    compressor = Compressor(20)
    with pytest.raises(InputError, match="contains NaN"):
        compressor.partial_fit(np.full((5, 2), np.nan))
    assert not hasattr(compressor, "signatures_")
    assert compressor.partial_fit(rows(100)).signatures_.weights.sum() == 100
