"""Estimators give the same for rows on a card as on the host; here the card is a `HostCard`."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from dc2 import Compressor, DC2Clustering, as_source
from dc2.core.gpu.rows import DeviceRows
from dc2.engines.cuda import CudaEngine, CudaSource
from dc2.engines.cuda import engine as cuda_engine
from dc2.engines.cuda.feed import fed
from dc2.errors import DeviceError, InputError, ParameterError
from dc2.sources import Block
from dc2.sources.promotion import promoted_dtype
from device_data import HostCard

pytest.importorskip("device_twin")


class Marked(np.ndarray[Any, Any]):
    """An array that is not NumPy's own: answers must come in the form of the rows."""


def marked(array: NDArray[Any]) -> Marked:
    return np.asarray(array).view(Marked)


def on_card(X: NDArray[Any], weights: NDArray[np.float64] | None = None) -> CudaSource:
    return CudaSource(HostCard(), X, marked, weights, promoted_dtype([X.dtype]))


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
def test_rows_of_a_card_are_compressed_as_on_the_host(parameters):
    X = blobs(20_000, 7)
    how: dict[str, Any] = {"n_signatures": 60, "random_state": 3, "sample_size": 5000, **parameters}
    ours, theirs = Compressor(**how).fit(on_card(X)), Compressor(**how).fit(X)
    same(ours, theirs)
    answer = ours.apply(on_card(X))
    assert isinstance(answer, Marked)
    np.testing.assert_array_equal(answer, theirs.apply(X))


@pytest.mark.parametrize("dtype", [np.float16, np.int16, np.int32, np.float64])
def test_numbers_of_any_kind_and_weights_are_taken_as_on_the_host(dtype):
    X = np.round(blobs(5000, 40, np.float64)).astype(dtype)
    weights = np.random.default_rng(0).integers(0, 4, len(X)).astype(np.float64)
    how: dict[str, Any] = {"n_signatures": 30, "random_state": 1, "sample_size": 1000}
    ours = Compressor(**how).fit(on_card(X, weights))
    same(ours, Compressor(**how).fit(X, sample_weight=weights))


@pytest.mark.parametrize("n_rows", [500, 40_000])
def test_rows_of_a_card_are_clustered_as_on_the_host(n_rows):
    X = blobs(n_rows, 5)
    ours, theirs = (DC2Clustering(random_state=0).fit(rows) for rows in (on_card(X), X))
    np.testing.assert_array_equal(ours.labels_, theirs.labels_)
    np.testing.assert_array_equal(ours.labels_of_layer(0), theirs.labels_of_layer(0))
    for answer, right in (
        (ours.predict(on_card(X)), theirs.predict(X)),
        (ours.predict_proba(on_card(X)), theirs.predict_proba(X)),
    ):
        assert isinstance(answer, Marked)
        np.testing.assert_array_equal(answer, right)


@pytest.mark.parametrize("n_jobs", [1, 3])
def test_rows_of_the_host_are_sent_through_the_card_in_blocks(monkeypatch, n_jobs):
    monkeypatch.setattr(cuda_engine, "SENT_BYTES", 1)
    card = HostCard()
    monkeypatch.setattr(cuda_engine, "own_card", lambda: card)
    X = blobs(30_000, 6)
    how: dict[str, Any] = {"n_signatures": 50, "random_state": 0, "sample_size": 4000, "n_jobs": n_jobs}
    theirs = Compressor(**how).fit(X)
    ours = Compressor(**how, device="cuda", block_bytes=100_000).fit(X)
    assert card.launched.count("find_means") == 3  # of the sample, which is sent once
    assert card.launched.count("route_rows") == 3 + 8
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
    card, X = HostCard(pinned=pinned), pinned[::step]
    monkeypatch.setattr(cuda_engine, "own_card", lambda: card)
    copied: list[int] = []
    monkeypatch.setattr(HostCard, "fetchable", lambda card, size, dtype: copied.append(size) or np.empty(size, dtype))
    ours = Compressor(50, random_state=0, device="cuda", block_bytes=100_000).fit(X)
    np.testing.assert_array_equal(ours.labels_, Compressor(50, random_state=0).fit(X).labels_)
    assert bool(copied) == (step > 1)  # rows that do not lie together are put together


def test_what_breaks_off_leaves_no_thread_waiting():
    blocks = fed(HostCard(), lambda block: type(block.rows), as_source(blobs(1000, 3)).blocks(120), 2, np.asarray)
    assert next(blocks) == (10, DeviceRows)
    blocks.close()

    def refuse(block: Block) -> None:
        raise InputError(f"block {block.start}")

    with pytest.raises(InputError, match="block 0"):
        list(fed(HostCard(), refuse, as_source(blobs(1000, 3)).blocks(120), 2, np.asarray))


def test_rows_that_cannot_be_used_are_named_by_column_and_row():
    X = blobs(3000, 4)
    X[1234, 2] = np.nan
    with pytest.raises(InputError, match=r"NaN.*column 2 has 1 \(first in row 1234\)"):
        Compressor(10, sample_size=500, random_state=0).fit(on_card(X))
    X[1234] = 0
    with pytest.raises(InputError, match="Row 1234 holds only zeros"):
        Compressor(10, sample_size=500, random_state=0, metric="cosine").fit(on_card(X))


def test_a_device_that_is_unknown_is_refused_and_a_missing_one_told_in_a_sentence():
    with pytest.raises(ParameterError, match="device"):
        Compressor(device="tpu").fit(blobs(100, 2))
    try:
        import cupy  # noqa: F401
    except ImportError:
        with pytest.raises(DeviceError, match=r"CuPy.*pip install 'dc2\[gpu\]'"):
            Compressor(10, device="cuda").fit(blobs(100, 2))


def test_the_engine_takes_samples_on_the_host():
    card = HostCard()
    engine = CudaEngine(n_jobs=1, card=card)
    kinds = engine.map(lambda block: type(block.rows), as_source(blobs(100, 2)), stage="divide")
    assert set(kinds) == {np.ndarray}
    kinds = engine.map(lambda block: type(block.rows), as_source(blobs(100, 2)), stage="compress")
    assert set(kinds) == {DeviceRows}
