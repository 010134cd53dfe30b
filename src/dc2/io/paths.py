"""From paths, globs, folders and addresses to the files they name, in order."""

from __future__ import annotations

import glob
import os
from collections.abc import Sequence
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath
from typing import Any

from dc2.errors import ParameterError, SourceError
from dc2.io.csv_files import CsvOptions
from dc2.io.formats import FORMATS, DataFile, format_of
from dc2.io.frame_columns import import_pyarrow


class FileList(tuple[DataFile, ...]):
    """The files that paths name, listed once: wherever `find_files` takes paths, it takes this too, as it is."""

    __slots__ = ()


def is_path(data: Any) -> bool:
    """Return whether this is a path, a list of paths or a `FileList`."""
    if isinstance(data, FileList):
        return True
    if isinstance(data, list | tuple):
        return len(data) > 0 and all(isinstance(one, str | os.PathLike) for one in data)
    return isinstance(data, str | os.PathLike)


def check_not_among(path: str | os.PathLike[str], data: Any) -> None:
    """Raise if a file to be written is one of those that are read."""
    target = os.path.realpath(os.path.expanduser(path))
    if is_path(data) and any(file.is_local and os.path.realpath(file.path) == target for file in find_files(data)):
        raise ParameterError(f"path={os.fspath(path)!r}: this file is read. Choose another to write.")


def find_files(
    paths: FileList | str | os.PathLike[str] | Sequence[str | os.PathLike[str]], csv: CsvOptions | None = None
) -> FileList:
    """Return the files that paths name, each once: in the order given, globs and folders sorted by name."""
    if isinstance(paths, FileList):
        return paths
    files: dict[tuple[str, str], DataFile] = {}
    for path in [paths] if isinstance(paths, str | os.PathLike) else paths:
        text = os.fspath(path)
        filesystem, names = _find_remote(text) if "://" in text else (None, _find_local(os.path.expanduser(text)))
        for name in names:
            file = _data_file(name, filesystem, csv)
            files.setdefault(file.identity, file)
    return FileList(files.values())


def _data_file(path: str, filesystem: Any, csv: CsvOptions | None) -> DataFile:
    data_format = format_of(path, csv)
    if data_format is None:
        raise SourceError(f"{path!r}: the suffix is unknown. It should be one of {', '.join(FORMATS)}.")
    return DataFile(path, data_format, filesystem)


def _find_local(path: str) -> list[str]:
    if os.path.isfile(path):
        return [path]
    if os.path.isdir(path):
        below = [os.path.join(folder, name) for folder, _, names in os.walk(path) for name in names]
        return _data_files(below, path)
    if not glob.has_magic(path):
        raise SourceError(f"There is no file {path!r} (looked in {os.getcwd()!r}).")
    matches = _match_local(path)
    if not matches:
        raise SourceError(f"No file matches {path!r} (looked in {os.getcwd()!r}).")
    return matches


def _match_local(pattern: str) -> list[str]:
    """Return the files that match; ``**`` does not follow links."""
    parts = Path(pattern).parts
    fixed = next(index for index, part in enumerate(parts) if glob.has_magic(part))
    below = [*parts[fixed:], "*"] if parts[-1] == "**" else parts[fixed:]
    folder = Path(*parts[:fixed])
    hidden_too = any(part.startswith(".") for part in below)
    matches = [match for match in sorted(folder.glob(os.path.join(*below))) if match.is_file()]
    return [str(match) for match in matches if hidden_too or not _is_hidden(match.relative_to(folder))]


def _is_hidden(path: Path) -> bool:
    return any(part.startswith(".") for part in path.parts)


def _find_remote(address: str) -> tuple[Any, list[str]]:
    fs = import_pyarrow("fs")
    arrow = import_pyarrow()
    try:
        filesystem, path = _filesystem_of(address)
        if glob.has_magic(path):
            handler = getattr(filesystem, "handler", None)  # of fsspec, whose paths may be addresses
            paths = _match_remote(fs, filesystem, path) if handler is None else sorted(handler.fs.glob(path))
        else:
            info = filesystem.get_file_info(path)
            if info.type == fs.FileType.Directory:
                below = filesystem.get_file_info(fs.FileSelector(path, recursive=True))
                paths = _data_files([one.path for one in below if one.type == fs.FileType.File], path)
            else:
                paths = [path] if info.type == fs.FileType.File else []
    except (arrow.lib.ArrowException, OSError) as error:
        raise SourceError(f"Cannot look up {address!r}: {error}") from error
    if not paths:
        raise SourceError(f"No file matches {address!r}.")
    return filesystem, paths


def _filesystem_of(address: str) -> tuple[Any, str]:
    """Return the filesystem of an address, and the path in it: pyarrow's if it has one, else fsspec's."""
    fs = import_pyarrow("fs")
    try:
        known: tuple[Any, str] = fs.FileSystem.from_uri(address)
        return known
    except (import_pyarrow().lib.ArrowInvalid, NotImplementedError):
        # An unknown protocol, or one that this pyarrow was built without.
        try:
            from fsspec.core import url_to_fs
        except ModuleNotFoundError as error:
            raise SourceError(
                f"Arrow does not know addresses such as {address!r}; fsspec may, but is not installed: pip install "
                "fsspec"
            ) from error
    try:
        filesystem, path = url_to_fs(address)
    except (ImportError, ValueError) as error:  # an unknown protocol, or one whose package is not installed
        raise SourceError(f"Cannot look up {address!r}: {error}") from error
    return fs.PyFileSystem(fs.FSSpecHandler(filesystem)), path


def _match_remote(fs: Any, filesystem: Any, pattern: str) -> list[str]:
    parts = PurePosixPath(pattern).parts
    fixed = next(index for index, part in enumerate(parts) if glob.has_magic(part))
    folder = str(PurePosixPath(*parts[:fixed]))
    deep = fixed < len(parts) - 1
    below = filesystem.get_file_info(fs.FileSelector(folder, recursive=deep))
    files = [one.path for one in below if one.type == fs.FileType.File]
    if "**" in pattern:
        return sorted(path for path in files if fnmatch(path, pattern.replace("**/", "*")))
    return sorted(path for path in files if PurePosixPath(path).match(pattern))


def _data_files(paths: Sequence[str], folder: str) -> list[str]:
    """Return the data files of a folder, sorted, without hidden ones."""
    kept = []
    for path in sorted(paths):
        parts = PurePosixPath(path[len(folder) :].replace(os.sep, "/").lstrip("/")).parts
        if not any(part.startswith((".", "_")) for part in parts) and format_of(path) is not None:
            kept.append(path)
    if not kept:
        raise SourceError(f"The folder {folder!r} holds no data files ({', '.join(FORMATS)}).")
    return kept
