"""Laws of failing: one plain sentence that says what to do, the right exit code, nothing written, no traceback."""

import errno
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("typer")
pytest.importorskip("pyarrow")

from dc2.cli import main
from dc2.cluster import DC2Clustering
from dc2.compress import Compressor
from dc2.io.formats import DataFile
from support.cli_failures import FRAME, QUICK, Fails


def test_a_missing_file_is_named(fails: Fails) -> None:
    assert "There is no file 'absent.parquet'" in fails("cluster", "absent.parquet", *QUICK, "-o", "l.npy")
    assert "No file matches '*.arrow'" in fails("cluster", "*.arrow", *QUICK, "-o", "l.npy")
    assert "There is no file 'absent.dc2'" in fails("predict", "absent.dc2", "rows.parquet", "-o", "l.npy")
    assert "There is no file 'absent.dc2'" in fails("info", "absent.dc2")


def test_a_folder_instead_of_a_file_is_named(folder: Path, fails: Fails) -> None:
    (folder / "empty").mkdir()
    assert "'empty' holds no data files" in fails("cluster", "empty", *QUICK, "-o", "l.npy")
    assert "'empty' is a folder" in fails("predict", "empty", "rows.parquet", "-o", "l.npy")
    assert "it is a folder" in fails("cluster", "rows.parquet", *QUICK, "-o", "empty")
    assert "it is a folder" in fails("cluster", "rows.parquet", *QUICK, "--model", "empty")


def test_an_unreadable_file_is_named(folder: Path, fails: Fails, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(file: DataFile) -> Any:
        raise PermissionError(errno.EACCES, "Permission denied", file.path)

    monkeypatch.setattr(DataFile, "open_file", refuse)
    told = fails("cluster", "rows.parquet", *QUICK, "-o", "l.npy")
    assert "Cannot read 'rows.parquet'" in told
    assert "Permission denied" in told
    assert "Permission denied" in fails("info", "rows.parquet")


def test_a_file_that_is_not_what_its_name_says_is_named(folder: Path, fails: Fails) -> None:
    for name in ("text.parquet", "text.arrow", "text.npy"):
        (folder / name).write_text("hello")
        assert f"Cannot read '{name}'" in fails("cluster", name, *QUICK, "-o", "l.csv")
        assert f"'{name}' cannot be read" in fails("info", name)
    (folder / "data.xlsx").touch()
    assert "'data.xlsx': the suffix is unknown" in fails("cluster", "data.xlsx", *QUICK, "-o", "l.csv")


@pytest.mark.parametrize("line", [4, 150_000])
def test_a_broken_line_of_a_csv_file_is_named_by_its_number(line: int, folder: Path, fails: Fails) -> None:
    lines = ["x,y"] + ["0.123456789012345678,1.123456789012345678"] * (line + 10)
    lines[line - 1] = "1,2,3"
    (folder / "rows.csv").write_text("\n".join(lines))
    told = fails("cluster", "rows.csv", *QUICK, "-o", "labels.csv")
    assert "'rows.csv'" in told
    assert re.search(rf"line {line}\b", told), told


def test_a_number_that_is_none_is_named_by_its_line(folder: Path, fails: Fails) -> None:
    lines = ["x,y"] + ["0.123456789012345678,1.123456789012345678"] * 150_000
    lines[140_000] = "1,many"
    (folder / "rows.csv").write_text("\n".join(lines))
    told = fails("cluster", "rows.csv", *QUICK, "-o", "labels.csv")
    assert "'rows.csv'" in told
    assert "many" in told
    assert "140001" in told


def test_a_column_of_text_is_named_with_the_options_to_use(folder: Path, fails: Fails) -> None:
    FRAME.assign(city="Rome").to_parquet("text.parquet")
    told = fails("cluster", "text.parquet", *QUICK, "-o", "l.npy", "--raw")
    assert "not numeric: 'city'" in told
    assert "--columns or --drop" in told


def test_files_with_other_columns_are_named(folder: Path, fails: Fails) -> None:
    FRAME.rename(columns={"y": "z"}).to_parquet("other.parquet")
    FRAME.assign(more=1.0).to_parquet("wider.parquet")
    assert "'other.parquet' has no column 'y'" in fails(
        "cluster", "rows.parquet", "other.parquet", *QUICK, "-o", "l.npy"
    )
    told = fails("cluster", "rows.parquet", "wider.parquet", *QUICK, "-o", "l.npy")
    assert "'wider.parquet' has columns that the first does not have: 'more'" in told
    assert "--columns" in told
    assert "'more'" in fails("info", "rows.parquet", "wider.parquet")


def test_missing_values_are_named(folder: Path, fails: Fails) -> None:
    FRAME.assign(y=FRAME["y"].where(FRAME.index != 7)).to_parquet("holes.parquet")
    told = fails("cluster", "holes.parquet", *QUICK, "-o", "l.npy", "--raw")
    assert "'y' has 1 (first in row 7)" in told


def test_an_unknown_column_is_named_with_those_there_are(fails: Fails) -> None:
    told = fails("cluster", "rows.parquet", *QUICK, "-o", "l.npy", "--columns", "x,height")
    assert "no column 'height'; it has 'x', 'y'" in told
    assert "no column 'who'" in fails("cluster", "rows.parquet", *QUICK, "-o", "l.csv", "--id", "who")


def test_a_damaged_foreign_or_newer_model_is_refused(folder: Path, fails: Fails) -> None:
    (folder / "text.dc2").write_text("hello")
    for command in (
        ["predict", "text.dc2", "rows.parquet", "-o", "l.npy"],
        ["info", "text.dc2"],
        ["report", "text.dc2"],
    ):
        assert "'text.dc2' is not a dc2 model" in fails(*command)


def test_a_model_of_other_columns_is_refused(folder: Path, fails: Fails) -> None:
    DC2Clustering(2, n_signatures=20, random_state=0).fit(FRAME).save("model.dc2")
    FRAME.rename(columns={"y": "z"}).to_parquet("other.parquet")
    assert "no column 'y'" in fails("predict", "model.dc2", "other.parquet", "-o", "l.npy")
    np.save("wide.npy", np.zeros((5, 3)))
    assert "3 features" in fails("predict", "model.dc2", "wide.npy", "-o", "l.npy")


@pytest.mark.parametrize("cell", ["word", ""], ids=["words", "blanks"])
def test_a_table_that_is_prepared_refuses_to_be_scaled_otherwise(cell, fails):
    draw = np.random.default_rng(0)
    frame = pd.DataFrame({"x": draw.normal(size=60), "y": draw.normal(size=60), "z": draw.choice(["a", "b"], 60)})
    if cell == "":
        frame = frame.drop(columns="z").mask(draw.random((60, 2)) < 0.1)
    frame.to_csv("mixed.csv", index=False)
    for scale in ("standard", "robust"):
        told = fails("cluster", "mixed.csv", "-k", "2", "-o", "l.npy", "--scale", scale, code=2)
        assert f"--scale {scale}" in told
    with pytest.raises(SystemExit) as stop:
        main(["cluster", "mixed.csv", "-k", "2", "-o", "l.npy", "--scale", "none"])
    assert not stop.value.code


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["-k", "5-2", "-o", "l.npy"], "upside down"),
        (["-k", "two", "-o", "l.npy"], "'two' is not a number"),
        (["-k", "0", "-o", "l.npy"], "-k 0"),
        (["-k", "2.5", "-o", "l.npy"], "2.5"),
        (["-k", "2", "-o", "l.npy", "--scale", "best"], "'best'"),
        (["-k", "2", "-o", "l.npy", "--similarity", "rpf", "--bandwidth", "-1"], "bandwidth"),
        (["-k", "2", "-o", "l.npy", "--jobs", "0"], "--jobs 0"),
        (["-k", "30", "-o", "l.npy", "--signatures", "9"], "30"),
        (["-k", "2", "-o", "l.npy", "--columns", "x", "--drop", "y"], "not both"),
        (["-k", "2", "-o", "l.npy", "--id", "x"], "labels alone"),
        (["-k", "2", "-o", "l.npy", "--colour", "red"], "--colour"),
        (["-k", "2", "-o", "l.csv", "--id", "x,x"], "--id names the column 'x' twice"),
        (
            ["-k", "2", "-o", "l.csv", "--columns", "x", "--columns", "x"],
            "--columns names the column 'x' twice",
        ),
        (
            ["-k", "2", "-o", "l.npy", "--signatures", "9223372036854775807"],
            "Invalid value for '--signatures'",
        ),
    ],
)
def test_wrong_usage_ends_with_2(options: list[str], told: str, fails: Fails) -> None:
    # Typer draws a frame around its messages, which may break a line anywhere.
    said = re.sub(r"[^\w.,=' -]", "", fails("cluster", "rows.parquet", *options, code=2))
    assert told in re.sub(r"\s+", " ", said)


def test_names_that_clash_are_refused_before_any_work(fails: Fails, monkeypatch: pytest.MonkeyPatch) -> None:
    def too_late(*arguments: Any, **keywords: Any) -> None:
        raise AssertionError("the rows were worked on")

    monkeypatch.setattr(DC2Clustering, "fit", too_late)
    monkeypatch.setattr(Compressor, "fit", too_late)
    FRAME.rename(columns={"y": "dc2_weight"}).to_parquet("taken.parquet")
    ids = ["--id", "y", "--label-column", "y"]
    assert "--label-column" in fails("cluster", "rows.parquet", *QUICK, "-o", "l.csv", *ids, code=2)
    assert "'dc2_weight'" in fails("compress", "taken.parquet", "-o", "s.csv", code=2)


def test_an_unknown_command_ends_with_2(fails: Fails) -> None:
    assert "clutser" in fails("clutser", code=2)


def test_an_unexpected_error_is_one_sentence_and_a_traceback_with_debug(
    fails: Fails, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def break_down(*arguments: Any, **keywords: Any) -> None:
        raise RuntimeError("the wheel came off")

    monkeypatch.setattr(DC2Clustering, "fit", break_down)
    command = ["cluster", "rows.parquet", *QUICK, "-o", "labels.npy"]
    told = fails(*command)
    assert "RuntimeError: the wheel came off" in told
    assert "--debug" in told
    with pytest.raises(SystemExit) as stop:
        main([*command, "--debug"])
    assert stop.value.code == 1
    err = capsys.readouterr().err
    assert "Traceback" in err
    assert "in break_down" in err


def test_too_little_memory_is_told(fails: Fails, monkeypatch: pytest.MonkeyPatch) -> None:
    def starve(*arguments: Any, **keywords: Any) -> None:
        raise MemoryError

    monkeypatch.setattr(DC2Clustering, "fit", starve)
    assert "not enough memory" in fails("cluster", "rows.parquet", *QUICK, "-o", "labels.npy")


def test_warnings_are_told_in_a_line(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import warnings

    pd.DataFrame({"x": [1.0, 1.0, 2.0, 2.0]}).to_parquet("few.parquet")
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        with pytest.raises(SystemExit) as stop:
            main(["cluster", "few.parquet", "-k", "3", "-o", "labels.npy"])
    assert stop.value.code == 0
    err = capsys.readouterr().err
    assert err.startswith("Note: ")
    assert err.count("\n") == 1
    assert "2 distinct signatures" in err


@pytest.mark.parametrize("missing", ["typer", "rich"])
def test_without_its_extra_the_command_says_what_to_install(missing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("dc2.cli.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(SystemExit, match=r'pip install "dc2\[cli\]"'):
        main(["info", "rows.parquet"])


# --- the user's own words ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("word", ["n_jobs_2024", "n_jobs", "my n_clusters", "sample_weight", "Input X "])
def test_words_of_the_user_are_left_alone(word: str, folder: Path, fails: Fails) -> None:
    FRAME.assign(**{word: "Rome"}).to_parquet(f"{word}.parquet")
    assert f"not numeric: {word!r}" in fails("cluster", f"{word}.parquet", *QUICK, "-o", "l.npy", "--raw")
    assert f"There is no file '{word}.csv'" in fails("cluster", f"{word}.csv", *QUICK, "-o", "l.npy")
    told = fails("cluster", "rows.parquet", *QUICK, "-o", "l.npy", "--columns", word)
    assert f"no column {word!r}" in told


@pytest.mark.parametrize(
    ("options", "spelled"),
    [(["--jobs", "0"], "--jobs 0"), (["-k", "0"], "-k 0"), (["--noise", "7"], "--noise")],
)
def test_a_parameter_is_spelled_as_the_option(options: list[str], spelled: str, fails: Fails) -> None:
    told = fails("cluster", "rows.parquet", *QUICK, "-o", "l.npy", *options, code=2)
    assert spelled in told or spelled.strip("-") in told
    assert "n_jobs" not in told
    assert "n_clusters" not in told


def test_options_that_mend_reading_are_named(folder: Path, fails: Fails) -> None:
    (folder / "semicolons.csv").write_text("x;y\n1;2\n")
    assert "--delimiter ';'" in fails("cluster", "semicolons.csv", "--delimiter", "|", "-k", "1", "-o", "l.npy")


@pytest.mark.parametrize(
    ("options", "facts"),
    [
        (["--columns", ""], ["--columns"]),
        (["--delimiter", "§"], ["--delimiter"]),
        (["--signatures", "abc"], ["'abc'", "auto"]),
    ],
)
def test_an_option_that_says_nothing_usable_is_named(options: list[str], facts: list[str], fails: Fails) -> None:
    told = fails("cluster", "rows.parquet", *QUICK, "-o", "l.npy", *options, code=2)
    assert all(fact in told for fact in facts)
    assert "range" not in told


ESCAPE = "\x1b]0;owned\x07"


def test_no_file_steers_the_terminal(folder: Path, fails: Fails, capsys: pytest.CaptureFixture[str]) -> None:
    FRAME.rename(columns={"y": ESCAPE}).to_parquet("steering.parquet")
    FRAME.assign(**{ESCAPE: "text"}).to_parquet("text.parquet")
    assert "control characters" in fails("cluster", "steering.parquet", *QUICK, "--model", "m.dc2")
    assert ESCAPE[0] not in fails("cluster", "text.parquet", *QUICK, "-o", "l.npy", "--raw")
    (folder / f"{ESCAPE}.csv").write_text(f"x,{ESCAPE}\n1,2\n3,many\n")
    assert ESCAPE[0] not in fails("cluster", f"{ESCAPE}.csv", "-k", "2", "-o", "l.npy", "--raw")
    with pytest.raises(SystemExit):
        main(["info", "steering.parquet"])
    told = capsys.readouterr().out
    assert ESCAPE[0] not in told
    assert r"\x1b]0;owned" in told


# --- files that break readers -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "content",
    [b"", b"\x93NUMPY", b"\x93NUMPY\x01\x00\xff\xff{", b"PK\x03\x04", b"\x93NUMPY\x09\x00" + 99 * b"("],
)
def test_a_broken_array_is_told_plainly(content: bytes, folder: Path, fails: Fails) -> None:
    (folder / "broken.npy").write_bytes(content)
    assert "Cannot read 'broken.npy'" in fails("cluster", "broken.npy", *QUICK, "-o", "l.npy")
    assert "'broken.npy' cannot be read" in fails("info", "broken.npy")


def test_an_array_without_rows_is_told_plainly(folder: Path, fails: Fails) -> None:
    np.save("alone.npy", np.float64(3.0))
    assert "'alone.npy' cannot be read" in fails("info", "alone.npy")
    assert "'alone.npy'" in fails("cluster", "alone.npy", *QUICK, "-o", "l.npy")


def test_a_header_that_is_not_utf8_is_told_plainly(folder: Path, fails: Fails) -> None:
    (folder / "latin.csv").write_bytes("höhe,y\n1,2\n3,4\n".encode("latin-1"))
    for told in (
        fails("cluster", "latin.csv", "-k", "2", "-o", "l.npy"),
        fails("info", "latin.csv"),
    ):
        assert "'latin.csv'" in told
        assert "unexpected" not in told
