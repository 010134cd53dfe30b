"""Populate: from every row to its signature, and to what is known about that signature."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dc2.engines import RunOptions, answered
from dc2.sources import Block, Source

__all__ = ["Lookup", "in_one_array", "looked_up", "on_host", "populated", "with_noise"]


@dataclass(frozen=True, eq=False)
class Lookup:
    """Answers for the rows of a block; small enough to be sent to where the rows are.

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

    def __call__(self, block: Block) -> Any:
        """Return the answer for each row."""
        stays = getattr(self.router, "takes_rows_on_a_card", False)
        ids = self.router.assign(block.where_they_lie if stays else block.X, self.names, block.start)
        return ids if self.table is None else looked_up(self.table, ids)


def looked_up(table: NDArray[Any], ids: Any) -> Any:
    """Return a table's entries for some signatures; on the card if their numbers lie there."""
    if isinstance(ids, np.ndarray):
        return table[ids]
    from dc2.core.gpu.forms import table_at

    return table_at(table, ids)


def with_noise(labels: Any, is_noise: NDArray[np.bool_]) -> Any:
    """Return labels with -1 for noise, as the same kind of array; those on the host are changed in place."""
    if isinstance(labels, np.ndarray):
        labels[is_noise] = -1
        return labels
    from dc2.core.gpu.forms import form_like

    return form_like(labels)(with_noise(on_host(labels), is_noise))


def on_host(array: Any) -> NDArray[Any]:
    """Return an array, which may lie on a card, as a NumPy array."""
    if isinstance(array, np.ndarray):
        return array
    from dc2.core.gpu.forms import host_array

    return host_array(array)


def populated(source: Source, router: Any, table: NDArray[Any] | None, options: RunOptions) -> Any:
    """Return the table's entry for the signature of every row, or the signature's number; see `answered`."""
    lookup = Lookup(router, table, source.feature_names)
    return answered(source, lookup, lambda: np.empty(0, np.int32) if table is None else table[:0], options)


def in_one_array(answers: Any) -> NDArray[Any]:
    """Return answers in any of these forms as one array."""
    return np.asarray(answers) if hasattr(answers, "__array__") else np.concatenate(list(answers))
