"""Rows on a GPU."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from dc2.core.gpu import device_scan as scan
from dc2.core.gpu.device import Device, own_device
from dc2.core.gpu.device_scan import least_squared_distances
from dc2.core.reference import Centres, FlatTree, NearestOut, SumsOut
from dc2.errors import InputTypeError


def as_cupy(data: Any) -> tuple[Device, Any]:
    """Return the device of an array, and the array as a CuPy array."""
    device = own_device(int(data.__dlpack_device__()[1]))
    if isinstance(data, device.xp.ndarray):
        return device, data
    detach = getattr(data, "detach", None)  # torch: no gradients are needed
    with device.use():
        try:
            return device, device.xp.from_dlpack(data if detach is None else detach())
        except (BufferError, TypeError, ValueError, RuntimeError) as error:
            raise InputTypeError(
                f"X is a {type(data).__module__}.{type(data).__name__} that CuPy cannot take ({error}). Convert it to "
                "float32 first."
            ) from error


def form_like(data: Any) -> Callable[[Any], Any]:
    """Return a function that converts a NumPy or CuPy array to the library and device of `data`."""
    device, _ = as_cupy(data)
    xp = device.xp
    take = None if isinstance(data, xp.ndarray) else getattr(_library(data), "from_dlpack", None)

    def form(array: Any) -> Any:
        with device.use():
            there = xp.asarray(array)
            return there if take is None else take(there)

    return form


def _library(data: Any) -> Any:
    if hasattr(data, "__array_namespace__"):
        return data.__array_namespace__()
    return sys.modules.get(type(data).__module__.partition(".")[0])


def table_at(table: NDArray[Any], ids: Any) -> Any:
    """Index a host table by an array on a GPU; the result is an array of the same library and device."""
    device, numbers = as_cupy(ids)
    with device.use():
        return form_like(ids)(device.xp.asarray(table)[numbers])


def host_array(data: Any, places: NDArray[np.integer[Any]] | None = None) -> NDArray[Any]:
    """Copy an array on a GPU, or some entries of it, to the host."""
    device, array = as_cupy(data)
    with device.use():
        return device.asnumpy(array if places is None else array[device.array(places)])


@dataclass(frozen=True, eq=False)
class ColumnScaling:
    """The scaling of rows before routing: see `dc2.compress.scaling.Scaling`.

    If rows are scaled to length 1, `refuse_zeros` is called with the number of the first row of zeros and their count.
    """

    exponents: NDArray[np.int64] | None
    shift: NDArray[Any] | None
    factor: NDArray[Any] | None
    unit: bool
    refuse_zeros: Callable[[int, int], NoReturn]
    start: int = 0


@dataclass(frozen=True, eq=False)
class DeviceRows:
    """A matrix on a GPU, as the router reads it.

    Attributes
    ----------
    device : Device
    X : array on the GPU, of shape (n_rows, n_features)
        Numbers of any type.
    dtype : dtype
        The dtype of the computation.
    form : callable
        Converts an array on the GPU to the kind of array that the caller gets.
    scaling : ColumnScaling or None
        Applied to the rows before routing.
    """

    device: Device
    X: Any
    dtype: np.dtype[Any]
    form: Callable[[Any], Any]
    scaling: ColumnScaling | None = None

    def __len__(self) -> int:
        return len(self.X)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return self.matrix() if dtype is None else self.matrix().astype(dtype)

    def matrix(self) -> NDArray[Any]:
        """Copy all rows to the host."""
        with self.device.use():
            return self.device.asnumpy(self.X).astype(self.dtype, copy=False)

    def take(self, indices: NDArray[np.integer[Any]]) -> NDArray[Any]:
        """Copy the rows with some indices to the host."""
        with self.device.use():
            taken = self.X[self.device.array(indices)]
            return self.device.fetched(taken).astype(self.dtype, copy=False)

    def sample_rows(self, seed: int, start: int, limit: int) -> NDArray[np.int64]:
        """Return the numbers of the rows whose hash is at most `limit`; the number of the first row is `start`."""
        with self.device.use():
            return scan.sample_rows(self.device, seed, start, start + len(self), limit)

    def part(self, start: int, stop: int) -> DeviceRows:
        """Return consecutive rows."""
        return replace(self, X=self.X[start:stop])

    def astype(self, dtype: np.dtype[Any], copy: bool = False) -> DeviceRows:
        """Return the same rows with another dtype of the computation."""
        return replace(self, dtype=np.dtype(dtype))

    def scaled(self, scaling: ColumnScaling) -> DeviceRows:
        """Return the same rows with a scaling, which is applied when rows are routed."""
        return replace(self, scaling=scaling)

    def empty(self, shape: Any, dtype: Any) -> Any:
        """Return an array on the GPU."""
        with self.device.use():
            return self.device.xp.empty(shape, dtype)

    def asnumpy(self, array: Any) -> NDArray[Any]:
        """Copy an array from the GPU to the host."""
        with self.device.use():
            return self.device.asnumpy(array)

    def scan(
        self,
        weights: NDArray[np.float64] | None,
        tree: FlatTree,
        centres: Centres,
        sums: SumsOut | None,
        found: NearestOut,
    ) -> int:
        """Do what `dc2.core.reference.scan` does; the arrays of `found` are on the GPU."""
        with self.device.use():
            return scan.scan(self.device, self.X, weights, tree, centres, sums, found, taken=self._taker)

    def means(
        self,
        weights: NDArray[np.float64] | None,
        tree: FlatTree,
        centres: Centres,
        magic: NDArray[np.float64],
    ) -> tuple[NDArray[Any], int, int]:
        """Return the mean of each signature's rows, and how many rows and sums are not finite.

        Only means leave the GPU: with wide rows and many signatures, the sums are larger than the rows.
        """
        with self.device.use():
            return scan.means(self.device, self.X, weights, tree, centres, magic, self._taker)

    def least_squared_distances(self, points: NDArray[Any]) -> NDArray[np.float32] | None:
        """Return lower bounds of the squared distances among host points, computed on the device of these rows."""
        return least_squared_distances(self.device, points)

    @property
    def _taker(self) -> Callable[[Any, int], Any] | None:
        """The function that prepares rows before they are routed, or None."""
        return None if self.scaling is None and self.X.dtype == self.dtype else self._taken

    def _taken(self, X: Any, start: int) -> Any:
        """Return some rows, scaled."""
        X = X.astype(self.dtype, copy=False)
        if self.scaling is None:
            return X
        device, how = self.device, self.scaling
        out = device.xp.empty(X.shape, self.dtype)
        zeros = device.array(np.array([0, 2**63], np.uint64))
        exponents, shift, factor = (
            None if array is None else device.array(array) for array in (how.exponents, how.shift, how.factor)
        )
        job = [*scan.strided(X), len(X), exponents, shift, factor, int(how.unit), out, zeros]
        device.launch("scale_rows", self.dtype, X.shape[1], job, device.blocks_for(len(X) * scan.LANES, 256))
        count, first = device.asnumpy(zeros).tolist()
        if count:
            how.refuse_zeros(how.start + start + first, count)
        return out
