"""Ray: `Dataset.map_batches` on every block, results merged a few at a time."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from dc2.engines.arrow_adapter import RECORDS, ArrowSource, Task
from dc2.errors import InputError, InputTypeError, SourceError

GROUPS = 8
"""Results are merged into so many before they leave the workers."""


class RayFrame:
    """A Dataset of Ray as the adapter needs it."""

    system = "Ray"

    def __init__(self, data: Any) -> None:
        if not hasattr(data, "map_batches"):
            raise InputTypeError(f"X is a {type(data).__module__}.{type(data).__name__}. Use a Dataset of Ray.")
        import ray

        if not ray.is_initialized():
            raise SourceError("the Ray session of X has ended. Start one with ray.init and make the Dataset again.")
        self._data, self._n_rows = data, int(data.count())
        if not self._n_rows:
            raise InputError("Found array with 0 sample(s): the Dataset has no rows, while a minimum of 1 is required.")
        self.schema = _plain(data.limit(1).take_batch(1, batch_format="pyarrow")).schema

    def count(self) -> int:
        """Return the number of rows."""
        return self._n_rows

    def first(self, names: Sequence[str]) -> pa.Table:
        """Return these columns of the first row."""
        return _plain(self._chosen(names).take_batch(1, batch_format="pyarrow"))

    def records(self, names: Sequence[str], task: Task, merge: Task | None, most: int) -> Iterator[pa.RecordBatch]:
        """Return the records of a task, merged in a few groups."""
        records = self._chosen(names).map_batches(_numbered(task), batch_size=None, batch_format="pyarrow")
        if merge is not None:
            groups = records.repartition(GROUPS)
            records = groups.map_batches(_numbered(merge), batch_size=None, batch_format="pyarrow")
        for table in records.iter_batches(batch_size=1, batch_format="pyarrow"):
            yield from table.to_batches()

    def answered(self, task: Task, schema: pa.Schema) -> Any:
        """Return what a task makes of the rows, lazily."""

        def run(table: pa.Table) -> Iterator[pa.Table]:
            for batch in task(0, _plain(table).to_batches()):
                yield pa.Table.from_batches([batch])

        return self._data.map_batches(run, batch_size=None, batch_format="pyarrow")

    def write(self, frame: Any, names: Sequence[str], path: str, overwrite: bool) -> int:
        """Write Parquet, and return the number of rows."""
        from ray.data import SaveMode, read_parquet

        mode = SaveMode.OVERWRITE if overwrite else SaveMode.ERROR
        frame.select_columns(list(names)).write_parquet(path, mode=mode)
        return int(read_parquet(path).count())

    def _chosen(self, names: Sequence[str]) -> Any:
        return self._data.select_columns(list(names))


def _plain(table: pa.Table) -> pa.Table:
    """Return a table whose tensors are lists, as they are stored."""
    for place, kind in enumerate(table.schema.types):
        if isinstance(kind, pa.BaseExtensionType):
            stored = [chunk.storage for chunk in table.column(place).chunks]
            column = pa.chunked_array(stored, kind.storage_type)
            table = table.set_column(place, table.schema.names[place], column)
    return table


def _numbered(task: Task) -> Any:
    """Return a task as Ray calls it: with a table. What a task that ran before has left is never seen."""

    def run(table: pa.Table) -> pa.Table:
        number = secrets.randbits(62)
        pieces = [batch.column("data")[0].as_py() for batch in task(number, _plain(table).to_batches())]
        # One row: rows of a task that Ray parts from each other could not be merged.
        return pa.table({"task": [number], "piece": [0], "pieces": [1], "data": [b"".join(pieces)]}, schema=RECORDS)

    return run


def ray_files(paths: Sequence[str], address: str | None) -> Any:
    """Return Parquet files as a Dataset, on the cluster at an address, or on one that is started here."""
    import ray

    ray.init(address, log_to_driver=False, logging_level="ERROR", ignore_reinit_error=True)
    ray.data.DataContext.get_current().enable_progress_bars = False
    logging.getLogger("ray.data").setLevel(logging.ERROR)
    return ray.data.read_parquet(list(paths))


def ray_source(data: Any, **options: Any) -> ArrowSource:
    """Return the source for a Dataset of Ray."""
    return ArrowSource(RayFrame(data), **options)
