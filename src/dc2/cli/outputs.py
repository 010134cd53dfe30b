"""Files to be written, checked before any work begins."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import typer

from dc2.cli.failures import CommandError

__all__ = ["check_labels_file", "check_outputs"]


def check_outputs(
    outputs: Mapping[str, Path | None], *, force: bool, inputs: Sequence[str] = ()
) -> dict[str, Path]:
    """Return the files that are wanted, by what they are, if each can be written; else raise.

    Parameters
    ----------
    outputs : mapping of str to path or None
        What a file is ("labels", "model", ...), and where to write it.
    force : bool
        Whether a file that exists may be replaced.
    inputs : sequence of str
        Files that are read, which are never replaced.
    """
    wanted = {what: path.expanduser() for what, path in outputs.items() if path is not None}
    seen = {os.path.realpath(path) for path in inputs}
    for what, path in wanted.items():
        folder = path.parent
        if path.is_dir():
            raise CommandError(
                f"The {what} cannot be written to {str(path)!r}: it is a folder. Name a file in it."
            )
        if not folder.is_dir():
            raise CommandError(f"The folder {str(folder)!r} for the {what} does not exist. Make it first.")
        if not os.access(folder, os.W_OK):
            raise CommandError(
                f"The folder {str(folder)!r} for the {what} cannot be written to. Choose another."
            )
        if os.path.realpath(path) in seen:
            raise CommandError(
                f"{str(path)!r} is used twice in this command. Choose another file for the {what}."
            )
        if path.exists() and not force:
            raise CommandError(
                f"{str(path)!r} exists already. Replace it with --force, or choose another name."
            )
        seen.add(os.path.realpath(path))
    return wanted


def check_labels_file(path: Path | None, ids: Sequence[str], label_column: str) -> None:
    """Raise if labels, with ids beside them, cannot be written in the format that the file's name asks for."""
    from dc2.output import check_output_path

    if path is None:
        return
    check_output_path(path)
    if path.suffix.lower() == ".npy" and ids:
        raise typer.BadParameter("A .npy file holds labels alone; write .parquet to keep the --id columns.")
    if label_column in ids:
        raise typer.BadParameter(
            f"The --id columns have a column {label_column!r} already; name the labels with --label-column."
        )
