"""Public data files: found on this machine, or fetched by pooch, unpacked up to a bound, and checked."""

import hashlib
import tarfile
import tempfile
import urllib.parse
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO

from dc2.errors import SourceError
from dc2.io.outputs import renamed_at_the_end
from evaluation.data.archives import plain_files
from evaluation.data.checksums import Checksums
from evaluation.data.location import DataNotFoundError, Folder, find_file, search_folders

__all__ = ["Archive", "DataFile", "obtain"]

_TIMEOUT_SECONDS = 30.0
_PIECE_BYTES = 1 << 20
# ValueError: an address that pooch cannot use; OSError: among others whatever goes wrong on the network.
_FAILURES = (OSError, EOFError, ValueError, tarfile.TarError, zipfile.BadZipFile, zlib.error)


@dataclass(frozen=True)
class DataFile:
    """One plain file of a data set, and how to check a download of it.

    `sha256` is that of the unpacked content, since publishers give none and an archive may be repacked. If it is None,
    the number of lines is checked, and the first download is pinned: later ones must be the same.
    """

    name: str
    sha256: str | None = None
    n_lines: int | None = None
    other_names: tuple[str, ...] = ()  # other spellings under which people keep it


@dataclass(frozen=True)
class Archive:
    """A public address, the data files found there, and the largest size that a file may unpack to."""

    url: str
    files: tuple[DataFile, ...]
    max_bytes: int


def obtain(archive: Archive, data_home: Folder | None, *, download: bool) -> list[Path]:
    """Return a path for every file of `archive`, in order, downloading files that are not on this machine."""
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
    import pooch  # what lies on this machine is found without it

    folder.mkdir(parents=True, exist_ok=True)
    by_name = {file.name: file for file in wanted}
    name = PurePosixPath(urllib.parse.unquote(urllib.parse.urlparse(archive.url).path)).name
    with tempfile.TemporaryDirectory(dir=folder, prefix="download-") as temporary:
        downloader = pooch.HTTPDownloader(timeout=_TIMEOUT_SECONDS)
        packed = pooch.retrieve(archive.url, known_hash=None, fname=name, path=temporary, downloader=downloader)
        with Path(packed).open("rb") as stream:
            for inner, content in plain_files(name, stream, archive.max_bytes):
                if inner in by_name:
                    _store(by_name.pop(inner), content, folder)
    if by_name:
        raise SourceError(f"{archive.url} does not hold {' and '.join(by_name)}")


def _store(file: DataFile, content: IO[bytes], folder: Path) -> None:
    """Write a file under a temporary name, check it, and rename it."""
    digest = hashlib.sha256()
    n_lines, last = 0, b"\n"
    pinned = Checksums(folder)
    with renamed_at_the_end(folder / file.name) as temporary, temporary.open("wb") as output:
        while piece := content.read(_PIECE_BYTES):
            digest.update(piece)
            n_lines += piece.count(b"\n")
            last = piece[-1:]
            output.write(piece)
        n_lines += last != b"\n"  # a last line may lack its end
        if file.n_lines is not None and n_lines != file.n_lines:
            raise SourceError(f"{file.name} has {n_lines:,} lines, not {file.n_lines:,}")
        expected = file.sha256 or pinned.get(file.name)
        if expected is None:
            pinned.pin(file.name, digest.hexdigest())
        elif digest.hexdigest() != expected:
            raise SourceError(f"{file.name} has SHA-256 {digest.hexdigest()}, not {expected}")
