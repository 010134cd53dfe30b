"""``-`` for standard input: rows are passed over more than once, so they are kept in a temporary file meanwhile."""

import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import typer

from dc2.cli.failures import CommandError
from dc2.cli.summary import size_in_words

__all__ = ["with_standard_input"]

MOST_BYTES = 64 * 2**30
SPARE_BYTES = 2**28  # of the disk is left free for others
CHUNK_BYTES = 2**22
# How files of each kind begin; what begins otherwise is CSV.
BEGINNINGS = {
    b"PAR1": ".parquet",
    b"ARROW1": ".arrow",
    b"\x93NUMPY": ".npy",
    b"{": ".jsonl",
    b"\x1f\x8b": ".csv.gz",
    b"\x28\xb5\x2f\xfd": ".csv.zst",
}


@contextmanager
def with_standard_input(data: Sequence[str]) -> Iterator[list[str]]:
    """Give the files to read, with a copy of standard input in place of ``-``; the copy is deleted afterwards."""
    if "-" not in data:
        yield list(data)
        return
    if data.count("-") > 1:
        raise typer.BadParameter("Standard input can be read only once: give - once.")
    with tempfile.TemporaryDirectory(prefix="dc2-") as folder:
        kept = _kept(sys.stdin.buffer, Path(folder))
        yield [str(kept) if name == "-" else name for name in data]


def _kept(stream: BinaryIO, folder: Path) -> Path:
    """Copy a stream to a file whose suffix says what it holds."""
    chunk = stream.read(CHUNK_BYTES)
    if not chunk:
        raise CommandError("Standard input is empty.")
    suffix = next((suffix for begins, suffix in BEGINNINGS.items() if chunk.startswith(begins)), ".csv")
    path = folder / f"standard-input{suffix}"
    written = 0
    with open(path, "wb") as sink:
        while chunk:
            written += len(chunk)
            limit = min(MOST_BYTES, written + shutil.disk_usage(folder).free - SPARE_BYTES)
            if written > limit:
                raise CommandError(
                    f"Standard input has more than {size_in_words(limit)}, for which there is no room in "
                    f"{str(folder.parent)!r}. Write it to a file and name that."
                )
            sink.write(chunk)
            chunk = stream.read(CHUNK_BYTES)
    return path
