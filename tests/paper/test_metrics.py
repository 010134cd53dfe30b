"""Scores of a clustering: equal to their definitions, for any names of labels and any weights of rows."""

from itertools import permutations

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score
from sklearn.metrics.cluster import contingency_matrix

from dc2.errors import InputError
from dc2.metrics import accuracy_from_table, clustering_accuracy, contingency_table, majority_floor
from evaluation.scores import adjusted_rand_from_table, nmi_from_table

small_labels = st.integers(0, 3)
labelled_rows = st.lists(st.tuples(small_labels, small_labels), min_size=1, max_size=30).map(np.array)


def accuracy_by_trying_all_matches(y_true: npt.NDArray[np.intp], y_pred: npt.NDArray[np.intp]) -> float:
    return max(np.mean(np.array(match)[y_pred] == y_true) for match in permutations(range(4)))


@given(labelled_rows)
def test_accuracy_is_that_of_the_best_of_all_matches(rows):
    y_true, y_pred = rows.T
    assert clustering_accuracy(y_true, y_pred) == pytest.approx(accuracy_by_trying_all_matches(y_true, y_pred))


@given(labelled_rows, st.permutations(range(4)))
def test_names_of_labels_do_not_matter(rows, renamed):
    y_true, y_pred = rows.T
    expected = clustering_accuracy(y_true, y_pred)
    names = np.array(["oak", "ash", "elm", "yew"])
    assert clustering_accuracy(y_true, np.array(renamed)[y_pred]) == expected
    assert clustering_accuracy(names[y_true], y_pred) == expected
    assert clustering_accuracy(names[y_true].astype(object), names[y_pred]) == expected
    assert clustering_accuracy(y_true * 0.5, y_pred * -1_000_000_007) == expected
    assert clustering_accuracy(y_true.astype(np.uint8), (y_pred - 128).astype(np.int8)) == expected


@given(labelled_rows)
def test_accuracy_is_symmetric_and_reaches_the_floor_with_one_cluster(rows):
    y_true, y_pred = rows.T
    assert clustering_accuracy(y_true, y_pred) == clustering_accuracy(y_pred, y_true)
    assert clustering_accuracy(y_true, np.zeros_like(y_true)) == majority_floor(y_true)


@given(labelled_rows, st.data())
def test_weights_mean_repeats(rows, data):
    weights = np.array(data.draw(st.lists(st.integers(0, 5), min_size=len(rows), max_size=len(rows))))
    weights[0] += 1
    repeated = np.repeat(rows, weights, axis=0)
    assert clustering_accuracy(*rows.T, sample_weight=weights) == clustering_accuracy(*repeated.T)
    assert majority_floor(rows[:, 0], sample_weight=weights) == majority_floor(repeated[:, 0])
    np.testing.assert_array_equal(contingency_table(*rows.T, weights), contingency_table(*repeated.T))


@given(labelled_rows)
def test_scores_from_the_table_equal_those_of_scikit_learn(rows):
    y_true, y_pred = rows.T
    table = contingency_table(y_true, y_pred)
    np.testing.assert_array_equal(table, contingency_matrix(y_true, y_pred))
    assert adjusted_rand_from_table(table) == pytest.approx(adjusted_rand_score(y_true, y_pred), abs=1e-12)
    assert nmi_from_table(table) == pytest.approx(normalized_mutual_info_score(y_true, y_pred), abs=1e-12)
    assert accuracy_from_table(table) == clustering_accuracy(y_true, y_pred)


def test_scores_hold_on_more_rows_than_are_counted_at_once():
    rng = np.random.default_rng(0)
    y_true, y_pred = rng.integers(0, 3, 2_500_000), rng.integers(0, 5, 2_500_000)
    y_pred[:1_000_000] = y_true[:1_000_000]
    table = contingency_table(y_true, y_pred)
    np.testing.assert_array_equal(table, contingency_matrix(y_true, y_pred))
    assert adjusted_rand_from_table(table) == pytest.approx(adjusted_rand_score(y_true, y_pred), abs=1e-12)


def test_any_number_of_labels_is_matched():
    y = np.arange(20_000) % 700
    assert clustering_accuracy(y, (y * 31) % 700) == 1.0
    assert clustering_accuracy(y, np.arange(20_000) % 1400) == pytest.approx(0.5, abs=0.02)


def test_a_share_of_the_largest_class_is_the_floor():
    assert majority_floor(["no"] * 3 + ["yes"]) == 0.75
    assert majority_floor([1.5]) == 1.0


def test_labels_of_mixed_kinds_are_allowed():
    assert clustering_accuracy(["a", None, 3, "a"], [0, 1, 2, 0]) == 1.0


def test_empty_rows_and_columns_of_a_table_change_nothing():
    table = np.array([[5, 0, 1], [0, 0, 0], [2, 0, 7]])
    for score in (accuracy_from_table, adjusted_rand_from_table, nmi_from_table):
        assert score(table) == pytest.approx(score(table[np.ix_([0, 2], [0, 2])]))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: clustering_accuracy([], []), "at least one label"),
        (lambda: clustering_accuracy([[0, 1]], [0, 1]), r"shape \(1, 2\)"),
        (lambda: clustering_accuracy([0, 1, 1], [0, 1]), "3 labels and y_pred 2"),
        (lambda: clustering_accuracy([0.0, np.nan], [0, 1]), "1 missing labels"),
        (lambda: clustering_accuracy([0, 1], [0, 1], [1.0]), "2 rows to weigh"),
        (lambda: clustering_accuracy([0, 1], [0, 1], [1.0, -1.0]), "between -1 and 1"),
        (lambda: majority_floor([0, 1], [0.0, 0.0]), "not all zero"),
        (lambda: majority_floor(3), "at least one label"),
    ],
)
def test_what_cannot_be_scored_is_refused(call, message):
    with pytest.raises(InputError, match=message):
        call()
