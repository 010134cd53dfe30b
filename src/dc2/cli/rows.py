"""The rows a command was given: which files, and which columns are features, ids and weights."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import typer

from dc2.cli.options import Engine, split_names
from dc2.sources import Source, as_source
from dc2.sources.formats import CsvOptions
from dc2.sources.paths import find_files
from dc2.sources.tables import TableSource, as_table

__all__ = ["ColumnChoice", "Rows", "csv_options"]


@dataclass(frozen=True)
class ColumnChoice:
    """What columns are for.

    Attributes
    ----------
    columns, drop, ids : sequence of str
        Features, columns to leave out, columns to be written beside the labels.
    weight : str or None
        Column of weights.
    """

    columns: Sequence[str] = ()
    drop: Sequence[str] = ()
    ids: Sequence[str] = ()
    weight: str | None = None

    @classmethod
    def of(cls, wanted: Any) -> ColumnChoice:
        """Return the choice that a command's options make; an option that a command does not have counts as empty."""
        columns, drop, ids = (split_names(getattr(wanted, option, ())) for option in ("columns", "drop", "id_columns"))
        if columns and drop:
            raise typer.BadParameter("Give --columns (those to use) or --drop (those to leave out), not both.")
        for option, names in (("--columns", columns), ("--drop", drop), ("--id", ids)):
            twice = next((name for name in names if names.count(name) > 1), None)
            if twice is not None:
                raise typer.BadParameter(f"{option} names the column {twice!r} twice.")
        return cls(columns, drop, ids, getattr(wanted, "weight", None))


def csv_options(wanted: Any) -> CsvOptions | None:
    """Return how the options of a command say that text files are to be read; None where they say nothing."""
    delimiter = {"tab": "\t", "\\t": "\t"}.get(wanted.delimiter, wanted.delimiter)
    asked = CsvOptions(delimiter, header=not wanted.no_header, encoding=wanted.encoding)
    return None if asked == CsvOptions() else asked


class Rows:
    """Files on the command line.

    Parameters
    ----------
    data : sequence of str
        Files, folders, globs, addresses.
    choice : ColumnChoice
        What their columns are for.
    engine : Engine, default="threads"
        Who reads the files.
    csv : CsvOptions or None
        How text files are read.
    """

    def __init__(
        self,
        data: Sequence[str],
        choice: ColumnChoice,
        engine: Engine = Engine.threads,
        csv: CsvOptions | None = None,
    ) -> None:
        self._data = list(data)
        self._csv = csv
        files = find_files(self._data, csv)
        self._unnamed = all(not file.format.named_columns for file in files)
        self._columns = [self._name(name) for name in choice.columns]
        self._drop = [self._name(name) for name in choice.drop]
        self._weight = choice.weight
        self._open_elsewhere = engine is Engine.dask
        self._open = functools.partial(_opener(engine), csv=csv)
        self.ids = list(choice.ids)
        self.paths = [file.path for file in files]

    def to_fit(self) -> Source:
        """Return the features and weights; ids are not read."""
        if self._columns:
            return self._open(self._data, columns=self._columns, sample_weight=self._weight)
        unused = [*self._drop, *self.ids] or None
        return self._open(self._data, drop=unused, sample_weight=self._weight)

    def table_to_fit(self, as_written: Sequence[str] = ()) -> TableSource | None:
        """Return the features and weights as they are, whatever their types; None where columns have no names."""
        if self._unnamed or self._open_elsewhere:
            return None
        unused = None if self._columns else [*self._drop, *self.ids] or None
        return as_table(
            self._data,
            columns=self._columns or None,
            drop=unused,
            weight=self._weight,
            texts=as_written,
            csv=self._csv,
        )

    def for_model(self, model: Any) -> Source:
        """Return the columns a model was fitted on, and the ids; as they are where it prepares them."""
        names, preparer = getattr(model, "feature_names_in_", None), getattr(model, "preparer_", None)
        if preparer is None:
            return self.like(names)
        if self._unnamed:
            raise typer.BadParameter("The model prepares columns that it knows by name; .npy files have none.")
        table = as_table(
            self._data,
            columns=list(preparer.columns_in_use),
            extra=self.ids,
            texts=preparer.read_as_written,
            csv=self._csv,
        )
        assert table is not None, "files with named columns are a table"
        return table

    def like(self, feature_names: Sequence[str] | None) -> Source:
        """Return the columns a model was fitted on, and the ids; by position where there are no names."""
        if feature_names is None or self._unnamed:
            return self._open(self._data, columns=self._columns or None, drop=self._drop or None, extra=self.ids)
        return self._open(self._data, columns=list(feature_names), extra=self.ids)

    def first_ids(self, fitted: Source) -> Any:
        """Return the ids of the first few rows, with the types that all of them will have."""
        first = as_table(self._data, columns=fitted.feature_names, extra=self.ids, csv=self._csv)
        return None if first is None else next((block.extra for block in first.blocks(1)), None)

    def _name(self, name: str) -> Any:
        if not self._unnamed:
            return name
        try:
            return int(name)
        except ValueError:
            raise typer.BadParameter(f"{name!r}: the columns of .npy files are numbers, from 0.") from None


def _opener(engine: Engine) -> Callable[..., Source]:
    if engine is not Engine.dask:
        return as_source
    try:
        from dc2.engines.dask.files import dask_files
    except ImportError as error:
        raise ImportError('--engine dask needs Dask, which is not installed: pip install "dc2[dask]"') from error
    return dask_files
