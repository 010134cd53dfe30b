"""Communities of one graph at many resolutions, for less than the price of as many searches.

One search at a resolution far above all that are wanted finds small parts. Each wanted resolution then begins on the
graph of parts, which is several times smaller, and ends with the nodes themselves moving to better communities. No
resolution waits for another one, so which thread does which cannot show.
"""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from dc2 import core

# The resolution of parts: about five to eight nodes a part on graphs of neighbours in a plane, fewer in more columns.
NODES_PER_UNIT = 20
TIMES_FINER = 4


def leiden_path(
    indptr: NDArray[np.int64],
    indices: NDArray[np.int32],
    weights: NDArray[np.float64],
    resolutions: NDArray[np.float64],
    seed: int,
    iterations: int,
    n_threads: int,
) -> NDArray[np.int32]:
    """Return communities at each resolution (resolutions, nodes), as `leiden` does for one.

    `iterations` are those on the graph of parts.
    """
    n = len(indptr) - 1
    finest = max(n / NODES_PER_UNIT, TIMES_FINER * float(np.max(resolutions, initial=0.0)))
    part = core.leiden(indptr, indices, weights, finest, seed, None, 1)
    parts = _graph_of_parts(indptr, indices, weights, part)

    def communities(resolution: float) -> NDArray[np.int32]:
        start = core.leiden(*parts, resolution, seed, None, iterations)[part]
        return core.leiden(indptr, indices, weights, resolution, seed, start, 0)

    with ThreadPoolExecutor(n_threads) as pool:
        found = list(pool.map(communities, np.asarray(resolutions, np.float64).tolist()))
    return np.array(found, np.int32).reshape(len(found), n)


def _graph_of_parts(
    indptr: NDArray[np.int64],
    indices: NDArray[np.int32],
    weights: NDArray[np.float64],
    part: NDArray[np.int32],
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float64]]:
    """Make one node of every part; entries inside it add up on the diagonal."""
    count = int(part.max(initial=-1)) + 1
    rows = np.repeat(part, np.diff(indptr))
    merged = sp.coo_array((weights, (rows, part[indices])), shape=(count, count)).tocsr()
    return merged.indptr.astype(np.int64), merged.indices.astype(np.int32), merged.data
