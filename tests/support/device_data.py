"""A GPU that is none: its kernels run on the host, block by block, its memory is NumPy's."""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from dc2.core.gpu import device_scan as scan
from dc2.core.gpu.device import ArrayCache, _record
from dc2.core.reference import Centres, FlatTree, NearestOut, check_centres, check_tree


class HostDevice:
    """What `dc2.core.gpu.device.Device` is, without a GPU."""

    xp = np
    number = 0

    def __init__(
        self,
        processors: int = 1,
        most_blocks: int = 10**6,
        shared_bytes: int = 2**20,
        most_bytes: int = 2**40,
        pinned: NDArray[Any] | None = None,
    ) -> None:
        self.most_bytes = most_bytes
        self.pinned = np.empty(0) if pinned is None else pinned
        self.processors, self.most_blocks, self.shared_bytes = processors, most_blocks, shared_bytes
        self.launched: list[str] = []
        self.buffers: list[Any] = []
        self._kept = ArrayCache()
        self._twin = pytest.importorskip("support.device_twin")

    def array(self, host: NDArray[Any]) -> NDArray[Any]:
        return np.ascontiguousarray(host)

    def kept(self, host: NDArray[Any], form: str, make: Any) -> Any:
        return self._kept.of(host, form, lambda: make(host))

    def asnumpy(self, array: NDArray[Any]) -> NDArray[Any]:
        return array

    def fetched(self, array: NDArray[Any]) -> NDArray[Any]:
        return array

    def blocks_for(self, threads_wanted: int, threads: int, most_each: int = 64) -> int:
        return max(1, min(-(-threads_wanted // threads), self.most_blocks))

    def launch(
        self,
        kernel: str,
        dtype: Any,
        width: int,
        job: Sequence[Any],
        blocks: int,
        threads: int = 256,
        shared: int = 0,
    ) -> None:
        self.launched.append(kernel)
        record = _record(job)
        self._twin.launch(kernel, dtype == np.float64, record.ctypes.data, blocks, threads)

    multiplies = True

    def room_for(self, wanted: int) -> int:
        return min(wanted, self.most_bytes)

    def multiply(self, rows: NDArray[Any], points: NDArray[Any], out: NDArray[Any]) -> None:
        with np.errstate(all="ignore"):
            np.matmul(_in_ten_bits(rows), _in_ten_bits(points).T, out=out)

    def new_stream(self) -> None:
        return None

    def fetchable(self, size: int, dtype: Any) -> NDArray[Any]:
        return np.full(size, -1, dtype)

    def can_fetch(self, X: NDArray[Any]) -> bool:
        return bool(X.flags.c_contiguous and np.may_share_memory(X, self.pinned))

    def fetch(self, fetchable: NDArray[Any], on_device: NDArray[Any], stream: None) -> None:
        on_device[:] = fetchable

    def on(self, stream: None) -> AbstractContextManager[None]:
        return nullcontext()

    def finish(self) -> None:
        pass

    @contextmanager
    def use(self) -> Iterator[None]:
        yield


class DeviceCore:
    """The functions of a core, on a GPU."""

    def __init__(self, device: Any) -> None:
        self.device = device

    def scan(self, X: Any, weights: Any, tree: FlatTree, centres: Centres, sums: Any, found: NearestOut) -> int:
        """Take and give arrays of the host."""
        device, found = self.device, NearestOut(*found)
        check_tree(tree)
        check_centres(centres, len(tree.thresholds) + 1)
        with device.use():
            out = NearestOut(*(None if array is None else device.array(array) for array in found))
            rows = X if device.xp is np else _like(device.xp, X)
            bad = scan.scan(device, rows, weights, FlatTree(*tree), Centres(*centres), sums, out)
            for array, filled in zip(found, out, strict=True):
                if array is not None:
                    array[:] = device.asnumpy(filled)
        return bad

    def hash_rows(self, seed: int, start: int, stop: int) -> NDArray[np.uint64]:
        with self.device.use():
            return self.device.asnumpy(scan.hash_rows(self.device, seed, start, stop))

    def sample_rows(self, seed: int, start: int, stop: int, limit: int) -> NDArray[np.int64]:
        with self.device.use():
            return scan.sample_rows(self.device, seed, start, stop, limit)


def _like(xp: Any, X: NDArray[Any]) -> Any:
    """The same values on the GPU, with rows or columns together as they are here."""
    return xp.asarray(X, order="F" if X.flags.f_contiguous else "C")


def _in_ten_bits(X: NDArray[Any]) -> NDArray[Any]:
    """Cut the last bits off, as the fastest products of a GPU do."""
    return (np.ascontiguousarray(X).view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32)
