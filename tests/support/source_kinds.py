"""Every kind of source that the same rows can come from."""

import gzip
import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet

from support.array_kinds import ARRAYS, STREAMED_ARRAYS, cut, written

MISSING = []  # packages that are not installed, and so write no files
try:
    import polars as pl
except ImportError:
    MISSING.append("polars")
try:
    import duckdb
except ImportError:
    MISSING.append("duckdb")


def names_of(X):
    return [f"c{index}" for index in range(X.shape[1])]


def frame_of(X):
    return pd.DataFrame(X, columns=names_of(X))


def polars_of(X):
    return pl.DataFrame(X, schema=names_of(X))


def relation_of(X):
    return duckdb.from_arrow(table_of(X))


def json_lines(X):
    return "".join(f"{json.dumps(dict(zip(names_of(X), row, strict=True)))}\n" for row in X.astype(float).tolist())


def table_of(X):
    return pa.table({name: X[:, index] for index, name in enumerate(names_of(X))})


class ArrowStream:
    """An object that has only the Arrow stream interface."""

    def __init__(self, table):
        self._table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self._table.__arrow_c_stream__(requested_schema)


def write_packed_csv(part, path):
    with gzip.open(path, "wb") as packed:
        pa.csv.write_csv(table_of(part.astype(np.float64)), packed)


def lists_of(X):
    offsets = pa.array(np.arange(len(X) + 1) * X.shape[1], pa.int32())
    return pa.table({"vector": pa.ListArray.from_arrays(offsets, pa.array(np.ascontiguousarray(X).ravel()))})


IN_MEMORY = ARRAYS | {
    "pandas": lambda X, folder, at: pd.DataFrame(X, columns=names_of(X)),
    "pandas by column": lambda X, folder, at: pd.DataFrame(dict(zip(names_of(X), X.T, strict=True))),
    "pandas on arrow": lambda X, folder, at: table_of(X).to_pandas(types_mapper=pd.ArrowDtype),
    "pyarrow": lambda X, folder, at: pa.concat_tables([table_of(part) for part in cut(X, at)]),
    "arrow batch": lambda X, folder, at: table_of(X).to_batches()[0],
    "arrow reader": lambda X, folder, at: table_of(X).to_reader(max_chunksize=3),
    "arrow stream": lambda X, folder, at: ArrowStream(table_of(X)),
}
STREAMED = STREAMED_ARRAYS | {
    "parquet": written(".parquet", lambda part, path: pa.parquet.write_table(table_of(part), path, row_group_size=7)),
    "arrow": written(".arrow", lambda part, path: pa.feather.write_feather(table_of(part), path, chunksize=5)),
    "csv": written(".csv", lambda part, path: pa.csv.write_csv(table_of(part.astype(np.float64)), path)),
    "csv.gz": written(".csv.gz", write_packed_csv),
    "callable of frames": lambda X, folder, at: lambda: [table_of(part) for part in cut(X, at)],
    "callable of pandas": lambda X, folder, at: lambda: map(pd.DataFrame, cut(X, at)),
}
# Files as other libraries write them, with their types, chunks and metadata.
WRITTEN = {
    "pandas parquet": written(".parquet", lambda part, path: frame_of(part).to_parquet(path)),
    "pandas csv": written(".csv", lambda part, path: frame_of(part).to_csv(path, index=False)),
    # A file without lines has no columns, and is refused.
    "jsonl": written(".jsonl", lambda part, path: len(part) and path.write_text(json_lines(part))),
}
LAZY = {}
LISTS = {"lists": lambda X, folder, at: lists_of(X)}
if "polars" not in MISSING:
    IN_MEMORY["polars"] = lambda X, folder, at: polars_of(X)
    LAZY["lazy frame"] = lambda X, folder, at: pl.LazyFrame(X, schema=names_of(X))
    LISTS["polars lists"] = lambda X, folder, at: pl.from_arrow(lists_of(X))
    WRITTEN |= {
        "polars parquet": written(".parquet", lambda part, path: polars_of(part).write_parquet(path, row_group_size=9)),
        "polars ipc": written(".arrow", lambda part, path: polars_of(part).write_ipc(path)),
        "polars csv": written(".csv", lambda part, path: polars_of(part).write_csv(path)),
    }
if "duckdb" not in MISSING:
    WRITTEN |= {
        "duckdb parquet": written(".parquet", lambda part, path: relation_of(part).write_parquet(str(path))),
        "duckdb csv": written(".csv", lambda part, path: relation_of(part).write_csv(str(path))),
    }
