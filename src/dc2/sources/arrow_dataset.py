"""Rows of a pyarrow.dataset, scanned as they are needed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import narwhals as nw

from dc2.errors import SourceError
from dc2.sources.found import import_pyarrow
from dc2.sources.frames import FrameLayout
from dc2.sources.plain import plain_schema, plain_table
from dc2.sources.streams import StreamSource
from dc2.sources.unchanged import Unchanged

__all__ = ["dataset_source", "is_dataset"]


def is_dataset(data: Any) -> bool:
    """Return whether this is a pyarrow.dataset.Dataset, without importing pyarrow."""
    return type(data).__module__.startswith("pyarrow") and hasattr(data, "get_fragments")


def dataset_source(
    dataset: Any,
    columns: Sequence[Any] | None = None,
    drop: Sequence[Any] | None = None,
    weight: str | None = None,
    extra: Sequence[str] = (),
    *,
    mixed: bool = False,
) -> StreamSource[Any]:
    """Return the source for a dataset; only the columns needed are read.

    Parameters
    ----------
    dataset : pyarrow.dataset.Dataset
        The rows; a filtered dataset gives those that pass.
    columns, drop, weight, extra, mixed
        As for `dc2.sources.frames.FrameLayout`.
    """
    arrow = import_pyarrow()
    schema = nw.from_native(plain_schema(dataset.schema).empty_table()).schema
    layout = FrameLayout(
        schema,
        columns,
        drop,
        weight,
        extra,
        "the dataset",
        mixed=mixed,
        first_rows=lambda names: nw.from_native(plain_table(dataset.head(1, columns=list(names)))),
    )
    unchanged = Unchanged()

    def frames(rows: int) -> Iterator[Any]:
        done = 0
        try:
            # Little reading ahead, which would hold many blocks in memory.
            for batch in dataset.to_batches(
                columns=layout.needed_columns, batch_size=rows, batch_readahead=1, fragment_readahead=1
            ):
                frame = nw.from_native(plain_table(arrow.Table.from_batches([batch])))
                layout.check_values(frame, "the dataset", done)
                done += len(frame)
                yield frame
        except (arrow.lib.ArrowException, OSError) as error:
            raise SourceError(f"The dataset broke after {done} rows: {error}") from error

    return StreamSource(layout, lambda rows: unchanged.watched(None, "The dataset", frames(rows), layout.values))
