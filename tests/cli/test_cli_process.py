"""The command as a process: signals, full disks, pipes, terminals, completion, and how little it loads at first."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import dc2

pty = pytest.importorskip("pty")  # signals, terminals and limits are those of POSIX
resource = pytest.importorskip("resource")
pytest.importorskip("typer")
pytest.importorskip("pyarrow")

COMMAND = [sys.executable, "-m", "dc2"]
# Processes run in other folders, so the way to the package must not depend on the folder.
ENVIRONMENT = os.environ | {"PYTHONPATH": str(Path(dc2.__file__).resolve().parents[1])}
QUICK = ("-k", "2", "--signatures", "50")

# Labels come block by block; after the first block this one waits to be interrupted.
HALF_WRITTEN = """
import sys, time
from dc2.cli import main
from dc2.cluster import DC2Clustering

blocks = DC2Clustering._answered

def waiting(self, source, answer):
    for block in blocks(self, source, answer):
        yield block
        print("half", flush=True)
        time.sleep(60)

DC2Clustering._answered = waiting
main(sys.argv[1:])
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    np.save(tmp_path / "rows.npy", np.random.default_rng(0).normal(size=(20_000, 3)))
    return tmp_path


@pytest.mark.parametrize(
    ("name", "sent", "code"),
    [
        ("labels.npy", signal.SIGINT, 130),
        ("labels.parquet", signal.SIGINT, 130),
        ("labels.csv.gz", signal.SIGTERM, 143),
        ("labels.csv", signal.SIGHUP, 143),
    ],
)
def test_an_interrupt_leaves_no_half_written_file(name: str, sent: signal.Signals, code: int, folder: Path) -> None:
    (folder / name).write_text("old")
    command = [sys.executable, "-c", HALF_WRITTEN, "cluster", "rows.npy", *QUICK, "-o", name, "--force"]
    with subprocess.Popen(
        command, cwd=folder, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "half\n"
        assert len(list(folder.glob(".*.partial"))) == 1
        process.send_signal(sent)
        _, err = process.communicate(timeout=60)
    assert process.returncode == code, err
    assert "Traceback" not in err
    assert {path.name for path in folder.iterdir()} == {"rows.npy", name}
    assert (folder / name).read_text() == "old"


def test_an_interrupt_while_labels_are_written_keeps_the_fit(folder: Path) -> None:
    (folder / "temporary").mkdir()
    command = [sys.executable, "-c", HALF_WRITTEN, "cluster", "rows.npy", *QUICK, "-o", "labels.npy"]
    environment = ENVIRONMENT | {"TMPDIR": str(folder / "temporary")}
    with subprocess.Popen(
        command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "half\n"
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    (model,) = (folder / "temporary").rglob("*.dc2")
    assert str(model) in err
    again = [*COMMAND, "predict", str(model), "rows.npy", "-o", "labels.npy"]
    subprocess.run(again, cwd=folder, env=ENVIRONMENT, check=True, capture_output=True)
    assert len(np.load(folder / "labels.npy")) == 20_000


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252"])
def test_output_falls_back_to_what_the_terminal_can_show(encoding: str, folder: Path) -> None:
    environment = ENVIRONMENT | {"PYTHONIOENCODING": encoding}
    for arguments in (["cluster", "rows.npy", *QUICK, "-o", "labels.npy"], ["cluster", "--help"]):
        done = subprocess.run([*COMMAND, *arguments], cwd=folder, env=environment, capture_output=True)
        assert done.returncode == 0, done.stderr
        assert done.stdout.decode(encoding)


@pytest.mark.parametrize("name", ["labels.npy", "labels.parquet"])
def test_a_full_disk_leaves_nothing_and_is_told_in_a_line(name: str, folder: Path) -> None:
    def limit() -> None:  # a file that may not grow stands for a disk that is full
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))

    command = [*COMMAND, "cluster", "rows.npy", *QUICK, "-o", name]
    done = subprocess.run(command, cwd=folder, env=ENVIRONMENT, capture_output=True, text=True, preexec_fn=limit)
    assert done.returncode == 1
    assert re.fullmatch(rf"Error: '{name}' could not be written \(.*too large.*\).*\n", done.stderr), done.stderr
    assert [path.name for path in folder.iterdir()] == ["rows.npy"]


def test_a_pipe_gets_neither_colours_nor_bars(folder: Path) -> None:
    command = [*COMMAND, "cluster", "rows.npy", *QUICK, "-o", "labels.npy"]
    done = subprocess.run(command, cwd=folder, env=ENVIRONMENT, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    assert "\x1b" not in done.stdout
    assert done.stdout.startswith("2 clusters in 20,000 rows")


def test_a_terminal_shows_the_four_stages_and_the_speed(folder: Path) -> None:
    master, slave = pty.openpty()
    command = [*COMMAND, "cluster", "rows.npy", *QUICK, "-o", "labels.npy"]
    with subprocess.Popen(
        command, cwd=folder, stdout=subprocess.PIPE, stderr=slave, env=ENVIRONMENT | {"COLUMNS": "120"}
    ) as process:
        os.close(slave)
        shown = b""
        while True:
            try:
                piece = os.read(master, 4096)
            except OSError:  # Linux: the other end is closed
                break
            if not piece:
                break
            shown += piece
    os.close(master)
    assert process.returncode == 0
    told = shown.decode()
    for part in ("divide", "compress", "conquer", "populate", "20.0k/20.0k", "rows/s"):
        assert part in told


@pytest.mark.parametrize("arguments", [["--version"], ["--help"], ["cluster", "--help"]])
def test_what_needs_no_data_loads_nothing_heavy(arguments: list[str]) -> None:
    code = f"""
import sys
from dc2.cli import main
try:
    main({arguments})
except SystemExit:
    print(*sorted({{"sklearn", "scipy", "pyarrow", "pandas", "matplotlib"}} & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", code], env=ENVIRONMENT, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == ""


def test_the_shell_completes_commands() -> None:
    environment = {"_DC2_COMPLETE": "complete_bash", "COMP_WORDS": "dc2 cl", "COMP_CWORD": "1"}
    done = subprocess.run(COMMAND, env=ENVIRONMENT | environment, capture_output=True, text=True)
    assert done.stdout.split() == ["cluster"], done.stderr
