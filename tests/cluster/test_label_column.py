"""Known labels as a column: of a frame, of files, of a Dask frame, and on the command line."""

import json
from pathlib import Path
from typing import Any

import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest

from dc2 import DC2Clustering
from dc2.cli import main
from dc2.errors import InputError, ParameterError
from dc2.io.resolve import without_label_column

N_ROWS = 600


def frame() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 4, N_ROWS)
    X = rng.normal(size=(4, 3))[truth] * 20 + rng.normal(size=(N_ROWS, 3))
    labels = np.full(N_ROWS, None, object)
    labels[:50] = np.array(["ant", "bee", None, None])[truth[:50]]
    return pd.DataFrame(X, columns=list("abc")).assign(label=labels, weight=rng.integers(1, 3, N_ROWS).astype(float))


def fitted(X: Any, **options: Any) -> DC2Clustering:
    return DC2Clustering(random_state=0, n_signatures=60, scale="standard", **options).fit(
        X, "label", sample_weight="weight"
    )


@pytest.mark.parametrize("kind", ["parquet", "csv", "dask"])
@pytest.mark.parametrize("options", [{}, {"prepare": None}], ids=str)
def test_a_column_of_labels_is_read_from_any_table(kind: str, options: dict[str, Any], tmp_path: Path) -> None:
    rows, files = frame(), [tmp_path / f"{part}.{kind}" for part in range(2)]
    for part, path in zip((rows[:200], rows[200:]), files, strict=True):
        part.to_parquet(path) if kind == "parquet" else part.to_csv(path, index=False)
    expected = fitted(rows, **options)
    found = fitted(dd.from_pandas(rows, npartitions=3) if kind == "dask" else files, **options)
    assert found.classes_.tolist() == expected.classes_.tolist()
    assert {"ant", "bee"} <= set(expected.classes_.tolist())
    assert found.feature_names_in_.tolist() == ["a", "b", "c"]
    assert np.array_equal(found.predict(rows), expected.predict(rows))


def test_labels_of_files_may_be_numbers_and_unknown_ones_minus_one(tmp_path: Path) -> None:
    rows = frame().drop(columns="weight")
    rows["label"] = rows["label"].map({"ant": 7, "bee": 9}).fillna(-1).astype(int)
    rows.to_csv(tmp_path / "rows.csv", index=False)
    model = DC2Clustering(random_state=0).fit(tmp_path / "rows.csv", "label")
    assert sorted(filter(None, model.classes_)) == [7, 9]


def test_a_column_that_cannot_hold_labels_is_refused(tmp_path: Path) -> None:
    frame().to_csv(tmp_path / "rows.csv", index=False)
    for X in (frame(), tmp_path / "rows.csv", dd.from_pandas(frame(), npartitions=2)):
        with pytest.raises((InputError, ParameterError), match=r"'nobody'.*'label'"):
            DC2Clustering().fit(X, "nobody")
    with pytest.raises(ParameterError, match="ndarray"):
        DC2Clustering().fit(np.ones((5, 2)), "label")
    spark = type("DataFrame", (), {"__module__": "pyspark.sql"})()
    with pytest.raises(ParameterError, match="Spark"):
        without_label_column(spark, "label")


def run(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[int | str | None, str]:
    with pytest.raises(SystemExit) as stopped:
        main(arguments)
    printed = capsys.readouterr()
    return stopped.value.code, printed.out + printed.err


def test_the_command_takes_a_column_of_labels(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = frame().drop(columns="weight")
    rows.to_csv(tmp_path / "rows.csv", index=False)
    out = tmp_path / "labels.csv"
    data = ["cluster", str(tmp_path / "rows.csv"), "--seed", "0"]
    code, said = run([*data, "--label-from", "label", "-o", str(out), "--json"], capsys)
    assert not code
    classes, labels = json.loads(said)["classes"], pd.read_csv(out)["label"]
    assert [classes[label] for label in labels[:50][rows["label"][:50].notna()]] == rows["label"].dropna().tolist()
    for wrong in (["nobody"], ["label", "--columns", "a,label"]):
        code, said = run([*data, "--label-from", *wrong], capsys)
        assert code
        assert repr(wrong[0]) in said.replace("\n", " ")
