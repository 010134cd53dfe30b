"""Rules that explain clusters say what they measure, in the user's columns."""

import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_iris, make_blobs

import dc2
from dc2 import DC2Clustering, TablePreparer
from dc2.cli import main
from dc2.report.explain import LabelledRows

IRIS = load_iris(as_frame=True).data.set_axis(["a", "b", "c", "d"], axis=1)


def measured(rule: str, frame: pd.DataFrame, inside: np.ndarray, weights: np.ndarray) -> tuple[float, float]:
    """Precision and coverage of a rule, read as an expression of pandas."""
    meets = np.ones(len(frame), bool)
    for condition in [] if rule == "every row" else rule.split(" and "):
        meets &= frame.eval(condition).to_numpy()
    hit = weights[meets & inside].sum()
    return hit / max(weights[meets].sum(), 1e-300), hit / weights[inside].sum()


@given(st.integers(0, 2**32 - 1), st.integers(1, 4), st.integers(1, 3), st.sampled_from([1e-9, 1.0, 1e12]))
def test_a_rule_means_what_it_says(seed, k, width, size):
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, k, 60).astype(np.int32)
    values = (rng.normal(size=(60, width)) + labels[:, None]).round(int(rng.integers(0, 3))) * size
    weights, names = rng.integers(1, 4, 60).astype(float), tuple("abc"[:width])
    rows, frame = LabelledRows(values, labels, weights, names, {}), pd.DataFrame(values, columns=list(names))
    for cluster in np.unique(labels):
        rule = rows.rule(int(cluster))
        assert (rule.precision, rule.coverage) == pytest.approx(measured(rule.text, frame, labels == cluster, weights))
        assert rule.coverage > 0


def test_rules_of_clear_clusters_hold_for_other_rows():
    X, _ = make_blobs(6000, centers=5, cluster_std=0.5, random_state=3)
    frame = pd.DataFrame(X, columns=["a", "b"])
    model = DC2Clustering(5, n_signatures=500, random_state=0).fit(frame[:3000])
    rules, labels = model.explain(), model.predict(frame[3000:])
    for cluster, rule in zip(rules["cluster"], rules["rule"], strict=True):
        assert min(measured(rule, frame[3000:], labels == cluster, np.ones(3000))) > 0.9
    assert (rules["precision"] > 0.9).all()


def test_rows_given_are_those_that_measure():
    model = DC2Clustering(3, noise=0.05, random_state=0).fit(IRIS)
    given = model.explain(IRIS)
    labels = model.predict(IRIS)
    for _, one in given.iterrows():
        expected = measured(one["rule"], IRIS, labels == one["cluster"], np.ones(150))
        assert (one["precision"], one["coverage"]) == pytest.approx(expected)
    assert model.explain(IRIS[labels != 2])["rule"].isna().tolist() == [False, False, True]


def test_a_table_is_explained_in_its_own_words():
    rng = np.random.default_rng(0)
    group = np.repeat([0, 1, 2], 200)
    table = pd.DataFrame({"age": np.where(group == 0, 20.0, 70.0) + rng.normal(size=600)})
    table["plan"] = np.where(group == 2, "gold", "basic")
    table["spent"] = np.where(group == 2, 900.0, 100.0) + rng.normal(size=600)
    model = DC2Clustering(3, prepare=TablePreparer(), random_state=0).fit(table)
    columns = {"age", "plan", "spent"}
    rules = model.explain(table)
    assert (rules[["precision", "coverage"]] == 1).all(axis=None)
    assert all(any(column in rule for column in columns) for rule in rules["rule"])
    categories = LabelledRows(np.array([[1.0], [0.0]]), np.array([0, 1]), np.ones(2), ("plan=a",), {0: "plan"})
    assert {categories.rule(0).text, categories.rule(1).text} == {"plan is a", "plan is not a"}
    missing = LabelledRows(np.array([[1.0], [0.0]]), np.array([0, 1]), np.ones(2), ("age=there",), {0: "age"})
    assert {missing.rule(0).text, missing.rule(1).text} == {"age is not missing", "age is missing"}


@pytest.mark.parametrize("metric", ["cosine", "haversine"])
def test_other_metrics_name_the_columns(metric):
    frame = pd.DataFrame({"latitude": [10.0, 11, 10, -30, -31, -30] * 20, "longitude": [5.0, 5, 6, 100, 101, 100] * 20})
    rules = DC2Clustering(2, metric=metric, random_state=0).fit(frame + 0.1).explain()
    assert rules["rule"].str.contains("itude").all()
    assert (rules["precision"] == 1).all()


def test_one_cluster_is_every_row():
    (record,) = DC2Clustering(1, random_state=0).fit(IRIS).explain().to_dict("records")
    assert record == {"cluster": 0, "rule": "every row", "precision": 1.0, "coverage": 1.0}


def test_the_report_and_the_command_line_show_them(tmp_path, capsys):
    IRIS.to_csv(tmp_path / "iris.csv", index=False)
    arguments = [str(tmp_path / name) for name in ("iris.csv", "model.dc2", "report.html")]
    with pytest.raises(SystemExit, match="0"):
        main(["cluster", arguments[0], "-k", "2", "--model", arguments[1], "--report", arguments[2], "--json"])
    told = json.loads(capsys.readouterr().out)["rules"]
    rules = dc2.load(arguments[1]).explain().to_dict("records")
    assert [rule["text"] for rule in told] == [rule["rule"] for rule in rules]
    page = (tmp_path / "report.html").read_text("utf-8")
    assert all(rule["text"].replace("<", "&lt;").replace(">", "&gt;") in page for rule in told)
