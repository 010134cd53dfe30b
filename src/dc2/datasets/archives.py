"""The plain files inside an archive, however deeply it is packed."""

import gzip
import io
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import IO, cast

from dc2.datasets.lzw import unlzw

__all__ = ["plain_files"]


def plain_files(name: str, stream: IO[bytes]) -> Iterator[tuple[str, IO[bytes]]]:
    """Yield name (without folders) and content of every plain file in `stream`, which is called `name`.

    A zip may hold a tar.gz that holds the file: UCI's do. Members are opened, not read, until the caller reads
    them, and each is closed before the next is opened.
    """
    lower = name.lower()
    if lower.endswith(".zip"):
        with zipfile.ZipFile(stream) as archive:
            for member in archive.infolist():
                # macOS leaves a shadow of each file under its own name in a folder called __MACOSX.
                if not member.is_dir() and not member.filename.startswith("__MACOSX/"):
                    with archive.open(member) as inner:
                        yield from plain_files(member.filename, inner)
    elif lower.endswith((".tar.gz", ".tgz", ".tar")):
        with tarfile.open(fileobj=stream) as tar:
            for entry in tar:
                content = tar.extractfile(entry)
                if content is not None:
                    with content:
                        yield from plain_files(entry.name, content)
    elif lower.endswith(".gz"):
        with gzip.open(stream) as inner_gzip:
            yield from plain_files(name[:-3], cast(IO[bytes], inner_gzip))
    elif lower.endswith(".z"):
        yield from plain_files(name[:-2], io.BytesIO(unlzw(stream.read())))
    else:
        yield PurePosixPath(name).name, stream
