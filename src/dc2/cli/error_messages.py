"""Errors in a sentence or two: what is wrong and what to do. Only --debug shows a traceback."""

import functools
import os
import shlex
import signal
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

import typer

from dc2.errors import ModelFileError, NamesParameter, ParameterError, printable

INTERRUPTED = 130
TERMINATED = 143

# How the command line spells the parameters of the library.
OPTIONS = {
    "n_clusters": "-k",
    "n_signatures": "--signatures",
    "n_jobs": "--jobs",
    "random_state": "--seed",
    "min_cluster_share": "--min-cluster-share",
    "min_cluster_size": "--min-cluster-size",
    "max_cluster_size": "--max-cluster-size",
    "columns": "--columns or --drop",
    "header": "--no-header",
} | {
    name: f"--{name}"
    for name in (
        "bandwidth",
        "decimal",
        "delimiter",
        "encoding",
        "metric",
        "na",
        "noise",
        "scale",
        "similarity",
        "thousands",
    )
}


class CommandError(Exception):
    """An error of a command, in a sentence or two, with the exit code of the command."""

    def __init__(self, message: str, code: int = 1) -> None:
        super().__init__(message)
        self.code = code


def with_plain_errors(command: Callable[..., None]) -> Callable[..., None]:
    """Return the command with plain messages for errors, warnings and interrupts; it takes ``debug``."""

    @functools.wraps(command)
    def run(*arguments: Any, **options: Any) -> None:
        # A job that is ended by its scheduler cleans up behind itself as after Ctrl-C.
        with _on_termination(), warnings.catch_warnings():
            shown: set[str] = set()  # a file may be opened more than once

            def show(message: Warning | str, *details: Any, **more: Any) -> None:
                if str(message) not in shown:
                    shown.add(str(message))
                    _say(f"Note: {message}")

            warnings.showwarning = show
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
                code = error.code if isinstance(error, CommandError) else 2 if isinstance(error, ParameterError) else 1
                raise typer.Exit(code) from None

    return run


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Name the file in an error of the disk, and the option that replaces a file that has appeared."""
    try:
        yield
    except ParameterError as error:
        if error.parameter != "overwrite":
            raise
        raise CommandError(
            f"{str(path)!r} appeared while dc2 worked, and is kept. Replace it with --force, or choose another name."
        ) from error
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

    ending = [signal.SIGTERM, *([signal.SIGHUP] if hasattr(signal, "SIGHUP") else [])]
    if signal.getsignal(ending[-1]) is signal.SIG_IGN:  # as nohup asks for
        ending.pop()
    try:
        before = {number: signal.signal(number, stop) for number in ending}
    except ValueError:  # only the main thread may handle signals
        yield
        return
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def with_options(error: NamesParameter) -> str:
    """Return the message of an error with its parameter spelled as an option.

    Examples
    --------
    >>> with_options(ParameterError("n_jobs is 0.", parameter="n_jobs", value=0, problem="must not be 0."))
    '--jobs 0: must not be 0.'
    >>> with_options(ParameterError("sharpen is odd.", parameter="sharpen", value=3, problem="is odd."))
    'sharpen is odd.'
    """
    option = OPTIONS.get(error.parameter or "")
    if option is None or error.problem is None:
        return str(error)
    value = "" if error.value is None else f" {shlex.quote(str(error.value))}"
    if isinstance(error, ParameterError):
        return f"{option}{value}: {error.problem}"
    return f"{error.problem} Use {option}{value}."


def sentence(error: Exception) -> str:
    """Return what went wrong and what to do, in one sentence or two."""
    if isinstance(error, NamesParameter):
        return with_options(error)
    if isinstance(error, CommandError | ImportError | ModelFileError):
        return str(error)
    if isinstance(error, OSError) and error.filename is not None:
        return f"{os.fspath(error.filename)!r} cannot be used ({error.strerror}). Check its name and permissions."
    if isinstance(error, MemoryError):
        return "There is not enough memory. Use fewer --signatures or --jobs, or a machine with more."
    return (
        f"Something unexpected happened ({type(error).__name__}: {error}). Run the command again with --debug to see "
        "where, and please report it."
    )


def _say(words: str) -> None:
    print(printable(" ".join(words.splitlines())), file=sys.stderr)
