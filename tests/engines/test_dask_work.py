"""Laws of the work on Dask collections: computed no more often than it must be, lazy answers, clear errors."""

import pickle

import dask
import dask.array as da
import dask.bag
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from distributed import wait

from dc2 import Compressor
from dc2.engines import dask_engine as passes
from dc2.engines.dask_engine import Chunks, DaskEngine
from dc2.engines.dask_source import dask_source, pieces_of_array
from dc2.errors import InputError, InputTypeError, SourceError
from dc2.io import as_source
from support.dask_data import N_ROWS, NAMES, assert_same_signatures, clusterer, compressor, counted, frame, rows

# Nothing is computed more often than it must be


def test_fit_computes_every_chunk_twice_and_predict_waits_until_asked():
    counts = {}
    X = counted(da.from_array(rows(), chunks=(300, 5)), counts)
    model = compressor().fit(X)
    assert counts == dict.fromkeys(range(10), 2)
    labels = model.apply(X)
    assert counts == dict.fromkeys(range(10), 2)
    assert labels[:300].compute().shape == (300,)
    assert counts == {**dict.fromkeys(range(10), 2), 0: 3}


def test_what_several_chunks_share_is_computed_once_in_each_pass():
    counts = {}
    X = counted(da.from_array(rows(), chunks=(300, 5)), counts).rechunk((450, 5))
    compressor().fit(X)
    assert counts == dict.fromkeys(range(10), 2)


def test_chunks_of_unknown_length_are_computed_once_more_to_count_them():
    counts = {}
    X = counted(da.from_array(rows(), chunks=(300, 5)), counts)
    X._chunks = ((np.nan,) * 10, (5,))
    compressor().fit(X)
    assert counts == dict.fromkeys(range(10), 3)


@pytest.mark.parametrize("kind", ["array", "frame"])
def test_answers_are_lazy_arrays_in_the_chunks_of_the_data(kind):
    X = da.from_array(rows(), chunks=((1000, 500, 1500), 5))
    whole = rows()
    if kind == "frame":
        X, whole = dd.from_dask_array(X, columns=NAMES), frame()
    model = clusterer().fit(X)
    for method in (model.predict, model.transform, model.predict_proba):
        answers, whole_answers = method(X), method(whole)
        assert isinstance(answers, da.Array)
        assert answers.numblocks[0] == 3
        assert answers.dtype == whole_answers.dtype
        assert np.array_equal(answers.compute(), whole_answers)
    if kind == "array":
        assert model.predict(X).chunks == ((1000, 500, 1500),)
        assert model.transform(X).chunks == ((1000, 500, 1500), (3,))


# What crosses the network


def test_ten_thousand_chunks_become_few_tasks():
    pieces = pieces_of_array(da.zeros((10_000, 2), chunks=(1, 2)))
    batches = Chunks(pieces).batches([1] * 10_000, n_tasks=64)
    assert len(batches) <= 64
    numbers = [chunk.number for batch in batches for chunk in batch.chunks]
    assert numbers == list(range(10_000))
    starts = [chunk.start for batch in batches for chunk in batch.chunks]
    assert starts == list(range(10_000))


def test_results_are_merged_where_they_arise(monkeypatch):
    monkeypatch.setattr(passes, "MOST_RESULTS", 3)
    monkeypatch.setattr(passes, "JOINED_AT_ONCE", 2)
    source = dask_source(da.from_array(rows(), chunks=(100, 5)))
    merged = list(
        DaskEngine().map(lambda block: np.array([block.start]), source, stage="compress", merge=np.concatenate)
    )
    assert 1 < len(merged) <= 3
    assert np.array_equal(np.concatenate(merged), np.arange(0, N_ROWS, 100))


def test_results_come_in_order_and_progress_is_told():
    told = []
    source = dask_source(da.from_array(rows(), chunks=(1000, 5)))
    starts = list(DaskEngine(lambda *news: told.append(news)).map(lambda b: b.start, source, stage="compress"))
    assert starts == [0, 1000, 2000]
    assert told == [("compress", done, N_ROWS) for done in (0, 1000, 2000, 3000)]


def test_rows_that_workers_hold_stay_there(cluster):
    X = rows(n_rows=100_000)
    with cluster.as_current():
        held = da.from_array(X, chunks=(10_000, 5)).persist()
        wait(held)
        cluster.run(lambda dask_worker: dask_worker.transfer_incoming_log.clear())
        compressor().fit(held)
        logs = cluster.run(lambda dask_worker: list(dask_worker.transfer_incoming_log))
    moved = {str(key) for log in logs.values() for transfer in log for key in transfer["keys"]}
    assert all("dc2-" in key for key in moved)


def test_a_function_that_refers_to_its_source_does_not_carry_the_rows():
    source = dask_source(da.from_array(rows(n_rows=100_000), chunks=(1000, 5)))
    copy = pickle.loads(pickle.dumps(source))
    assert len(pickle.dumps(source)) < 2_000
    assert (copy.n_features, copy.dtype) == (source.n_features, source.dtype)


# Errors


def test_an_error_names_the_chunk(scheduler):
    def broken(block, block_id=None):
        if block_id == (3, 0):
            raise OSError("no such disk")
        return block

    def widened(block, block_id=None):
        return np.ones((len(block), 7), block.dtype) if block_id == (2, 0) else block

    def shortened(block, block_id=None):
        return block[1:] if block_id == (1, 0) else block

    def texts(block, block_id=None):
        return block.astype("U") if block_id == (4, 0) else block

    X = da.from_array(rows(), chunks=(300, 5))
    for harm, kind, message in [
        (broken, SourceError, "chunk 3 could not be computed: OSError: no such disk"),
        (widened, InputError, "chunk 2 has 7 columns, but the first has 5"),
        (shortened, SourceError, "chunk 1 has 299 rows, but 300 were expected"),
        (texts, InputError, "chunk 4: .* bytes/strings"),
    ]:
        with pytest.raises(kind, match=message):
            compressor().fit(X.map_blocks(harm, dtype=X.dtype))
    with pytest.raises(SourceError, match="chunk 2 could not be computed: OSError"):
        compressor().fit(X.map_blocks(broken, dtype=X.dtype).rechunk((450, 5)))
    compressor().fit(X)  # and the scheduler is still of use


def test_nan_is_found_and_its_row_and_column_named(scheduler):
    values = rows()
    values[1234, 2] = np.nan
    with pytest.raises(InputError, match=r"contains NaN.* column 2 has 1 \(first in row 1234\)"):
        compressor().fit(da.from_array(values, chunks=(1000, 5)))


@pytest.mark.parametrize(
    ("data", "kind", "message"),
    [
        (da.zeros(10), InputError, "Expected 2D array, got 1D"),
        (da.zeros((0, 3)), InputError, "0 sample"),
        (da.zeros((5, 0)), InputError, "0 feature"),
        (da.zeros((5, 2), dtype=complex), InputError, "Complex"),
        (da.from_array(np.array([["a"], ["b"]])), InputError, "bytes/strings"),
        (dask.bag.from_sequence([1, 2]), InputTypeError, "only arrays and data frames"),
        (dask.delayed(1), InputTypeError, "only arrays and data frames"),
        (
            dd.from_pandas(pd.DataFrame({"a": [1.0]}), npartitions=1)["a"],
            InputTypeError,
            "only arrays and data",
        ),
        (dd.from_pandas(pd.DataFrame({"a": ["x", "y"]}), npartitions=1), InputTypeError, "not numeric: 'a'"),
        (dd.from_pandas(pd.DataFrame({"a": [1.0]}), npartitions=1).query("a > 1"), InputError, "0 sample"),
    ],
)
def test_what_cannot_be_used_is_refused(data, kind, message):
    with pytest.raises(kind, match=message):
        Compressor(2).fit(data)


def test_columns_are_chosen_remembered_and_compared():
    data = dd.from_pandas(frame().assign(day="monday", w=1.0), npartitions=3)
    source = as_source(data, columns=["b", "a"])
    assert source.feature_names == ("b", "a")
    model = compressor().fit(source)
    assert_same_signatures(model, compressor().fit(frame()[["b", "a"]]))
    assert list(model.feature_names_in_) == ["b", "a"]
    np.testing.assert_array_equal(np.asarray(model.apply(data[["a", "b"]])), model.apply(frame()[["b", "a"]]))
    assert as_source(data, drop=["day", "w"]).feature_names == tuple(NAMES)
    assert as_source(da.from_array(rows(), chunks=1000), columns=[3, 0]).n_features == 2


def test_a_frame_without_text_names_has_no_feature_names():
    data = dd.from_pandas(pd.DataFrame(rows()), npartitions=3)
    model = compressor().fit(data)
    assert not hasattr(model, "feature_names_in_")
    assert_same_signatures(model, compressor().fit(rows()))
