"""On a real GPU: it gives the same as the host, to the last bit."""

from unittest import mock

import numpy as np
import pytest

from core.test_core import assert_same_bits, make_router, make_rows, make_weights, scanned
from dc2 import Compressor, DC2Clustering, KernelRegressor
from dc2.compress.signatures import Sums, grids
from dc2.core import reference
from dc2.core.gpu import device_scan as scan
from dc2.core.gpu.device import own_device
from dc2.core.gpu.device_rows import DeviceRows
from dc2.errors import DeviceError
from dc2.learn import kernel_fit
from support.device_data import DeviceCore

pytestmark = pytest.mark.gpu


@pytest.fixture(scope="module")
def device():
    try:
        return own_device()
    except DeviceError as error:
        pytest.skip(str(error))


KINDS = ["normal", "rounded", "huge", "tiny", "subnormal", "far", "constant"]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("width", [1, 3, 8, 18, 33, 100, 900])
@pytest.mark.parametrize("n_near", [None, 1, 4, 24])
def test_gpu_scans_like_numpy(device, width, dtype, n_near):
    for seed, kind in enumerate(KINDS):
        for weights in ("none", "whole", "zeros"):
            X = make_rows(seed, 700, width, dtype, kind)
            router = make_router(X, (1, 2, 9, 40)[seed % 4], seed, n_near)
            few = None if router.neighbor_lists is None else min(3, router.neighbor_lists.shape[1])
            w = make_weights(seed, len(X), weights)
            with np.errstate(over="ignore"):
                theirs = scanned(reference, X, w, router, few, True)
                assert_same_bits(scanned(DeviceCore(device), X, w, router, few, True), theirs)
                assert_same_bits(scanned(DeviceCore(device), np.asfortranarray(X), w, router, few, True), theirs)


@pytest.mark.parametrize("width", [40, 100, 768])
def test_approximate_products_change_no_search(device, width):
    if not device.multiplies:
        pytest.skip("there is no cuBLAS")
    for seed, kind in enumerate(KINDS):
        X = make_rows(seed, 5000, width, np.float32, kind)
        router = make_router(X[:1500], 60, seed, 24)
        with np.errstate(over="ignore"), mock.patch.object(scan._Scan, "_can_multiply", return_value=True):
            ours = scanned(DeviceCore(device), X, None, router, None, True)
        with np.errstate(over="ignore"):
            assert_same_bits(ours, scanned(reference, X, None, router, None, True))


def test_means_computed_on_the_gpu_equal_those_of_sums(device):
    for kind in KINDS:
        X = make_rows(1, 3000, 20, np.float32, kind)
        router = make_router(X[:1000], 40, 1, 8)
        magic = grids(np.abs(X).max(axis=0).astype(np.float64), float(len(X)))
        sums = Sums.zeros(*router.centres.shape)
        with np.errstate(over="ignore"):
            router.add_up(X, range(len(X)), None, magic, sums)
            theirs = sums.means_and_spread(router.centres)[0].astype(np.float32)
            with device.use():
                rows_there = DeviceRows(device, device.array(X), X.dtype, device.asnumpy)
            assert_same_bits([router.means_on_device(rows_there, None, magic)], [theirs])


def test_any_number_of_blocks_gives_the_same_bits(device, monkeypatch):
    X = make_rows(0, 20_000, 18, np.float32, "normal")
    router = make_router(X[:3000], 200, 0, 24)
    theirs = scanned(reference, X, None, router, 2, True)
    for blocks in (1, 7, 4000):
        monkeypatch.setattr(device, "blocks_for", lambda *how, blocks=blocks, **more: blocks)
        assert_same_bits(scanned(DeviceCore(device), X, None, router, 2, True), theirs)


def test_gpu_hashes_and_samples_like_numpy(device):
    core = DeviceCore(device)
    for seed, start, stop in ((0, 0, 1000), (2**64 - 1, 2**40, 2**40 + 77), (5, 3, 3)):
        assert_same_bits([core.hash_rows(seed, start, stop)], [reference.hash_rows(seed, start, stop)])
        for limit in (0, 2**60, 2**64 - 1):
            ours, theirs = (module.sample_rows(seed, start, stop, limit) for module in (core, reference))
            assert_same_bits([ours], [theirs])


def rows(n_rows, width, dtype=np.float32):
    rng = np.random.default_rng(0)
    centres = 8 * rng.normal(size=(5, width))
    return (centres[rng.integers(0, 5, n_rows)] + rng.normal(size=(n_rows, width))).astype(dtype)


@pytest.fixture(params=["cupy", "torch", "fortran"])
def to_device(device, request):
    """Puts an array on the GPU, and says what kind of array answers must be."""
    if request.param == "torch":
        torch = pytest.importorskip("torch")
        return (lambda X: torch.from_numpy(X).cuda()), torch.Tensor
    order = "F" if request.param == "fortran" else "C"
    return (lambda X: device.xp.asarray(X, order=order)), device.xp.ndarray


def on_host(array):
    return array.cpu().numpy() if hasattr(array, "cpu") else array.get()


@pytest.mark.parametrize("width", [3, 18, 70])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_rows", [900, 60_000])
def test_clusters_of_gpu_arrays_equal_those_of_host_arrays(to_device, n_rows, width, dtype):
    put, kind = to_device
    X = rows(n_rows, width, dtype)
    theirs = DC2Clustering(random_state=0).fit(X)
    ours = DC2Clustering(random_state=0).fit(put(X))
    for answer, right in (
        (ours.labels_, theirs.labels_),
        (ours.predict(put(X)), theirs.predict(X)),
        (ours.predict_proba(put(X)), theirs.predict_proba(X)),
        (ours.labels_of_layer(0), theirs.labels_of_layer(0)),
    ):
        assert isinstance(answer, kind)
        np.testing.assert_array_equal(on_host(answer), right)
    np.testing.assert_array_equal(ours.predict(X), theirs.labels_)


@pytest.mark.parametrize(
    "parameters",
    [
        {"populate": "leaf"},
        {"scale": "standard"},
        {"scale": "robust", "metric": "cosine"},
        {"divide": "sampling", "n_partitions": 3},
    ],
    ids=str,
)
def test_signatures_of_gpu_arrays_equal_those_of_host_arrays(to_device, parameters):
    put, kind = to_device
    X, weights = rows(50_000, 11), np.random.default_rng(1).integers(0, 4, 50_000).astype(np.float64)
    how = {"n_signatures": 200, "random_state": 0, "sample_size": 9000} | parameters
    theirs = Compressor(**how).fit(X, sample_weight=weights)
    for given in (weights, put(weights)):
        ours = Compressor(**how).fit(put(X), sample_weight=given)
        assert isinstance(ours.labels_, kind)
        np.testing.assert_array_equal(on_host(ours.labels_), theirs.labels_)
        for name in ("points", "weights", "spread"):
            ours_too = getattr(ours.signatures_, name)
            np.testing.assert_array_equal(ours_too, getattr(theirs.signatures_, name))


def test_host_rows_are_sent_through_the_gpu(device, monkeypatch, tmp_path):
    monkeypatch.setattr("dc2.engines.cuda.SENT_BYTES", 1)
    X = rows(100_000, 18)
    np.save(tmp_path / "rows.npy", X)
    theirs = DC2Clustering(random_state=0).fit(X)
    ours = DC2Clustering(random_state=0, device="cuda", block_bytes=2**19).fit(X)
    assert type(ours.labels_) is np.ndarray
    np.testing.assert_array_equal(ours.labels_, theirs.labels_)
    np.testing.assert_array_equal(ours.predict(X), theirs.labels_)
    of_file = DC2Clustering(random_state=0, device="cuda", block_bytes=2**19).fit(str(tmp_path / "rows.npy"))
    np.testing.assert_array_equal(of_file.predict(X), theirs.labels_)
    pinned = pytest.importorskip("cupyx").empty_pinned(X.shape, X.dtype)
    pinned[:] = X
    assert device.can_fetch(pinned[10:20])
    assert not device.can_fetch(X)
    np.testing.assert_array_equal(ours.predict(pinned), theirs.labels_)


def test_rows_the_gpu_cannot_take_raise_a_clear_error(device):
    with pytest.raises(DeviceError, match="no CUDA device 99: this machine has"):
        own_device(99)
    free = device.xp.cuda.Device().mem_info[0]
    with pytest.raises(DeviceError, match=r"GiB are free.*device='cuda'"), device.use():
        device.xp.empty(4 * free, np.uint8)


@pytest.mark.parametrize("kernel", ["gaussian", "matern52", "matern32", "laplacian"])
def test_kernel_machines_learn_on_a_gpu_as_on_the_host(device, monkeypatch, kernel):
    for name, value in (("FEWEST_SAMPLED", 800), ("SAMPLE_BYTES", 1)):  # so that rows are many
        monkeypatch.setattr(kernel_fit, name, value)
    X = np.random.default_rng(0).normal(size=(3_000, 3))
    y = np.sin(X[:, 0]) + X[:, 1]
    model = KernelRegressor(kernel, bandwidth=3.0, ridge=0.1, metric="plain", n_centres=50, n_parts=1, random_state=0)
    expected = model.fit(X, y).predict(X)
    with device.use():
        model.fit(device.array(X), device.array(y))
    np.testing.assert_allclose(model.predict(X), expected, rtol=1e-5, atol=1e-5)
