"""The plain files inside an archive, however deeply it is packed."""

import gzip
import io
import shutil
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import PurePosixPath
from typing import IO, cast

from evaluation.data.bounded import bounded
from evaluation.data.lzw import unlzw

__all__ = ["plain_files"]

_IN_MEMORY = 1 << 24  # bytes of an archive within an archive; a larger one goes to a temporary file


def plain_files(name: str, stream: IO[bytes], max_bytes: int) -> Iterator[tuple[str, IO[bytes]]]:
    """Yield name (without folders) and content of every plain file in `stream`, which is called `name`.

    A zip may hold a tar.gz that holds the file: UCI's do. Members are opened, not read, until the caller reads
    them, and each is closed before the next is opened. No layer may unpack to more than `max_bytes`.
    """
    lower = name.lower()
    if lower.endswith(".zip"):
        with _seekable(stream) as whole, zipfile.ZipFile(whole) as archive:
            for member in archive.infolist():
                # macOS leaves a shadow of each file under its own name in a folder called __MACOSX.
                if not member.is_dir() and not member.filename.startswith("__MACOSX/"):
                    with bounded(archive.open(member), max_bytes, member.filename) as inner:
                        yield from plain_files(member.filename, inner, max_bytes)
    elif lower.endswith(".tar"):
        with tarfile.open(fileobj=stream, mode="r|") as tar:
            for entry in tar:
                content = tar.extractfile(entry)
                if content is not None:
                    with content:
                        yield from plain_files(entry.name, content, max_bytes)
    elif lower.endswith((".gz", ".tgz")):
        inner_name = name[:-3] if lower.endswith(".gz") else f"{name[:-4]}.tar"
        with bounded(cast(IO[bytes], gzip.open(stream)), max_bytes, name) as unpacked:
            yield from plain_files(inner_name, unpacked, max_bytes)
    elif lower.endswith(".z"):
        yield from plain_files(name[:-2], io.BytesIO(unlzw(stream.read(), max_bytes)), max_bytes)
    else:
        yield PurePosixPath(name).name, stream


@contextmanager
def _seekable(stream: IO[bytes]) -> Iterator[IO[bytes]]:
    """Give a seekable stream, needed because a zip's list of contents is at its end."""
    if stream.seekable():
        yield stream
        return
    with tempfile.SpooledTemporaryFile(_IN_MEMORY) as copy:
        shutil.copyfileobj(stream, copy)
        copy.seek(0)
        yield cast(IO[bytes], copy)
