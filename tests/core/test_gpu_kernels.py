"""What runs on a GPU gives the bits of the NumPy core: here on the host, block by block, for any number of blocks."""

from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.test_core import (
    DTYPES,
    KINDS,
    LAYOUTS,
    SEEDS,
    assert_same_bits,
    laid_out,
    make_router,
    make_rows,
    make_weights,
    scanned,
)
from dc2.compress.signatures import Sums, grids
from dc2.core import reference
from dc2.core.gpu import device_scan as scan
from dc2.core.gpu.device_rows import DeviceRows
from dc2.core.gpu.device_scan import least_squared_distances
from dc2.core.reference import lanes_dot
from dc2.trees.neighbours import nearest_neighbours
from support.device_data import DeviceCore, HostDevice

pytest.importorskip("support.device_twin")

DEVICES = st.builds(
    HostDevice,
    processors=st.sampled_from([1, 3, 100]),
    most_blocks=st.sampled_from([1, 2, 1000]),
    shared_bytes=st.sampled_from([10**5, 2**20]),
    most_bytes=st.sampled_from([300, 2**40]),
)


@given(
    device=DEVICES, seed=SEEDS, n_rows=st.integers(1, 100), width=st.integers(1, 40), dtype=DTYPES, kind=KINDS,
    layout=LAYOUTS, weights=st.sampled_from(["none", "whole", "zeros"]), max_leaves=st.sampled_from([1, 2, 9, 40]),
    n_near=st.sampled_from([None, 1, 4, 32]), beam=st.sampled_from([1, 2, 5, 64]), few=st.sampled_from([None, 1, 3]),
    add=st.booleans(),
)  # fmt: skip
@settings(max_examples=250)
def test_gpu_routes_sums_and_searches_like_numpy(
    device, seed, n_rows, width, dtype, kind, layout, weights, max_leaves, n_near, beam, few, add
):
    X = make_rows(seed, n_rows, width, dtype, kind)
    router = make_router(X, max_leaves, seed, n_near, beam)
    few = None if router.neighbor_lists is None or few is None else min(few, router.neighbor_lists.shape[1])
    w = make_weights(seed, n_rows, weights)
    with np.errstate(over="ignore"):
        ours = scanned(DeviceCore(device), laid_out(X, layout), w, router, few, add)
        assert_same_bits(ours, scanned(reference, X, w, router, few, add))


@given(
    seed=SEEDS, n_rows=st.integers(1, 100), width=st.integers(1, 70), kind=KINDS, shift=st.sampled_from([0, 3, 1e4]),
    max_leaves=st.sampled_from([1, 2, 9, 40]), n_near=st.sampled_from([1, 4, 7, 32]),
    beam=st.sampled_from([1, 2, 5, 64]), few=st.sampled_from([None, 3]), add=st.booleans(),
    step=st.sampled_from([1, 7, 10**6]),
)  # fmt: skip
@settings(max_examples=250)
def test_approximate_products_change_no_search(
    seed, n_rows, width, kind, shift, max_leaves, n_near, beam, few, add, step
):
    X = make_rows(seed, n_rows, width, np.float32, kind) + np.float32(shift)
    router = make_router(X, max_leaves, seed, n_near, beam)
    few = None if few is None else min(few, router.neighbor_lists.shape[1])
    device = HostDevice()
    with (
        np.errstate(over="ignore"),
        mock.patch.object(scan._Scan, "_can_multiply", return_value=True),
        mock.patch.object(scan, "PRODUCT_BYTES", 4 * step * len(router.centres)),
    ):
        ours = scanned(DeviceCore(device), X, None, router, few, add)
        assert_same_bits(ours, scanned(reference, X, None, router, few, add))
    assert "scan_by_bounds" in device.launched


def test_approximate_products_are_used_if_they_distinguish_centres():
    X = make_rows(3, 9000, 50, np.float32, "normal")
    router = make_router(X[:2000], 150, 3, 24)
    for shift, taken in ((0, True), (1e4, False)):
        device = HostDevice()
        moved = X + np.float32(shift)
        router = make_router(moved[:2000], 150, 3, 24)
        ours = scanned(DeviceCore(device), moved, None, router, None, True)
        assert_same_bits(ours, scanned(reference, moved, None, router, None, True))
        assert ("scan_by_bounds" in device.launched) == taken


@given(seed=SEEDS, width=st.integers(65, 80), dtype=DTYPES, kind=KINDS, shift=st.sampled_from([0, 100]))
@settings(max_examples=40)
def test_no_distance_is_less_than_the_bound_from_products(seed, width, dtype, kind, shift):
    points = make_rows(seed, 60, width, dtype, kind) + dtype(shift)
    least = least_squared_distances(HostDevice(), points)
    for i, bound in enumerate(least):
        with np.errstate(over="ignore"):
            off = points - points[i]
            assert (bound <= lanes_dot(off, off)).all()
    if kind == "normal":
        assert np.median(least) > 0.5 * np.median(((points - points[0]) ** 2).sum(axis=1))


def test_bounds_save_the_search_for_neighbours_time_and_nothing_else(monkeypatch):
    monkeypatch.setattr("dc2.trees.neighbours.ALL_PAIRS", 0)
    points = make_rows(0, 1500, 70, np.float64, "normal")
    points[7] = points[8]
    asked = []

    def least(some):
        asked.append(len(some))
        return least_squared_distances(HostDevice(), some)

    ours = nearest_neighbours(points, 12, seed=0, n_threads=2, least=least)
    assert asked == [1499]
    assert_same_bits(ours, nearest_neighbours(points, 12, seed=0, n_threads=2))


@pytest.mark.parametrize("width", [5, 33, 100])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_many_rows_in_several_pieces_and_tiles_are_the_rows_of_one(width, dtype, monkeypatch):
    monkeypatch.setattr("dc2.core.gpu.device_scan.PIECE_ROWS", 3000)
    X = make_rows(3, 10_000, width, dtype, "normal")
    router = make_router(X[:2000], 150, 3, 24)
    device = HostDevice(processors=2)
    ours = scanned(DeviceCore(device), X, None, router, 3, True)
    assert_same_bits(ours, scanned(reference, X, None, router, 3, True))
    assert device.launched.count("sort_tile") == (4 if width <= 32 else 8)
    assert device.launched.count("route_rows") == (4 if width * X.itemsize <= 256 else 0)


@given(
    device=DEVICES, seed=SEEDS, n_rows=st.integers(1, 100), width=st.integers(1, 40), dtype=DTYPES, kind=KINDS,
    weights=st.sampled_from(["none", "whole", "zeros"]), max_leaves=st.sampled_from([1, 2, 9, 40]),
)  # fmt: skip
def test_means_computed_on_the_gpu_equal_those_of_sums(device, seed, n_rows, width, dtype, kind, weights, max_leaves):
    X = make_rows(seed, n_rows, width, dtype, kind)
    router = make_router(X, max_leaves, seed, 4)
    w = make_weights(seed, n_rows, weights)
    magic = grids(np.abs(X).max(axis=0).astype(np.float64), float(n_rows if w is None else w.sum()))
    sums = Sums.zeros(*router.centres.shape)
    with np.errstate(over="ignore"):
        router.add_up(X, range(n_rows), w, magic, sums)
        means, _ = sums.means_and_spread(router.centres)
        rows = DeviceRows(device, X, X.dtype, np.asarray)
        assert_same_bits([router.means_on_device(rows, w, magic)], [means.astype(dtype)])


@given(seed=SEEDS, start=st.integers(0, 2**40), count=st.integers(0, 300), limit=SEEDS)
def test_gpu_hashes_and_samples_like_numpy(seed, start, count, limit):
    core = DeviceCore(HostDevice(most_blocks=1))
    stop = start + count
    assert_same_bits([core.hash_rows(seed, start, stop)], [reference.hash_rows(seed, start, stop)])
    assert_same_bits([core.sample_rows(seed, start, stop, limit)], [reference.sample_rows(seed, start, stop, limit)])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("max_leaves", [1, 8])
def test_gpu_counts_rows_that_are_not_finite(dtype, max_leaves):
    X = make_rows(0, 100, 11, dtype, "normal")
    router = make_router(X, max_leaves, 0, None)
    broken: Any = X.copy()
    for row, value in ((0, np.nan), (13, np.inf), (14, -np.inf), (99, np.nan)):
        broken[row, row % 11] = value
    core = DeviceCore(HostDevice())
    assert scanned(core, X, None, router, None, False)[0] == 0
    assert scanned(core, broken, None, router, None, False)[0] == 4
    assert scanned(core, X[:0], None, router, None, False)[0] == 0
