"""TablePreparer: a transformer from tables of mixed columns to numbers."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, Self, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from dc2 import core
from dc2.compress.sampling import first_limit
from dc2.engines.engine import Engine
from dc2.engines.map_rows import RunOptions, engine_for, mapped_rows
from dc2.errors import InputError, InputTypeError, ParameterError, PreparationNote
from dc2.io.columns import Columns, KnowsItsColumns
from dc2.io.containers import SourceTransformer, in_container
from dc2.io.frame_columns import ConvertedRows, TableRows
from dc2.io.frames import Frame
from dc2.io.model_file import SaveMixin, saved_model
from dc2.io.resolve import TableSource, as_table
from dc2.io.source import Block, SourceOver, listed
from dc2.tables.column_transforms import NumberTransform, TableTransforms, on_steps
from dc2.tables.column_types import SEED, sample_table
from dc2.tables.decide import decide

SECONDS_OF_A_YEAR = 365.2425 * 86_400


def in_units(parts: TableTransforms, rows: NDArray[Any], means: bool = True) -> NDArray[np.float64]:
    """Return prepared rows, or means of them, in the units of the table.

    Numbers become what they were, and points in time become years; the column of a level becomes the share of rows
    with that level. Cycles, and components that several categories share, stay as they are; components of texts are
    put back to the scale at which a text has length 1.
    """
    values = rows.astype(np.float64)
    for place, number in enumerate(parts.numbers):
        values[:, place] = _unscaled(number, values[:, place])
        if not means:
            values[:, place] = on_steps(values[:, place], number.step, number.fill)
    shares = _steps(parts)
    start = len(parts.numbers) + 2 * len(parts.cycles)
    values[:, start : start + len(shares)] /= shares
    start += len(shares)
    for text in parts.texts:
        values[:, start : start + text.width] /= text.factor
        start += text.width
    for vector in parts.vectors:
        values[:, start : start + vector.width] /= vector.factor
        start += vector.width
    return values


def names_in_units(parts: TableTransforms) -> tuple[str, ...]:
    """Return the names of the columns of `in_units`."""
    years = [f"{part.name} (year)" if part.reading == "time" else part.name for part in parts.numbers]
    return (*years, *parts.names_out[len(years) :])


def levels_of_columns(parts: TableTransforms) -> dict[int, str]:
    """Return the places of the columns that hold the share of rows with a level, and the table's column of each."""
    start = len(parts.numbers) + 2 * len(parts.cycles)
    return {
        start + column: part.name
        for part in parts.categories
        for column in range(part.places.shape[1])
        if np.count_nonzero(part.places[:, column]) == 1 and not _is_shared(parts, column)
    }


def _unscaled(part: NumberTransform, scaled: NDArray[np.float64]) -> NDArray[np.float64]:
    if part.knots is None or part.heights is None:
        values = scaled / part.factor + part.shift
    else:
        values = np.interp(scaled, part.heights, part.knots)
    return 1970 + values / SECONDS_OF_A_YEAR if part.reading == "time" else values


def _steps(parts: TableTransforms) -> NDArray[np.float64]:
    """Return how far having a level moves a row, for each column of categories; 1 if levels share columns."""
    steps = np.ones(len(parts.category_names))
    for part in parts.categories:
        for column in range(part.places.shape[1]):
            there = part.places[:, column][part.places[:, column] != 0]
            if len(there) == 1 and not _is_shared(parts, column):
                steps[column] = there[0]
    return steps


def _is_shared(parts: TableTransforms, column: int) -> bool:
    return sum(int(np.count_nonzero(part.places[:, column])) for part in parts.categories) > 1


class PreparedSource(SourceOver):
    """Rows of a table, prepared."""

    def __init__(self, table: TableSource, parts: TableTransforms) -> None:
        super().__init__(table)
        self._parts = parts
        self.feature_names = parts.names_out
        self.n_features = len(parts.names_out)
        self.dtype = np.dtype(np.float32)

    @property
    def remote(self) -> Any:
        """The rows, if they are elsewhere."""
        return self._source.remote

    def known_shares(self, engine: Engine, router: Any, n_ids: int) -> NDArray[np.float32] | None:
        """Return the share of sampled rows with a value, by signature and number; None if none was missing."""
        if not any(part.missing for part in self._parts.numbers):
            return None
        count = _CountKnown(self._parts, router, n_ids, first_limit(KNOWN_ROWS, self.n_rows))
        parts = engine.map(count, self, stage="populate", merge=lambda some: np.sum(some, axis=0))
        counts: NDArray[np.float64] = np.sum(list(parts), axis=0)
        of_all = counts.sum(axis=0)
        # Signatures without a sampled row have the share of all rows.
        counts = np.where(counts[:, :1] > 0, counts, of_all)
        shares: NDArray[np.float64] = counts[:, 1:] / np.maximum(counts[:, :1], 1e-300)
        return shares.astype(np.float32)

    def blocks(self, block_bytes: int) -> Iterator[Block]:
        """Start a fresh pass."""
        for block in self._source.blocks(block_bytes):
            assert isinstance(block.rows, TableRows)
            yield replace(block, rows=PreparedRows(block.rows.frame, self._parts, block.start))


class PreparedRows(ConvertedRows):
    """Rows of a frame, prepared on demand."""

    def __init__(self, frame: Frame, parts: TableTransforms, start: int) -> None:
        super().__init__(frame)
        self._parts, self._start = parts, start
        self.unseen: Counter[str] = Counter()

    def _converted(self, frame: Frame) -> NDArray[Any]:
        return self._parts.apply(frame, self._start, self.unseen)

    def known(self, places: NDArray[np.integer[Any]]) -> tuple[NDArray[np.bool_], NDArray[Any]]:
        """Return which of the rows at some places have values in the columns of numbers, and these rows."""
        assert self._frame is not None
        frame = self._frame[places.tolist(), :]
        return self._parts.known(frame), self._parts.apply(frame, self._start)

    def take(self, places: NDArray[np.integer[Any]]) -> NDArray[Any]:
        """Return the rows at some places."""
        if self._frame is None or 4 * len(places) > self._n_rows:
            chosen: NDArray[Any] = self.matrix()[places]
            return chosen
        return self._parts.apply(self._frame[places.tolist(), :], self._start)


KNOWN_ROWS = 2**17  # enough for the shares of clusters; each takes part with its weight


@dataclass(frozen=True, eq=False)
class _CountKnown:
    """Adds up the weight of sampled rows of a block, in all and with a value in each column, for each signature."""

    parts: TableTransforms
    router: Any
    n_ids: int
    limit: int

    def __call__(self, block: Block) -> NDArray[np.float64]:
        assert isinstance(block.rows, PreparedRows)
        places = core.sample_rows(SEED, block.start, block.stop, self.limit) - block.start
        known, rows = block.rows.known(places)
        weights = np.ones(len(places)) if block.weights is None else block.weights[places]
        ids = self.router.assign(rows, self.parts.names_out, block.start)
        columns = np.column_stack([np.ones(len(places), np.bool_), known]) * weights[:, None]
        return np.stack([np.bincount(ids, column, self.n_ids) for column in columns.T], axis=1)


Answer = TypeVar("Answer")


class CountsUnseen(Generic[Answer]):
    """Gives the answers of another callable for blocks of rows, and counts rows with levels unseen in fit."""

    def __init__(self, answer: Callable[[Block], Answer]) -> None:
        self._answer = answer
        self._counts: list[Counter[str]] = []  # one per block; any thread may append to a list

    def __call__(self, block: Block) -> Answer:
        """Return the answer for a block."""
        answer = self._answer(block)
        if isinstance(block.rows, PreparedRows) and block.rows.unseen:
            self._counts.append(block.rows.unseen)
        return answer

    def told(self, answers: Any) -> Any:
        """Return the answers for all rows, and warn of unseen levels; with an iterator, at its end."""
        if isinstance(answers, Iterator):
            return self._told_at_the_end(answers)
        self._tell()
        return answers

    def _told_at_the_end(self, answers: Iterator[Any]) -> Iterator[Any]:
        yield from answers
        self._tell()

    def _tell(self) -> None:
        counts = sum(self._counts, Counter())
        if not counts:
            return
        words = ", ".join(f"{count:,} in {name!r}" for name, count in sorted(counts.items()))
        warnings.warn(
            f"categories unseen in fit are used as 'other': {words}. If there are many, fit again.",
            PreparationNote,
            stacklevel=4,
        )


@saved_model
class TablePreparer(SaveMixin, KnowsItsColumns, SourceTransformer, BaseEstimator):
    """Turns a table with text, dates, missing values and ids into numbers that can be clustered.

    A sample of the rows decides how each column is used. Numbers are scaled by median and quartiles, or along a curve
    if they are heavily skewed. Categories weigh less than the spacing of rows in the numbers, since a category puts
    gaps between rows that would be taken for clusters; without numbers, a correspondence analysis places them. Left out
    are ids, constants, repeats, texts with many distinct values, and dates and categories that tell nothing about any
    other column. A missing number takes the value of the most similar row; a missing category is a category of its own.
    Whether a value is missing becomes a category if this is informative about another column.

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
        What was done with each column, as text.
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

    _record: TableTransforms

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

    def decided(self, table: TableSource, engine: Engine, *, for_target: bool = False) -> TableTransforms:
        """Return how each column is used, without changing this preparer; for a target, all that tell rows apart."""
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
        return decide(sample_table(table, engine), categories, texts, for_target=for_target)

    def table(self, X: Any, extra: Sequence[str] = (), columns: Sequence[str] | None = None) -> TableSource:
        """Return the rows of a table as they are, without dropped columns; raise if X is not a table."""
        table = self.table_in(X, None, extra, columns)
        if table is None:
            raise not_a_table(X)
        return table

    def table_in(
        self, X: Any, weight: str | None, extra: Sequence[str] = (), columns: Sequence[str] | None = None
    ) -> TableSource | None:
        """Return the rows of a table as they are; None if X has no named columns, such as an array."""
        drop = list(_names("drop", self.drop)) or None if columns is None else None
        return as_table(X, columns=columns, drop=drop, weight=weight, extra=extra, texts=self.read_as_written)

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
        rows = mapped_rows(source, counted, lambda: np.empty((0, width), np.float32), RunOptions())
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
    def names_in_units(self) -> tuple[str, ...]:
        """The names of the columns of `in_units`."""
        return names_in_units(self._record)

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


def fitted_preparer(preparer: TablePreparer, parts: TableTransforms) -> TablePreparer:
    """Return a preparer with these parameters that has learned these parts."""
    fitted = TablePreparer(**preparer.get_params())
    fitted._record = parts
    return fitted


def not_a_table(X: Any) -> InputTypeError:
    """Return the error for data without named columns."""
    if hasattr(X, "map_partitions"):
        return InputTypeError(
            "a Dask collection is not prepared as a whole. Fit the preparer on a part of it, and let Dask apply it: "
            "preparer = TablePreparer().set_output(transform='pandas').fit(X.head(20_000, npartitions=-1)), then "
            "X.map_partitions(preparer.transform, meta=preparer.transform(X.head(1)))."
        )
    return InputTypeError(
        f"X is a {type(X).__name__}, not a table with named columns. Pass a data frame, a file or a dataset."
    )


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
