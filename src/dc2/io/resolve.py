"""`as_source` and `as_table`: the source of rows for data of any kind."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from importlib import import_module
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from dc2.errors import ColumnTypeError, InputError, InputTypeError, ParameterError, PreparationNote
from dc2.io.arrays import ArraySource, SparseSource
from dc2.io.csv_files import CsvOptions
from dc2.io.files import dataset_source, file_source, is_dataset
from dc2.io.frame_columns import TableRows, table_hashes
from dc2.io.frames import FrameLayout, FrameSource, as_frame, has_text_names
from dc2.io.iterators import callable_source
from dc2.io.paths import find_files, is_path
from dc2.io.source import Block, Source, SourceOver, WeightedSource, is_on_cuda, row_hashes
from dc2.io.streams import StreamSource

R = TypeVar("R")
LABEL_BYTES = 2**22  # of labels that are read at a time


def as_source(
    data: Any,
    *,
    columns: Sequence[Any] | None = None,
    drop: Sequence[Any] | None = None,
    sample_weight: Any = None,
    extra: Sequence[str] = (),
    csv: CsvOptions | None = None,
    id: str | None = None,  # noqa: A002
) -> Source:
    """Return the source for data of any kind.

    Parameters
    ----------
    data : array-like, data frame, path, list of paths, callable, Dask, Spark or Ray collection, or Source
        Arrays and memory maps; SciPy's sparse matrices; pandas, polars and pyarrow tables; paths, globs, folders and
        addresses of Parquet, Arrow, CSV, TSV, JSON lines (the last three also packed, .gz or .zst) and .npy files; a
        pyarrow.dataset; a callable that returns a fresh iterator of arrays or frames. Polars LazyFrames, DuckDB
        relations and all else with the Arrow stream interface are read once, and kept in a temporary file if they are
        large. A Source is returned as it is.
    columns : sequence of str or int, optional
        The features, in this order: names, or indices if columns have no names. By default all columns but those
        named by the other parameters.
    drop : sequence of str or int, optional
        Columns to leave out.
    sample_weight : array-like of shape (n_rows,) or str, optional
        Weights of the rows, or the name of the column that holds them.
    extra : sequence of str, default=()
        Columns that travel with the blocks as they are, such as ids to be written beside labels. In CSV files they
        are read as text, unchanged.
    csv : CsvOptions, optional
        How to read CSV and TSV files with another separator or without a line of names.
    id : str, optional
        The column that identifies rows, or ``"*"``: their own values do. Sampling then does not depend on the order of
        rows, and equal rows are sampled as one, with their weights added. It is not a feature. Spark and Ray have no
        order of rows: ``"*"`` is the default there. By default elsewhere, rows are identified by their place.

    Examples
    --------
    >>> import numpy as np
    >>> source = as_source(np.zeros((4, 2)), sample_weight=[1, 2, 3, 4])
    >>> [block.weights.tolist() for block in source.blocks(block_bytes=2**20)]
    [[1.0, 2.0, 3.0, 4.0]]
    """
    if columns is not None and drop is not None:
        raise ParameterError("Give columns (those to use) or drop (those to leave out), not both.")
    if csv is not None and not is_path(data):
        raise ParameterError("csv= says how text files are read, but X is not a path.")
    chosen, dropped, travelling = _as_list(columns), _as_list(drop), _as_list(extra) or []
    library = library_with_engine(data)
    if library is not None:
        make = maker(library)
        if library in UNORDERED:
            return make(data, columns=chosen, drop=dropped, sample_weight=sample_weight, extra=travelling, id=id)
        if id is not None:
            raise ParameterError(
                f"id={id!r}: {library} arrays have an order of rows, which identifies them. Leave it out."
            )
        return make(data, columns=chosen, drop=dropped, sample_weight=sample_weight, extra=travelling)
    if id is not None:
        whole = as_source(
            data, columns=chosen, drop=dropped, sample_weight=sample_weight, csv=csv,
            extra=travelling if id == "*" else [*travelling, *({id} - set(travelling))],
        )  # fmt: skip
        return KeyedSource(whole, id, travelling)
    weight = sample_weight if isinstance(sample_weight, str) else None
    if is_path(data):
        source: Source = file_source(data, chosen, dropped, weight, travelling, csv)
    else:
        source = _source(data, chosen, dropped, weight, travelling)
    return source if sample_weight is None or weight is not None else WeightedSource(source, sample_weight)


def _source(
    data: Any, columns: list[Any] | None, drop: list[Any] | None, weight: str | None, extra: list[str]
) -> Source:
    if isinstance(data, Source):
        if columns is not None or drop is not None or weight is not None or extra:
            raise ParameterError("Columns are chosen when a source is made; this one is made already.")
        return data
    if is_dataset(data):
        return dataset_source(data, columns, drop, weight, extra)
    frame = as_frame(data)
    if frame is not None:
        named = has_text_names(data)
        if not named:
            columns, drop, extra = _as_text(columns), _as_text(drop), _as_text(extra) or []
        return FrameSource(frame, columns, drop, weight, extra, named=named)
    if callable(data) and not hasattr(data, "__array__"):
        return callable_source(data, columns, drop, weight, extra)
    if isinstance(data, Iterator):
        raise InputTypeError(
            f"X is a {type(data).__name__}, which can be passed over only once, but the rows are needed more than "
            "once. Pass a callable that returns a fresh iterator, or feed the blocks to Compressor.partial_fit."
        )
    if weight is not None or extra:
        raise InputTypeError(
            f"X is an array without column names, so {weight or extra!r} cannot be taken from it. Give "
            "sample_weight as an array, or X as a data frame."
        )
    return SparseSource(data, columns, drop) if issparse(data) else ArraySource(data, columns, drop)


LIBRARIES = {"dask": "dask", "dask_expr": "dask", "pyspark": "spark", "ray": "ray"}
UNORDERED = ("spark", "ray")
"""Their tables have no order of rows, and may have columns of any type."""


def library_with_engine(data: Any) -> str | None:
    """Return the name of the engine for data that are processed where they are; None for all others.

    It is asked first, since frames of Spark Connect seem to have any attribute.
    """
    library = LIBRARIES.get(type(data).__module__.partition(".")[0])
    return "cuda" if library is None and is_on_cuda(data) else library


def maker(library: str) -> Callable[..., Source]:
    """Return what makes the sources of a library; `dc2` knows where it is."""
    make: Callable[..., Source] = getattr(import_module("dc2"), f"{library}_source")
    return make


class KeyedSource(SourceOver):
    """Rows of a source, identified by a column or by their own values instead of their place."""

    def __init__(self, source: Source, id: str, extra: Sequence[str] = ()) -> None:  # noqa: A002
        super().__init__(source)
        self.in_memory = False  # results of full length would be in order
        self._id, self._extra = id, list(extra)

    def blocks(self, block_bytes: int) -> Iterator[Block]:
        """Start a fresh pass."""
        for block in self._source.blocks(block_bytes):
            yield with_keys(block, self._id, self._extra)


def with_keys(block: Block, id: str, extra: Sequence[str] = ()) -> Block:  # noqa: A002
    """Return a block whose rows are identified by a column that travels with them, or by their values for "*"."""
    if id != "*":
        keys = table_hashes([block.extra.column(id)])  # type: ignore[union-attr]
    elif isinstance(block.rows, TableRows):
        keys = table_hashes(block.rows.frame.to_arrow().columns)
    else:
        keys = row_hashes(block.X)
    return replace(block, keys=keys.view(np.int64), extra=block.extra.select(list(extra)) if extra else None)  # type: ignore[union-attr]


def _as_text(names: list[Any] | None) -> list[str] | None:
    """Return the names of columns that pandas numbers as our frames have them."""
    return None if names is None else [str(name) for name in names]


def _as_list(names: Any) -> list[Any] | None:
    """Return names as a list; a single name becomes a list of one."""
    if names is None:
        return None
    return [names] if isinstance(names, str | int) else list(names)


class TableSource(SourceOver):
    """Rows of a table as they are: every block holds a frame (`dc2.io.frames.TableRows`)."""

    def __init__(self, open_rows: Callable[[Sequence[str]], StreamSource[Any]], as_numbers: Callable[[], Source]):
        self._open_rows = open_rows
        self._texts: set[str] = set()
        self._open()
        self.as_numbers = as_numbers

    def _open(self) -> None:
        rows = self._open_rows(sorted(self._texts))
        assert isinstance(rows.layout, FrameLayout)
        super().__init__(rows)
        self.is_numeric: bool = rows.layout.is_numeric

    @property
    def remote(self) -> Any:
        """The rows, if they are elsewhere: what brings the engine that works there."""
        return getattr(self._source, "remote", None)

    def __getstate__(self) -> dict[str, Any]:
        # To workers go no frames, from which rows could be opened again.
        return {name: value for name, value in self.__dict__.items() if name not in ("_open_rows", "as_numbers")}

    def blocks(self, block_bytes: int) -> Iterator[Block]:
        """Start a fresh pass."""
        blocks: Iterator[Block] = self._source.blocks(block_bytes)
        return blocks

    def widened(self, first_pass: Callable[[], R]) -> R:
        """Return the result of the first pass; columns of text files that turn out to hold texts are read as such.

        The types of a text file are inferred from its beginning. Where a later value does not fit, its column is read
        as text and the pass is made again.
        """
        while True:
            try:
                return first_pass()
            except ColumnTypeError as error:
                if self._texts >= set(error.columns):
                    raise
                self._texts |= set(error.columns)
                self._open()


def as_table(
    data: Any,
    *,
    columns: Sequence[str] | None = None,
    drop: Sequence[str] | None = None,
    weight: str | None = None,
    extra: Sequence[str] = (),
    texts: Sequence[str] = (),
    csv: CsvOptions | None = None,
) -> TableSource | None:
    """Return the rows of a frame, of files or of a dataset with named columns; None for any other data.

    Examples
    --------
    >>> import pandas as pd
    >>> table = as_table(pd.DataFrame({"x": [1.0, 2.0], "town": ["Rome", None]}))
    >>> table.is_numeric, next(table.blocks(1000)).rows.frame.columns
    (False, ['x', 'town'])
    >>> as_table([[1.0, 2.0]]) is None
    True
    """
    if isinstance(data, TableSource):
        return data
    if columns is not None and drop is not None:
        raise ParameterError("Give columns (those to use) or drop (those to leave out), not both.")
    library = library_with_engine(data)
    if library not in (None, *UNORDERED) or (library is None and isinstance(data, Source)):
        return None
    if library is not None:

        def open_rows(more_texts: Sequence[str]) -> StreamSource[Any]:
            make: Callable[..., Any] = maker(library)
            source: StreamSource[Any] = make(
                data, columns=columns, drop=drop, sample_weight=weight, extra=extra, mixed=True
            )
            return source

    elif is_path(data):
        data = find_files(data, csv)
        if not all(file.format.named_columns for file in data):
            return None
        files = data

        def open_rows(more_texts: Sequence[str]) -> StreamSource[Any]:
            return file_source(files, columns, drop, weight, extra, mixed=True, texts=[*texts, *more_texts])

    elif is_dataset(data):

        def open_rows(more_texts: Sequence[str]) -> StreamSource[Any]:
            return dataset_source(data, columns, drop, weight, extra, mixed=True)

    else:
        frame = as_frame(data)
        if frame is None:
            return None
        data = frame.to_native()  # data that can be read only once are kept now

        def open_rows(more_texts: Sequence[str]) -> StreamSource[Any]:
            return FrameSource(frame, columns, drop, weight, extra, mixed=True)

    def as_numbers() -> Source:
        with warnings.catch_warnings():  # notes on files were given when they were opened as a table
            warnings.simplefilter("ignore", PreparationNote)
            return as_source(data, columns=columns, drop=drop, sample_weight=weight, extra=extra)

    return TableSource(open_rows, as_numbers)


def without_label_column(X: Any, y: Any, sample_weight: Any = None) -> tuple[Any, Any, Any]:
    """Return a table without the column that `y` names, the values of that column, and weights not in the table."""
    if not isinstance(y, str):
        return X, y, sample_weight
    library = library_with_engine(X)
    if library in UNORDERED:
        raise ParameterError(
            f"y={y!r}: labels belong to rows by their place, and rows of {library.title()} have no order. Fit without "
            "labels, or read the rows from files."
        )
    if library == "dask" and hasattr(X, "columns"):
        _check_label_column(y, [str(name) for name in X.columns])
        return X.drop(columns=[y]), X[y].compute().to_numpy(), sample_weight
    frame = None if is_path(X) or is_dataset(X) or isinstance(X, Source | TableSource) else as_frame(X)
    if frame is not None:
        _check_label_column(y, frame.columns)
        return frame.drop(y).to_native(), frame[y].to_list(), sample_weight
    weight, others = (sample_weight, None) if isinstance(sample_weight, str) else (None, sample_weight)
    table = None if isinstance(X, Source | TableSource) else as_table(X, drop=[y], weight=weight)
    if table is None:
        raise ParameterError(
            f"y={y!r} names a column of a data frame or of files, but X is a {type(X).__name__}. Give the labels."
        )
    return table, column_values(X, y), others


def column_values(data: Any, name: str) -> NDArray[np.object_]:
    """Return the values of a column of a table, equal ones as one object; None where a text is empty or -1."""
    seen: dict[Any, Any] = {"": None, "-1": None}

    def read(texts: list[str]) -> NDArray[np.object_]:
        table = as_table(data, columns=[name], texts=texts)
        assert table is not None
        columns = (block.rows.frame[name] for block in table.blocks(LABEL_BYTES))  # type: ignore[union-attr]
        return np.array([seen.setdefault(value, value) for column in columns for value in column.to_list()], object)

    try:
        return read([])
    except InputError:  # another type in another file, or further down: all as text
        return read([name])


def _check_label_column(name: str, names: Sequence[str]) -> None:
    if name not in names:
        raise ParameterError(f"y={name!r}: there is no such column. The columns are {', '.join(map(repr, names))}.")
