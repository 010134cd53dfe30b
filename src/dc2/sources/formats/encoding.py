"""Text files that are not written in the encoding they are read in: told with the line, and what to do."""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from dc2.errors import SourceError
from dc2.sources.found import FoundFile, import_pyarrow

__all__ = ["telling_encoding"]

PIECE_BYTES = 2**20
AROUND = 12
"""Bytes that are shown on either side of one that cannot be read."""
MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


@contextmanager
def telling_encoding(file: FoundFile, encoding: str = "utf-8", *, can_be_given: bool) -> Iterator[None]:
    """Where reading a file fails because of its encoding, say so instead of what came of it.

    Parameters
    ----------
    file : FoundFile
    encoding : str
        What it is read in.
    can_be_given : bool
        Whether files of this format can be read in another one.
    """
    try:
        yield
    except (import_pyarrow().ArrowInvalid, UnicodeError) as error:
        told = _what_is_wrong(file, encoding)
        if told is None and not isinstance(error, UnicodeError):
            raise
        where, guess = told or (str(error), None)
        advice = "" if guess is None else f" {_what_to_do(guess, can_be_given)}"
        raise SourceError(f"{file.path!r} is not {encoding.upper()}: {where}.{advice}") from error


def _what_to_do(guess: str, can_be_given: bool) -> str:
    if not can_be_given:
        return f"Convert it first, such as by iconv -f {guess.replace('latin-1', 'iso-8859-1')} -t utf-8."
    return (
        f"If it is {guess}, read it with dc2.as_source(path, csv=dc2.CsvOptions(encoding={guess!r})), or with "
        f"pandas.read_csv(path, encoding={guess!r})."
    )


def _what_is_wrong(file: FoundFile, encoding: str) -> tuple[str, str | None] | None:
    """Return where a file cannot be what it is read as, and what it may be, if known; None where nothing shows."""
    with file.open_stream() as stream:
        first = bytes(stream.read(AROUND))
    is_utf8 = codecs.lookup(encoding).name == "utf-8"
    if is_utf8 and first[:2] in MARKS:
        return f"it begins with {first[:2].hex(' ')}, the mark of UTF-16", "utf-16"
    if is_utf8 and b"\0" in first:
        guess = "utf-16-be" if first[0] == 0 else "utf-16-le"
        return f"every other byte is 0, as in {guess.upper()}", guess
    return _first_unreadable(file, encoding)


def _first_unreadable(file: FoundFile, encoding: str) -> tuple[str, str | None] | None:
    """Return the line and the bytes that cannot be decoded."""
    decoder: Any = codecs.getincrementaldecoder(encoding)()
    line = 1
    with file.open_stream() as stream:
        while True:
            piece = bytes(stream.read(PIECE_BYTES))
            kept = decoder.getstate()[0]
            try:
                decoder.decode(piece, final=not piece)
            except UnicodeDecodeError as error:
                return _shown(error, line, encoding)
            except UnicodeError as error:  # such as UTF-16 without its mark
                return str(error), None
            if not piece:
                return None
            line += (kept + piece).count(b"\n") - kept.count(b"\n")


def _shown(error: UnicodeDecodeError, line: int, encoding: str) -> tuple[str, str | None]:
    text, place = error.object, error.start
    line += text[:place].count(b"\n")
    begin = max(text.rfind(b"\n", 0, place) + 1, place - AROUND)
    around = text[begin : place + AROUND].split(b"\n")[0].rstrip(b"\r")
    # Windows has letters where Latin-1 has none, but not everywhere.
    guess = "cp1252" if 0x80 <= text[place] < 0xA0 else "latin-1"
    if codecs.lookup(encoding).name == codecs.lookup(guess).name:
        guess = "latin-1"
    shown = f"line {line} has the byte 0x{text[place]:02x} in {around.decode(guess, 'replace')!r} (as {guess})"
    return shown, guess
