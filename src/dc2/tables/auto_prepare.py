"""The rows to be fitted: numbers as they are, a table of mixed columns after preparation."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

from narwhals.dependencies import is_pandas_dataframe, is_polars_dataframe, is_pyarrow_table

from dc2.engines.map_rows import RunOptions, engine_for
from dc2.errors import ParameterError, PreparationNote
from dc2.io.columns import Columns, fitted_source, kind_of_frame
from dc2.io.paths import is_path
from dc2.io.resolve import UNORDERED, TableSource, as_source, library_with_engine
from dc2.io.source import Source
from dc2.tables.preparer import PreparedSource, TablePreparer, fitted_preparer, not_a_table


@dataclass(frozen=True, eq=False)
class OpenedRows:
    """A source of numbers, its columns, and if it was prepared the preparer and the rows without other weights.

    `is_frame` tells whether it is a frame or a file of numbers alone, whose columns may need a scale.
    """

    source: Source
    columns: Columns
    preparer: TablePreparer | None = None
    table: PreparedSource | None = None
    is_frame: bool = False


@dataclass(frozen=True, eq=False)
class Preparation:
    """Whether and how tables are prepared."""

    preparer: TablePreparer | None = None
    always: bool = False
    scale: str | None = None
    for_target: bool = False

    @classmethod
    def of(cls, prepare: Any, scale: str | None, for_target: bool = False) -> Preparation:
        """Check the parameter `prepare` of an estimator."""
        if prepare is None:
            return cls()
        if isinstance(prepare, TablePreparer):
            return cls(prepare, always=True, scale=scale, for_target=for_target)
        if isinstance(prepare, str) and prepare == "auto":
            return cls(TablePreparer(), scale=scale, for_target=for_target)
        raise ParameterError(f"prepare={prepare!r}: not a way to prepare tables. Use 'auto', None or a TablePreparer.")

    def opened(self, X: Any, sample_weight: Any, owner: str) -> OpenedRows:
        """Return rows as they are if all columns have numeric types, otherwise prepared."""
        table = self._table(X, sample_weight)
        if table is None and self.always:
            raise not_a_table(X)
        if table is not None and (self.always or not table.is_numeric):
            return self._prepared(table, sample_weight, kind_of_frame(X))
        if isinstance(X, TableSource) or (table is not None and not _can_be_opened_again(X)):
            X = (table or X).as_numbers()
        return OpenedRows(*fitted_source(X, sample_weight, owner), is_frame=table is not None)

    def with_blanks(self, X: Any, sample_weight: Any) -> OpenedRows | None:
        """Return rows with missing values, prepared; None if they are not a table or were prepared before."""
        table = self._table(X, sample_weight)
        if table is None or self.always or not table.is_numeric or not _can_be_opened_again(X):
            return None
        return self._prepared(table, sample_weight, kind_of_frame(X))

    def _table(self, X: Any, sample_weight: Any) -> TableSource | None:
        weight = sample_weight if isinstance(sample_weight, str) else None
        return None if self.preparer is None else self.preparer.table_in(X, weight)

    def _prepared(self, table: TableSource, sample_weight: Any, frame: str | None) -> OpenedRows:
        assert self.preparer is not None
        if self.scale is not None:
            raise ParameterError(
                f"scale={self.scale!r}: the table has text or missing values, and preparing it scales its columns. Use "
                "scale=None, or turn the table into numbers yourself and use prepare=None.",
                parameter="scale",
                value=self.scale,
                problem="the table has text or missing values, and preparing it scales its columns. Leave it out.",
            )
        parts = self.preparer.decided(table, engine_for(table, RunOptions()), for_target=self.for_target)
        fitted = fitted_preparer(self.preparer, parts)
        if not self.always:
            lines = "\n".join(f"  {name}: {words}" for name, words in parts.decisions)
            warnings.warn(
                f"dc2 prepared the table, because it has text, dates or missing values:\n{lines}\n"
                "Pass prepare=dc2.TablePreparer(...) to decide otherwise, or prepare=None to refuse such tables.",
                PreparationNote,
                stacklevel=5,
            )
        prepared = fitted.source(table)
        source: Source = prepared
        columns = Columns(source.n_features, source.feature_names, frame)
        if sample_weight is not None and not isinstance(sample_weight, str):
            source = as_source(source, sample_weight=sample_weight)
        return OpenedRows(source, columns, fitted, prepared)


def _can_be_opened_again(X: Any) -> bool:
    known = is_pandas_dataframe(X) or is_polars_dataframe(X) or is_pyarrow_table(X)
    return known or is_path(X) or isinstance(X, TableSource) or library_with_engine(X) in UNORDERED
