"""Kinds of sources that need NumPy and SciPy alone."""

import numpy as np
import scipy.sparse as sp


def cut(X, at):
    """X in pieces; `at` are shares of its rows."""
    return np.split(X, sorted(round(share * len(X)) for share in at))


class LooksLikeAnArray:
    def __init__(self, X):
        self._X = X

    def __array__(self, dtype=None, copy=None):
        return self._X


def memory_map(X, folder, at):
    mapped = np.memmap(folder / "map.dat", dtype=X.dtype, mode="w+", shape=X.shape)
    mapped[:] = X
    return np.memmap(folder / "map.dat", dtype=X.dtype, mode="r", shape=X.shape)


def strided(X, folder, at):
    wide = np.zeros((2 * X.shape[0], 2 * X.shape[1]), X.dtype)
    wide[::2, 1::2] = X
    return wide[::2, 1::2]


def read_only(X, folder, at):
    locked = X.copy()
    locked.flags.writeable = False
    return locked


def written(suffix, write):
    def make(X, folder, at):
        for number, part in enumerate(cut(X, at)):
            write(part, folder / f"part-{number}{suffix}")
        return folder / f"part-*{suffix}"

    return make


ARRAYS = {
    "array": lambda X, folder, at: X,
    "list": lambda X, folder, at: X.astype(np.float64).tolist(),
    "fortran": lambda X, folder, at: np.asfortranarray(X),
    "strided": strided,
    "read-only": read_only,
    "byte-swapped": lambda X, folder, at: X.astype(X.dtype.newbyteorder()),
    "memmap": memory_map,
    "__array__": lambda X, folder, at: LooksLikeAnArray(X),
}
SPARSE = {
    "csr": lambda X, folder, at: sp.csr_array(X),
    "csc": lambda X, folder, at: sp.csc_matrix(X),
}
STREAMED_ARRAYS = {
    "npy": written(".npy", lambda part, path: np.save(path, part)),
    "callable of arrays": lambda X, folder, at: lambda: iter(cut(X, at)),
}
