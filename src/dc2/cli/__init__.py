"""The command line: ``dc2 cluster``, ``dc2 predict`` and so on. Nothing optional is imported until it runs."""

import codecs
import io
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from typing import NoReturn

__all__ = ["main"]

_ASCII = {"█": "#", "−": "-", "–": "-", "…": "...", "“": '"', "”": '"', "’": "'"}


def _in_ascii(error: UnicodeError) -> tuple[str, int]:
    """Return characters that stand for those an encoding lacks, and where to go on; for `codecs.register_error`."""
    assert isinstance(error, UnicodeEncodeError)
    missing = error.object[error.start : error.end]
    return "".join(_ASCII.get(character, ascii(character)[1:-1]) for character in missing), error.end


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command line with these arguments, or those of the process, and exit with its code.

    Examples
    --------
    >>> main(["--version"])
    Traceback (most recent call last):
    ...
    SystemExit: 0
    """
    missing = [name for name in ("rich", "typer") if find_spec(name) is None]
    if missing:
        sys.exit(f'The dc2 command needs {" and ".join(missing)}, not installed here: pip install "dc2[cli]"')
    try:
        from dc2.cli.app import app
    except KeyboardInterrupt:
        sys.exit(130)
    # A terminal that cannot show a character gets one of ASCII instead.
    codecs.register_error("dc2_ascii", _in_ascii)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="dc2_ascii")
    app(args=arguments, prog_name="dc2")
    raise AssertionError("a command line ends by exiting")
