"""From whatever the user has to a source."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from scipy.sparse import issparse

from dc2.errors import InputTypeError, ParameterError
from dc2.foreign import maker_for
from dc2.sources.arrays import ArraySource
from dc2.sources.arrow_dataset import dataset_source, is_dataset
from dc2.sources.base import Source
from dc2.sources.files import file_source
from dc2.sources.formats import CsvOptions
from dc2.sources.frames import FrameSource, as_frame, has_text_names
from dc2.sources.iterators import callable_source
from dc2.sources.paths import is_path
from dc2.sources.sparse import SparseSource
from dc2.sources.weights import WeightedSource

__all__ = ["as_source"]


def as_source(
    data: Any,
    *,
    columns: Sequence[Any] | None = None,
    drop: Sequence[Any] | None = None,
    sample_weight: Any = None,
    extra: Sequence[str] = (),
    csv: CsvOptions | None = None,
) -> Source:
    """Return the source for data of any kind.

    Parameters
    ----------
    data : array-like, data frame, path, sequence of paths, callable, dask array or data frame, or Source
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
        are read as text, to the letter.
    csv : CsvOptions, optional
        How to read CSV and TSV files with another separator or without a line of names.

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
    make = maker_for(data)
    if make is not None:
        made: Source = make(data, columns=chosen, drop=dropped, sample_weight=sample_weight, extra=travelling)
        return made
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


def _as_text(names: list[Any] | None) -> list[str] | None:
    """Return the names of columns that pandas numbers as our frames have them."""
    return None if names is None else [str(name) for name in names]


def _as_list(names: Any) -> list[Any] | None:
    """Return names as a list; a single name becomes a list of one."""
    if names is None:
        return None
    return [names] if isinstance(names, str | int) else list(names)
