"""Generated shapes: sizes, seeds, and the geometry each promises."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial import cKDTree

from dc2 import datasets
from dc2.errors import InputError, ParameterError

SHAPES: dict[str, tuple[Callable[..., Any], int]] = {
    "bananas": (datasets.make_bananas, 2),
    "rings": (datasets.make_rings, 2),
    "spirals": (datasets.make_spirals, 2),
    "uneven_blobs": (lambda n, seed: datasets.make_uneven_blobs(n, 7, seed), 7),
    "rank": (datasets.make_rank, 18),
    "intrinsic": (lambda n, seed: datasets.make_intrinsic(n, 3, seed=seed), 20),
}


def rows_of(result: Any) -> np.ndarray:
    return result[0] if isinstance(result, tuple) else result


@pytest.mark.parametrize("name", SHAPES)
@settings(max_examples=15)
@given(n=st.sampled_from([1, 2, 1000, 20_000]), seed=st.integers(0, 2**32))
def test_the_rows_asked_for_come_as_float32_and_follow_the_seed(name: str, n: int, seed: int) -> None:
    make, n_features = SHAPES[name]
    X = rows_of(make(n, seed))
    assert X.shape == (n, n_features)
    assert X.dtype == np.float32
    assert np.isfinite(X).all()
    np.testing.assert_array_equal(rows_of(make(n, seed)), X)
    if n >= 1000:
        assert not np.array_equal(rows_of(make(n, seed + 1)), X)


@pytest.mark.parametrize("name", SHAPES)
def test_no_rows_cannot_be_generated(name: str) -> None:
    with pytest.raises(ParameterError, match="n=0"):
        SHAPES[name][0](0, 0)


def test_rank_data_lie_near_a_flat_space() -> None:
    X = datasets.make_rank(20_000, 1, rank=4, n_features=18, noise=0.2)
    spectrum = np.linalg.eigvalsh(np.cov(X.T))[::-1]
    np.testing.assert_allclose(spectrum[4:], 0.04, rtol=0.1)
    assert spectrum[3] > 1


def test_bananas_are_two_arcs_of_equal_shares() -> None:
    X, y = datasets.make_bananas(20_000, 1, noise=0.0)
    np.testing.assert_allclose(np.hypot(*(X[y == 0].T)), 1, rtol=1e-5)
    np.testing.assert_allclose(np.hypot(X[y == 1, 0] - 1, X[y == 1, 1] - 0.5), 1, rtol=1e-5)
    assert abs(y.mean() - 0.5) < 0.02


def test_rings_have_radii_1_2_3_and_rows_by_their_length() -> None:
    X, y = datasets.make_rings(60_000, 1, n_rings=3, noise=0.0)
    np.testing.assert_allclose(np.hypot(*X.T), y + 1, rtol=1e-5)
    np.testing.assert_allclose(np.bincount(y) / len(y), np.array([1, 2, 3]) / 6, atol=0.01)


@pytest.mark.parametrize("name", ["bananas", "rings", "spirals"])
def test_neighbours_share_their_cluster(name: str) -> None:
    X, y = SHAPES[name][0](5_000, 1)
    _, neighbours = cKDTree(X).query(X, k=2)
    assert np.mean(y[neighbours[:, 1]] == y) > 0.98


def test_spiral_arms_keep_1_apart() -> None:
    X, y = datasets.make_spirals(20_000, 1, n_arms=3, noise=0.0)
    distances = [cKDTree(X[y == other]).query(X[y == 0])[0].min() for other in (1, 2)]
    assert min(distances) > 0.7
    assert abs(np.hypot(*X.T).min() - 1) < 0.01


def test_uneven_blobs_differ_in_size_and_width() -> None:
    X, y = datasets.make_uneven_blobs(100_000, 5, 1)
    sizes = np.bincount(y)
    assert sizes[0] > 20 * sizes[9]
    widths = np.array([X[y == label].std(axis=0).mean() for label in range(10)])
    np.testing.assert_allclose(np.sort(widths)[[0, -1]], [0.3, 1.5], rtol=0.1)


@pytest.mark.parametrize("dimension", [1, 2, 4])
def test_the_intrinsic_dimension_is_what_was_asked_for(dimension: int) -> None:
    X = datasets.make_intrinsic(20_000, dimension, seed=2)
    distances, _ = cKDTree(np.unique(X, axis=0)).query(X[:500], k=11)
    # Levina and Bickel's estimate: how fast the number of neighbours grows with the distance.
    logarithms = np.log(distances[:, -1:] / distances[:, 1:-1])
    estimate = 1 / logarithms.mean()
    assert abs(estimate - dimension) < 0.25 * dimension
    assert np.linalg.matrix_rank(X - X.mean(axis=0), tol=1.0) > dimension, "the manifold is curved"


def test_an_intrinsic_dimension_beyond_the_columns_is_refused() -> None:
    assert datasets.make_intrinsic(10, 20, n_features=20).shape == (10, 20)
    with pytest.raises(ParameterError, match="intrinsic_dim=21"):
        datasets.make_intrinsic(10, 21, n_features=20)


def test_noise_columns_leave_the_others_as_they_are() -> None:
    X, _ = datasets.make_bananas(20_000)
    wider = datasets.add_noise_columns(X, 8, 0.1, seed=1)
    np.testing.assert_array_equal(wider[:, :2], X)
    np.testing.assert_allclose(wider[:, 2:].std(axis=0), 0.1, rtol=0.05)
    assert np.abs(np.corrcoef(wider[:, 2:].T) - np.eye(8)).max() < 0.05
    with pytest.raises(InputError, match="not a table"):
        datasets.add_noise_columns(X[:, 0])


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda: datasets.make_rank(10, rank=0), "rank"),
        (lambda: datasets.make_rings(10, n_rings=0), "n_rings"),
        (lambda: datasets.make_spirals(10, n_arms=0), "n_arms"),
        (lambda: datasets.make_spirals(10, turns=0), "turns"),
        (lambda: datasets.make_uneven_blobs(10, 0), "n_features"),
        (lambda: datasets.add_noise_columns(np.zeros((3, 1)), 0), "n_columns"),
    ],
)
def test_impossible_parameters_are_named(make: Callable[[], Any], name: str) -> None:
    with pytest.raises(ParameterError, match=name):
        make()


def test_the_table_of_contents_is_sorted() -> None:
    assert datasets.__all__ == sorted(datasets.__all__)
