"""Tables with columns of any type: their rows come as frames, and become numbers when they are prepared."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import narwhals as nw

from dc2.errors import ParameterError
from dc2.foreign import maker_for
from dc2.sources.arrow_dataset import dataset_source, is_dataset
from dc2.sources.base import Block, Source
from dc2.sources.files import file_source
from dc2.sources.formats import CsvOptions
from dc2.sources.frames import FrameLayout, FrameSource, as_frame
from dc2.sources.paths import find_files, is_path
from dc2.sources.resolve import as_source
from dc2.sources.streams import StreamSource

__all__ = ["TableSource", "as_table"]


class TableSource:
    """Rows of a table as they are: every block holds a frame (`dc2.sources.frames.TableRows`).

    Parameters
    ----------
    rows : StreamSource
        Reads them.
    as_numbers : callable
        Returns the source of the same rows as numbers; raises if a column is not numeric.
    """

    def __init__(self, rows: StreamSource[Any], as_numbers: Callable[[], Source]) -> None:
        assert isinstance(rows.layout, FrameLayout)
        self._rows = rows
        self.as_numbers = as_numbers
        self.is_numeric: bool = rows.layout.is_numeric
        self.n_features: int = rows.n_features
        self.feature_names: tuple[str, ...] | None = rows.feature_names
        self.dtype = rows.dtype
        self.in_memory: bool = rows.in_memory

    @property
    def n_rows(self) -> int | None:
        """Number of rows, or None if it is not known without a pass."""
        return self._rows.n_rows

    def blocks(self, block_bytes: int) -> Iterator[Block]:
        """Start a fresh pass."""
        return self._rows.blocks(block_bytes)


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

    Parameters
    ----------
    data, columns, drop, extra, csv
        As for `dc2.as_source`.
    weight : str, optional
        The column of weights.
    texts : sequence of str
        Columns of text files to be read as text, even if they look like numbers.

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
    if not (is_path(data) or is_dataset(data) or maker_for(data) is not None or isinstance(data, Source)):
        frame = as_frame(data)
        if frame is None:
            return None
        data = frame.to_native()  # data that can be read only once are kept now
    rows = _rows(data, columns, drop, weight, extra, texts, csv)
    if rows is None:
        return None

    def as_numbers() -> Source:
        return as_source(data, columns=columns, drop=drop, sample_weight=weight, extra=extra, csv=csv)

    return TableSource(rows, as_numbers)


def _rows(
    data: Any,
    columns: Sequence[str] | None,
    drop: Sequence[str] | None,
    weight: str | None,
    extra: Sequence[str],
    texts: Sequence[str],
    csv: CsvOptions | None,
) -> StreamSource[Any] | None:
    if maker_for(data) is not None or isinstance(data, Source):
        return None
    if is_path(data):
        if not all(file.format.named_columns for file in find_files(data, csv)):
            return None
        return file_source(data, columns, drop, weight, extra, csv, mixed=True, texts=texts)
    if is_dataset(data):
        return dataset_source(data, columns, drop, weight, extra, mixed=True)
    return FrameSource(nw.from_native(data), columns, drop, weight, extra, mixed=True)
