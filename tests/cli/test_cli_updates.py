"""``dc2 update`` and ``dc2 compare``: files written, the old model left alone, errors."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

import dc2
from dc2.cli.app import app

pd = pytest.importorskip("pandas")


def write(path, places, seed):
    draw = np.random.default_rng(seed)
    rows = np.repeat(np.asarray(places, float), 300, axis=0) + draw.normal(size=(300 * len(places), 2))
    pd.DataFrame(rows, columns=["a", "b"]).to_parquet(path)


def run(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture
def january(tmp_path):
    write(tmp_path / "january.parquet", [[0, 0], [30, 0]], 0)
    write(tmp_path / "february.parquet", [[0, 0], [0, 40]], 1)
    model = tmp_path / "january.dc2"
    done = run("cluster", tmp_path / "january.parquet", "--model", model, "--scale", "none", "--signatures", "100")
    assert done.exit_code == 0, done.output
    return model


def test_update_writes_what_is_wanted_and_leaves_the_model_alone(january, tmp_path):
    before = january.read_bytes()
    files = {"-o": "labels.parquet", "--model": "february.dc2", "--report": "february.html"}
    outputs = [part for option, name in files.items() for part in (option, tmp_path / name)]
    done = run("update", january, tmp_path / "february.parquet", *outputs, "--forget", "0.1", "--json")
    assert done.exit_code == 0, done.output
    said = json.loads(done.output)
    assert [one["cluster"] for one in said["changes"]["clusters"]] == [0, 1, 2]
    assert sorted(one["label"] for one in said["clusters"]) == [0, 1, 2]
    assert january.read_bytes() == before
    model = dc2.load(tmp_path / "february.dc2")
    labels = pd.read_parquet(tmp_path / "labels.parquet")["label"]
    assert np.array_equal(labels, model.predict(pd.read_parquet(tmp_path / "february.parquet")))
    assert model.changes_.of("born") == [2]
    page = (tmp_path / "february.html").read_text("utf-8")
    assert "What changed" in page
    assert "<td>born</td>" in page

    compared = run("compare", january, tmp_path / "february.dc2", tmp_path / "february.parquet", "--json")
    assert compared.exit_code == 0, compared.output
    assert {one["cluster"] for one in json.loads(compared.output)["clusters"]} >= {0, 2}


def test_the_old_model_is_replaced_only_if_told_so(january, tmp_path):
    before = january.read_bytes()
    data = tmp_path / "february.parquet"
    assert run("update", january, data, "--model", january).exit_code != 0
    assert january.read_bytes() == before
    assert run("update", january, data, "--model", january, "--force", "--fixed").exit_code == 0
    assert january.read_bytes() != before
    assert dc2.load(january).n_rows_in_ == 1200


def test_impossible_updates_are_refused(january, tmp_path):
    before = january.read_bytes()
    assert run("update", january, tmp_path / "february.parquet", "--forget", "-1").exit_code != 0
    pd.DataFrame({"a": [1.0]}).to_parquet(tmp_path / "other.parquet")
    assert run("update", january, tmp_path / "other.parquet").exit_code != 0
    assert january.read_bytes() == before
