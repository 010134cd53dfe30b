"""The engine for one GPU: rows on it are one block, others are sent there while it works."""

from __future__ import annotations

import queue
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

from dc2.core.gpu.device import Device, own_device
from dc2.core.gpu.device_rows import DeviceRows, as_cupy, form_like, host_array
from dc2.engines.engine import DEFAULT_BLOCK_BYTES, HasOwnEngine, Progress, reported
from dc2.engines.threads import ThreadEngine
from dc2.errors import InputTypeError
from dc2.io.arrays import ArrayLayout, check_matrix
from dc2.io.source import Block, Source, check_weights, check_weights_sum, is_on_cuda, rows_per_block
from dc2.parameters import usable_threads

R = TypeVar("R")

BUFFERS = 5  # two are filled, one is on its way, two are worked on
FEEDERS = 2  # threads that have buffers filled
WORKERS = 2  # threads that start the GPU's work, and wait for it
COPY_ROWS_AT_LEAST = 2**12  # by one thread


def fed(
    device: Device,
    function: Callable[[Block], R],
    blocks: Iterator[Block],
    n_threads: int,
    form: Callable[[Any], Any],
) -> Iterator[tuple[int, R]]:
    """Yield the number of rows of each block, and what a function makes of it with its rows on the GPU; in order.

    The function is called in threads, and the block is gone when it returns. `n_threads` copy rows to where the GPU can
    fetch them; `form` brings an array of results from the GPU.
    """
    free: queue.SimpleQueue[_Buffer] = queue.SimpleQueue()
    for _ in range(BUFFERS):
        free.put(device.buffers.pop() if device.buffers else _Buffer(device))
    working: deque[Future[tuple[int, R]]] = deque()
    try:
        with (
            ThreadPoolExecutor(n_threads, thread_name_prefix="dc2-copy") as copiers,
            ThreadPoolExecutor(FEEDERS, thread_name_prefix="dc2-feed") as feeders,
            ThreadPoolExecutor(WORKERS, thread_name_prefix="dc2-gpu") as workers,
        ):

            def work(buffer: _Buffer, block: Block, sending: Future[Any]) -> tuple[int, R]:
                try:
                    rows = DeviceRows(device, sending.result(), block.X.dtype, form)
                    return block.n_rows, buffer.work(function, replace(block, rows=rows))
                finally:
                    free.put(buffer)

            for block in blocks:
                if len(working) == BUFFERS:
                    yield working.popleft().result()
                buffer = free.get()
                sending = feeders.submit(buffer.send, block.X, copiers, n_threads)
                working.append(workers.submit(work, buffer, block, sending))
                del block
            while working:
                yield working.popleft().result()
    finally:  # memory that a GPU can fetch takes long to get
        device.buffers += [free.get() for _ in range(BUFFERS)]


class _Buffer:
    """Memory for one block: on the host, where the GPU can fetch it, and on the GPU; and its own stream of work."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self._fetchable: Any = None
        self._on_gpu: Any = None
        self._stream: Any = None

    def send(self, X: NDArray[Any], copiers: ThreadPoolExecutor, n_threads: int) -> Any:
        """Start rows on their way to the GPU, and return where they will be there.

        They are copied to where the GPU can fetch them, unless they are in such memory already. The caller holds `X`
        until the GPU has worked on it.
        """
        device = self._device
        with device.use():
            if self._on_gpu is None or self._on_gpu.dtype != X.dtype or self._on_gpu.size < X.size:
                self._stream = device.new_stream()
                self._on_gpu = device.xp.empty(X.size, X.dtype)
            on_device = self._on_gpu[: X.size].reshape(X.shape)
            rows = X if device.can_fetch(X) else self._copied(X, copiers, n_threads)
            device.fetch(rows, on_device, self._stream)
        return on_device

    def _copied(self, X: NDArray[Any], copiers: ThreadPoolExecutor, n_threads: int) -> NDArray[Any]:
        """Copy rows, in threads, to where the GPU can fetch them."""
        if self._fetchable is None or self._fetchable.dtype != X.dtype or self._fetchable.size < X.size:
            self._fetchable = self._device.fetchable(X.size, X.dtype)
        fetchable: NDArray[Any] = self._fetchable[: X.size].reshape(X.shape)
        step = max(COPY_ROWS_AT_LEAST, -(-len(X) // n_threads))
        starts = range(0, len(X), step)
        list(copiers.map(lambda i: np.copyto(fetchable[i : i + step], X[i : i + step]), starts))
        return fetchable

    def work(self, function: Callable[[Block], R], block: Block) -> R:
        """Do some work on the GPU, as soon as the rows are there and beside that on other blocks."""
        with self._device.use(), self._device.on(self._stream):
            try:
                return function(block)
            finally:
                self._device.finish()


class CudaSource:
    """Rows of an array on a GPU, worked on as `dtype`, and their weights on the host.

    `form` puts an array of the host or the GPU into the kind of array that the user gave.
    """

    in_memory = True
    feature_names: tuple[str, ...] | None = None

    def __init__(
        self, device: Device, X: Any, form: Callable[[Any], Any], weights: NDArray[np.float64] | None, dtype: Any
    ) -> None:
        self._rows = DeviceRows(device, X, dtype, form)
        self.form = form
        self._weights = weights
        self.dtype = dtype
        self.n_rows, self.n_features = (int(size) for size in X.shape)

    def blocks(self, block_bytes: int) -> Iterator[Block]:
        """Start a fresh pass: blocks of at most `block_bytes` bytes (but at least a row), in row order."""
        rows = rows_per_block(block_bytes, self.n_features, self.dtype)
        for start in range(0, self.n_rows, rows):
            weights = None if self._weights is None else self._weights[start : start + rows]
            yield Block(start, self._rows.part(start, start + rows), weights)

    def own_engine(self, progress: Progress | None) -> CudaEngine:
        """Return the engine that works where the rows are."""
        return CudaEngine(progress=progress, device=self._rows.device)


def cuda_source(
    data: Any,
    *,
    columns: Sequence[Any] | None = None,
    drop: Sequence[Any] | None = None,
    sample_weight: Any = None,
    extra: Sequence[str] = (),
) -> CudaSource:
    """Return the source for an array on a CUDA device: of CuPy, torch, JAX, or any other with ``__dlpack__``.

    The parameters are those of `dc2.io.as_source`; weights may be on the host or on a GPU.
    """
    if isinstance(sample_weight, str) or extra:
        name = sample_weight if isinstance(sample_weight, str) else extra
        raise InputTypeError(
            f"X is an array without column names, so {name!r} cannot be taken from it. Give sample_weight as an array."
        )
    device, X = as_cupy(data)
    check_matrix(X)
    layout = ArrayLayout(np.empty((0, X.shape[1]), X.dtype), columns, drop)
    if layout.chosen is not None:
        with device.use():
            X = X[:, device.array(np.array(layout.chosen, np.int64))]
    weights = None
    if sample_weight is not None:
        weights = check_weights(host_array(sample_weight) if is_on_cuda(sample_weight) else sample_weight, len(X))
        check_weights_sum(float(weights.sum()), len(X))
    return CudaSource(device, X, form_like(data), weights, layout.dtype)


WHOLE = 2**62  # bytes
SENT_BYTES = 128 * 2**20  # at least, at a time: a GPU works on many rows at once
MOST_HELD_BYTES = 2**30  # of rows that are sent there for several passes


class CudaEngine:
    """Map a function over the blocks of a source, whose rows are on a GPU (`dc2.core.gpu.DeviceRows`).

    `n_jobs` threads put rows of the host together, in blocks of `block_bytes`, but 128 MiB at least. A sample of rows
    that are on the host is taken there: sending all of them to take a few would be slower.
    """

    shares_memory: ClassVar[bool] = True

    def __init__(
        self,
        n_jobs: int | None = None,
        block_bytes: int = DEFAULT_BLOCK_BYTES,
        progress: Progress | None = None,
        *,
        device: Device | None = None,
    ) -> None:
        self.n_jobs, self.block_bytes, self.progress = n_jobs, block_bytes, progress
        self._device = device

    def on_device(self, X: NDArray[Any]) -> DeviceRows | None:
        """Return rows of the host on the GPU, for several passes over them; None where they are too many."""
        if X.nbytes > MOST_HELD_BYTES:
            return None
        device = self._own_device()
        with device.use():
            return DeviceRows(device, device.array(X), X.dtype, device.asnumpy)

    def map(
        self,
        function: Callable[[Block], R],
        source: Source,
        *,
        stage: str,
        merge: Callable[[Sequence[R]], R] | None = None,
        result_bytes: int = 0,
    ) -> Iterator[R]:
        """Yield ``function(block)`` for every block of the source, in block order."""
        results: Iterator[tuple[int, R]]
        if isinstance(source, HasOwnEngine):
            results = ((block.n_rows, function(block)) for block in source.blocks(WHOLE))
        elif stage == "divide":
            yield from ThreadEngine(self.n_jobs, self.block_bytes, self.progress).map(function, source, stage=stage)
            return
        else:
            results = self._sent(function, source)
        yield from reported(results, self.progress, stage, source.n_rows)

    def _sent(self, function: Callable[[Block], R], source: Source) -> Iterator[tuple[int, R]]:
        device = self._own_device()
        blocks = source.blocks(max(self.block_bytes, SENT_BYTES))
        # Results that are put together at once stay where the GPU wrote them until then.
        form = device.fetched if source.in_memory else device.asnumpy
        return fed(device, function, blocks, usable_threads(self.n_jobs), form)

    def _own_device(self) -> Device:
        return own_device() if self._device is None else self._device
