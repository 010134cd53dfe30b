"""Spark, classic and Connect: `DataFrame.mapInArrow` on every partition, results merged by a shuffle."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from dc2.engines.arrow_adapter import RECORDS, ArrowSource, Batches, Task
from dc2.errors import InputTypeError, SourceError

GROUPS = 8
"""Results are merged into so many before they leave the workers."""


class SparkFrame:
    """A DataFrame of Spark as the adapter needs it."""

    system = "Spark"

    def __init__(self, data: Any) -> None:
        if not hasattr(data, "mapInArrow"):
            raise InputTypeError(f"X is a {type(data).__module__}.{type(data).__name__}. Use a DataFrame of Spark.")
        from pyspark.sql.pandas.types import to_arrow_schema

        try:
            streaming, fields = data.isStreaming, data.schema
        except Exception as error:
            raise SourceError(
                f"the Spark session of X does not answer ({str(error).splitlines()[0][:200]}). Start one and make the "
                "DataFrame again."
            ) from error
        if streaming:
            raise InputTypeError(
                "X is a streaming DataFrame, which can be passed over only once. Write it to a table and use that, or "
                "fit in foreachBatch."
            )
        self._data = data
        self.schema = to_arrow_schema(fields)

    def count(self) -> int:
        """Return the number of rows."""
        return int(self._data.count())

    def first(self, names: Sequence[str]) -> pa.Table:
        """Return these columns of the first row."""
        return self._chosen(names).limit(1).toArrow()

    def records(self, names: Sequence[str], task: Task, merge: Task | None, most: int) -> Iterator[pa.RecordBatch]:
        """Return the records of a task, merged in a few groups."""
        from pyspark.sql.pandas.types import from_arrow_schema

        kinds = from_arrow_schema(RECORDS)
        records = self._chosen(names).coalesce(most).mapInArrow(_numbered(task), kinds)
        if merge is not None:  # all records of a task come to the same group, so that one that ran twice counts once
            records = records.repartition(GROUPS, "task").mapInArrow(_numbered(merge), kinds)
            return iter(records.toArrow().to_batches())
        rows = ({**row.asDict(), "data": bytes(row["data"])} for row in records.toLocalIterator())
        return (pa.RecordBatch.from_pylist([row], schema=RECORDS) for row in rows)

    def answered(self, task: Task, schema: pa.Schema) -> Any:
        """Return what a task makes of the rows, lazily."""
        from pyspark.sql.pandas.types import from_arrow_schema

        return self._data.mapInArrow(_numbered(task), from_arrow_schema(schema))

    def write(self, frame: Any, names: Sequence[str], path: str, overwrite: bool) -> int:
        """Write Parquet, and return the number of rows."""
        writer = frame.select(*map(_quoted, names)).write
        writer.mode("overwrite" if overwrite else "errorifexists").parquet(path)
        return int(self._data.sparkSession.read.parquet(path).count())

    def _chosen(self, names: Sequence[str]) -> Any:
        return self._data.select(*map(_quoted, names))


def _quoted(name: str) -> str:
    """Return a column's name as Spark takes it: a dot in it would mean a part of a struct."""
    return "`" + name.replace("`", "``") + "`"


def _numbered(task: Task) -> Any:
    """Return a task as Spark calls it: with record batches alone."""

    def run(batches: Batches) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        context = TaskContext.get()
        return task(0 if context is None else context.partitionId(), batches)

    return run


def spark_files(paths: Sequence[str], master: str | None) -> Any:
    """Return Parquet files as a DataFrame, in the session at a master, which is started if there is none."""
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # workers on this machine need its packages
    builder = SparkSession.builder.appName("dc2").config("spark.ui.showConsoleProgress", "false")
    if master is not None:
        builder = builder.remote(master) if master.startswith("sc://") else builder.master(master)
    try:
        return builder.getOrCreate().read.parquet(*paths)
    except Exception as error:
        raise SourceError(
            f"Spark at {master!r} cannot read {paths[0]!r}: {str(error).splitlines()[0][:300]}."
        ) from error


def spark_source(data: Any, **options: Any) -> ArrowSource:
    """Return the source for a DataFrame of Spark."""
    return ArrowSource(SparkFrame(data), **options)
