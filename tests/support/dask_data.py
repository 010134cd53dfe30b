"""Rows, small models and a count of computed chunks, for the tests of Dask collections."""

import threading

import numpy as np
import pandas as pd

from dc2 import Compressor, RPFCluster
from dc2.spectral import RPF

N_ROWS = 3_000
NAMES = list("abcde")


def rows(dtype=np.float32, n_rows=N_ROWS):
    rng = np.random.default_rng(0)
    return (rng.normal(size=(n_rows, 5)) + 8 * rng.integers(0, 3, (n_rows, 1))).astype(dtype)


def frame(dtype=np.float32, n_rows=N_ROWS):
    return pd.DataFrame(rows(dtype, n_rows), columns=NAMES)


def compressor(**parameters):
    # The sample is smaller than the rows, so both passes matter.
    return Compressor(20, sample_size=500, random_state=0, n_jobs=1, **parameters)


def clusterer():
    return RPFCluster(
        3,
        n_signatures=30,
        similarity=RPF(n_trees=50, bandwidth=0.05),
        compressor=Compressor(sample_size=500),
        random_state=0,
        n_jobs=1,
    )


def assert_same_signatures(one, other):
    for name in ("points", "weights", "spread"):
        assert np.array_equal(getattr(one.signatures_, name), getattr(other.signatures_, name)), name


def counted(array, counts):
    """The same array, with a note of every chunk that is computed (Dask's own threads only)."""
    lock = threading.Lock()

    def note(block, block_id=None):
        if block_id is not None and block_id != ():
            with lock:
                counts[block_id[0]] = counts.get(block_id[0], 0) + 1
        return block

    return array.map_blocks(note, dtype=array.dtype, meta=np.empty((0, 0), array.dtype))
