"""The rows to be fitted: numbers as they are, a table of mixed columns after preparation."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

from narwhals.dependencies import is_pandas_dataframe, is_polars_dataframe, is_pyarrow_table

from dc2.engines import RunOptions, engine_for
from dc2.errors import ParameterError, PreparationNote
from dc2.estimators.columns import Columns, fitted_source
from dc2.estimators.frames import kind_of_frame
from dc2.sources.base import Source
from dc2.sources.paths import is_path
from dc2.sources.resolve import as_source
from dc2.sources.tables import TableSource
from dc2.tables.preparer import TablePreparer, fitted_preparer

__all__ = ["OpenedRows", "Preparation"]


@dataclass(frozen=True, eq=False)
class OpenedRows:
    """A source of numbers, its columns, and the preparer that made them, if any."""

    source: Source
    columns: Columns
    preparer: TablePreparer | None = None


@dataclass(frozen=True, eq=False)
class Preparation:
    """Whether and how tables are prepared.

    Attributes
    ----------
    preparer : TablePreparer or None
        None if rows are taken as they are.
    always : bool
        Whether tables of numbers without blanks are prepared too.
    scale : str or None
        The scaling asked for; it must be None if rows are prepared.
    """

    preparer: TablePreparer | None = None
    always: bool = False
    scale: str | None = None

    @classmethod
    def of(cls, prepare: Any, scale: str | None) -> Preparation:
        """Check the parameter `prepare` of an estimator."""
        if prepare is None:
            return cls()
        if isinstance(prepare, TablePreparer):
            return cls(prepare, always=True, scale=scale)
        if isinstance(prepare, str) and prepare == "auto":
            return cls(TablePreparer(), scale=scale)
        raise ParameterError(f"prepare should be 'auto', None or a TablePreparer; got {prepare!r}.")

    def opened(self, X: Any, sample_weight: Any, owner: str) -> OpenedRows:
        """Return rows as they are if all columns have numeric types, otherwise prepared."""
        table = self._table(X, sample_weight)
        if table is not None and (self.always or not table.is_numeric):
            return self._prepared(table, sample_weight, kind_of_frame(X))
        if table is not None and not _can_be_opened_again(X):
            X = table.as_numbers()
        return OpenedRows(*fitted_source(X, sample_weight, owner))

    def with_blanks(self, X: Any, sample_weight: Any) -> OpenedRows | None:
        """Prepare rows in which blanks were found; None if they are no table, or are not to be prepared."""
        table = self._table(X, sample_weight)
        if table is None or not _can_be_opened_again(X):
            return None
        return self._prepared(table, sample_weight, kind_of_frame(X))

    def _table(self, X: Any, sample_weight: Any) -> TableSource | None:
        if self.preparer is None:
            return None
        try:
            return self.preparer.table(X, sample_weight if isinstance(sample_weight, str) else None)
        except TypeError:
            if self.always:
                raise
            return None  # arrays, callables and others without named columns

    def _prepared(self, table: TableSource, sample_weight: Any, frame: str | None) -> OpenedRows:
        assert self.preparer is not None
        if self.scale is not None:
            raise ParameterError(
                f"scale={self.scale!r} is for numbers, but the table has words or blanks, and preparing it scales its "
                "columns. Use scale=None; or prepare=None, and turn the table into numbers yourself."
            )
        parts = self.preparer.decided(table, engine_for(table, RunOptions()))
        fitted = fitted_preparer(self.preparer, parts)
        if not self.always:
            lines = "\n".join(f"  {name}: {words}" for name, words in parts.decisions)
            warnings.warn(
                f"the table was prepared, since it has words, dates or blanks:\n{lines}\n"
                "Give a dc2.TablePreparer to decide otherwise, or prepare=None to refuse such tables.",
                PreparationNote,
                stacklevel=5,
            )
        source: Source = fitted.source(table)
        columns = Columns(source.n_features, source.feature_names, frame)
        if sample_weight is not None and not isinstance(sample_weight, str):
            source = as_source(source, sample_weight=sample_weight)
        return OpenedRows(source, columns, fitted)


def _can_be_opened_again(X: Any) -> bool:
    known = is_pandas_dataframe(X) or is_polars_dataframe(X) or is_pyarrow_table(X)
    return known or is_path(X) or isinstance(X, TableSource)
