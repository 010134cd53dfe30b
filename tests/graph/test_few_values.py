"""Laws of rows with few distinct values, and of columns and rows that say nothing new."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import adjusted_rand_score

from dc2 import DC2Clustering, TablePreparer
from dc2.graph.density import dimension_near_rows


def repeated(groups: int, distinct: int, n_rows: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw rows from few distinct ones, which are in far groups."""
    draw = np.random.default_rng(seed)
    places = np.stack(np.meshgrid(np.arange(5), np.arange(5)), axis=2).reshape(-1, 2)[draw.permutation(25)[:groups]]
    points = (10.0 * places[:, None] + 0.3 * draw.normal(size=(groups, distinct, 2))).reshape(-1, 2)
    chosen = draw.integers(groups * distinct, size=n_rows)
    return points[chosen], chosen // distinct


@pytest.mark.parametrize(("groups", "distinct", "n_rows"), [(20, 8, 6000), (3, 4, 600), (2, 1, 6000), (3, 1, 60)])
def test_far_groups_of_few_distinct_rows_are_the_clusters(groups, distinct, n_rows):
    for seed in range(3):
        X, y = repeated(groups, distinct, n_rows, seed)
        for n_clusters in ("auto", groups):
            assert adjusted_rand_score(y, DC2Clustering(n_clusters, random_state=0).fit_predict(X)) == 1


def test_values_that_hardly_come_back_are_no_clusters():
    assert DC2Clustering(random_state=0).fit([[0.0], [1.0], [1.0], [0.0]]).n_clusters_ == 1


def test_clusters_that_are_values_are_found_again_in_every_resample():
    model = DC2Clustering(random_state=0).fit(repeated(2, 1, 200, 0)[0])
    assert model.verdict_.supported
    assert model.overall_stability_ == 1


@pytest.mark.parametrize("seed", range(3))
def test_a_number_in_three_groups_and_a_category_that_says_the_same(seed):
    draw = np.random.default_rng(seed)
    y = draw.integers(3, size=500)
    frame = pd.DataFrame({"number": 9 * y + draw.normal(size=500), "category": np.array(["a", "b", "c"])[y]})
    assert adjusted_rand_score(y, DC2Clustering(prepare=TablePreparer(), random_state=0).fit_predict(frame)) == 1


@settings(deadline=None, max_examples=10)
@given(seed=st.integers(0, 1000), columns=st.integers(1, 3), more=st.integers(0, 4))
def test_the_dimension_near_rows_counts_no_columns_that_add_nothing(seed, columns, more):
    draw = np.random.default_rng(seed)
    X = draw.normal(size=(200, columns))
    wider = np.column_stack([X, np.ones((200, more)), X[:, :1], X @ draw.normal(size=(columns, 2))])
    assert dimension_near_rows(wider) == dimension_near_rows(X) == columns


@settings(deadline=None, max_examples=5)
@given(seed=st.integers(0, 1000))
def test_columns_and_rows_that_say_nothing_new_change_no_number_of_clusters(seed):
    draw = np.random.default_rng(seed)
    k = draw.integers(2, 6)
    y = draw.integers(k, size=300)
    X = 12 * draw.permutation(k)[y][:, None] + draw.normal(size=(300, 2))
    turned = np.column_stack([X, np.zeros((300, 2))]) @ np.linalg.qr(draw.normal(size=(4, 4)))[0]
    for same in (np.column_stack([X, np.ones(300)]), np.column_stack([X, X]), turned):
        assert adjusted_rand_score(y, DC2Clustering(random_state=0).fit_predict(same)) == 1
    twice = DC2Clustering(random_state=0).fit_predict(np.repeat(X, 2, axis=0))
    assert adjusted_rand_score(np.repeat(y, 2), twice) == 1
