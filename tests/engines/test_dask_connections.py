"""Faults between the machines of a cluster: workers cut off or slow, a scheduler that is restarted or gone."""

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import ExitStack, contextmanager, suppress

import dask
import dask.array as da
import numpy as np
import pytest
from distributed import Client

from dc2.errors import SourceError
from engines.test_dask_faults import cluster, clusterer, rows

pytestmark = pytest.mark.slow

HANG_SECONDS = 240  # far beyond what any of these takes


def within_bounds(work):
    """Return what the work returns or raises; a hang is a failure."""
    outcome = []

    def run():
        try:
            outcome.append(work())
        except Exception as error:
            outcome.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(HANG_SECONDS)
    assert outcome, "it hangs"
    return outcome[0]


def once_at(stage, act):
    """A progress callback that acts when the stage begins, and not again."""
    acted = []

    def look(news, rows_done, rows_total):
        if news == stage and not acted:
            acted.append(True)
            act()

    return look


def end_process(number):
    with suppress(ProcessLookupError):  # where Dask did so itself
        os.kill(number, signal.SIGKILL)


@pytest.mark.parametrize("stage", ["divide", "compress"])
def test_a_worker_that_is_cut_off_for_good_changes_no_label(stage):
    X = rows()
    stopped = []
    with ExitStack() as at_the_end, dask.config.set({"distributed.scheduler.worker-ttl": "3s"}):
        client = at_the_end.enter_context(cluster())

        def cut_off():
            stopped.append(next(iter(client.run(os.getpid).values())))
            at_the_end.callback(end_process, stopped[0])
            os.kill(stopped[0], signal.SIGSTOP)

        data = da.from_array(X, chunks=(1_000, 5))
        model = clusterer().set_params(verbose=once_at(stage, cut_off))
        labels = within_bounds(lambda: model.fit(data).predict(data).compute())
    assert stopped
    assert np.array_equal(labels, clusterer().fit(X).labels_)


def test_a_slow_worker_changes_no_label(tmp_path):
    X = rows()

    def slow_on_the_first(block):
        try:
            (tmp_path / "first").mkdir()
            (tmp_path / "first" / f"{os.getpid()}").touch()
        except FileExistsError:
            pass
        if (tmp_path / "first" / f"{os.getpid()}").exists():
            time.sleep(0.3)
        return block

    with cluster():
        data = da.from_array(X, chunks=(1_000, 5)).map_blocks(slow_on_the_first, dtype=X.dtype)
        assert np.array_equal(clusterer().fit(data).predict(data).compute(), clusterer().fit(X).labels_)


@contextmanager
def command(*words):
    process = subprocess.Popen(
        [sys.executable, "-m", "distributed.cli." + words[0], *words[1:]],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


@pytest.mark.parametrize("stage", ["divide", "compress"])
@pytest.mark.parametrize("comes_back", [True, False], ids=["restarted", "gone"])
def test_a_scheduler_that_dies_gives_the_same_labels_or_a_clear_error(stage, comes_back):
    X = rows()
    address = f"tcp://127.0.0.1:{(port := free_port())}"
    scheduler = ("dask_scheduler", "--host", "127.0.0.1", "--port", str(port), "--no-dashboard")
    worker = ("dask_worker", address, "--nthreads", "1", "--no-dashboard", "--no-nanny")
    settings = {"distributed.comm.timeouts.connect": "5s", "distributed.deploy.lost-worker-timeout": "5s"}
    with ExitStack() as at_the_end, dask.config.set(settings):
        first = at_the_end.enter_context(command(*scheduler))
        at_the_end.enter_context(command(*worker))
        client = at_the_end.enter_context(Client(address, timeout=20))
        client.wait_for_workers(1, timeout=120)

        def restart():
            first.kill()
            first.wait()
            if comes_back:
                at_the_end.enter_context(command(*scheduler))
                at_the_end.enter_context(command(*worker))

        data = da.from_array(X, chunks=(1_000, 5))
        model = clusterer().set_params(verbose=once_at(stage, restart))
        outcome = within_bounds(lambda: model.fit(data).predict(data).compute())
    if isinstance(outcome, Exception):
        assert isinstance(outcome, SourceError), repr(outcome)
        assert stage in str(outcome)
    else:
        assert np.array_equal(outcome, clusterer().fit(X).labels_)
        assert comes_back


@pytest.mark.parametrize("stage", ["divide", "compress"])
def test_a_cluster_that_is_restarted_gives_the_same_labels_or_a_clear_error(stage):
    X = rows()
    with cluster() as client:
        data = da.from_array(X, chunks=(1_000, 5))
        model = clusterer().set_params(verbose=once_at(stage, client.restart))
        outcome = within_bounds(lambda: model.fit(data).predict(data).compute())
    if isinstance(outcome, Exception):
        assert isinstance(outcome, SourceError), repr(outcome)
    else:
        assert np.array_equal(outcome, clusterer().fit(X).labels_)
