"""Faults of a cluster: workers that die, memory that is short, a client that goes away; with real processes."""

import logging
import os
import signal
import threading
import time
from contextlib import contextmanager

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from distributed import Client, LocalCluster, wait

from dc2 import Compressor
from dc2.errors import SourceError
from support import dask_data
from support.dask_data import NAMES, clusterer

pytestmark = pytest.mark.slow


def rows():
    return dask_data.rows(n_rows=20_000)


@contextmanager
def cluster(n_workers=3, allowed_failures=3, **options):
    settings = {
        "distributed.scheduler.allowed-failures": allowed_failures,
        # A busy machine may take long to start a worker again, and Dask would give it up.
        "distributed.deploy.lost-worker-timeout": "300s",
    }
    options = {
        "threads_per_worker": 1,
        "dashboard_address": ":0",
        "silence_logs": logging.CRITICAL,
        **options,
    }
    with dask.config.set(settings), LocalCluster(n_workers, **options) as local, Client(local) as client:
        yield client


class Murderer:
    """Kills its own worker when a certain piece of data is made for the n-th time, for some n."""

    def __init__(self, folder, victims=()):
        self.folder, self.victims = str(folder), victims

    def __call__(self, block, block_id=None, partition_info=None):
        number = partition_info["number"] if block_id is None else block_id[0]
        if number == 3:
            attempt = self._next_attempt()
            if self.victims == "always" or attempt in self.victims:
                os.kill(os.getpid(), signal.SIGKILL)
        return block

    def _next_attempt(self):
        attempt = 0
        while True:
            try:
                os.close(os.open(f"{self.folder}/{attempt}", os.O_CREAT | os.O_EXCL))
                return attempt
            except FileExistsError:
                attempt += 1


def test_a_worker_killed_in_every_pass_changes_no_label(tmp_path):
    X = rows()
    whole = clusterer().fit(X).labels_
    # Each pass makes the chunk again after its worker died: attempts 0 and 1 to divide, 2 and 3 to compress ...
    murderer = Murderer(tmp_path, victims=(0, 2, 4))
    with cluster():
        data = da.from_array(X, chunks=(2_000, 5)).map_blocks(murderer, dtype=X.dtype)
        assert np.array_equal(clusterer().fit(data).predict(data).compute(), whole)
    assert sorted(os.listdir(tmp_path)) == [str(attempt) for attempt in range(6)]


def test_a_worker_killed_while_rows_are_counted_changes_no_label(tmp_path):
    X = rows()
    frame = dd.from_pandas(pd.DataFrame(X, columns=NAMES), npartitions=8)
    with cluster():
        data = frame.map_partitions(Murderer(tmp_path, victims=(0, 2, 4, 6)), meta=frame._meta)
        model = clusterer().fit(data)
        assert np.array_equal(model.predict(data).compute(), clusterer().fit(X).labels_)
    assert len(os.listdir(tmp_path)) == 8


@pytest.mark.parametrize("stage", ["divide", "compress"])
def test_a_worker_killed_with_the_rows_it_held_changes_no_label(stage):
    X = rows()
    murdered = []
    with cluster() as client:
        data = da.from_array(X, chunks=(1_000, 5)).persist()
        wait(data)

        def murder(news, rows_done, rows_total):
            if news == stage and not murdered:
                murdered.extend(client.run(os.getpid).values())
                os.kill(murdered[0], signal.SIGKILL)

        model = clusterer().set_params(verbose=murder).fit(data)
        assert np.array_equal(model.predict(data).compute(), clusterer().fit(X).labels_)
    assert murdered


@pytest.mark.parametrize(
    ("n_rows", "n_rows_again", "number"),
    [
        pytest.param(2_000, 2_000, 3, id="a task per chunk"),
        pytest.param(100, 100, 3, id="a task for several chunks"),
        pytest.param(2_000, 3_000, 2, id="a task that several chunks need"),
    ],
)
def test_a_chunk_that_kills_every_worker_is_named_and_the_cluster_stays_of_use(tmp_path, n_rows, n_rows_again, number):
    X = rows()
    chunked = da.from_array(X, chunks=(n_rows, 5))
    with cluster(allowed_failures=1):
        deadly = chunked.map_blocks(Murderer(tmp_path, victims="always"), dtype=X.dtype)
        with pytest.raises(SourceError, match=rf"every worker that took up chunk {number} \(divide\) died"):
            clusterer().fit(deadly.rechunk((n_rows_again, 5)))
        assert np.array_equal(clusterer().fit(chunked).predict(chunked).compute(), clusterer().fit(X).labels_)


def test_the_deadly_chunk_is_named_and_not_those_that_died_beside_it(tmp_path):
    murderer = Murderer(tmp_path, victims="always")

    def all_at_once(block, block_id=None):
        time.sleep(1)  # until the threads have taken up the chunks 0 to 3
        return murderer(block, block_id)

    with cluster(n_workers=1, allowed_failures=0, threads_per_worker=4):
        data = da.from_array(rows(), chunks=(2_000, 5)).map_blocks(all_at_once, dtype=np.float32)
        with pytest.raises(SourceError, match=r"every worker that took up chunk 3 \(divide\) died"):
            clusterer().fit(data)


def test_chunks_that_kill_only_side_by_side_are_not_blamed_one_by_one(tmp_path):
    def does_not_fit_twice(block, block_id=None):
        (tmp_path / f"{os.getpid()}").mkdir(exist_ok=True)
        mine = tmp_path / f"{os.getpid()}" / f"{block_id[0]}"
        mine.touch()
        time.sleep(1)
        if len(os.listdir(mine.parent)) > 1:
            os.kill(os.getpid(), signal.SIGKILL)
        mine.unlink()
        return block

    with cluster(n_workers=1, allowed_failures=0, threads_per_worker=2):
        data = da.from_array(rows(), chunks=(5_000, 5)).map_blocks(does_not_fit_twice, dtype=np.float32)
        with pytest.raises(SourceError, match=r"\(divide\), and no chunk was found to kill .* alone"):
            clusterer().fit(data)


def test_a_worker_with_less_memory_than_the_data_needs_survives():
    with cluster(n_workers=1, memory_limit="700MB") as client:
        data = da.random.default_rng(0).random((2_500_000, 100), chunks=(40_000, 100), dtype=np.float64)
        assert data.nbytes > 2 * 700e6
        before = client.run(os.getpid)
        model = Compressor(50, sample_size=5_000, random_state=0).fit(data)
        assert client.run(os.getpid) == before
    assert model.signatures_.weights.sum() == len(data)


@pytest.mark.parametrize("closed", ["client", "cluster"])
@pytest.mark.parametrize("stage", ["divide", "compress"])
def test_closing_in_the_middle_of_a_fit_is_an_error_and_no_hang(tmp_path, stage, closed):
    gate = tmp_path / "open"
    fast_passes = 0 if stage == "divide" else 1

    def held_up(block, block_id=None):
        (tmp_path / f"{block_id[0]} {os.urandom(8).hex()}").touch()
        while len(list(tmp_path.glob(f"{block_id[0]} *"))) > fast_passes and not gate.exists():
            time.sleep(0.05)
        return block

    with cluster() as client:
        timer = threading.Timer(2, (client if closed == "client" else client.cluster).close)

        def close_soon(news, rows_done, rows_total):
            if news == stage and not timer.is_alive():
                timer.start()

        X = rows()
        data = da.from_array(X, chunks=(5_000, 5)).map_blocks(held_up, dtype=X.dtype)
        try:
            with pytest.raises(SourceError, match=rf"\({stage}\) was cancelled, or the Dask client was closed"):
                clusterer().set_params(verbose=close_soon).fit(data)
        finally:
            gate.touch()
            timer.join()


def test_a_worker_of_another_version_is_refused_by_its_version():
    def pretend():
        from dc2 import versions

        versions.__version__ = "0.0.1"

    with cluster(n_workers=1) as client:
        client.run(pretend)
        data = da.from_array(rows(), chunks=(2_000, 5))
        with pytest.raises(SourceError, match=r"has dc2 0\.0\.1, but the work comes from dc2"):
            clusterer().fit(data)


def test_a_cluster_without_workers_is_an_error_and_no_hang(monkeypatch):
    monkeypatch.setattr("dc2.engines.dask_engine.LOOK_SECONDS", 0.2)
    monkeypatch.setattr("dc2.engines.dask_engine.NO_WORKER_SECONDS", 1.0)
    with cluster(n_workers=1) as client:
        client.cluster.scale(0)
        while client.nthreads():
            time.sleep(0.1)
        data = da.from_array(rows(), chunks=(2_000, 5))
        with pytest.raises(SourceError, match="has had no worker for 1 seconds"):
            clusterer().fit(data)


@pytest.mark.parametrize("stage", ["divide", "compress"])
def test_a_worker_that_is_paused_and_goes_on_changes_no_label(stage):
    X = rows()
    paused = []
    with cluster() as client:
        data = da.from_array(X, chunks=(1_000, 5))

        def pause(news, rows_done, rows_total):
            if news == stage and not paused:
                paused.append(next(iter(client.run(os.getpid).values())))
                os.kill(paused[0], signal.SIGSTOP)
                threading.Timer(3, os.kill, (paused[0], signal.SIGCONT)).start()

        model = clusterer().set_params(verbose=pause).fit(data)
        assert np.array_equal(model.predict(data).compute(), clusterer().fit(X).labels_)
    assert paused


def test_ten_thousand_chunks_are_no_burden():
    with cluster(n_workers=2) as client:
        data = da.arange(1_000_000, chunks=100).astype(np.float32)[:, None] * da.ones((1, 3), dtype=np.float32)
        assert data.numblocks == (10_000, 1)
        model = Compressor(50, sample_size=5_000, random_state=0).fit(data)
        prefixes = client.cluster.scheduler.task_prefixes
        tasks = sum(len(group) for name in prefixes if name.startswith("dc2") for group in prefixes[name].groups)
    assert tasks < 500
    assert np.array_equal(
        model.signatures_.points,
        Compressor(50, sample_size=5_000, random_state=0)
        .fit(np.repeat(np.arange(1_000_000, dtype=np.float32)[:, None], 3, axis=1))
        .signatures_.points,
    )
