"""Files to be written, checked before any work begins."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import typer

from dc2.cli.failures import CommandError
from dc2.cli.rows import Rows
from dc2.errors import ParameterError
from dc2.model_file.values import has_control_characters
from dc2.output import check_columns, check_output_path, check_room, check_target
from dc2.sources import Source
from dc2.sources.checks import listed

__all__ = ["check_labels", "check_names", "check_outputs"]


def check_outputs(outputs: Mapping[str, Path | None], *, force: bool, inputs: Sequence[str] = ()) -> dict[str, Path]:
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
        try:
            check_target(path, f"The {what}")
        except ParameterError as error:
            raise CommandError(str(error)) from error
        if os.path.realpath(path) in seen:
            raise CommandError(f"{str(path)!r} is used twice in this command. Choose another file for the {what}.")
        if path.exists() and not force:
            raise CommandError(f"{str(path)!r} exists already. Replace it with --force, or choose another name.")
        seen.add(os.path.realpath(path))
    return wanted


def check_labels(path: Path | None, rows: Rows, source: Source, label_column: str) -> None:
    """Raise if the labels of a source, with ids beside them, cannot be written to this kind of file."""
    if path is None:
        return
    check_output_path(path)
    if path.suffix.lower() == ".npy" and rows.ids:
        raise typer.BadParameter("A .npy file holds labels alone; write .parquet to keep the --id columns.")
    if label_column in rows.ids:
        raise typer.BadParameter(
            f"The --id columns have a column {label_column!r} already; name the labels with --label-column."
        )
    check_room(path, source.n_rows)
    if rows.ids:
        check_columns(path, rows.first_ids(source))


def check_names(model: Path | None, source: Source) -> None:
    """Raise if a model is to be saved but the name of a column cannot be stored in a model file."""
    names = [name for name in source.feature_names or () if has_control_characters(name)]
    if model is not None and names:
        raise CommandError(
            f"The data has columns whose names hold control characters: {listed(names)}. Rename them, or leave them "
            "out with --drop."
        )
