"""Estimators give the same for rows on a GPU as on the host; here the GPU is a `HostDevice`."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from dc2 import Compressor, DC2Clustering, KernelRegressor, RPNeighbors, as_source
from dc2.core.gpu.device_rows import DeviceRows
from dc2.engines import cuda as cuda_engine
from dc2.engines.cuda import CudaEngine, CudaSource, fed
from dc2.errors import DeviceError, InputError, ParameterError
from dc2.io import Block
from dc2.io.source import promoted_dtype
from dc2.learn import kernel_fit
from support.device_data import HostDevice

pytest.importorskip("support.device_twin")


class Marked(np.ndarray[Any, Any]):
    """An array that is not NumPy's own: answers must come in the form of the rows."""


def marked(array: NDArray[Any]) -> Marked:
    return np.asarray(array).view(Marked)


def on_device(X: NDArray[Any], weights: NDArray[np.float64] | None = None) -> CudaSource:
    return CudaSource(HostDevice(), X, marked, weights, promoted_dtype([X.dtype]))


def blobs(n_rows: int, width: int, dtype: Any = np.float32) -> NDArray[Any]:
    rng = np.random.default_rng(0)
    centres = 8 * rng.normal(size=(4, width))
    return (centres[rng.integers(0, 4, n_rows)] + rng.normal(size=(n_rows, width))).astype(dtype)


def same(ours: Compressor, theirs: Compressor) -> None:
    for name in ("points", "weights", "spread"):
        np.testing.assert_array_equal(getattr(ours.signatures_, name), getattr(theirs.signatures_, name), name)
    np.testing.assert_array_equal(ours.labels_, theirs.labels_)
    assert isinstance(ours.labels_, Marked)


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"populate": "leaf"},
        {"scale": "standard"},
        {"scale": "robust", "metric": "cosine"},
        {"metric": "cosine", "populate": "leaf"},
        {"divide": "sampling", "n_partitions": 3},
        {"signature": "member"},
        {"sample_size": None},
    ],
    ids=str,
)
def test_gpu_rows_are_compressed_like_host_rows(parameters):
    X = blobs(20_000, 7)
    how: dict[str, Any] = {"n_signatures": 60, "random_state": 3, "sample_size": 5000, **parameters}
    ours, theirs = Compressor(**how).fit(on_device(X)), Compressor(**how).fit(X)
    same(ours, theirs)
    answer = ours.apply(on_device(X))
    assert isinstance(answer, Marked)
    np.testing.assert_array_equal(answer, theirs.apply(X))


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
@pytest.mark.parametrize("width", [7, 40])
def test_gpu_rows_have_the_neighbours_of_host_rows(metric, width):
    X = blobs(1200, width)
    known, new = X[:1000], X[1000:]
    theirs = RPNeighbors(6, metric=metric, random_state=0).fit(known)
    ours = RPNeighbors(6, metric=metric, random_state=0).fit(on_device(known))
    for (our_distances, our_rows), (distances, rows) in (
        (ours.kneighbors(), theirs.kneighbors()),
        (theirs.kneighbors(on_device(new)), theirs.kneighbors(new)),
    ):
        np.testing.assert_array_equal(our_rows, rows)
        np.testing.assert_array_equal(our_distances, distances)


@pytest.mark.parametrize("dtype", [np.float16, np.int16, np.int32, np.float64])
def test_numbers_of_any_kind_and_weights_are_taken_as_on_the_host(dtype):
    X = np.round(blobs(5000, 40, np.float64)).astype(dtype)
    weights = np.random.default_rng(0).integers(0, 4, len(X)).astype(np.float64)
    how: dict[str, Any] = {"n_signatures": 30, "random_state": 1, "sample_size": 1000}
    ours = Compressor(**how).fit(on_device(X, weights))
    same(ours, Compressor(**how).fit(X, sample_weight=weights))


@pytest.mark.parametrize("n_rows", [500, 40_000])
def test_gpu_rows_are_clustered_like_host_rows(n_rows):
    X = blobs(n_rows, 5)
    ours, theirs = (DC2Clustering(random_state=0).fit(rows) for rows in (on_device(X), X))
    np.testing.assert_array_equal(ours.labels_, theirs.labels_)
    np.testing.assert_array_equal(ours.labels_of_layer(0), theirs.labels_of_layer(0))
    for answer, right in (
        (ours.predict(on_device(X)), theirs.predict(X)),
        (ours.predict_proba(on_device(X)), theirs.predict_proba(X)),
    ):
        assert isinstance(answer, Marked)
        np.testing.assert_array_equal(answer, right)


def test_kernel_machines_learn_from_gpu_rows_as_from_host_rows(monkeypatch):
    for name, value in (("FEWEST_SAMPLED", 800), ("SAMPLE_BYTES", 1)):  # so that rows are many
        monkeypatch.setattr(kernel_fit, name, value)
    X = blobs(3_000, 3, np.float64)
    y, weights = np.sin(X[:, 0]) + X[:, 1], np.random.default_rng(0).integers(1, 3, 3_000).astype(np.float64)
    model = KernelRegressor("gaussian", bandwidth=3.0, metric="plain", n_centres=50, n_parts=1, random_state=0)
    expected = model.fit(X, y, sample_weight=weights).predict(X)
    answer = model.fit(on_device(X, weights), y).predict(on_device(X))
    assert isinstance(answer, Marked)
    np.testing.assert_allclose(answer, expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("n_jobs", [1, 3])
def test_host_rows_are_sent_through_the_gpu_in_blocks(monkeypatch, n_jobs):
    monkeypatch.setattr(cuda_engine, "SENT_BYTES", 1)
    device = HostDevice()
    monkeypatch.setattr(cuda_engine, "own_device", lambda: device)
    X = blobs(30_000, 6)
    how: dict[str, Any] = {"n_signatures": 50, "random_state": 0, "sample_size": 4000, "n_jobs": n_jobs}
    theirs = Compressor(**how).fit(X)
    ours = Compressor(**how, device="cuda", block_bytes=100_000).fit(X)
    assert device.launched.count("find_means") == 3  # of the sample, which is sent once
    assert device.launched.count("route_rows") == 3 + 8
    np.testing.assert_array_equal(ours.signatures_.points, theirs.signatures_.points)
    np.testing.assert_array_equal(ours.labels_, theirs.labels_)
    np.testing.assert_array_equal(ours.apply(X), theirs.labels_)
    assert type(ours.labels_) is np.ndarray
    how = {"random_state": 0, "n_jobs": n_jobs}
    labels = DC2Clustering(**how, device="cuda", block_bytes=100_000).fit_predict(X)
    np.testing.assert_array_equal(labels, DC2Clustering(**how).fit_predict(X))


@pytest.mark.parametrize("step", [1, 2])
def test_rows_in_pinned_memory_are_not_copied_on_the_host(monkeypatch, step):
    monkeypatch.setattr(cuda_engine, "SENT_BYTES", 1)
    pinned = blobs(30_000, 6)
    device, X = HostDevice(pinned=pinned), pinned[::step]
    monkeypatch.setattr(cuda_engine, "own_device", lambda: device)
    copied: list[int] = []
    monkeypatch.setattr(
        HostDevice, "fetchable", lambda device, size, dtype: copied.append(size) or np.empty(size, dtype)
    )
    ours = Compressor(50, random_state=0, device="cuda", block_bytes=100_000).fit(X)
    np.testing.assert_array_equal(ours.labels_, Compressor(50, random_state=0).fit(X).labels_)
    assert bool(copied) == (step > 1)  # rows that are not contiguous are copied


def test_what_breaks_off_leaves_no_thread_waiting():
    blocks = fed(HostDevice(), lambda block: type(block.rows), as_source(blobs(1000, 3)).blocks(120), 2, np.asarray)
    assert next(blocks) == (10, DeviceRows)
    blocks.close()

    def refuse(block: Block) -> None:
        raise InputError(f"block {block.start}")

    with pytest.raises(InputError, match="block 0"):
        list(fed(HostDevice(), refuse, as_source(blobs(1000, 3)).blocks(120), 2, np.asarray))


def test_rows_that_cannot_be_used_are_named_by_column_and_row():
    X = blobs(3000, 4)
    X[1234, 2] = np.nan
    with pytest.raises(InputError, match=r"NaN.*column 2 has 1 \(first in row 1234\)"):
        Compressor(10, sample_size=500, random_state=0).fit(on_device(X))
    X[1234] = 0
    with pytest.raises(InputError, match="row 1234 holds only zeros"):
        Compressor(10, sample_size=500, random_state=0, metric="cosine").fit(on_device(X))


def test_an_unknown_or_missing_device_raises():
    with pytest.raises(ParameterError, match="device"):
        Compressor(device="tpu").fit(blobs(100, 2))
    try:
        import cupy  # noqa: F401
    except ImportError:
        with pytest.raises(DeviceError, match=r"CuPy.*pip install 'dc2\[gpu\]'"):
            Compressor(10, device="cuda").fit(blobs(100, 2))


def test_the_engine_takes_samples_on_the_host():
    device = HostDevice()
    engine = CudaEngine(n_jobs=1, device=device)
    kinds = engine.map(lambda block: type(block.rows), as_source(blobs(100, 2)), stage="divide")
    assert set(kinds) == {np.ndarray}
    kinds = engine.map(lambda block: type(block.rows), as_source(blobs(100, 2)), stage="compress")
    assert set(kinds) == {DeviceRows}
