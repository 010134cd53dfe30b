"""Where data files are: a given folder, the folder that ``DC2_DATA`` names, or the user's cache."""

import os
from importlib.util import find_spec
from pathlib import Path
from typing import TypeAlias

from dc2.errors import SourceError

__all__ = ["DataNotFoundError", "Folder", "cache_folder", "find_file", "search_folders"]

Folder: TypeAlias = str | os.PathLike[str]


class DataNotFoundError(SourceError):
    """A data file that is not on this machine and could not be downloaded; the message says where to put it."""


def cache_folder() -> Path:
    """Return the folder downloads go to: ``dc2`` in the platform's own place for caches."""
    import pooch

    return Path(pooch.os_cache("dc2"))


def search_folders(data_home: Folder | None) -> list[Path]:
    """Return the folders to look in, in order; the last one is where a download goes.

    Without pooch, which knows the platform's cache and downloads into it, there is only the folder that is named.
    """
    if data_home is not None:
        return [Path(data_home).expanduser()]
    named = os.environ.get("DC2_DATA")
    folders = [Path(named).expanduser()] if named else []
    return [*folders, cache_folder()] if find_spec("pooch") or not folders else folders


def find_file(names: tuple[str, ...], folders: list[Path]) -> Path | None:
    """Return the first of `names`, plain or gzipped, that some folder holds."""
    for folder in folders:
        for name in names:
            for path in (folder / name, folder / f"{name}.gz"):
                if path.is_file():
                    return path
    return None
