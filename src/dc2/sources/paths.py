"""From paths, globs, folders and addresses to the files they name, in order."""

from __future__ import annotations

import glob
import importlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import PurePosixPath
from typing import Any

from dc2.errors import ParameterError, SourceError

__all__ = ["FILE_SUFFIXES", "FoundFile", "check_not_among", "find_files", "import_pyarrow", "is_path"]

FILE_SUFFIXES = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
    ".csv": "csv",
    ".csv.gz": "csv",
    ".npy": "npy",
}


@dataclass(frozen=True)
class FoundFile:
    """One file.

    Attributes
    ----------
    path : str
        Its path in its filesystem.
    format : str
        "parquet", "arrow", "csv" or "npy".
    filesystem : pyarrow.fs.FileSystem or None
        The filesystem of a file that was named by an address; None for a plain local path.
    """

    path: str
    format: str
    filesystem: Any | None = None

    def open_file(self) -> Any:
        """Open the file for reading from anywhere in it."""
        return self._opened_in().open_input_file(self.path)

    def open_stream(self) -> Any:
        """Open the file for reading from its start, unpacked if its name says that it is packed."""
        return self._opened_in().open_input_stream(self.path)

    def _opened_in(self) -> Any:
        return self.filesystem or import_pyarrow("fs").LocalFileSystem()


def is_path(data: Any) -> bool:
    """Return whether this is a path or a list of paths."""
    if isinstance(data, list | tuple):
        return len(data) > 0 and all(isinstance(one, str | os.PathLike) for one in data)
    return isinstance(data, str | os.PathLike)


def check_not_among(path: str | os.PathLike[str], data: Any) -> None:
    """Raise if a file that is to be written is one of those that are read."""
    if not is_path(data):
        return
    target = os.path.realpath(os.path.expanduser(path))
    if any(os.path.realpath(file.path) == target for file in find_files(data)):
        raise ParameterError(
            f"{os.fspath(path)!r} is one of the files that are read, and would be replaced. Choose another."
        )


def find_files(paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]]) -> list[FoundFile]:
    """Return the files that paths name: a list in its own order, globs and folders sorted by name.

    Parameters
    ----------
    paths : path or sequence of paths
        Files, globs (``**`` goes down folders), folders (all data files below them, but those whose name begins
        with a dot or an underscore), or addresses such as ``s3://bucket/data/*.parquet``.
    """
    found = []
    for path in [paths] if isinstance(paths, str | os.PathLike) else paths:
        text = os.fspath(path)
        found += _find_remote(text) if "://" in text else _find_local(os.path.expanduser(text))
    return found


def import_pyarrow(module: str = "") -> Any:
    """Import pyarrow, or one of its modules, or say how to get it."""
    try:
        return importlib.import_module(f"pyarrow.{module}" if module else "pyarrow")
    except ModuleNotFoundError as error:
        raise ImportError(
            'Parquet, Arrow and CSV files need pyarrow, which is not installed: pip install "dc2[files]"'
        ) from error


def _find_local(path: str) -> list[FoundFile]:
    if os.path.isfile(path):
        return [FoundFile(path, _format(path))]
    if os.path.isdir(path):
        below = [os.path.join(folder, name) for folder, _, names in os.walk(path) for name in names]
        return [FoundFile(one, _format(one)) for one in _data_files(below, path)]
    if not glob.has_magic(path):
        raise SourceError(f"There is no file {path!r} (looked in {os.getcwd()!r}).")
    matches = [one for one in glob.glob(path, recursive=True) if os.path.isfile(one)]
    if not matches:
        raise SourceError(f"No file matches {path!r} (looked in {os.getcwd()!r}).")
    return [FoundFile(one, _format(one)) for one in sorted(matches)]


def _find_remote(address: str) -> list[FoundFile]:
    fs = import_pyarrow("fs")
    arrow = import_pyarrow()
    try:
        filesystem, path = fs.FileSystem.from_uri(address)
        if glob.has_magic(path):
            paths = _match_remote(fs, filesystem, path)
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
    return [FoundFile(one, _format(one), filesystem) for one in paths]


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
        if not any(part.startswith((".", "_")) for part in parts) and _known_suffix(path):
            kept.append(path)
    if not kept:
        raise SourceError(f"The folder {folder!r} holds no data files ({', '.join(FILE_SUFFIXES)}).")
    return kept


def _known_suffix(path: str) -> str | None:
    return next((suffix for suffix in FILE_SUFFIXES if path.lower().endswith(suffix)), None)


def _format(path: str) -> str:
    suffix = _known_suffix(path)
    if suffix is None:
        raise SourceError(
            f"The suffix of {path!r} is unknown; it should be one of {', '.join(FILE_SUFFIXES)}."
        )
    return FILE_SUFFIXES[suffix]
