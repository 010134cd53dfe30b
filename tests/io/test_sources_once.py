"""Laws of rows that come only once, or from queries that need not give them twice in the same order."""

import os
import tempfile

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet
import pytest

from dc2 import Compressor
from dc2.errors import InputError, InputTypeError, SourceError
from dc2.io import as_source
from dc2.io import streams as once
from support.source_kinds import ArrowStream, table_of

X = np.random.default_rng(0).normal(size=(500, 3))
TABLE = table_of(X).append_column("id", pa.array([f"row {i}, named at length" for i in range(500)]))
KINDS = {
    "lazy frame": lambda table: pl.from_arrow(table).lazy(),
    "relation": duckdb.from_arrow,
    "reader": lambda table: table.to_reader(max_chunksize=50),
    "stream": ArrowStream,
}


def rows_of(source, block_bytes=2**12):
    return np.concatenate([block.X for block in source.blocks(block_bytes)])


def ids_of(source):
    return [name for block in source.blocks(2**12) for name in block.extra.column("id").to_pylist()]


@pytest.fixture(params=["in memory", "in a file"])
def temporary_files(request, monkeypatch, tmp_path):
    """The folder of temporary files; in the second form even few rows go to one."""
    if request.param == "in a file":
        monkeypatch.setattr(once, "MOST_IN_MEMORY", 1)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize("kind", KINDS)
def test_every_pass_gives_the_rows_that_were_read_once(kind, temporary_files):
    source = as_source(KINDS[kind](TABLE), extra=["id"])
    assert (source.n_rows, source.feature_names) == (500, ("c0", "c1", "c2"))
    for _ in range(2):
        np.testing.assert_array_equal(rows_of(source), X)
        assert ids_of(source) == TABLE.column("id").to_pylist()
    del source
    assert os.listdir(temporary_files) == []


@pytest.mark.parametrize("kind", KINDS)
def test_a_model_is_that_of_the_table(kind):
    table = TABLE.drop_columns("id")
    model = Compressor(20, random_state=0).fit(KINDS[kind](table))
    whole = Compressor(20, random_state=0).fit(table)
    assert np.array_equal(model.signatures_.points, whole.signatures_.points)
    assert list(model.feature_names_in_) == ["c0", "c1", "c2"]
    assert np.array_equal(model.labels_, whole.labels_)


def test_a_query_without_an_order_is_run_once():
    calls = []

    def noted(frame):
        calls.append(len(frame))
        return frame.sample(fraction=1.0, shuffle=True)

    query = pl.from_arrow(TABLE).drop("id").lazy().map_batches(noted)
    source = as_source(query)
    assert np.array_equal(rows_of(source), rows_of(source))
    assert sum(calls) == 500


def test_a_reader_that_is_used_up_is_refused_with_the_way_out():
    reader = TABLE.drop_columns("id").to_reader()
    model = Compressor(20, random_state=0).fit(reader)
    with pytest.raises(InputError, match=r"RecordBatchReader gave no rows.*used up before.*read_all\(\)"):
        model.apply(reader)


def test_a_query_that_fails_is_an_error_with_its_reason():
    with pytest.raises(InputTypeError, match=r"LazyFrame could not be computed.*nowhere"):
        as_source(pl.LazyFrame({"a": [1.0]}).select("nowhere"))

    def broken():
        yield pa.record_batch({"a": [1.0]})
        raise OSError("the line is dead")

    reader = pa.RecordBatchReader.from_batches(pa.schema({"a": pa.float64()}), broken())
    with pytest.raises(SourceError, match=r"broke while it was read: .*the line is dead"):
        as_source(reader)


class TestDatasets:
    """A pyarrow.dataset is scanned again at each pass."""

    @pytest.fixture
    def folder(self, tmp_path):
        for number in range(3):
            pa.parquet.write_table(TABLE.slice(200 * number, 200), tmp_path / f"{number}.parquet")
        return tmp_path

    def test_it_gives_its_rows_in_order(self, folder):
        source = as_source(pa.dataset.dataset(folder), extra=["id"])
        assert not source.in_memory
        np.testing.assert_array_equal(rows_of(source), X)
        assert ids_of(source) == TABLE.column("id").to_pylist()
        assert source.n_rows == 500

    def test_a_filter_and_columns_are_obeyed(self, folder):
        dataset = pa.dataset.dataset(folder).filter(pa.dataset.field("c0") > 0)
        source = as_source(dataset, columns=["c2"], sample_weight="c0")
        np.testing.assert_array_equal(rows_of(source), X[X[:, 0] > 0][:, 2:])

    def test_rows_that_change_are_noticed(self, folder):
        source = as_source(pa.dataset.dataset(folder), drop=["id"])
        rows_of(source)
        pa.parquet.write_table(TABLE.slice(100, 200), folder / "1.parquet")
        with pytest.raises(SourceError, match="The dataset has other values in its rows 0 to 499"):
            rows_of(source)

    def test_text_is_refused_by_name(self, folder):
        with pytest.raises(InputTypeError, match="the dataset has columns that are not numeric: 'id'"):
            as_source(pa.dataset.dataset(folder))
