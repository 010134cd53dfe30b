"""Rows find their nearest signatures, whatever their intrinsic dimension."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score
from sklearn.neighbors import NearestNeighbors

from dc2 import Compressor, DC2Clustering


def curved(n_rows: int, dimension: int, width: int) -> NDArray[Any]:
    """Rows near a curved surface of some dimension."""
    draw = np.random.default_rng(0)
    turns = draw.normal(size=(n_rows, dimension)) @ draw.normal(size=(dimension, width)) / np.sqrt(dimension)
    return np.asarray(np.sin(turns) + draw.normal(0, 0.02, turns.shape), np.float32)


@pytest.mark.parametrize("dimension", [2, 6, 16, 50])
def test_rows_find_their_first_second_and_third_nearest_signature(dimension: int) -> None:
    rows = curved(15_500, dimension, 50)
    X, new = rows[:15_000], rows[15_000:]
    router = Compressor(1500, random_state=0).fit(X).router_
    exact = NearestNeighbors(n_neighbors=3).fit(router.centres)  # those that the rows of the fit were compared with
    nearest = exact.kneighbors(new, return_distance=False)
    near, first = router.nearest_few(new, 3)[0], router.assign(new)
    assert (first == nearest[:, 0]).mean() >= 0.97
    for place in range(3):
        assert (near == nearest[:, [place]]).any(axis=1).mean() >= 0.97


def test_new_rows_get_labels_as_good_as_those_of_their_exact_nearest_row() -> None:
    X, y = make_blobs(9000, n_features=30, centers=8, cluster_std=5.0, random_state=0)
    known, new = slice(0, 7000), slice(7000, None)
    model = DC2Clustering(8, random_state=0).fit(X[known])
    exact = NearestNeighbors(n_neighbors=1).fit(X[known]).kneighbors(X[new], return_distance=False)[:, 0]
    predicted = adjusted_rand_score(y[new], model.predict(X[new]))
    assert abs(predicted - adjusted_rand_score(y[new], model.labels_[exact])) <= 0.01
