"""The rows a command was given: which files, and which columns are features, ids and weights."""

from collections.abc import Callable, Sequence
from typing import Any

import typer

from dc2.cli.options import Engine
from dc2.sources import Source, as_source
from dc2.sources.paths import FoundFile, find_files

__all__ = ["Rows"]


def _opener(engine: Engine) -> Callable[..., Source]:
    if engine is not Engine.dask:
        return as_source
    try:
        from dc2.engines.dask.files import dask_files
    except ImportError as error:
        raise ImportError(
            '--engine dask needs Dask, which is not installed: pip install "dc2[dask]"'
        ) from error
    return dask_files


class Rows:
    """Files on the command line.

    Parameters
    ----------
    data : sequence of str
        Files, folders, globs, addresses.
    columns, drop, ids : sequence of str
        Features, columns to leave out, columns to be written beside the labels.
    weight : str or None
        Column of weights.
    engine : Engine, default="threads"
        Who reads the files.
    """

    def __init__(
        self,
        data: Sequence[str],
        columns: Sequence[str] = (),
        drop: Sequence[str] = (),
        ids: Sequence[str] = (),
        weight: str | None = None,
        engine: Engine = Engine.threads,
    ) -> None:
        if columns and drop:
            raise typer.BadParameter(
                "Give --columns (those to use) or --drop (those to leave out), not both."
            )
        self.data = list(data)
        self.files: list[FoundFile] = find_files(self.data)
        self.unnamed = all(not file.format.named_columns for file in self.files)
        self._columns = [self._name(name) for name in columns]
        self._drop = [self._name(name) for name in drop]
        self._ids, self._weight = list(ids), weight
        self._open = _opener(engine)

    def to_fit(self) -> Source:
        """Return the features and weights; ids are not read."""
        if self._columns:
            return self._open(self.data, columns=self._columns, sample_weight=self._weight)
        unused = [*self._drop, *self._ids] or None
        return self._open(self.data, drop=unused, sample_weight=self._weight)

    def to_label(self, fitted: Source) -> Source:
        """Return the features of a source that was fitted, and the ids."""
        return self.like(fitted.feature_names) if self._ids else fitted

    def like(self, feature_names: Sequence[str] | None) -> Source:
        """Return the columns a model was fitted on, and the ids; by position where there are no names."""
        if feature_names is None or self.unnamed:
            return self._open(
                self.data, columns=self._columns or None, drop=self._drop or None, extra=self._ids
            )
        return self._open(self.data, columns=list(feature_names), extra=self._ids)

    def _name(self, name: str) -> Any:
        if not self.unnamed:
            return name
        try:
            return int(name)
        except ValueError:
            raise typer.BadParameter(f"{name!r}: the columns of .npy files are numbers, from 0.") from None
