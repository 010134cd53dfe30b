"""Laws of Dask collections: the same bits as rows in memory, for any chunks and workers; lazy answers; clear errors."""

import logging
import pickle
import threading

import dask
import dask.array as da
import dask.bag
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pyarrow
import pytest
from distributed import Client, LocalCluster, wait
from hypothesis import given, settings
from hypothesis import strategies as st

from dc2 import Compressor, RPFCluster
from dc2.cli import main
from dc2.engines.dask import DaskEngine, dask_source, engine, files
from dc2.engines.dask.files import dask_files
from dc2.engines.dask.graph import ChunkGraph
from dc2.engines.dask.pieces import pieces_of_array
from dc2.errors import InputError, InputTypeError, SourceError
from dc2.sources import as_source

N_ROWS = 3_000
NAMES = list("abcde")


def rows(dtype=np.float32, n_rows=N_ROWS):
    rng = np.random.default_rng(0)
    return (rng.normal(size=(n_rows, 5)) + 8 * rng.integers(0, 3, (n_rows, 1))).astype(dtype)


def frame(dtype=np.float32, n_rows=N_ROWS):
    return pd.DataFrame(rows(dtype, n_rows), columns=NAMES)


def compressor(**parameters):
    # The sample is smaller than the rows, so that both passes matter.
    return Compressor(20, sample_size=500, random_state=0, n_jobs=1, **parameters)


def clusterer(**parameters):
    return RPFCluster(
        3, n_signatures=30, sample_size=500, n_trees=50, bandwidth=0.05, random_state=0, n_jobs=1
    )


def assert_same_signatures(one, other):
    for name in ("points", "weights", "spread"):
        assert np.array_equal(getattr(one.signatures_, name), getattr(other.signatures_, name)), name


@pytest.fixture(scope="module")
def cluster():
    """Two worker processes; tests that use it run there, the others on Dask's threads."""
    with (
        # Dask moves rows to workers that idle, which is fair, but here they are counted.
        dask.config.set({"distributed.scheduler.work-stealing": False}),
        LocalCluster(2, threads_per_worker=1, dashboard_address=":0", silence_logs=logging.CRITICAL) as local,
        Client(local, set_as_default=False) as client,
    ):
        yield client


@pytest.fixture(params=["threads", "one thread", "two processes"])
def scheduler(request):
    if request.param == "two processes":
        with request.getfixturevalue("cluster").as_current() as client:
            yield client
    else:
        with dask.config.set(scheduler="threads" if request.param == "threads" else "sync"):
            yield None


def counted(array, counts):
    """The same array, with a note of every chunk that is computed (Dask's own threads only)."""
    lock = threading.Lock()

    def note(block, block_id=None):
        if block_id is not None and block_id != ():
            with lock:
                counts[block_id[0]] = counts.get(block_id[0], 0) + 1
        return block

    return array.map_blocks(note, dtype=array.dtype, meta=np.empty((0, 0), array.dtype))


# The same bits


def cuts_of(n_rows):
    inner = st.lists(st.integers(0, n_rows), max_size=12).map(sorted)
    return inner.map(lambda cuts: tuple(np.diff([0, *cuts, n_rows]).tolist()))


@settings(max_examples=25)
@given(sizes=cuts_of(400), wide=st.integers(1, 5), dtype=st.sampled_from([np.float32, np.float64, np.int32]))
def test_any_chunks_give_the_bits_of_rows_in_memory(sizes, wide, dtype):
    X = rows(dtype, 400)
    with dask.config.set(scheduler="sync"):
        chunked = da.from_array(X, chunks=(sizes, wide))
        model = Compressor(15, sample_size=100, random_state=0).fit(chunked)
        labels = model.apply(chunked).compute()
    whole = Compressor(15, sample_size=100, random_state=0).fit(X)
    assert_same_signatures(model, whole)
    assert np.array_equal(labels, whole.labels_)


@pytest.mark.parametrize(
    ("kind", "dtype"),
    [
        ("array", np.float32),
        ("array", np.float64),
        ("columns cut up", np.float32),
        ("held", np.float64),
        ("frame", np.float32),
        ("frame", np.float64),
        ("held frame", np.float32),
        ("unknown lengths", np.float64),
    ],
)
def test_every_collection_on_every_scheduler_gives_the_labels_of_rows_in_memory(scheduler, kind, dtype):
    X = rows(dtype)
    chunked = da.from_array(X, chunks=(700, 2 if kind == "columns cut up" else 5))
    partitioned = dd.from_pandas(frame(dtype), npartitions=4)
    data = {
        "array": lambda: chunked,
        "columns cut up": lambda: chunked,
        "held": lambda: chunked.persist(),
        "frame": lambda: partitioned,
        "held frame": lambda: partitioned.persist(),
        "unknown lengths": lambda: partitioned.to_dask_array(),
    }[kind]()
    model = clusterer().fit(data)
    whole = clusterer().fit(X)
    assert np.array_equal(model.predict(data).compute(), whole.labels_)
    assert_same_signatures(model, whole)


def test_files_give_the_labels_of_rows_in_memory(scheduler, tmp_path):
    frame().to_parquet(tmp_path / "rows.parquet", row_group_size=500)
    frame().to_csv(tmp_path / "rows.csv", index=False)
    parquet = dd.read_parquet(tmp_path / "rows.parquet", split_row_groups=1)
    text = dd.read_csv(tmp_path / "rows.csv", blocksize=30_000)
    assert min(parquet.npartitions, text.npartitions) > 3
    whole = compressor().fit(rows())
    assert np.array_equal(compressor().fit(parquet).apply(parquet).compute(), whole.labels_)
    whole = compressor().fit(pd.read_csv(tmp_path / "rows.csv"))
    assert np.array_equal(compressor().fit(text).apply(text).compute(), whole.labels_)


@pytest.mark.parametrize("suffix", ["parquet", "arrow", "csv", "npy"])
def test_files_that_workers_read_give_the_labels_of_one_machine(scheduler, tmp_path, monkeypatch, suffix):
    monkeypatch.setattr(files, "CHUNK_BYTES", 10_000)
    paths = [tmp_path / f"{name}.{suffix}" for name in ("b", "a")]
    for path, part in zip(paths, (frame()[:1000], frame()[1000:]), strict=True):
        if suffix == "parquet":
            part.to_parquet(path, row_group_size=300, index=False)
        elif suffix == "arrow":
            table = pyarrow.Table.from_pandas(part, preserve_index=False)
            with pyarrow.ipc.new_file(path, table.schema) as writer:
                writer.write_table(table, max_chunksize=300)
        elif suffix == "csv":
            part.to_csv(path, index=False)
        else:
            np.save(path, part.to_numpy())
    columns = [0, 3] if suffix == "npy" else ["a", "d"]
    source = dask_files(paths, columns=columns)
    assert len(source.row_counts) > 2 or suffix == "csv"
    model, whole = compressor().fit(source), compressor().fit(as_source(paths, columns=columns))
    assert_same_signatures(model, whole)
    assert np.array_equal(
        model.apply(source).compute(), np.concatenate(list(whole.apply(as_source(paths, columns=columns))))
    )


@pytest.mark.parametrize(
    "parameters",
    [
        {"signature": "member"},
        {"scale": "standard"},
        {"populate": "nearest"},
        {"n_partitions": 3, "divide": "sampling"},
        {"sample_size": None},
    ],
)
def test_every_way_to_compress_works_on_chunks(parameters):
    parameters = {"sample_size": 500, "random_state": 0, **parameters}
    model = Compressor(20, **parameters).fit(da.from_array(rows(), chunks=(700, 5)))
    assert_same_signatures(model, Compressor(20, **parameters).fit(rows()))


def test_rows_that_were_shuffled_give_the_same_labels_as_computed(scheduler):
    shuffled = dd.from_pandas(frame(), npartitions=4).shuffle("a", npartitions=3, shuffle_method="tasks")
    model = compressor().fit(shuffled)
    assert_same_signatures(model, compressor().fit(shuffled.compute()))


def test_empty_chunks_are_passed_over(scheduler):
    X = rows()
    gaps = da.from_array(X, chunks=((0, 1000, 0, 0, 2000, 0), 5))
    model = compressor().fit(gaps)
    assert_same_signatures(model, compressor().fit(X))
    labels = model.apply(gaps)
    assert labels.chunks == ((0, 1000, 0, 0, 2000, 0),)
    assert np.array_equal(labels.compute(), model.apply(X))
    filtered = dd.from_pandas(frame().assign(row=range(N_ROWS)), npartitions=5)
    filtered = filtered[filtered["row"] >= 1500][NAMES]
    assert_same_signatures(compressor().fit(filtered), compressor().fit(X[1500:]))


# Weights


@pytest.mark.parametrize("kind", ["other chunks", "series", "in memory", "name"])
@pytest.mark.parametrize("data", ["array", "frame", "unknown lengths"])
def test_weights_of_every_kind_weigh_the_same(scheduler, data, kind):
    weights = np.random.default_rng(1).integers(0, 4, N_ROWS).astype(float)
    with_weights = dd.from_pandas(frame().assign(w=weights), npartitions=4)
    plain = with_weights[NAMES]
    X = {
        "array": da.from_array(rows(), chunks=(750, 5)),
        "frame": plain,
        "unknown lengths": plain.to_dask_array(),
    }[data]
    sample_weight = {
        "other chunks": da.from_array(weights, chunks=1100 if data == "array" else 750),
        "series": with_weights["w"],
        "in memory": weights,
        "name": "w",
    }[kind]
    if kind == "name":
        if data != "frame":
            with pytest.raises(InputTypeError, match="without column names"):
                compressor().fit(X, sample_weight=sample_weight)
            return
        X = with_weights
    model = compressor().fit(X, sample_weight=sample_weight)
    assert_same_signatures(model, compressor().fit(rows(), sample_weight=weights))
    assert model.n_features_in_ == 5


def test_weights_that_do_not_fit_are_refused():
    X = da.from_array(rows(), chunks=(750, 5))
    unknown = dd.from_pandas(frame(), npartitions=4).to_dask_array()
    for data, weights, message in [
        (X, da.ones(N_ROWS - 1, chunks=750), "2999 values but X has 3000 rows"),
        (X, np.ones(N_ROWS + 1), "3001 values but X has 3000 rows"),
        (X, da.ones((N_ROWS, 2), chunks=750), "1-dimensional"),
        (unknown, da.ones(N_ROWS, chunks=1000), "3 chunks but X has 4"),
        (unknown, da.ones(N_ROWS, chunks=(((700, 800, 750, 750),))), "has 750 rows, but"),
        (X, da.full(N_ROWS, -1.0, chunks=750), "chunk .: sample_weight contains negative"),
        (X, da.zeros(N_ROWS, chunks=750), "zero for all 3000 rows"),
    ]:
        with pytest.raises(InputError, match=message):
            compressor().fit(data, sample_weight=weights)


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
    batches = ChunkGraph(pieces).batches([1] * 10_000, n_tasks=64)
    assert len(batches) <= 64
    numbers = [chunk.number for batch in batches for chunk in batch.chunks]
    assert numbers == list(range(10_000))
    starts = [chunk.start for batch in batches for chunk in batch.chunks]
    assert starts == list(range(10_000))


def test_results_are_merged_where_they_arise(monkeypatch):
    monkeypatch.setattr(engine, "MOST_RESULTS", 3)
    monkeypatch.setattr(engine, "JOINED_AT_ONCE", 2)
    source = dask_source(da.from_array(rows(), chunks=(100, 5)))
    merged = list(
        DaskEngine().map(
            lambda block: np.array([block.start]), source, stage="compress", merge=np.concatenate
        )
    )
    assert 1 < len(merged) <= 3
    assert np.array_equal(np.concatenate(merged), np.arange(0, N_ROWS, 100))


def test_results_come_in_order_and_progress_is_told():
    told = []
    source = dask_source(da.from_array(rows(), chunks=(1000, 5)))
    starts = list(
        DaskEngine(lambda *news: told.append(news)).map(lambda b: b.start, source, stage="compress")
    )
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
    with pytest.raises(InputError, match="order"):
        model.apply(data[["a", "b"]])
    assert as_source(data, drop=["day", "w"]).feature_names == tuple(NAMES)
    assert as_source(da.from_array(rows(), chunks=1000), columns=[3, 0]).n_features == 2


def test_a_frame_without_text_names_has_no_feature_names():
    data = dd.from_pandas(pd.DataFrame(rows()), npartitions=3)
    model = compressor().fit(data)
    assert not hasattr(model, "feature_names_in_")
    assert_same_signatures(model, compressor().fit(rows()))


# The rest of the house


def test_labels_of_chunks_are_written_beside_their_ids(scheduler, tmp_path):
    data = dd.from_pandas(frame().assign(id=[f"row{i}" for i in range(N_ROWS)]), npartitions=4)
    model = clusterer().fit(data[NAMES])
    assert model.predict_to(data, tmp_path / "labels.parquet", id_columns="id") == N_ROWS
    written = pd.read_parquet(tmp_path / "labels.parquet")
    assert written["id"].tolist() == [f"row{i}" for i in range(N_ROWS)]
    assert np.array_equal(written["label"], model.predict(frame()))


def test_a_stream_may_come_in_chunks():
    whole = compressor().partial_fit(rows())
    streamed = compressor().partial_fit(da.from_array(rows(), chunks=(1000, 5)))
    assert_same_signatures(whole, streamed)


def test_the_command_line_on_a_cluster_writes_the_labels_of_threads(cluster, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    frame().assign(name=[f"row {row}" for row in range(N_ROWS)]).to_parquet(
        "rows.parquet", row_group_size=500
    )
    command = ["cluster", "rows.parquet", "-k", "3", "--signatures", "50", "--id", "name"]
    address = cluster.scheduler.address
    for options in (
        ["-o", "here.parquet"],
        ["-o", "there.parquet", "--engine", "dask", "--scheduler", address],
    ):
        with pytest.raises(SystemExit) as end:
            main([*command, *options])
        assert end.value.code == 0, capsys.readouterr().err
    assert pd.read_parquet("here.parquet").equals(pd.read_parquet("there.parquet"))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--scheduler", "tcp://127.0.0.1:1"], "give --engine dask too"),
        (["--engine", "dask", "--scheduler", "tcp://127.0.0.1:1"], "No Dask scheduler answers at"),
    ],
)
def test_a_scheduler_that_is_not_there_is_told_in_a_sentence(options, message, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    frame().to_parquet("rows.parquet")
    with dask.config.set({"distributed.comm.timeouts.connect": "1s"}), pytest.raises(SystemExit) as end:
        main(["cluster", "rows.parquet", "-k", "3", "-o", "labels.npy", *options])
    assert end.value.code != 0
    assert message in " ".join(capsys.readouterr().err.split())
