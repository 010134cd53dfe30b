"""The zip archive of a model file: written whole, and read so that no file can take far more memory than its size."""

from __future__ import annotations

import io
import json
import math
import os
import stat
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from dc2.errors import ModelFileError, printable
from dc2.output import check_target, renamed_at_the_end

__all__ = ["FORMAT", "FORMAT_VERSION", "Archive", "open_archive", "write_archive"]

FORMAT = "dc2 model"
FORMAT_VERSION = 2
HEADER_MEMBER = "model.json"
# Fixed, so that equal models are equal files.
MEMBER_TIME = (1980, 1, 1, 0, 0, 0)

# How much a file may unpack to. Arrays that compress better are stored uncompressed, so no real model comes near.
UNPACKED_BYTES = 64 * 2**20
UNPACKED_RATIO = 16
PACKED_RATIO, PACKED_WHATEVER_BYTES = 8, 2**14
EFFORT = 1  # of packing: the next levels take four times as long for a few bytes in a hundred
HEADER_BYTES = 8 * 2**20
METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
MOST_AXES = 3
MOST_USES = 8  # of an array; a file with more would take long to check


def write_archive(path: str | os.PathLike[str], header: dict[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write a model file: it appears whole or not at all."""
    with (
        renamed_at_the_end(check_target(path, "A model")) as temporary,
        open(temporary, "xb") as sink,
        zipfile.ZipFile(sink, "w") as archive,
    ):
        text = json.dumps(header, indent=1).encode()
        if len(text) > HEADER_BYTES:
            raise ModelFileError(
                f"A model file has room for {HEADER_BYTES} bytes of names and numbers, but these have {len(text)}. "
                "Give the columns shorter names, or pass an array without names."
            )
        _write_member(archive, HEADER_MEMBER, text)
        for name, array in arrays.items():
            member = io.BytesIO()
            np.lib.format.write_array(member, array, allow_pickle=False)
            _write_member(archive, name, member.getvalue())


def _write_member(archive: zipfile.ZipFile, name: str, content: bytes) -> None:
    member = zipfile.ZipInfo(name, MEMBER_TIME)
    packed = len(zlib.compress(content, EFFORT))
    well = len(content) > max(PACKED_WHATEVER_BYTES, PACKED_RATIO * packed)
    archive.writestr(member, content, zipfile.ZIP_STORED if well else zipfile.ZIP_DEFLATED, EFFORT)


@contextmanager
def open_archive(path: str | os.PathLike[str]) -> Iterator[Archive]:
    """Open a model file; any error that a broken one causes, now or while it is open, becomes one sentence."""
    place = Path(path).expanduser()
    _check_kind(place)
    with open(place, "rb") as file, _damage_is_told(path):
        yield Archive(Path(path), file)


def _check_kind(place: Path) -> None:
    """Raise if it is a pipe or a device: such may have no end, or nobody who writes into it."""
    mode = place.stat().st_mode
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
        raise ModelFileError(f"{os.fspath(place)!r} is not a dc2 model: it is a pipe or a device, not a file.")


class Archive:
    """A model file that is open for reading; its directory has been checked.

    Parameters
    ----------
    path : path
        Its name.
    file : binary file
        Its content.
    """

    def __init__(self, path: Path, file: BinaryIO) -> None:
        self._shown = repr(os.fspath(path))
        self._file = file
        self._zip = self._opened()
        self._unread = self._members()
        self._read: dict[str, NDArray[Any]] = {}
        self._uses: Counter[str] = Counter()

    def header(self) -> dict[str, Any]:
        """Return the JSON of the file, if it was written by `save`."""
        info = self._unread.pop(HEADER_MEMBER, None)
        if info is None:
            raise self._foreign()
        if info.file_size > HEADER_BYTES:
            raise ValueError(f"{HEADER_MEMBER} claims to have {info.file_size} bytes")
        header = json.loads(self._zip.read(info))
        if not isinstance(header, dict) or header.get("format") != FORMAT:
            raise self._foreign()
        return header

    def array(self, name: str) -> NDArray[Any]:
        """Return an array of the file; each is read once, and may be used in a few places."""
        self._uses[name] += 1
        if self._uses[name] > MOST_USES:
            raise ValueError(f"{name} is used more than {MOST_USES} times")
        if name in self._read:
            return self._read[name]
        info = self._unread.pop(name)
        with self._zip.open(info) as member:
            _check_array(member, info.file_size)
        with self._zip.open(info) as member:
            array: NDArray[Any] = np.lib.format.read_array(member, allow_pickle=False)
        self._read[name] = array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))
        return self._read[name]

    def _opened(self) -> zipfile.ZipFile:
        if not zipfile.is_zipfile(self._file):
            self._file.seek(0)
            if self._file.read(2) == b"PK":
                raise ModelFileError(f"{self._shown} is damaged: its end is missing. Copy or save it again.")
            raise self._foreign()
        return zipfile.ZipFile(self._file)

    def _members(self) -> dict[str, zipfile.ZipInfo]:
        members = self._zip.infolist()
        unpacked = sum(info.file_size for info in members)
        packed = os.fstat(self._file.fileno()).st_size
        if unpacked > max(UNPACKED_BYTES, UNPACKED_RATIO * packed):
            raise ModelFileError(
                f"{self._shown} has {packed} bytes and would unpack to {unpacked}, which no model does. It was not "
                "written by save."
            )
        if any(info.compress_size > packed for info in members):
            raise ValueError("a part of it claims to be larger than the file")
        if any(info.compress_type not in METHODS for info in members):
            raise ValueError("it is packed as save never packs")
        return {info.filename: info for info in members}

    def _foreign(self) -> ModelFileError:
        return ModelFileError(f"{self._shown} is not a dc2 model: it was not written by save.")


def _check_array(member: Any, n_bytes: int) -> None:
    """Raise if the shape and type of an array do not match the size of its member."""
    version = np.lib.format.read_magic(member)
    if version == (1, 0):
        shape, _, dtype = np.lib.format.read_array_header_1_0(member)
    else:
        shape, _, dtype = np.lib.format.read_array_header_2_0(member)
    claimed = member.tell() + math.prod(shape) * dtype.itemsize
    if dtype.kind not in "biufU" or len(shape) > MOST_AXES or claimed != n_bytes:
        raise ValueError(f"an array of {n_bytes} bytes says that it has shape {shape} of {dtype}")


@contextmanager
def _damage_is_told(path: str | os.PathLike[str]) -> Iterator[None]:
    """Turn any error that a broken file causes into one sentence."""
    try:
        yield
    except (ModelFileError, MemoryError):
        raise
    except Exception as error:  # a file can be broken in any way
        reason = printable(" ".join(f"{type(error).__name__}: {error}".split()))[:300]
        raise ModelFileError(
            f"{os.fspath(path)!r} is damaged and cannot be read as a dc2 model ({reason}). Copy or save it again."
        ) from error
