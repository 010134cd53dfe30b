"""Errors told in one plain sentence: what went wrong and what to do. A traceback is shown for --debug alone."""

import functools
import os
import re
import signal
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

import typer

from dc2.errors import InputError, InputTypeError, ModelFileError, ParameterError, printable

__all__ = ["CommandError", "in_option_words", "sentence", "told_plainly", "writing"]

INTERRUPTED = 130
TERMINATED = 143

# The words of the library, and those of the command line.
_IN_OPTION_WORDS = {
    "with columns= or drop= of dc2.as_source": "with --columns or --drop",
    "with columns=.": "with --columns.",
    "n_clusters": "-k",
    "n_signatures": "--signatures",
    "n_jobs": "--jobs",
    "sample_weight": "the column of --weight",
    "Input X": "The data",
    "read it with dc2.as_source(path, csv=dc2.CsvOptions(header=False))": "say --no-header",
}
_DELIMITER = r"Read it with dc2\.as_source\(path, csv=dc2\.CsvOptions\(delimiter=(?P<sign>'[^']*')\)\)"
_ENCODING = (
    r"read it with dc2\.as_source\(path, csv=dc2\.CsvOptions\(encoding='(?P<encoding>[^']*)'\)\), or with "
    r"pandas\.read_csv\(path, encoding='[^']*'\)"
)
# Quotes in a message hold the user's own words, which stay as they are.
_QUOTED = r"""(?<!\w)(?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")"""
_QUOTED_OR_WORDS = re.compile(
    f"(?P<quoted>{_QUOTED})|{_DELIMITER}|{_ENCODING}|"
    + "|".join(rf"(?<!\w){re.escape(words)}(?![\w])" for words in _IN_OPTION_WORDS)
)


class CommandError(Exception):
    """An error of a command, told in a sentence."""


def told_plainly(command: Callable[..., None]) -> Callable[..., None]:
    """Return the command with its errors, warnings and interrupts told plainly; it takes ``debug``."""

    @functools.wraps(command)
    def told(*arguments: Any, **options: Any) -> None:
        # A job that is ended by its scheduler cleans up behind itself as after Ctrl-C.
        with _on_termination(), warnings.catch_warnings():
            warnings.showwarning = _show_warning
            try:
                command(*arguments, **options)
            except KeyboardInterrupt:
                _say("Interrupted: no half-written file is left behind.")
                raise typer.Exit(INTERRUPTED) from None
            except (typer.Exit, typer.BadParameter, BrokenPipeError):
                raise
            except Exception as error:
                if options.get("debug"):
                    traceback.print_exc()
                _say(f"Error: {sentence(error)}")
                raise typer.Exit(2 if isinstance(error, ParameterError) else 1) from None

    return told


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Name the file in an error of the disk."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        raise CommandError(
            f"{str(path)!r} could not be written ({reason}), and nothing of it is left behind. Make room, or choose "
            "another folder."
        ) from error


@contextmanager
def _on_termination() -> Iterator[None]:
    def stop(number: int, frame: Any) -> NoReturn:
        raise SystemExit(TERMINATED)

    try:
        before = signal.signal(signal.SIGTERM, stop)
    except ValueError:  # only the main thread may handle signals
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def in_option_words(message: str) -> str:
    """Return a message of the library in the words of the command line; what stands in quotes is the user's.

    Examples
    --------
    >>> in_option_words("n_jobs is 0, and there is no column 'n_jobs_2024' in 'n_jobs.csv'.")
    "--jobs is 0, and there is no column 'n_jobs_2024' in 'n_jobs.csv'."
    """

    def reworded(found: re.Match[str]) -> str:
        if found["sign"]:
            return f"Say --delimiter {found['sign']}"
        if found["encoding"]:
            return f"say --encoding {found['encoding']}"
        return found["quoted"] or _IN_OPTION_WORDS[found[0]]

    return _QUOTED_OR_WORDS.sub(reworded, message)


def sentence(error: Exception) -> str:
    """Return what went wrong and what to do, in one sentence or two."""
    if isinstance(error, InputError | InputTypeError | ModelFileError | ParameterError):
        return in_option_words(str(error))
    if isinstance(error, CommandError | ImportError):
        return str(error)
    if isinstance(error, OSError) and error.filename is not None:
        return f"{os.fspath(error.filename)!r} cannot be used ({error.strerror}). Check its name and permissions."
    if isinstance(error, MemoryError):
        return "There is not enough memory. Use fewer --signatures or --jobs, or a machine with more."
    return (
        f"Something unexpected happened ({type(error).__name__}: {error}). Run the command again with --debug to see "
        "where, and please report it."
    )


def _show_warning(message: Warning | str, *details: Any, **more: Any) -> None:
    _say(f"Note: {message}")


def _say(words: str) -> None:
    print(printable(" ".join(words.splitlines())), file=sys.stderr)
