"""Columns without information, repeated rows and the limit of rows as nodes change nothing, or next to nothing."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score

from dc2 import Compressor, DC2Clustering
from dc2.graph.density import linear_dimension, spanned_dimension
from dc2.graph.neighbor_graph import neighbors_per_row, rows_as_nodes, signatures_for


def two_groups(n: int = 600) -> NDArray[Any]:
    draw = np.random.default_rng(0)
    return np.concatenate([draw.normal(0, 1, (n // 2, 1)), draw.normal(6, 1, (n // 2, 1))])


def labels(X: NDArray[Any], **how: Any) -> NDArray[Any]:
    return np.asarray(DC2Clustering(random_state=0, **how).fit_predict(X))


@pytest.mark.parametrize("value", [0.0, 7.0])
def test_a_constant_column_changes_nothing(value: float) -> None:
    X = two_groups()
    wider = np.concatenate([X, np.full((len(X), 1), value)], axis=1)
    assert adjusted_rand_score(labels(X), labels(wider)) == 1


def test_a_column_given_twice_changes_nothing_for_points_on_a_line() -> None:
    X = two_groups()
    assert adjusted_rand_score(labels(X), labels(np.concatenate([X, X], axis=1))) == 1


@pytest.mark.parametrize("width", [2, 5, 40])
def test_dimensions_count_no_constant_repeated_or_dependent_columns(width: int) -> None:
    cloud = np.random.default_rng(0).normal(size=(3000, width)).astype(np.float32)
    wider = np.concatenate([cloud, cloud[:, :1], cloud[:, :1] + cloud[:, 1:2], np.ones((3000, 9), np.float32)], axis=1)
    assert spanned_dimension(cloud) == spanned_dimension(wider) == width
    assert linear_dimension(wider) <= width


def test_the_dimension_of_equal_rows_is_one() -> None:
    assert spanned_dimension(np.ones((50, 3))) == linear_dimension(np.ones((50, 3))) == 1


@pytest.mark.parametrize("n_columns", [2, 3, 10, 60, 784])
def test_the_number_of_signatures_grows_with_rows_and_fits_into_memory(n_columns: int) -> None:
    first = rows_as_nodes(n_columns) + 1
    numbers = [signatures_for(n, n_columns, None) or 0 for n in (first, 2 * first, 10 * first, 10**9)]
    assert numbers == sorted(numbers)
    assert numbers[-1] * n_columns <= 2**24 or numbers[-1] <= 6000
    assert numbers[0] <= first / 4 or n_columns <= 4


@pytest.mark.parametrize("n_columns", [1, 2, 4])
def test_a_row_has_fewer_edges_the_more_rows_a_node_stands_for(n_columns: int) -> None:
    numbers = [neighbors_per_row(20_000, rows, n_columns) for rows in (1.0, 1.2, 1.5, 2.0, 2.5, 2.99, 3.0, 100.0)]
    assert numbers == sorted(numbers, reverse=True)
    assert numbers[-1] == 5
    assert n_columns == 1 or numbers[-3] == 5  # no jump at three rows


def test_rows_as_nodes_and_signatures_agree() -> None:
    X, y = make_blobs(9000, n_features=30, centers=8, cluster_std=3.0, random_state=0)
    rows = labels(X)
    signatures = labels(X, n_signatures=1800)
    assert adjusted_rand_score(rows, signatures) >= 0.95
    assert adjusted_rand_score(y, signatures) >= adjusted_rand_score(y, rows) - 0.03


def test_whole_weights_equal_repeated_rows_if_all_rows_are_sampled() -> None:
    X = make_blobs(3000, n_features=40, centers=5, cluster_std=5.0, random_state=1)[0]
    weights = 1.0 + np.arange(len(X)) % 3
    how: dict[str, Any] = {"n_signatures": 600, "compressor": Compressor(sample_size=None), "random_state": 0}
    weighed = DC2Clustering(**how).fit(X, sample_weight=weights)
    repeated = DC2Clustering(**how).fit(np.repeat(X, weights.astype(int), axis=0))
    assert np.array_equal(np.repeat(weighed.labels_, weights.astype(int)), repeated.labels_)
    assert np.array_equal(weighed.signatures_.points, repeated.signatures_.points)
