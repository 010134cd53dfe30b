"""Populate: from every row to its signature, and to what is known of that signature."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dc2.engines import Verbose, engine_for
from dc2.sources import Block, Source

__all__ = ["Lookup", "answered", "in_one_array", "populated"]


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
    """Return what the table has for the signature of every row of a source, or its number; see `answered`."""
    lookup = Lookup(router, table, source.feature_names)
    like = np.empty(0, np.int32) if table is None else table[:0]
    return answered(source, lookup, like, n_jobs, block_bytes, verbose)


def answered(
    source: Source,
    answer: Callable[[Block], NDArray[Any]],
    like: NDArray[Any],
    n_jobs: int | None,
    block_bytes: int,
    verbose: Verbose,
) -> Any:
    """Return the answer for every row of a source.

    Parameters
    ----------
    source : Source
        The rows.
    answer : callable
        Takes a block and returns an array with as many rows.
    like : ndarray
        No rows of such an array: its dtype and width are known before it is computed.
    n_jobs, block_bytes, verbose
        As everywhere.

    Returns
    -------
    ndarray, iterator of ndarray, or dask.array.Array
        An array if the rows lie in memory, else blocks as they are read. Rows that are computed elsewhere are
        answered there, when asked: then a lazy array with the chunks of the data.
    """
    lazy = getattr(source, "lazy", None)
    if lazy is not None:
        return lazy(answer, like)
    blocks = engine_for(source, n_jobs, block_bytes, verbose).map(answer, source, stage="populate")
    return np.concatenate(list(blocks)) if source.in_memory else blocks


def in_one_array(answers: Any) -> NDArray[Any]:
    """Return answers in any of these forms as one array."""
    return np.asarray(answers) if hasattr(answers, "__array__") else np.concatenate(list(answers))
