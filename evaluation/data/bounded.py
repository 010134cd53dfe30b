"""Reading packed files up to a limit: a small archive may unpack to more than a disk holds."""

import gzip
import io
from pathlib import Path
from typing import IO, cast

from dc2.errors import SourceError

__all__ = ["bounded", "open_bytes"]

_BUFFER_BYTES = 1 << 20
_MOST_BYTES = 4 << 30  # the largest file of any set has 0.7 GB


def bounded(stream: IO[bytes], max_bytes: int, name: str) -> IO[bytes]:
    """Return a stream with the same content, which raises `SourceError` when more than `max_bytes` are read."""
    return cast(IO[bytes], io.BufferedReader(_Bounded(stream, max_bytes, name), _BUFFER_BYTES))


def open_bytes(path: Path) -> IO[bytes]:
    """Open a file for reading; one that ends in ``.gz`` is unpacked on the way."""
    if path.suffix != ".gz":
        return path.open("rb")
    return bounded(cast(IO[bytes], gzip.open(path)), _MOST_BYTES, str(path))


class _Bounded(io.RawIOBase):
    def __init__(self, stream: IO[bytes], max_bytes: int, name: str) -> None:
        self._stream = stream
        self._max_bytes = max_bytes
        self._left = max_bytes
        self._name = name

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        piece = self._stream.read(len(buffer))
        self._left -= len(piece)
        if self._left < 0:
            raise SourceError(f"{self._name} unpacks to more than the {self._max_bytes:,} bytes expected.")
        buffer[: len(piece)] = piece
        return len(piece)

    def close(self) -> None:
        if not self.closed:
            self._stream.close()
        super().close()
