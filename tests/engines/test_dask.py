"""Laws of Dask collections: the same bits as rows in memory, for any chunks, weights and workers."""

import dask
import dask.array as da
import dask.bag
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pyarrow
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dc2 import Compressor, DC2Clustering
from dc2.cli import main
from dc2.engines import dask_source as files
from dc2.engines.dask_engine import local_cluster
from dc2.engines.dask_source import dask_files
from dc2.errors import InputError, InputTypeError
from dc2.io import as_source
from support.dask_data import N_ROWS, NAMES, assert_same_signatures, clusterer, compressor, frame, rows

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


@pytest.mark.parametrize("move", [True, False])
def test_an_update_by_chunks_changes_what_one_by_rows_in_memory_does(move):
    later = np.concatenate([rows()[:900], rows()[900:] + 100])
    models = [DC2Clustering(3, n_signatures=60, random_state=0, n_jobs=1).fit(rows()) for _ in range(2)]
    with dask.config.set(scheduler="sync"):
        chunked, whole = (
            model.update(X, move=move)
            for model, X in zip(models, (da.from_array(later, chunks=(700, 5)), later), strict=True)
        )
    assert chunked.to_json() == whole.to_json()
    assert_same_signatures(*models)
    np.testing.assert_array_equal(models[0].predict(later), models[1].predict(later))


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
    frame().assign(name=[f"row {row}" for row in range(N_ROWS)]).to_parquet("rows.parquet", row_group_size=500)
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
        (["--scheduler", "tcp://127.0.0.1:1"], "give --engine"),
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


def test_a_cluster_of_this_machine_listens_on_loopback_only():
    psutil = pytest.importorskip("psutil")
    own = psutil.Process()
    before = {connection.laddr for connection in own.net_connections("inet") if connection.status == "LISTEN"}
    with local_cluster(1):
        processes = [own, *own.children(recursive=True)]
        listening = [
            connection.laddr
            for process in processes
            for connection in process.net_connections("inet")
            if connection.status == "LISTEN" and connection.laddr not in before
        ]
        assert len(listening) >= 2
        assert {address.ip for address in listening} == {"127.0.0.1"}
