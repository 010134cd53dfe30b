"""TablePreparer: a transformer from tables of mixed columns to numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from dc2.engines import Engine, RunOptions, answered, engine_for
from dc2.errors import InputError, InputTypeError, ParameterError
from dc2.estimators.columns import Columns, KnowsItsColumns
from dc2.estimators.containers import SourceTransformer, in_container
from dc2.model_file import SaveMixin, saved_model
from dc2.sources.base import Block
from dc2.sources.checks import listed
from dc2.sources.frame_rows import TableRows
from dc2.sources.tables import TableSource, as_table
from dc2.tables.decide import decide
from dc2.tables.parts import TableParts
from dc2.tables.prepared import PreparedSource
from dc2.tables.sample import sample_table
from dc2.tables.units import in_units, levels_of_columns, names_in_units
from dc2.tables.unseen import CountsUnseen

__all__ = ["TablePreparer", "fitted_preparer"]


@saved_model
class TablePreparer(SaveMixin, KnowsItsColumns, SourceTransformer, BaseEstimator):
    """Turns a table with words, dates, blanks and ids into numbers that can be clustered.

    A sample of the rows decides how each column is used. Numbers are scaled by median and quartiles, or along a curve
    if they are heavily skewed. Categories weigh less than the spacing of rows in the numbers, since a category puts
    gaps between rows that would be taken for clusters; without numbers, a correspondence analysis places them. Left out
    are ids, constants, repeats, texts with many distinct values, and dates and categories that tell nothing about any
    other column. Blanks take the value of the most similar row, or are a level of their own; if it tells something that
    a value is missing, that counts as a category.

    Parameters
    ----------
    categories : sequence of str, default=()
        Columns to take as categories whatever they look like, such as codes written in digits.
    drop : sequence of str, default=()
        Columns to leave out.
    texts : sequence of str, default=()
        Columns of texts to analyse, such as comments: groups of letters in their words are reduced to the few
        components that stand out in the sample. Other texts are left out.

    Attributes
    ----------
    decisions_ : dict
        What was done with each column, in words.
    n_features_in_, feature_names_in_
        The columns of the table.

    Notes
    -----
    Fitting takes one pass over the rows and holds about 16,384 of them at a time. The same table gives the same
    numbers, to the bit, whether it comes as a frame or as files, and however it is cut up.

    Examples
    --------
    >>> import pandas as pd
    >>> ages, plans = [20, 30, None, 50] * 25, ["a", "a", "b", "b"] * 25
    >>> table = pd.DataFrame({"customer": range(100), "age": ages, "plan": plans})
    >>> preparer = TablePreparer().fit(table)
    >>> preparer.get_feature_names_out().tolist()
    ['age', 'plan=a', 'plan=b', 'age=there', 'age=blank']
    >>> preparer.decisions_["customer"]
    'left out: an id, every row has its own'
    """

    _record: TableParts

    def __init__(self, categories: Sequence[str] = (), *, drop: Sequence[str] = (), texts: Sequence[str] = ()) -> None:
        self.categories = categories
        self.drop = drop
        self.texts = texts

    def fit(self, X: Any, y: Any = None) -> Self:
        """Decide how each column of a table is used.

        Parameters
        ----------
        X : data frame, path, list of paths, glob, dataset
            The table.
        y : ignored
        """
        table = self.table(X)
        self._record = self.decided(table, engine_for(table, RunOptions()))
        return self

    def decided(self, table: TableSource, engine: Engine) -> TableParts:
        """Return how each column is used, without changing this preparer."""
        categories, texts = _names("categories", self.categories), _names("texts", self.texts)
        for what, names in (("categories", categories), ("texts", texts)):
            absent = [name for name in names if name not in (table.feature_names or ())]
            if absent:
                raise ParameterError(
                    f"{what} names {listed(absent)}, but the table has {listed(table.feature_names or ())}."
                )
        both = [name for name in categories if name in texts]
        if both:
            raise ParameterError(f"categories and texts both name {listed(both)}. Take it as one of them.")
        return decide(sample_table(table, engine), categories, texts)

    def table(
        self,
        X: Any,
        weight: str | None = None,
        extra: Sequence[str] = (),
        columns: Sequence[str] | None = None,
    ) -> TableSource:
        """Return the rows of a table as they are, without dropped columns; raise if X is no table."""
        if isinstance(X, TableSource):
            return X
        texts = self.read_as_written
        drop = list(_names("drop", self.drop)) or None if columns is None else None
        table = as_table(X, columns=columns, drop=drop, weight=weight, extra=extra, texts=texts)
        if table is None and hasattr(X, "map_partitions"):
            raise InputTypeError(
                "a Dask collection is not prepared as a whole. Fit the preparer on a part of it, and let Dask apply "
                "it: preparer = TablePreparer().set_output(transform='pandas').fit(X.head(20_000, npartitions=-1)), "
                "then X.map_partitions(preparer.transform, meta=preparer.transform(X.head(1)))."
            )
        if table is None:
            raise InputTypeError(
                f"a table with named columns is needed: a data frame, a file or a dataset; got {type(X).__name__}."
            )
        return table

    @property
    def read_as_written(self) -> tuple[str, ...]:
        """Columns that are read from text files as text, even if they look like numbers."""
        return (*_names("categories", self.categories), *_names("texts", self.texts))

    def source(self, X: Any, extra: Sequence[str] = ()) -> PreparedSource:
        """Return the rows of a table as a source of numbers; columns in use are found by name."""
        check_is_fitted(self)
        parts = self._record
        names = list(parts.used)
        table = self.table(X, extra=extra, columns=names)
        lost = [name for name in names if name not in (table.feature_names or ())]
        if lost:
            raise InputError(f"the table has no column {listed(lost)}, which was in the fitted table and is in use.")
        return PreparedSource(table, parts)

    def transform(self, X: Any) -> Any:
        """Return the rows of a table as numbers.

        Levels unseen in fit count as "other", and a warning says how many rows have one.

        Parameters
        ----------
        X : data frame, path, ... as in `fit`
            The columns in use are found by name; others are ignored, and those left out may be missing.

        Returns
        -------
        ndarray of shape (n_rows, n_out), float32
            For a table that is not in memory, an iterator of such arrays, block by block.
        """
        source = self.source(X)
        width = source.n_features
        counted = CountsUnseen(_rows)
        rows = answered(source, counted, lambda: np.empty((0, width), np.float32), RunOptions())
        return in_container(counted.told(rows), X, self)

    def count_unseen(self, X: Any) -> dict[str, int]:
        """Return how many rows have a level unseen in fit, for each column that has any.

        Parameters
        ----------
        X : data frame, path, ... as in `fit`
        """
        check_is_fitted(self)
        parts = [part for part in self._record.categories if part.tells_unseen]
        table = self.table(X, columns=list(self._record.used))
        counts = dict.fromkeys((part.name for part in parts), 0)
        for block in table.blocks(RunOptions().block_bytes):
            assert isinstance(block.rows, TableRows)
            for part in parts:
                counts[part.name] += int((part.codes(block.rows.frame) == len(part.levels)).sum())
        return {name: count for name, count in counts.items() if count}

    def in_units(self, rows: NDArray[Any], means: bool = True) -> tuple[tuple[str, ...], NDArray[np.float64]]:
        """Return prepared rows, or means of them, in the units of the table, and the names of their columns.

        Parameters
        ----------
        rows : ndarray of shape (n_rows, n_out)
            As `transform` gives them.
        means : bool, default=True
            Whether rows may be means; if not, values spread within steps are put back on them.
        """
        check_is_fitted(self)
        return names_in_units(self._record), in_units(self._record, rows, means)

    @property
    def columns_in_use(self) -> tuple[str, ...]:
        """The columns of the table in use: new rows need no others."""
        check_is_fitted(self)
        return self._record.used

    @property
    def level_columns(self) -> dict[int, str]:
        """Output columns that say whether a row has a level: the table's column of each, by its place."""
        check_is_fitted(self)
        return levels_of_columns(self._record)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Return the names of the columns of numbers."""
        check_is_fitted(self)
        return np.array(self._record.names_out, dtype=object)

    @property
    def columns_(self) -> Columns:
        """The columns of the table."""
        return self._record.columns

    @property
    def decisions_(self) -> dict[str, str]:
        """What was done with each column of the table."""
        if not hasattr(self, "_record"):
            raise AttributeError("this TablePreparer is not fitted yet; call fit first.")
        return dict(self._record.decisions)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        tags.input_tags.allow_nan = True
        tags.no_validation = True
        tags.transformer_tags.preserves_dtype = []
        return tags


def fitted_preparer(preparer: TablePreparer, parts: TableParts) -> TablePreparer:
    """Return a preparer with these parameters that has learned these parts."""
    fitted = TablePreparer(**preparer.get_params())
    fitted._record = parts
    return fitted


def _rows(block: Block) -> NDArray[Any]:
    return block.X


def _names(what: str, names: Any) -> tuple[str, ...]:
    if isinstance(names, str):
        return (names,)
    if not all(isinstance(name, str) for name in names):
        raise ParameterError(
            f"{what} should be names of columns, as text; got {names!r}. A column numbered 2 is called '2'."
        )
    return tuple(names)
