"""Every kind of source that the same rows can come from."""

import gzip

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet


def names_of(X):
    return [f"c{index}" for index in range(X.shape[1])]


def table_of(X):
    return pa.table({name: X[:, index] for index, name in enumerate(names_of(X))})


def cut(X, at):
    """X in pieces; `at` are shares of its rows."""
    return np.split(X, sorted(round(share * len(X)) for share in at))


class ArrowStream:
    """An object of which only the Arrow stream interface is known."""

    def __init__(self, table):
        self._table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self._table.__arrow_c_stream__(requested_schema)


class LooksLikeAnArray:
    def __init__(self, X):
        self._X = X

    def __array__(self, dtype=None, copy=None):
        return self._X


def memory_map(X, folder, at):
    mapped = np.memmap(folder / "map.dat", dtype=X.dtype, mode="w+", shape=X.shape)
    mapped[:] = X
    return np.memmap(folder / "map.dat", dtype=X.dtype, mode="r", shape=X.shape)


def strided(X, folder, at):
    wide = np.zeros((2 * X.shape[0], 2 * X.shape[1]), X.dtype)
    wide[::2, 1::2] = X
    return wide[::2, 1::2]


def read_only(X, folder, at):
    locked = X.copy()
    locked.flags.writeable = False
    return locked


def written(suffix, write):
    def make(X, folder, at):
        for number, part in enumerate(cut(X, at)):
            write(part, folder / f"part-{number}{suffix}")
        return folder / f"part-*{suffix}"

    return make


def write_packed_csv(part, path):
    with gzip.open(path, "wb") as packed:
        pa.csv.write_csv(table_of(part.astype(np.float64)), packed)


IN_MEMORY = {
    "array": lambda X, folder, at: X,
    "list": lambda X, folder, at: X.astype(np.float64).tolist(),
    "fortran": lambda X, folder, at: np.asfortranarray(X),
    "strided": strided,
    "read-only": read_only,
    "byte-swapped": lambda X, folder, at: X.astype(X.dtype.newbyteorder()),
    "memmap": memory_map,
    "__array__": lambda X, folder, at: LooksLikeAnArray(X),
    "pandas": lambda X, folder, at: pd.DataFrame(X, columns=names_of(X)),
    "pandas by column": lambda X, folder, at: pd.DataFrame(dict(zip(names_of(X), X.T, strict=True))),
    "pandas on arrow": lambda X, folder, at: table_of(X).to_pandas(types_mapper=pd.ArrowDtype),
    "polars": lambda X, folder, at: pl.DataFrame(X, schema=names_of(X)),
    "pyarrow": lambda X, folder, at: pa.concat_tables([table_of(part) for part in cut(X, at)]),
    "arrow reader": lambda X, folder, at: table_of(X).to_reader(max_chunksize=3),
    "arrow stream": lambda X, folder, at: ArrowStream(table_of(X)),
}
STREAMED = {
    "parquet": written(
        ".parquet", lambda part, path: pa.parquet.write_table(table_of(part), path, row_group_size=7)
    ),
    "arrow": written(
        ".arrow", lambda part, path: pa.feather.write_feather(table_of(part), path, chunksize=5)
    ),
    "csv": written(".csv", lambda part, path: pa.csv.write_csv(table_of(part.astype(np.float64)), path)),
    "csv.gz": written(".csv.gz", write_packed_csv),
    "npy": written(".npy", lambda part, path: np.save(path, part)),
    "callable of arrays": lambda X, folder, at: lambda: iter(cut(X, at)),
    "callable of frames": lambda X, folder, at: lambda: [table_of(part) for part in cut(X, at)],
    "callable of pandas": lambda X, folder, at: lambda: map(pd.DataFrame, cut(X, at)),
}
