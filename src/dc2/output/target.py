"""Where a file may be written, and how it appears there whole or not at all."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dc2.errors import ParameterError

__all__ = ["check_target", "renamed_at_the_end", "write_whole"]


def check_target(path: str | os.PathLike[str], what: str) -> Path:
    """Return the path if a file can be written there, else raise; `what` names its contents in the message.

    An existing file is replaced at the end, so it must be a regular file: a link, a device or a pipe would be lost.

    Examples
    --------
    >>> check_target("no/such/folder/report.html", "A report")
    Traceback (most recent call last):
    ...
    dc2.errors.ParameterError: A report cannot be written to 'no/such/folder/report.html': there is no such folder.
    """
    target = Path(path).expanduser()
    problem = _problem(target)
    if problem:
        raise ParameterError(f"{what} cannot be written to {str(target)!r}: {problem}.")
    return target


def _problem(target: Path) -> str | None:
    if not os.path.isdir(target.parent):
        return "there is no such folder"
    if os.path.isdir(target):
        return "it is a folder; add a file name"
    if len(os.fsencode(target.name)) > _longest_name(target.parent):
        return f"the name has {len(target.name)} characters, more than a file can have here"
    if os.path.islink(target):
        return "it is a link, which would be replaced; name the file that it leads to"
    if os.path.exists(target) and not os.path.isfile(target):
        return "it is not a regular file, and would be replaced"
    if not os.access(target.parent, os.W_OK | os.X_OK):
        return "files cannot be made in its folder; choose another"
    return None


def _longest_name(folder: Path) -> int:
    try:
        return os.pathconf(folder, "PC_NAME_MAX")
    except (AttributeError, OSError, ValueError):  # Windows, or a file system that does not say
        return 255


@contextmanager
def renamed_at_the_end(target: Path) -> Iterator[Path]:
    """Give a temporary name in the same folder, renamed to the target at the end; on an error it is removed."""
    # A name may be as long as names can be, so the temporary one has only its beginning.
    temporary = target.with_name(f".{target.name[:40]}.{secrets.token_hex(4)}.partial")
    try:
        yield temporary
        os.replace(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)


def write_whole(path: Path, text: str) -> None:
    """Write a text; the file appears whole or not at all."""
    with renamed_at_the_end(path) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")
