"""A campaign against the command line: random commands, files and faults, each in a folder of its own.

``python tests/fuzz/fuzz_commands.py 1000`` runs that many, seeded and so repeatable, in a process whose memory is
bounded; ``--first 123 --seed 7`` continues there. Faults: a full disk, no rights, a file that appears meanwhile,
interrupts and missing memory at random calls, damaged data, terminals of any encoding, pipes that are closed. The laws
are in `check`: exit codes, plain messages, whole outputs or none, no lost fit.
"""

import errno
import gzip
import inspect
import io
import os
import random
import re
import resource
import shlex
import shutil
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
import pyarrow.feather
import pyarrow.parquet

import dc2
from dc2.cli import main as dc2_main
from support.bounded_process import Case, main

MEMORY_BYTES = 1200 * 2**20  # beyond what the process holds when all is imported
PACKAGE = str(Path(dc2.__file__).parent)
N = 60
RNG = np.random.default_rng(0)
FRAME = pd.DataFrame(RNG.normal(size=(N, 3)) + 9.0 * RNG.integers(0, 3, (N, 1)), columns=["x", "y", "z"])
FRAME["id"] = [f"row {number}" for number in range(N)]
FRAME["word"] = RNG.choice(["red", "gr\xfcn", "b,l"], N)
FRAME["w"] = RNG.integers(0, 4, N)

SUFFIXES = (".csv", ".parquet", ".arrow", ".npy", ".jsonl", ".csv.gz", ".tsv")
LABELS = (".csv", ".parquet", ".arrow", ".npy", ".csv.gz", ".xlsx", "")
STEMS = ("rows", "two words", "caf\udce9", "na\xefve", "-dash", "[b]x", "a'b\"c", "\x1b[31m", "100%", "l" * 300)
STEM_ODDS = (40, 3, 3, 2, 1, 2, 1, 1, 1, 1)
ENCODINGS = ("utf-8", "ascii", "latin-1", "cp1252", "utf-16")
# Options of fits with values that are fine, then values that are not.
OPTIONS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "-k": (("2", "3", "auto", "2-4", "1"), ("0", "-1", "abc", "1e9", "nan", "4-2", "\u0663", "", "61")),
    "--signatures": (("10", "auto", "20"), ("0", "abc", "inf", "1.5", "9999999")),
    "--seed": (("0", "7"), ("-1", "x", "1e400")),
    "--jobs": (("1", "2"), ("0", "x")),
    "--noise": (("0.1", "0"), ("1", "-1", "nan", "x")),
    "--scale": (("standard", "robust", "none"), ("other",)),
    "--metric": (("euclidean", "cosine", "haversine"), ("l1",)),
    "--min-cluster-size": (("2", "0.1"), ("-1", "nan", "1e9")),
    "--max-cluster-size": (("20", "0.5"), ("0", "-3")),
    "--min-cluster-share": (("0.1",), ("2", "-1")),
    "--similarity": (("graph", "rpf"), ("x",)),
    "--columns": (("x,y", "x", "0,1"), ("", ",", "absent", "x,x")),
    "--drop": (("word,id", "id"), ("", "absent", "x,y,z,id,word,w")),
    "--id": (("id", "word", "id,w"), ("absent", "", "id,id")),
    "--weight": (("w",), ("word", "absent", "")),
    "--as": (("category:word", "text:id"), ("word", "category:", "kind:word", "category:absent")),
    "--delimiter": (((",", "tab", ";")), ("\xa7", "", ",,")),
    "--encoding": (("utf-8", "latin-1", "utf-16"), ("x-none", "")),
    "--decimal": ((".", ","), ("x", "")),
    "--thousands": (("'", ","), ("1", "abc")),
    "--na": (("-999", "red"), ("",)),
    "--label-column": (("group",), ("id", "", "\x00", "a\x1bb")),
    "--top": (("2",), ("0", "9", "x")),
    "--forget": (("0.1", "2"), ("-1", "nan")),
}
FLAGS = ("--no-header", "--raw", "--prepare", "--force", "--json", "--debug", "--fixed")
READING = ("--delimiter", "--encoding", "--decimal", "--thousands", "--na", "--columns")
TAKES: dict[str, tuple[str, ...]] = {
    "cluster": tuple(option for option in OPTIONS if option not in ("--top", "--forget")),
    "predict": (*READING, "--id", "--label-column", "--top", "--jobs"),
    "update": (*READING, "--id", "--label-column", "--forget", "--jobs"),
    "compress": (*READING, "--drop", "--weight", "--scale", "--metric", "--signatures", "--seed"),
    "compare": READING,
    "info": READING[:-1],
    "report": (),
}
COMMANDS = (*5 * ("cluster",), *2 * ("predict",), "update", "compress", "compare", "info", "report")
FAULTS = (
    *6 * ("none",),
    *2 * ("full disk",),
    "no rights",
    *2 * ("file appears",),
    "interrupt",
    "termination",
    "no memory",
    "damaged data",
    "closed output",
)


@dataclass
class Run:
    """One command in a folder: what it is, what it may write, and what goes wrong."""

    folder: Path
    command: str
    arguments: list[str]
    data: Path
    outputs: dict[str, Path]
    fault: str
    encoding: str
    at: float  # where the fault strikes, as a share
    before: dict[str, bytes] = field(default_factory=dict)
    code: Any = None
    out: str = ""
    err: str = ""

    @property
    def line(self) -> str:
        return f"{shlex.join(['dc2', *self.arguments])} with {self.fault}, {self.encoding}"


def write_rows(path: Path, suffix: str) -> None:
    """Write the rows in a format."""
    if suffix in (".csv", ".tsv", ".csv.gz"):
        text = FRAME.to_csv(index=False, sep="\t" if suffix == ".tsv" else ",").encode()
        path.write_bytes(gzip.compress(text) if suffix == ".csv.gz" else text)
    elif suffix == ".jsonl":
        path.write_text(FRAME.to_json(orient="records", lines=True))
    elif suffix == ".npy":
        with path.open("wb") as sink:
            np.save(sink, FRAME[["x", "y", "z"]].to_numpy())
    else:
        table, content = pyarrow.Table.from_pandas(FRAME), io.BytesIO()
        (pyarrow.parquet.write_table if suffix == ".parquet" else pyarrow.feather.write_feather)(table, content)
        path.write_bytes(content.getvalue())


def drawn(chance: random.Random, folder: Path, models: list[bytes]) -> Run:
    """Draw a command, its files and its fault."""
    command, fault = chance.choice(COMMANDS), chance.choice(FAULTS)
    stem = chance.choices(STEMS, STEM_ODDS)[0]
    data = folder / f"{stem if len(stem) < 250 else 'rows'}{chance.choice(SUFFIXES)}"
    write_rows(data, "".join(data.suffixes[-2:]) if data.name.endswith(".gz") else data.suffix)
    old, new = folder / "old.dc2", folder / "new.dc2"
    old.write_bytes(models[0])
    new.write_bytes(models[1])
    named = data.name if chance.random() < 0.95 else chance.choice(("absent.csv", ".", "*.csv", "rows.*", str(data)))
    arguments = {"compare": [old.name, new.name, named], "report": [old.name]}.get(command, [named])
    arguments = [old.name, named] if command in ("predict", "update") else arguments
    if command == "info" and chance.random() < 0.5:
        arguments = [old.name]
    outputs = draw_outputs(chance, command, folder)
    for option, path in outputs.items():
        arguments += [option, path.name if path.parent == folder else str(path.relative_to(folder))]
        if chance.random() < 0.08 and path.parent == folder and len(path.name) < 250:
            path.write_text("mine")
    for option in TAKES[command]:
        if chance.random() < 1 / max(len(TAKES[command]), 6):
            fine, wrong = OPTIONS[option]
            arguments += [option, chance.choice(wrong if chance.random() < 0.15 else fine)]
    arguments += [flag for flag in FLAGS if chance.random() < 0.04]
    if command == "cluster" and chance.random() < 0.7:
        arguments += ["--drop", "id"] if "--columns" not in arguments and "--drop" not in arguments else []
    if chance.random() < 0.04:
        chance.shuffle(arguments)
    if fault == "damaged data":
        content = bytearray(data.read_bytes())
        for _ in range(chance.choice((1, 3))):
            content[chance.randrange(len(content))] = chance.choice((0, 0x7B, 0xFF, chance.randrange(256)))
        data.write_bytes(content[: chance.choice((len(content), chance.randrange(len(content))))])
    encoding = chance.choice(ENCODINGS)
    return Run(folder, command, [command, *arguments], data, outputs, fault, encoding, chance.random())


def draw_outputs(chance: random.Random, command: str, folder: Path) -> dict[str, Path]:
    """Draw the files that a command writes."""

    def name(suffix: str) -> Path:
        stem = chance.choices(STEMS, STEM_ODDS)[0]
        return folder / (f"out-{stem}{suffix}" if chance.random() < 0.95 else f"absent/{stem}{suffix}")

    outputs = {}
    if command in ("predict", "compress") or (command in ("cluster", "update") and chance.random() < 0.7):
        outputs["-o"] = name(chance.choice(LABELS[:5] if chance.random() < 0.95 else LABELS))
    if command in ("cluster", "update", "compress") and chance.random() < 0.4:
        outputs["--model"] = name(".dc2")
    if command in ("cluster", "update") and chance.random() < 0.3:
        outputs["--report"] = name(".html")
    if command == "report":
        outputs["-o"] = name(".html")
    return outputs


@contextmanager
def strikes(run: Run, counted: int | None = None) -> Iterator[list[int]]:
    """Let a fault happen while a command runs; `counted` are the calls of dc2 that it takes without one."""
    calls = [0]
    if run.fault == "full disk":
        limit = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (int(200_000 * run.at**4), limit[1]))
        try:
            yield calls
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limit)
    elif run.fault in ("no rights", "file appears"):
        touch = Path.touch

        def instead(path: Path, *args: Any, **options: Any) -> None:
            if path.suffix == ".partial":
                if run.fault == "no rights":
                    raise PermissionError(errno.EACCES, "Permission denied", str(path))
                for output in run.outputs.values():
                    if output.parent == run.folder and not output.exists():
                        output.write_text("theirs")
                        run.before[output.name] = b"theirs"
            touch(path, *args, **options)

        with mock.patch.object(Path, "touch", instead):
            yield calls
    elif run.fault in ("interrupt", "termination", "no memory"):
        error = {"interrupt": KeyboardInterrupt(), "termination": SystemExit(143), "no memory": MemoryError()}[
            run.fault
        ]

        def count(frame: FrameType, event: str, _: Any) -> None:
            code = frame.f_code
            if event != "call" or code.co_flags & inspect.CO_GENERATOR or not code.co_filename.startswith(PACKAGE):
                return
            if frame.f_code.co_filename.endswith(
                ("cli/app.py", "cli/error_messages.py", "cli/__init__.py", "cli/options.py", "dc2/errors.py")
            ):
                return  # what turns an error into a message
            calls[0] += 1
            if counted is not None and calls[0] == 1 + int(run.at * counted):
                raise error

        sys.setprofile(count)
        try:
            yield calls
        finally:
            sys.setprofile(None)
    else:
        yield calls


def execute(run: Run, arguments: list[str], counted: int | None = None, fault: bool = True) -> int:
    """Run a command in this process and keep what it says; return the calls that were counted."""
    sinks = [io.BytesIO(), io.BytesIO()]
    streams = [io.TextIOWrapper(sink, encoding=run.encoding, write_through=True) for sink in sinks]
    closed = closed_pipe(run.encoding) if fault and run.fault == "closed output" else None
    calls = [0]
    with mock.patch.multiple(sys, stdout=closed or streams[0], stderr=streams[1]), warnings.catch_warnings():
        try:
            with strikes(run, counted) if fault else nullcontext([0]) as calls:
                dc2_main(arguments)
        except SystemExit as stop:
            run.code = 0 if stop.code is None else stop.code
    run.out, run.err = (sink.getvalue().decode(run.encoding) for sink in sinks)
    if closed is not None:
        with suppress(BrokenPipeError, ValueError):
            closed.close()
    return calls[0]


def closed_pipe(encoding: str) -> io.TextIOWrapper:
    """Return a pipe whose reader is gone."""
    reader, writer = os.pipe()
    os.close(reader)
    return open(writer, "w", encoding=encoding)


def check(run: Run) -> None:
    """Hold a run to the laws of every command."""
    codes = {"interrupt": (0, 1, 2, 130), "termination": (0, 1, 2, 143)}.get(run.fault, (0, 1, 2))
    assert run.code in codes, f"exit code {run.code!r}"
    told = run.err.replace("\n", " ")
    assert "unexpected happened" not in told, told
    if "--debug" not in run.arguments:
        assert "Traceback" not in told, told
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f]", run.out + run.err), "control characters"
    if run.code not in (0, 143) and run.fault != "closed output":
        assert told.strip(), "an error without a message"
    there = {path.name: path for path in run.folder.iterdir() if path.is_file()}
    assert not [name for name in there if name.endswith(".partial")], "a temporary file is left"
    for name, content in run.before.items():
        same = name in there and there[name].read_bytes() == content
        allowed = "--force" in run.arguments or "-f" in run.arguments
        assert same or (allowed and there[name] in run.outputs.values()), f"{name!r} was changed"
    new = {path for name, path in there.items() if name not in run.before}
    assert new <= set(run.outputs.values()), f"files nobody asked for: {new - set(run.outputs.values())}"
    for path in new:
        sound(path, run)
    if run.code == 0 and set(run.arguments) & {"-o", "--model", "--report"} and "--help" not in run.arguments:
        missing = [str(path) for path in run.outputs.values() if not path.exists()]
        assert not missing, f"exit code 0 without {missing}"
    kept_fit(run)


def sound(path: Path, run: Run) -> None:
    """Raise unless an output is whole."""
    if path.suffix == ".dc2":
        dc2.load(path)
    elif path.suffix == ".html":
        assert path.read_text("utf-8").rstrip().endswith("</html>")
    elif run.fault != "damaged data" and run.command != "compress":
        readers: dict[str, Callable[[Any], Any]] = {
            ".npy": np.load,
            ".parquet": pd.read_parquet,
            ".arrow": pd.read_feather,
        }
        content = io.BytesIO(path.read_bytes())
        if path.suffix in readers:
            rows = len(readers[path.suffix](content))
        else:
            rows = len(pd.read_csv(content, compression="gzip" if path.suffix == ".gz" else None, encoding="utf-8"))
        assert rows in (N, N + 1, N - 1), f"{rows} labels"  # a header may be taken for a row, and a row for a header


def kept_fit(run: Run) -> None:
    """Raise unless the command that a message gives writes the labels that are missing."""
    kept = re.search(r"The fit is kept: the model is '(.*?)'\.", run.err)
    if kept is None:
        works = run.command in ("cluster", "update") and run.fault == "file appears"
        assert not works or "appeared while" not in run.err, "the fit is lost"
        return
    model = Path(kept[1])
    dc2.load(model)
    found = re.search(r"Go on with: .*dc2 (predict .*)", run.err)
    if found is None:
        return
    words = subprocess.run(["bash", "-c", f"printf '%s\\0' {found[1]}"], capture_output=True, check=True).stdout
    again = list(map(os.fsdecode, words.split(b"\0")[:-1]))
    if "temporary" in model.parts:
        assert model.stat().st_mode & 0o777 == 0o600, "the kept model is not private"
    labels = run.outputs["-o"]
    if run.fault == "file appears":
        labels.unlink()
    if any(name.isprintable() and not name.isascii() for name in (labels.name, run.data.name)):
        return  # not every terminal can show the name
    execute(run, again, fault=False)
    assert run.code == 0, f"{again} failed: {run.err}"
    assert labels.exists()


def prepare(place: Path) -> Case:
    """Make two models, run each command once, and return what runs a case."""
    models = []
    for seed in (0, 1):
        dc2.DC2Clustering(2, n_signatures=10, random_state=seed).fit(FRAME[["x", "y", "z"]]).save(place / "model.dc2")
        models.append((place / "model.dc2").read_bytes())
    os.environ["COLUMNS"] = "400"  # usage errors in boxes are broken at this width

    def case(number: int, chance: random.Random) -> bool:
        folder = place / "case"
        shutil.rmtree(folder, ignore_errors=True)
        (folder / "temporary").mkdir(parents=True)
        run = drawn(chance, folder, models)
        run.before = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
        with mock.patch.object(tempfile, "tempdir", str(folder / "temporary")):
            os.chdir(folder)
            try:
                counted = calls_without_fault(run, place)
                execute(run, run.arguments, counted)
                check(run)
            except Exception as error:
                raise AssertionError(f"{run.line}: {type(error).__name__}: {error}") from error
            finally:
                os.chdir(place)
        return bool(run.code == 0)

    return case


def calls_without_fault(run: Run, place: Path) -> int | None:
    """Count the calls of a command that is to fail at one of them, in a copy of its folder."""
    if run.fault not in ("interrupt", "termination", "no memory"):
        return None
    copy = place / "counted"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(run.folder, copy)
    os.chdir(copy)
    try:
        return execute(run, run.arguments)
    finally:
        os.chdir(run.folder)


if __name__ == "__main__":
    main("faulty command lines", __doc__, MEMORY_BYTES, prepare)
