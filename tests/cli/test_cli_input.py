"""Laws of what the command line reads: the same labels for any kind of file, and for standard input."""

import io
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("typer")
pytest.importorskip("pyarrow")

import dc2.cli.inputs
from dc2.cli import main

N = 500
X = np.random.default_rng(0).normal(size=(N, 2)).round(6)
FRAME = pd.DataFrame(X, columns=["x", "y"]).assign(id=[f"{row:07}" for row in range(N)])
QUICK = ("-k", "2", "--signatures", "30", "--id", "id")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    FRAME.to_csv("rows.csv", index=False)
    run("cluster", "rows.csv", *QUICK, "-o", "expected.csv", "--model", "model.dc2")
    return tmp_path


def run(*arguments: str, code: int = 0) -> None:
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    assert (stop.value.code or 0) == code


def standard_input(monkeypatch: pytest.MonkeyPatch, content: bytes) -> None:
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(content)))


def test_ids_of_csv_come_out_to_the_letter(folder: Path) -> None:
    written = pd.read_csv("expected.csv", dtype=str)
    assert written["id"].tolist() == FRAME["id"].tolist()


@pytest.mark.parametrize(
    ("name", "options"),
    [("rows.tsv", {"sep": "\t"}), ("rows.csv.gz", {}), ("semicolons.csv", {"sep": ";"}), ("rows.jsonl", {})],
)
def test_the_kind_of_text_file_changes_nothing(name: str, options: dict[str, str], folder: Path) -> None:
    if name.endswith(".jsonl"):
        FRAME.to_json(name, orient="records", lines=True)
    else:
        FRAME.to_csv(name, index=False, **options)
    said = ["--delimiter", ";"] if options.get("sep") == ";" else []
    run("cluster", name, *QUICK, *said, "-o", "labels.csv")
    assert Path("labels.csv").read_bytes() == Path("expected.csv").read_bytes()
    run("predict", "model.dc2", name, "--id", "id", *said, "-o", "again.csv")
    assert Path("again.csv").read_bytes() == Path("expected.csv").read_bytes()


def test_a_file_without_names_has_numbered_ones(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    FRAME.to_csv("bare.csv", index=False, header=False)
    options = ["-k", "2", "--signatures", "30", "--no-header"]
    run("cluster", "bare.csv", *options, "--id", "x2", "-o", "labels.csv")
    lines = Path("labels.csv").read_text().splitlines()
    assert lines[0] == "x2,label"
    assert lines[1:] == Path("expected.csv").read_text().splitlines()[1:]
    run("info", "bare.csv", "--no-header")
    assert "x0=double" in capsys.readouterr().out


@pytest.mark.filterwarnings("default")
def test_what_would_help_is_told_in_options(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    FRAME.to_csv("semicolons.csv", index=False, sep=";")
    FRAME[["x", "y"]].to_csv("bare.csv", index=False, header=False)
    run("cluster", "semicolons.csv", *QUICK, "-o", "labels.csv", "--delimiter", "|", code=1)
    assert "--delimiter ';'" in capsys.readouterr().err
    run("cluster", "bare.csv", "-k", "2", "-o", "labels.csv")
    assert "header=False" in capsys.readouterr().err
    run("cluster", "rows.csv", *QUICK, "-o", "labels.csv", "--delimiter", "ab", code=2)
    run("cluster", "semicolons.csv", *QUICK, "-o", "others.csv")
    assert "delimiter=';'" in capsys.readouterr().err


def test_a_file_of_names_alone_is_said_to_hold_no_rows(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("names.csv").write_text("x,y\n")
    run("cluster", "names.csv", "-k", "2", "-o", "labels.csv", code=1)
    assert "'names.csv' holds columns but no rows" in capsys.readouterr().err
    run("info", "names.csv")
    assert re.search(r"rows\s+0", capsys.readouterr().out)


@pytest.mark.parametrize("kind", ["csv", "parquet", "jsonl"])
def test_standard_input_is_a_file_like_any_other(kind: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = Path(f"given.{kind}")
    {"csv": lambda: FRAME.to_csv(path, index=False), "parquet": lambda: FRAME.to_parquet(path),
     "jsonl": lambda: FRAME.to_json(path, orient="records", lines=True)}[kind]()  # fmt: skip
    standard_input(monkeypatch, path.read_bytes())
    run("cluster", "-", *QUICK, "-o", "labels.csv")
    assert Path("labels.csv").read_bytes() == Path("expected.csv").read_bytes()
    standard_input(monkeypatch, path.read_bytes())
    run("predict", "model.dc2", "-", "--id", "id", "-o", "again.csv")
    assert Path("again.csv").read_bytes() == Path("expected.csv").read_bytes()


def test_standard_input_has_a_limit(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(dc2.cli.inputs, "MOST_BYTES", 1000)
    standard_input(monkeypatch, Path("rows.csv").read_bytes())
    run("cluster", "-", *QUICK, "-o", "labels.csv", code=1)
    assert "more than 1.0 kB" in capsys.readouterr().err
    standard_input(monkeypatch, b"")
    run("info", "-", code=1)
    assert "Standard input is empty" in capsys.readouterr().err
    run("info", "-", "-", code=2)


def test_python_runs_the_package(folder: Path) -> None:
    source = str(Path(dc2.__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-m", "dc2", "info", "-", "--json"],
        input=b"x,y\n1,2\n",
        capture_output=True,
        env={"PYTHONPATH": source, "PATH": ""},
    )
    assert done.returncode == 0, done.stderr
    assert b'"columns": 2' in done.stdout


def test_the_encoding_of_a_file_is_asked_for_and_can_be_given(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    FRAME.assign(id="Köln " + FRAME["id"]).to_csv("latin.csv", index=False, encoding="latin-1")
    run("cluster", "latin.csv", *QUICK, "-o", "labels.csv", code=1)
    assert "'latin.csv' is not UTF-8: line 2 has the byte 0xf6" in capsys.readouterr().err
    run("cluster", "latin.csv", *QUICK, "-o", "labels.csv", "--debug", code=1)
    assert "--encoding latin-1" in capsys.readouterr().err
    run("cluster", "latin.csv", *QUICK, "--encoding", "latin-1", "-o", "labels.csv")
    run("predict", "model.dc2", "latin.csv", "--encoding", "latin-1", "--id", "id", "-o", "again.csv")
    assert Path("again.csv").read_bytes() == Path("labels.csv").read_bytes()
    assert pd.read_csv("labels.csv")["id"].str.startswith("Köln").all()


def test_predict_names_the_command_that_could_have_taken_words(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = FRAME.assign(plan=np.where(X[:, 0] > 0, "a", "b"))
    table.to_csv("table.csv", index=False)
    run("cluster", "table.csv", "-k", "2", "--id", "id", "--model", "table.dc2")
    table.astype({"x": object}).replace({"x": {table["x"][7]: "many"}}).to_csv("words.csv", index=False)
    run("predict", "table.dc2", "words.csv", "-o", "labels.csv", code=1)
    told = capsys.readouterr().err
    assert "column 'x' holds numbers, but 1 rows" in told
    assert "dc2 cluster --as category:x" in told


def test_bytes_of_no_format_are_not_taken_for_text(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    standard_input(monkeypatch, np.random.default_rng(0).bytes(5000))
    run("cluster", "-", "-k", "2", "-o", "labels.npy", code=1)
    told = capsys.readouterr().err
    assert "Standard input" in told
    assert "UTF-16" not in told
    standard_input(monkeypatch, "x,y\n1,2\n3,4\n5,6\n".encode("utf-16"))
    run("cluster", "-", "-k", "2", "-o", "labels.npy", "--encoding", "utf-16")


def test_numbers_as_other_countries_write_them_change_nothing(folder: Path) -> None:
    def written(value: float) -> str:
        return f"{value * 1e6:,.1f}".replace(",", "'").replace(".", ",")

    (FRAME[["x", "y"]] * 1e6).round(1).assign(id=FRAME["id"]).to_csv("points.csv", index=False)
    FRAME.assign(x=FRAME["x"].map(written), y=FRAME["y"].map(written)).to_csv("commas.csv", index=False, sep=";")
    said = ["--delimiter", ";", "--decimal", ",", "--thousands", "'"]
    run("cluster", "points.csv", *QUICK, "-o", "a.csv")
    run("cluster", "commas.csv", *QUICK, *said, "-o", "b.csv")
    assert Path("a.csv").read_bytes() == Path("b.csv").read_bytes()


def test_a_text_can_be_said_to_mean_a_missing_value(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("holes.csv").write_text(FRAME.to_csv(index=False).replace(f"{X[3, 0]}", "-999"))
    run("cluster", "holes.csv", *QUICK, "--raw", "--na", "-999", "-o", "labels.csv", code=1)
    assert "missing" in capsys.readouterr().err


@pytest.mark.parametrize(("option", "value"), [("--decimal", ";"), ("--thousands", "12"), ("--delimiter", ";;")])
def test_a_sign_that_cannot_be_meant_is_told_as_the_option(
    option: str, value: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run("cluster", "rows.csv", *QUICK, option, value, "-o", "labels.csv", code=2)
    assert option in capsys.readouterr().err
