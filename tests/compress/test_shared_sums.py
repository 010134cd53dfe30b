"""Threads that add to the same sums: the same bits however many sums there are, and bounded memory."""

import threading
import tracemalloc
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from dc2 import Compressor, core
from dc2.compress import signatures
from dc2.compress.compression import add_up
from dc2.compress.routing import Router
from dc2.compress.signatures import SharedSums, bytes_of_sums, grids
from dc2.engines.threads import ThreadEngine
from dc2.io.resolve import as_source
from dc2.trees.tree import grow_on


def a_router(X, n_leaves):
    tree, leaf = grow_on(X, None, seed=1, leaf_size=0.0, max_leaves=n_leaves, cut="mean", sharpen=1)
    return Router((tree,), X[np.unique(leaf, return_index=True)[1]])


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_leaves", [1, 2, 50])
def test_sums_are_the_same_whether_threads_share_them_or_not(monkeypatch, n_leaves, weighted):
    rng = np.random.default_rng(n_leaves)
    X = rng.normal(size=(6000, 5)).astype(np.float32)
    weights = rng.integers(0, 4, 6000) / 2 if weighted else None
    router, magic = a_router(X, n_leaves), grids(np.full(5, 8.0), 12_000.0)
    found = []
    for n_threads, n_bytes in ((1, 2**29), (4, 2**29), (4, 0)):
        monkeypatch.setattr(signatures, "SUMS_BYTES", n_bytes)
        source = as_source(X, sample_weight=weights)
        found.append(add_up(source, ThreadEngine(n_threads, block_bytes=2000), router, magic, 6000)[0])
    assert found[0].counts.sum() == (6000 if weights is None else (weights > 0).sum())
    for sums in found[1:]:
        np.testing.assert_array_equal(sums.counts, found[0].counts)
        np.testing.assert_array_equal(sums.totals, found[0].totals)


@pytest.mark.parametrize("sums_that_fit", [0, 1, 3])
def test_there_are_no_more_sums_than_fit_into_the_budget(monkeypatch, sums_that_fit):
    monkeypatch.setattr(signatures, "SUMS_BYTES", sums_that_fit * bytes_of_sums(10, 4))
    shared, all_at_work = SharedSums(10, 4), threading.Barrier(5)

    def work(_):
        with shared.one() as sums:
            all_at_work.wait(timeout=60)
            return id(sums)

    with ThreadPoolExecutor(5) as pool:
        assert len(set(pool.map(work, range(5)))) == max(1, sums_that_fit)


def test_the_size_of_sums_is_that_of_their_arrays():
    sums = signatures.Sums.zeros(7, 3)
    assert bytes_of_sums(7, 3) == sums.counts.nbytes + sums.totals.nbytes + sums.reach.nbytes


@pytest.mark.skipif(core.name != "native", reason="the NumPy core adds under one lock")
def test_many_threads_add_to_a_single_signature_without_losing_a_row():
    X = np.random.default_rng(0).normal(size=(2000, 3)).astype(np.float32)
    router, sums = a_router(X, 1), signatures.Sums.zeros(1, 3)
    magic = grids(np.full(3, 8.0), 200_000.0)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: router.add_up(X, range(2000), None, magic, sums), range(50)))
    once = signatures.Sums.zeros(1, 3)
    router.add_up(X, range(2000), None, magic, once)
    assert sums.counts[0] == 100_000
    np.testing.assert_array_equal(sums.weights, 50 * once.weights)


def test_more_threads_need_no_more_sums_than_the_budget(monkeypatch):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(20_000, 200)).astype(np.float32)
    router, magic = a_router(X[:3000], 2000), grids(np.full(200, 8.0), 20_000.0)
    monkeypatch.setattr(signatures, "SUMS_BYTES", 0)
    tracemalloc.start()
    try:
        add_up(as_source(X), ThreadEngine(8, block_bytes=2**18), router, magic, len(X))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 2 * bytes_of_sums(2000, 200)


def test_sums_of_chunks_are_the_same_however_few_are_joined_at_a_time(monkeypatch):
    da, dask_engine = pytest.importorskip("dask.array"), pytest.importorskip("dc2.engines.dask_engine")
    X = np.random.default_rng(4).normal(size=(2000, 3)).astype(np.float32)
    here = Compressor(20, random_state=0).fit(X)
    for n_bytes in (0, 2**29):
        monkeypatch.setattr(dask_engine, "RESULTS_BYTES", n_bytes)
        there = Compressor(20, random_state=0).fit(da.from_array(X, chunks=(90, 3)))
        np.testing.assert_array_equal(there.signatures_.points, here.signatures_.points)
        np.testing.assert_array_equal(there.signatures_.weights, here.signatures_.weights)
        np.testing.assert_array_equal(there.signatures_.spread, here.signatures_.spread)
