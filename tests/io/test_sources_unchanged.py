"""A pass that sees other rows than the first says so; one that sees the same rows, however cut up, does not."""

import os
import re

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dc2.errors import InputError, SourceError
from dc2.io import as_source, unchanged

WRITERS = {
    ".parquet": lambda path, X: pa.parquet.write_table(pa.table({"x": X[:, 0], "y": X[:, 1]}), path),
    ".arrow": lambda path, X: pa.feather.write_feather(pa.table({"x": X[:, 0], "y": X[:, 1]}), path),
    ".csv": lambda path, X: pd.DataFrame(X, columns=["x", "y"]).to_csv(path, index=False),
    ".jsonl": lambda path, X: pd.DataFrame(X, columns=["x", "y"]).to_json(path, orient="records", lines=True),
    ".npy": np.save,
}


def read(source, block_bytes=160):
    return [block.start for block in source.blocks(block_bytes)]


@pytest.mark.parametrize("suffix", WRITERS)
def test_a_file_whose_values_change_is_named_with_its_rows(suffix, tmp_path, monkeypatch):
    monkeypatch.setattr(unchanged, "STRETCH_ROWS", 16)
    X = np.arange(80.0).reshape(40, 2)
    first, second = tmp_path / f"a{suffix}", tmp_path / f"b{suffix}"
    WRITERS[suffix](first, X)
    WRITERS[suffix](second, X)
    source = as_source([first, second])
    read(source)
    read(source, 48)
    X[20, 1] += 1
    WRITERS[suffix](second, X)
    with pytest.raises(SourceError, match=re.escape(f"b{suffix}' has other values in its rows 16 to 31")):
        read(source)


@given(
    cuts=st.lists(st.integers(0, 300), max_size=5),
    again=st.lists(st.integers(0, 300), max_size=5),
    as_frames=st.booleans(),
)
def test_the_same_rows_may_come_in_other_pieces(cuts, again, as_frames):
    X = np.random.default_rng(0).normal(size=(300, 2))
    passes = iter([cuts, cuts, again, again])
    make = pd.DataFrame if as_frames else np.asarray
    source = as_source(lambda: [make(part) for part in np.split(X, sorted(next(passes))) if len(part)])
    assert read(source) == read(source) == read(source)


@pytest.mark.parametrize("as_frames", [False, True])
def test_a_callable_that_shuffles_its_rows_is_found_out(as_frames):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    make = pd.DataFrame if as_frames else np.asarray
    source = as_source(lambda: [make(rng.permutation(X))])
    read(source)
    with pytest.raises(SourceError, match="X has other values in its rows 0 to 299 than in the pass before"):
        read(source)


@pytest.mark.parametrize(("before", "after"), [(40, 30), (30, 40), (16, 40), (40, 16)])
def test_a_file_that_grows_or_shrinks_is_found_out(before, after, tmp_path, monkeypatch):
    monkeypatch.setattr(unchanged, "STRETCH_ROWS", 16)
    X = np.arange(80.0).reshape(40, 2)
    WRITERS[".csv"](tmp_path / "x.csv", X[:before])
    source = as_source(tmp_path / "x.csv")
    read(source)
    WRITERS[".csv"](tmp_path / "x.csv", X[:after])
    with pytest.raises(InputError, match="rows, but there were"):
        read(source)


def test_a_pass_that_ends_early_counts_as_far_as_it_went(monkeypatch):
    monkeypatch.setattr(unchanged, "STRETCH_ROWS", 16)
    X = np.arange(80.0).reshape(40, 2)
    source = as_source(lambda: np.split(X, 10))
    next(source.blocks(16 * 20))
    X[39] = 0
    read(source)
    X[3] = 0
    with pytest.raises(SourceError, match="rows 0 to 15"):
        read(source)


@pytest.mark.parametrize("order", ["C", "F"])
def test_a_npy_file_that_is_cut_short_while_it_is_read_is_an_error(order, tmp_path):
    path = tmp_path / "x.npy"
    np.save(path, np.asarray(np.random.default_rng(0).normal(size=(10_000, 4)), order=order))
    blocks = as_source(path).blocks(32 * 1_000)
    next(blocks)
    os.truncate(path, 70_000)
    with pytest.raises(SourceError, match=r"x\.npy' ended too early: it has become shorter"):
        list(blocks)


def test_a_column_that_a_file_loses_is_named(tmp_path):
    for suffix in (".parquet", ".arrow"):
        path = tmp_path / f"x{suffix}"
        WRITERS[suffix](path, np.ones((3, 2)))
        source = as_source(path)
        write = pa.parquet.write_table if suffix == ".parquet" else pa.feather.write_feather
        table = pa.table({"x": [1.0, 1.0, 1.0]})
        write(table, path)
        with pytest.raises(SourceError, match=re.escape(f"x{suffix}' has no column 'y' any more")):
            read(source)


def test_a_column_dropped_from_a_frame_in_memory_is_still_there():
    frame = pd.DataFrame({"x": [1.0, 2.0], "y": [3.0, 4.0]})
    source = as_source(frame)
    del frame["y"]
    assert next(source.blocks(100)).X.tolist() == [[1, 3], [2, 4]]
