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
from dc2.cluster import RPFCluster
from dc2.compress import Compressor
from dc2.sources.paths import FoundFile

N = 400
FRAME = pd.DataFrame(np.random.default_rng(0).normal(size=(N, 2)), columns=["x", "y"])
QUICK = ("-k", "2", "--signatures", "20")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    FRAME.to_parquet("rows.parquet")
    return tmp_path


class Fails:
    """Runs commands that must fail."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self._folder, self._capsys = folder, capsys

    def __call__(self, *arguments: str, code: int = 1) -> str:
        """What the command says on standard error; it leaves the folder as it was."""
        before = {path: path.stat().st_mtime_ns for path in self._folder.rglob("*")}
        with pytest.raises(SystemExit) as stop:
            main(arguments)
        out, err = self._capsys.readouterr()
        assert stop.value.code == code, err
        assert out == ""
        assert "Traceback" not in err
        assert {path: path.stat().st_mtime_ns for path in self._folder.rglob("*")} == before
        if code == 1:
            assert err.startswith("Error: ")
            assert err.count("\n") == 1, "one line"
        return " ".join(err.split())


@pytest.fixture
def fails(folder: Path, capsys: pytest.CaptureFixture[str]) -> Fails:
    return Fails(folder, capsys)


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
    def refuse(file: FoundFile) -> Any:
        raise PermissionError(errno.EACCES, "Permission denied", file.path)

    monkeypatch.setattr(FoundFile, "open_file", refuse)
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
    assert "The suffix of 'data.xlsx' is unknown" in fails("cluster", "data.xlsx", *QUICK, "-o", "l.csv")


@pytest.mark.parametrize("line", [4, 150_000])
def test_a_broken_line_of_a_csv_file_is_named_by_its_number(line: int, folder: Path, fails: Fails) -> None:
    lines = ["x,y"] + ["0.123456789012345678,1.123456789012345678"] * (line + 10)
    lines[line - 1] = "1,2,3"
    (folder / "rows.csv").write_text("\n".join(lines))
    told = fails("cluster", "rows.csv", *QUICK, "-o", "labels.csv")
    assert "'rows.csv'" in told
    assert re.search(rf"#{line}\b", told), told


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
    told = fails("cluster", "text.parquet", *QUICK, "-o", "l.npy")
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
    told = fails("cluster", "holes.parquet", *QUICK, "-o", "l.npy")
    assert "'y' has 1 (first in row 7)" in told


def test_an_unknown_column_is_named_with_those_there_are(fails: Fails) -> None:
    told = fails("cluster", "rows.parquet", *QUICK, "-o", "l.npy", "--columns", "x,height")
    assert "no column 'height'; it has 'x', 'y'" in told
    assert "no column 'who'" in fails("cluster", "rows.parquet", *QUICK, "-o", "l.csv", "--id", "who")


def test_an_existing_output_is_kept_without_force(
    folder: Path, fails: Fails, capsys: pytest.CaptureFixture[str]
) -> None:
    for option, name in (("-o", "labels.npy"), ("--model", "model.dc2"), ("--report", "report.html")):
        (folder / name).write_text("mine")
        assert "--force" in fails("cluster", "rows.parquet", *QUICK, option, name)
    with pytest.raises(SystemExit) as stop:
        main(["cluster", "rows.parquet", *QUICK, "-o", "labels.npy", "--force"])
    assert stop.value.code == 0
    assert len(np.load("labels.npy")) == N


def test_outputs_are_checked_before_the_work(fails: Fails, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RPFCluster, "fit", lambda *arguments: pytest.fail("the work has begun"))
    for option, name in (
        ("-o", "absent/labels.npy"),
        ("--model", "absent/m.dc2"),
        ("--report", "absent/r.html"),
    ):
        told = fails("cluster", "rows.parquet", *QUICK, option, name)
        assert "The folder 'absent'" in told
        assert "does not exist" in told
    assert "its suffix should be one of" in fails(
        "cluster", "rows.parquet", *QUICK, "-o", "labels.xlsx", code=2
    )


def test_a_folder_that_cannot_be_written_to_is_told(fails: Fails, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.access", lambda path, mode: False)
    assert "cannot be written to" in fails("cluster", "rows.parquet", *QUICK, "-o", "labels.npy")


def test_the_data_is_never_replaced_even_by_force(fails: Fails) -> None:
    for options in (["-o", "rows.parquet"], ["-o", "./rows.parquet"], ["--model", "rows.parquet"]):
        assert "used twice" in fails("cluster", "rows.parquet", *QUICK, *options, "--force")
    assert "used twice" in fails("cluster", "rows.parquet", *QUICK, "--model", "same", "--report", "same")


def full_disk(*arguments: Any, **keywords: Any) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize(
    ("place", "options", "named"),
    [
        ("dc2.cli.populate.write_labels", ["-o", "labels.parquet"], "labels.parquet"),
        ("dc2.model_file.save.write_archive", ["--model", "model.dc2"], "model.dc2"),
    ],
)
def test_a_full_disk_is_told_with_the_file(
    place: str, options: list[str], named: str, fails: Fails, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(place, full_disk)
    told = fails("cluster", "rows.parquet", *QUICK, *options)
    assert f"'{named}' could not be written (No space left on device)" in told
    assert "Make room" in told


def test_a_damaged_foreign_or_newer_model_is_refused(folder: Path, fails: Fails) -> None:
    (folder / "text.dc2").write_text("hello")
    for command in (
        ["predict", "text.dc2", "rows.parquet", "-o", "l.npy"],
        ["info", "text.dc2"],
        ["report", "text.dc2"],
    ):
        assert "'text.dc2' is not a dc2 model" in fails(*command)


def test_a_model_of_other_columns_is_refused(folder: Path, fails: Fails) -> None:
    RPFCluster(2, n_signatures=20, random_state=0).fit(FRAME).save("model.dc2")
    FRAME.rename(columns={"y": "z"}).to_parquet("other.parquet")
    assert "no column 'y'" in fails("predict", "model.dc2", "other.parquet", "-o", "l.npy")
    np.save("wide.npy", np.zeros((5, 3)))
    assert "3 features" in fails("predict", "model.dc2", "wide.npy", "-o", "l.npy")


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["-k", "5-2", "-o", "l.npy"], "second of -k"),
        (["-k", "two", "-o", "l.npy"], "'two' is not a number"),
        (["-k", "0", "-o", "l.npy"], "-k must be a whole number"),
        (["-k", "2.5", "-o", "l.npy"], "-k must be a whole number"),
        (["-k", "2"], "Nothing would be written"),
        (["-k", "2", "-o", "l.npy", "--scale", "best"], "'best'"),
        (["-k", "2", "-o", "l.npy", "--bandwidth", "-1"], "bandwidth"),
        (["-k", "2", "-o", "l.npy", "--jobs", "0"], "--jobs is 0"),
        (["-k", "30", "-o", "l.npy", "--signatures", "9"], "--signatures=9 cannot make -k=30"),
        (["-k", "2", "-o", "l.npy", "--columns", "x", "--drop", "y"], "not both"),
        (["-k", "2", "-o", "l.npy", "--id", "x"], "labels alone"),
        (["-k", "2", "-o", "l.npy", "--colour", "red"], "--colour"),
    ],
)
def test_wrong_usage_ends_with_2(options: list[str], told: str, fails: Fails) -> None:
    # Typer draws a frame around its messages, which may break a line anywhere.
    said = re.sub(r"[^\w.,=' -]", "", fails("cluster", "rows.parquet", *options, code=2))
    assert told in re.sub(r"\s+", " ", said)


def test_names_that_clash_are_refused_before_any_work(fails: Fails, monkeypatch: pytest.MonkeyPatch) -> None:
    def too_late(*arguments: Any, **keywords: Any) -> None:
        raise AssertionError("the rows were worked on")

    monkeypatch.setattr(RPFCluster, "fit", too_late)
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

    monkeypatch.setattr(RPFCluster, "fit", break_down)
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

    monkeypatch.setattr(RPFCluster, "fit", starve)
    assert "not enough memory" in fails("cluster", "rows.parquet", *QUICK, "-o", "labels.npy")


def test_warnings_are_told_in_a_line(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import warnings

    pd.DataFrame({"x": [1.0, 1.0, 2.0, 2.0]}).to_parquet("few.parquet")
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        with pytest.raises(SystemExit) as stop:
            main(["cluster", "few.parquet", "-k", "3", "-o", "labels.npy"])
    assert stop.value.code == 0
    assert capsys.readouterr().err.startswith("Note: the rows make only 2 signatures")


@pytest.mark.parametrize("missing", ["typer", "rich"])
def test_without_its_extra_the_command_says_what_to_install(
    missing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.startswith("dc2.cli.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(SystemExit, match=r'pip install "dc2\[cli\]"'):
        main(["info", "rows.parquet"])
