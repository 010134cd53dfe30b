"""Fetching public data files: to a temporary name, checked, then renamed."""

import hashlib
import http.client
import logging
import tarfile
import tempfile
import urllib.parse
import urllib.request
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO

from dc2.datasets.archives import plain_files
from dc2.datasets.location import DataNotFoundError, Folder, find_file, search_folders
from dc2.errors import SourceError
from dc2.output import renamed_at_the_end

__all__ = ["Archive", "DataFile", "obtain"]

_TIMEOUT_SECONDS = 30.0
_PIECE_BYTES = 1 << 20
_FAILURES = (
    OSError,
    EOFError,
    http.client.HTTPException,
    tarfile.TarError,
    zipfile.BadZipFile,
    zlib.error,
    SourceError,
)
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class DataFile:
    """One plain file of a data set, and how to know that a download of it is sound.

    `sha256` is that of the uncompressed content. Where it is None nobody could compute it when this was written,
    and the number of lines is checked instead.
    """

    name: str
    sha256: str | None = None
    n_lines: int | None = None
    other_names: tuple[str, ...] = ()  # other spellings under which people keep it


@dataclass(frozen=True)
class Archive:
    """A public address and the data files found there."""

    url: str
    files: tuple[DataFile, ...]


def obtain(archive: Archive, data_home: Folder | None, *, download: bool) -> list[Path]:
    """Return a path for every file of `archive`, in its order, downloading what is not on this machine."""
    folders = search_folders(data_home)
    missing = [file for file in archive.files if _find(file, folders) is None]
    if missing:
        if not download:
            raise DataNotFoundError(_where_to_put(archive, missing, folders))
        try:
            _fetch(archive, missing, folders[-1])
        except _FAILURES as error:
            advice = _where_to_put(archive, missing, folders)
            raise DataNotFoundError(f"{advice} The download failed: {error}.") from error
    paths = [_find(file, folders) for file in archive.files]
    return [path for path in paths if path is not None]


def _find(file: DataFile, folders: list[Path]) -> Path | None:
    return find_file((file.name, *file.other_names), folders)


def _where_to_put(archive: Archive, missing: list[DataFile], folders: list[Path]) -> str:
    names = " and ".join(file.name for file in missing)
    looked = " and ".join(str(folder) for folder in folders)
    return (
        f"{names} (plain or .gz) not found in {looked}. Get {archive.url}, unpack it, and put {names} into "
        f"{folders[0]}, or into another folder and name that by data_home or the environment variable DC2_DATA."
    )


def _fetch(archive: Archive, wanted: list[DataFile], folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    _log.info("downloading %s to %s", archive.url, folder)
    by_name = {file.name: file for file in wanted}
    with tempfile.TemporaryFile(dir=folder) as packed:
        request = urllib.request.Request(archive.url, headers={"User-Agent": "dc2"})
        with urllib.request.urlopen(request, timeout=_TIMEOUT_SECONDS) as response:
            for piece in _pieces(response):
                packed.write(piece)
        packed.seek(0)
        url_path = urllib.parse.unquote(urllib.parse.urlparse(archive.url).path)
        for name, content in plain_files(PurePosixPath(url_path).name, packed):
            if name in by_name:
                _store(by_name.pop(name), content, folder)
    if by_name:
        raise SourceError(f"{archive.url} does not hold {' and '.join(by_name)}")


def _store(file: DataFile, content: IO[bytes], folder: Path) -> None:
    digest = hashlib.sha256()
    n_lines, last = 0, b"\n"
    with renamed_at_the_end(folder / file.name) as temporary, temporary.open("xb") as output:
        for piece in _pieces(content):
            digest.update(piece)
            n_lines += piece.count(b"\n")
            last = piece[-1:]
            output.write(piece)
        n_lines += last != b"\n"  # a last line may lack its end
        if file.sha256 is not None and digest.hexdigest() != file.sha256:
            raise SourceError(f"{file.name} has SHA-256 {digest.hexdigest()}, not {file.sha256}")
        if file.n_lines is not None and n_lines != file.n_lines:
            raise SourceError(f"{file.name} has {n_lines:,} lines, not {file.n_lines:,}")


def _pieces(stream: IO[bytes]) -> Iterator[bytes]:
    while piece := stream.read(_PIECE_BYTES):
        yield piece
