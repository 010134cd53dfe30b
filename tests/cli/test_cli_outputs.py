"""Laws of commands that cannot write: refused before the work if possible, nothing replaced, no fit lost."""

import errno
import os
import shlex
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("typer")
pytest.importorskip("pyarrow")

from dc2.cli import main
from dc2.cluster import DC2Clustering
from support.cli_failures import FRAME, QUICK, Fails, N


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
    monkeypatch.setattr(DC2Clustering, "fit", lambda *arguments: pytest.fail("the work has begun"))
    for option, name in (
        ("-o", "absent/labels.npy"),
        ("--model", "absent/m.dc2"),
        ("--report", "absent/r.html"),
    ):
        told = fails("cluster", "rows.parquet", *QUICK, option, name)
        assert f"cannot be written to '{name}': there is no such folder" in told
    assert "its suffix should be one of" in fails("cluster", "rows.parquet", *QUICK, "-o", "labels.xlsx", code=2)


def test_a_folder_that_cannot_be_written_to_is_told(fails: Fails, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.access", lambda path, mode: False)
    assert "files cannot be made in its folder" in fails("cluster", "rows.parquet", *QUICK, "-o", "labels.npy")


def test_the_data_is_never_replaced_even_by_force(fails: Fails) -> None:
    for options in (["-o", "rows.parquet"], ["-o", "./rows.parquet"], ["--model", "rows.parquet"]):
        assert "used twice" in fails("cluster", "rows.parquet", *QUICK, *options, "--force")
    assert "used twice" in fails("cluster", "rows.parquet", *QUICK, "--model", "same", "--report", "same")


def full_disk(*arguments: Any, **keywords: Any) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize(
    ("place", "options", "named"),
    [
        ("dc2.cluster.base.write_labels", ["-o", "labels.parquet"], "labels.parquet"),
        ("dc2.io.model_file.write_archive", ["--model", "model.dc2"], "model.dc2"),
    ],
)
def test_a_full_disk_is_told_with_the_file(
    place: str, options: list[str], named: str, fails: Fails, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dc2.io.model_file.write_archive", full_disk)
    monkeypatch.setattr(place, full_disk)
    told = fails("cluster", "rows.parquet", *QUICK, *options)
    assert f"'{named}' could not be written (No space left on device)" in told
    assert "Make room" in told


@pytest.mark.parametrize("asked", [["--model", "m.dc2"], []])
def test_a_fit_is_not_lost_if_labels_cannot_be_written(
    asked: list[str], folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The command that the message gives writes what the first one would have, read in the same way."""
    (folder / "temporary").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder / "temporary"))
    FRAME.assign(id=range(N)).to_csv("rows.csv", sep=";", index=False, header=False)
    reading = ["--delimiter", ";", "--no-header", "--encoding", "latin-1", "--id", "x2", "--label-column", "group"]
    command = ["cluster", "rows.csv", *QUICK, "-o", "labels.parquet", *reading, "--report", "page.html", *asked]
    with monkeypatch.context() as broken:
        broken.setattr("dc2.cluster.base.write_labels", full_disk)
        with pytest.raises(SystemExit) as stop:
            main(command)
    assert stop.value.code == 1
    assert Path("page.html").exists(), "the other outputs are written"
    again = shlex.split(capsys.readouterr().err.split("dc2 predict")[1])
    model = Path(again[0])
    if not asked:
        assert model.stat().st_mode & 0o777 == 0o600
        assert model.parent.stat().st_mode & 0o777 == 0o700
    with pytest.raises(SystemExit) as stop:
        main(["predict", *again])
    assert stop.value.code == 0
    written = pd.read_parquet("labels.parquet")
    assert list(written) == ["x2", "group"]
    assert len(written) == N


def test_labels_are_written_even_if_the_model_cannot_be(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dc2.io.model_file.write_archive", full_disk)
    with pytest.raises(SystemExit) as stop:
        main(["cluster", "rows.parquet", *QUICK, "-o", "labels.npy", "--model", "model.dc2"])
    assert stop.value.code == 1
    assert len(np.load("labels.npy")) == N
    assert not Path("model.dc2").exists()


def test_what_cannot_be_written_is_told_before_the_work(
    folder: Path, fails: Fails, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(DC2Clustering, "fit", lambda *arguments: pytest.fail("the work has begun"))
    FRAME.assign(tags=[[1, 2]] * N).to_parquet("tags.parquet")
    told = fails("cluster", "tags.parquet", *QUICK, "-o", "l.csv", "--id", "tags", code=2)
    assert "Column 'tags' is of type list" in told
    assert "name has 304 characters" in fails("cluster", "rows.parquet", *QUICK, "-o", "l" * 300 + ".csv")
    monkeypatch.setattr("shutil.disk_usage", lambda path: SimpleNamespace(free=100))
    assert "at least" in fails("cluster", "rows.parquet", *QUICK, "-o", "l.npy", code=2)


def test_force_replaces_regular_files_only(folder: Path, fails: Fails) -> None:
    (folder / "precious").write_text("precious")
    (folder / "link.npy").symlink_to("precious")
    (folder / "dangling.npy").symlink_to("absent")
    os.mkfifo(folder / "pipe.npy")
    for name, told in (("link", "a link"), ("dangling", "a link"), ("pipe", "not a regular file")):
        assert told in fails("cluster", "rows.parquet", *QUICK, "-o", f"{name}.npy", "--force")
    assert "not a regular file" in fails("cluster", "rows.parquet", *QUICK, "--model", "/dev/null", "--force")
    assert (folder / "precious").read_text() == "precious"
