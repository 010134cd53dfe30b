"""Counts and ratings in tables: values on few steps are spread within them."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import adjusted_rand_score

import dc2
from dc2 import DC2Clustering, TablePreparer
from dc2.tables.column_transforms import on_steps, spread, step_of

pytestmark = pytest.mark.filterwarnings("ignore::dc2.errors.PreparationNote")


def shop(n: int, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    """Three groups of customers, which differ in age, in what they spend and in their number of orders."""
    rng = np.random.default_rng(seed)
    group = rng.integers(0, 3, n)
    table = pd.DataFrame(
        {
            "age": np.round(np.array([25, 45, 68])[group] + 4 * rng.normal(size=n)),
            "spend": rng.lognormal(np.array([3.0, 4.5, 4.0])[group], 0.25),
            "orders": rng.poisson(np.array([3, 14, 6])[group]),
            "rating": rng.integers(1, 6, n),
            "city": rng.choice(list("abcdef"), n),
        }
    )
    return table, group


def test_counts_and_ratings_cut_no_cluster():
    table, group = shop(3000)
    model = DC2Clustering(random_state=0).fit(table)
    assert model.n_clusters_ == 3
    assert adjusted_rand_score(group, model.labels_) > 0.95
    assert "jittered within its steps of 1" in model.preparer_.decisions_["rating"]


def test_a_table_of_one_group_with_ratings_is_one_cluster():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"a": rng.normal(size=2000), "rating": rng.integers(1, 6, 2000), "city": ["x", "y"] * 1000})
    assert DC2Clustering(random_state=0).fit(table).n_clusters_ == 1


def test_predict_spreads_as_fit_did_and_so_does_a_model_from_a_file(tmp_path):
    table, _ = shop(500)
    model = DC2Clustering(random_state=0).fit(table)
    np.testing.assert_array_equal(model.predict(table), model.labels_)
    turned = table.iloc[::-1].reset_index(drop=True)
    np.testing.assert_array_equal(model.predict(turned), model.labels_[::-1])
    model.save(tmp_path / "model.dc2")
    np.testing.assert_array_equal(dc2.load(tmp_path / "model.dc2").predict(table), model.labels_)


def test_representatives_have_whole_orders_again():
    table, _ = shop(3000)
    model = DC2Clustering(random_state=0).fit(table)
    names = list(model.preparer_.get_feature_names_out())
    found = np.asarray(model.representatives_, dtype=float).reshape(-1, len(names))
    for name in ("orders", "rating"):
        values = found[:, names.index(name)]
        np.testing.assert_allclose(values, np.rint(values), atol=1e-4)


@given(
    st.lists(st.tuples(st.integers(-5, 5), st.floats(-9, 9)), min_size=1, max_size=40),
    st.sampled_from([0.25, 1.0, 3.0]),
)
def test_a_value_stays_within_half_a_step_and_depends_on_its_row_alone(rows, step):
    count, other = (np.array(column, dtype=np.float64) for column in zip(*rows, strict=True))
    moved, kept = spread([count * step, other], [step, 0.0])
    assert (np.abs(moved - count * step) <= step / 2).all()
    np.testing.assert_array_equal(kept, other)
    last, _ = spread([count[-1:] * step, other[-1:]], [step, 0.0])
    assert last[0] == moved[-1]
    np.testing.assert_allclose(on_steps(moved, step, float(count[0] * step)), count * step, atol=1e-9)


def test_blanks_stay_blank():
    moved, _ = spread([np.array([1.0, np.nan]), np.array([0.5, 0.7])], [1.0, 0.0])
    assert np.isnan(moved).tolist() == [False, True]


@pytest.mark.parametrize(
    "values",
    [
        np.repeat([0.0, 1.0], 50),  # two values: a group each
        np.arange(100.0) % 40,  # few rows for each
        np.repeat([0.0, 1.0, 2.5], 50),  # on no steps
        np.array([1.0, 2.0, 3.0, 4.0]),  # nothing piles up
        np.random.default_rng(0).normal(size=200),
    ],
)
def test_other_numbers_are_left_where_they_are(values):
    assert step_of(values) == 0.0


def test_a_preparer_says_what_it_spreads():
    table, _ = shop(500)
    decisions = TablePreparer().fit(table).decisions_
    assert decisions["rating"] == "scaled by median and quartiles, jittered within its steps of 1"
    assert "spread" not in decisions["spend"]


@pytest.mark.parametrize("share", [0.1, 0.4])
@pytest.mark.parametrize("far", [5.0, 50.0])
def test_two_groups_in_a_column_are_no_skew(share, far):
    rng = np.random.default_rng(0)
    group = rng.random(3000) < share
    table = pd.DataFrame(
        {
            "amount": 0.5 * rng.normal(size=3000) + far * group,
            "noise": rng.normal(size=3000),
            "word": rng.choice(list("abc"), 3000),
        }
    )
    model = DC2Clustering(random_state=0).fit(table)
    assert model.preparer_.decisions_["amount"] == "scaled by median and quartiles"
    assert adjusted_rand_score(group, model.labels_) > 0.99


@pytest.mark.parametrize("draw", ["lognormal", "exponential", "standard_cauchy"])
def test_a_tail_is_no_group(draw):
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"a": getattr(rng, draw)(size=2000), "word": ["x", "y"] * 1000})
    assert "heavily skewed" in TablePreparer().fit(table).decisions_["a"]
