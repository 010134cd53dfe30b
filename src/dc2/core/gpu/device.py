"""A GPU: its memory, its kernels, and its errors as `DeviceError`."""

from __future__ import annotations

import functools
import hashlib
import os
import tempfile
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from dc2.errors import DeviceError

MOST = 16  # arrays: those of two models or so


class ArrayCache:
    """A cache of results computed from arrays: least recently used, with weak references to the arrays.

    The key is the identity of an array, not its values. Do not cache results of arrays that change in place.

    Examples
    --------
    >>> import numpy as np
    >>> cache, array = ArrayCache(), np.arange(3)
    >>> cache.of(array, "sum", lambda: [int(array.sum())]) is cache.of(array, "sum", list)
    True
    """

    def __init__(self) -> None:
        self._made: OrderedDict[tuple[int, str], tuple[weakref.ref[NDArray[Any]], Any]] = OrderedDict()
        self._lock = threading.Lock()

    def of(self, array: NDArray[Any], form: str, make: Callable[[], Any]) -> Any:
        """Return the result of `make` for an array, cached under the name `form`."""
        key = (id(array), form)
        with self._lock:
            if key not in self._made:
                is_gone = weakref.ref(array, lambda _: self._made.pop(key, None))
                self._made[key] = (is_gone, make())
            self._made.move_to_end(key)
            made = self._made[key][1]
            while len(self._made) > MOST:
                self._made.popitem(last=False)
        return made


# In the order in which they include each other.
HEADERS = tuple(f"{name}.hpp" for name in ("numbers", "device", "blocks", "routing", "sums", "scaling", "launch"))
AS_IT_IS, TRANSPOSED, FLOAT32, TF32, ANY_WAY = 0, 1, 0, 77, -1  # constants of cuBLAS
LITTLE_BYTES = 2**26  # up to this size, memory is taken without checking that it is free
SHARED_BYTES = 48 * 1024  # that a block may share unless it asks for more


class Device:
    """One CUDA device, by way of CuPy, which is `xp`."""

    def __init__(self, xp: Any, number: int) -> None:
        self.xp, self.number = xp, number
        attributes = xp.cuda.Device(number).attributes
        self.processors = int(attributes["MultiProcessorCount"])
        self.shared_bytes = int(attributes["MaxSharedMemoryPerBlockOptin"])
        self.buffers: list[Any] = []  # for transfers, to be used again
        self._kept = ArrayCache()
        self._kernels: dict[tuple[str, str, int], Any] = {}

    def array(self, host: NDArray[Any]) -> Any:
        """Copy an array to the GPU."""
        return self.xp.asarray(np.ascontiguousarray(host))

    def kept(self, host: NDArray[Any], form: str, make: Callable[[NDArray[Any]], Any]) -> Any:
        """Return a constant host array on the GPU in some form, cached; any stream may read it."""

        def made() -> Any:
            there = make(host)
            self.finish()
            return there

        return self._kept.of(host, form, made)

    def asnumpy(self, array: Any) -> NDArray[Any]:
        """Copy an array from the GPU."""
        host: NDArray[Any] = self.xp.asnumpy(array)
        return host

    def fetched(self, array: Any) -> NDArray[Any]:
        """Copy a large array from the GPU to page-locked memory, which is much faster."""
        if not array.size:
            return self.asnumpy(array)
        fetchable = self.fetchable(array.size, array.dtype)
        array.ravel().get(out=fetchable)
        return fetchable.reshape(array.shape)

    def room_for(self, wanted: int) -> int:
        """Return how many of the wanted bytes to use at a time: at most a quarter of the free memory."""
        if wanted <= LITTLE_BYTES:
            return wanted
        free = self.xp.cuda.Device(self.number).mem_info[0] + self.xp.get_default_memory_pool().free_bytes()
        return min(wanted, max(int(free) // 4, LITTLE_BYTES))

    def blocks_for(self, threads_wanted: int, threads: int, most_each: int = 64) -> int:
        """Return how many blocks to start, at most `most_each` per processor; each thread processes several items."""
        return max(1, min(-(-threads_wanted // threads), most_each * self.processors))

    def launch(
        self,
        kernel: str, dtype: np.dtype[Any], width: int, job: Sequence[Any], blocks: int,
        threads: int = 256, shared: int = 0,
    ) -> None:  # fmt: skip
        """Start a kernel of `launch.hpp` for rows of a dtype and a width; the threads of a block share some bytes.

        `job` has the fields of the kernel's record, in their order; arrays on the GPU become their addresses.
        """
        start = self._kernel(kernel, dtype, width)
        if shared > SHARED_BYTES:
            start.max_dynamic_shared_size_bytes = shared
        start((blocks,), (threads,), (self.array(_record(job)),), shared_mem=shared)

    def _kernel(self, name: str, dtype: np.dtype[Any], width: int) -> Any:
        key = (name, dtype.name, width)
        if key not in self._kernels:
            module = self.xp.RawModule(path=str(compiled(self.xp, dtype, width)))
            self._kernels[key] = module.get_function(f"{name}_kernel")
        return self._kernels[key]

    @functools.cached_property
    def multiplies(self) -> bool:
        """Whether cuBLAS is available for matrix products."""
        try:
            with self.use():
                self.xp.cuda.get_cublas_handle()
            return bool(self.xp.cuda.cublas.gemmEx)
        except (ImportError, AttributeError, RuntimeError):
            return False

    def multiply(self, rows: Any, points: Any, out: Any) -> None:
        """Compute the products of all rows with all points as TF32: far faster than float32.

        All are float32; each row is contiguous, and so are `points` and `out`.
        """
        cublas, (n_points, width) = self.xp.cuda.cublas, points.shape
        one, zero = np.ones(1, np.float32), np.zeros(1, np.float32)
        # The library reads them transposed: its columns are rows here.
        cublas.gemmEx(
            self.xp.cuda.get_cublas_handle(), TRANSPOSED, AS_IT_IS, n_points, len(rows), width,
            one.ctypes.data, points.data.ptr, FLOAT32, width,
            rows.data.ptr, FLOAT32, rows.strides[0] // rows.itemsize,
            zero.ctypes.data, out.data.ptr, FLOAT32, n_points, TF32, ANY_WAY,
        )  # fmt: skip

    def new_stream(self) -> Any:
        """Return a stream that runs concurrently with other streams."""
        return self.xp.cuda.Stream(non_blocking=True)

    def fetchable(self, size: int, dtype: np.dtype[Any]) -> NDArray[Any]:
        """Return page-locked memory of the host."""
        import cupyx

        pinned: NDArray[Any] = cupyx.empty_pinned((size,), dtype)
        return pinned

    def can_fetch(self, X: NDArray[Any]) -> bool:
        """Whether the GPU can read these host rows directly: they are contiguous and in page-locked memory."""
        runtime = self.xp.cuda.runtime
        return bool(X.flags.c_contiguous and runtime.pointerGetAttributes(X.ctypes.data).type == runtime.memoryTypeHost)

    def fetch(self, fetchable: NDArray[Any], on_device: Any, stream: Any) -> None:
        """Start an asynchronous copy to the GPU."""
        on_device.set(fetchable, stream=stream)

    def on(self, stream: Any) -> AbstractContextManager[Any]:
        """Run this thread's work on a stream."""
        return cast(AbstractContextManager[Any], stream)

    def finish(self) -> None:
        """Synchronise the current stream."""
        self.xp.cuda.get_current_stream().synchronize()

    @contextmanager
    def use(self) -> Iterator[None]:
        """Use this GPU in a block of code; errors of CUDA become `DeviceError`."""
        cuda = self.xp.cuda
        try:
            with cuda.Device(self.number):
                yield
        except cuda.memory.OutOfMemoryError as error:
            with cuda.Device(self.number) as device:
                free, total = device.mem_info
            raise DeviceError(
                f"the GPU is out of memory: {free / 2**30:.1f} of {total / 2**30:.1f} GiB are free "
                f"({error}). Give the rows as a NumPy array or files with device='cuda', which sends them through the "
                "GPU in blocks."
            ) from error
        except cuda.runtime.CUDARuntimeError as error:
            raise DeviceError(f"CUDA device {self.number} failed: {error}.") from error


def compiled(xp: Any, dtype: np.dtype[Any], width: int) -> Path:
    """Return the file with the kernels for a dtype and a width; compiled on first use.

    CuPy's own way of compiling flushes tiny numbers to zero, so only its compiler and its folder are used.
    """
    compiler = xp.cuda.compiler
    real = {4: "float", 8: "double"}[dtype.itemsize]
    names = (f"-DDC2_REAL={real}", f"-DDC2_REAL_BYTES={dtype.itemsize}", f"-DDC2_WIDTH={width}")
    options = ("--std=c++17", "--fmad=false", "-ftz=false", "-prec-div=true", "-prec-sqrt=true", *names)
    facts = (kernel_code(), *options, xp.cuda.Device().compute_capability, *map(str, xp.cuda.nvrtc.getVersion()))
    digest = hashlib.sha256("\n".join(facts).encode()).hexdigest()
    folder = Path(os.environ.get("CUPY_CACHE_DIR", "~/.cupy/kernel_cache")).expanduser()
    file = folder / f"dc2-{digest[:32]}.cubin"
    if not file.exists():
        binary, _ = compiler.compile_using_nvrtc(kernel_code(), options)
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=folder, delete=False) as unfinished:
            unfinished.write(binary)
        os.replace(unfinished.name, file)
    return file


def _record(job: Sequence[Any]) -> NDArray[np.uint64]:
    """Return the fields of a record, eight bytes each."""
    return np.array([_field(value) & (2**64 - 1) for value in job], np.uint64)


def _field(value: Any) -> int:
    if value is None:
        return 0
    if isinstance(value, int | np.integer):
        return int(value)
    return int(value.ctypes.data if isinstance(value, np.ndarray) else value.data.ptr)


@functools.cache
def kernel_code() -> str:
    """Return the source of all kernels as one text."""
    here = Path(__file__).parent
    lines = "\n".join((here / name).read_text("utf-8") for name in HEADERS).splitlines()
    return "\n".join(line for line in lines if not line.startswith(('#include "', "#pragma once"))) + "\n"


def cupy() -> Any:
    """Import CuPy; raise `DeviceError` if that fails."""
    try:
        import cupy as module
    except ImportError as error:
        raise DeviceError(
            "device='cuda': CuPy cannot be imported "
            f"({error}). Install it with pip install 'dc2[gpu]' (CUDA 13) or 'dc2[cuda]' (CUDA 12)."
        ) from error
    return module


def own_device(number: int | None = None) -> Device:
    """Return a GPU by its number, by default CuPy's current device."""
    module = cupy()
    try:
        there = module.cuda.runtime.getDeviceCount()
        number = module.cuda.runtime.getDevice() if number is None else number
    except module.cuda.runtime.CUDARuntimeError as error:
        raise DeviceError(
            f"no CUDA device can be used here ({error}). Check with nvidia-smi that there is an NVIDIA GPU and a "
            "driver that is not older than CuPy's CUDA, or use device=None."
        ) from error
    if not 0 <= number < there:
        raise DeviceError(f"there is no CUDA device {number}: this machine has {there}, counted from 0.")
    return _device(number)


@functools.cache
def _device(number: int) -> Device:
    return Device(cupy(), number)
