"""Files as chunks for a cluster: every worker reads its own parts, with the readers that one machine uses."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any

import dask.array as da
import numpy as np

from dc2.engines.dask.pieces import OBJECTS
from dc2.engines.dask.reader import Reader
from dc2.engines.dask.source import DaskSource
from dc2.sources.files import file_source
from dc2.sources.formats import CsvOptions

__all__ = ["dask_files"]

CHUNK_BYTES = 64 * 2**20


def dask_files(
    paths: Any,
    *,
    columns: Sequence[Any] | None = None,
    drop: Sequence[Any] | None = None,
    sample_weight: str | None = None,
    extra: Sequence[str] = (),
    csv: CsvOptions | None = None,
) -> DaskSource:
    """Return files as a source whose chunks the workers read; they must see the files under the same names.

    Parameters
    ----------
    paths, columns, drop, sample_weight, extra, csv
        As for `dc2.sources.as_source`. A text file is one chunk: split a large one, or use Parquet.
    """
    source = file_source(paths, columns, drop, sample_weight, extra, csv)
    layout: Any = source.layout
    parts = list(source.parts(CHUNK_BYTES))
    sizes = tuple(np.nan if part.rows is None else part.rows for part in parts)
    to_read = np.empty(len(parts), object)
    to_read[:] = parts
    pieces = da.from_array(to_read, chunks=1, name=f"dc2-parts-{uuid.uuid4().hex}").map_blocks(
        _read, dtype=object, chunks=(sizes,), meta=OBJECTS
    )
    return DaskSource(pieces, Reader(layout))


def _read(parts: Any) -> Any:
    (part,) = parts
    return part.read()
