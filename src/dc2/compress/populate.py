"""Populate: from every row to its signature, and to what is known of that signature."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dc2.engines import Verbose, engine_for
from dc2.sources import Block, Source

__all__ = ["Lookup", "populated"]


@dataclass(frozen=True, eq=False)
class Lookup:
    """Answers for the rows of a block; small, so that it can be sent to where the rows are.

    Attributes
    ----------
    router : Router
        Sends rows to signatures.
    table : ndarray of shape (n_signatures, ...) or None
        The answer for each signature; without it, the answer is the signature's number.
    names : tuple of str or None
        Names of the columns, for errors.
    """

    router: Any
    table: NDArray[Any] | None
    names: tuple[str, ...] | None

    def __call__(self, block: Block) -> NDArray[Any]:
        """Return the answer for each row."""
        ids: NDArray[np.int32] = self.router.assign(block.X, self.names, block.start)
        return ids if self.table is None else self.table[ids]


def populated(
    source: Source,
    router: Any,
    table: NDArray[Any] | None,
    n_jobs: int | None,
    block_bytes: int,
    verbose: Verbose,
) -> Any:
    """Return the answer for every row of a source.

    Returns
    -------
    ndarray, iterator of ndarray, or dask.array.Array
        An array if the rows lie in memory, else blocks as they are read. Rows that are computed elsewhere are
        answered there, when asked: then a lazy array with the chunks of the data.
    """
    lookup = Lookup(router, table, source.feature_names)
    lazy = getattr(source, "lazy", None)
    if lazy is not None:
        return lazy(lookup, like=np.empty(0, np.int32) if table is None else table[:0])
    blocks = engine_for(source, n_jobs, block_bytes, verbose).map(lookup, source, stage="populate")
    return np.concatenate(list(blocks)) if source.in_memory else blocks
