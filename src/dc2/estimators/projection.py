"""Sparse rows with very many columns are reduced: by a fixed projection, the same for the fit and for new rows."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from dc2.core.reference import hash_at
from dc2.errors import InputError, PreparationNote
from dc2.model_file import saved_record
from dc2.sources.base import Block, DeferredRows, Source
from dc2.sources.sparse import SparseRows

__all__ = ["MOST_COLUMNS", "ProjectedSource", "SparseProjection", "projection_for"]

MOST_COLUMNS = 4096
"""Sparse rows with so many columns, or fewer, are worked on as dense rows would be."""
COMPONENTS = 1024
SEED = 41_096


@saved_record
@dataclass(frozen=True)
class SparseProjection:
    """Adds or subtracts half of each column to or from four components, which nearly keeps lengths and angles.

    The components and signs are a hash of the column's number. With m components a squared distance is right within
    a relative error of about sqrt(2 / m), of one standard deviation.

    Attributes
    ----------
    n_features : int
        Columns.
    n_components : int
        Components, a multiple of four.
    seed : int

    Examples
    --------
    >>> rows = csr_array(([3.0, 4.0], ([0, 1], [7, 99_999])), shape=(2, 100_000))
    >>> projected = SparseProjection(100_000).apply(rows)
    >>> projected.shape, float(np.linalg.norm(projected[1]))
    ((2, 1024), 4.0)

    References
    ----------
    Kane, Nelson: Sparser Johnson-Lindenstrauss transforms.
    """

    n_features: int
    n_components: int = COMPONENTS
    seed: int = SEED

    def check(self) -> None:
        """Raise if there is nothing to project, or to project to; called when read from a model file."""
        if self.n_features < 1 or self.n_components < 4 or self.n_components % 4 or not 0 <= self.seed < 2**64:
            raise InputError("the parts of a SparseProjection do not fit together.")

    @property
    def names_out(self) -> tuple[str, ...]:
        """Names of the components."""
        return tuple(f"component {number}" for number in range(self.n_components))

    def apply(self, rows: Any) -> NDArray[np.float64]:
        """Return the components of rows, sparse or dense; the same bits for either."""
        ordered = csr_array(rows, dtype=np.float64)
        ordered.sum_duplicates()  # sums follow the order of columns
        components: NDArray[np.float64] = (ordered @ _matrix(self.n_features, self.n_components, self.seed)).toarray()
        return components


@lru_cache(maxsize=4)
def _matrix(n_features: int, n_components: int, seed: int) -> csr_array:
    places = hash_at(seed, np.arange(4 * n_features))
    quarter = np.uint64(n_components // 4)
    components = (places % quarter).reshape(-1, 4).astype(np.int64) + np.arange(4) * int(quarter)
    # Halves: a product with one is exact, so that no compiler rounds a sum of them in another way.
    values = np.where(places >> np.uint64(63), 0.5, -0.5)
    starts = np.arange(n_features + 1, dtype=np.int64) * 4
    return csr_array((values, components.ravel(), starts), shape=(n_features, n_components))


class ProjectedSource:
    """Rows of a source, projected by the threads that need them.

    Parameters
    ----------
    source : Source
        The rows, sparse or dense.
    projection : SparseProjection
    """

    def __init__(self, source: Source, projection: SparseProjection) -> None:
        self._source = source
        self.projection = projection
        self.n_features: int = projection.n_components
        self.feature_names: tuple[str, ...] | None = projection.names_out
        self.dtype: np.dtype[Any] = source.dtype
        self.in_memory: bool = source.in_memory

    @property
    def n_rows(self) -> int | None:
        """Number of rows, or None where it is not known without a pass."""
        return self._source.n_rows

    def blocks(self, block_bytes: int) -> Iterator[Block]:
        """Start a fresh pass."""
        if getattr(self._source, "is_sparse", False):
            # The budget is for components: only these will be dense.
            block_bytes = block_bytes * self._source.n_features // self.n_features
        for block in self._source.blocks(block_bytes):
            yield replace(block, rows=_ProjectedRows(block.rows, self.projection, self.dtype))


class _ProjectedRows:
    """Rows that are projected when they are asked for."""

    def __init__(self, rows: NDArray[Any] | DeferredRows, projection: SparseProjection, dtype: np.dtype[Any]) -> None:
        self._rows = rows
        self._projection, self._dtype = projection, dtype
        self._projected: NDArray[Any] | None = None

    def __len__(self) -> int:
        return len(self._rows)

    def matrix(self) -> NDArray[Any]:
        if self._projected is None:
            self._projected = self._projection.apply(self._all()).astype(self._dtype)
        return self._projected

    def take(self, places: NDArray[np.integer[Any]]) -> NDArray[Any]:
        return self._projection.apply(self._all()[places]).astype(self._dtype)

    def _all(self) -> Any:
        if isinstance(self._rows, SparseRows):
            return self._rows.sparse
        return self._rows if isinstance(self._rows, np.ndarray) else self._rows.matrix()


def projection_for(source: Source) -> SparseProjection | None:
    """Return how the rows of a source are reduced, and say so; None where they are taken as they are."""
    if not getattr(source, "is_sparse", False) or source.n_features <= MOST_COLUMNS:
        return None
    warnings.warn(
        f"X is sparse and has {source.n_features:,} columns, more than {MOST_COLUMNS:,}: they are reduced to "
        f"{COMPONENTS:,} by a fixed random projection, which the model keeps and uses for new rows. Distances stay "
        "right within a few percent. Where the rows fit into memory, components learned from them keep more: reduce "
        "them by sklearn.decomposition.TruncatedSVD first.",
        PreparationNote,
        stacklevel=5,
    )
    return SparseProjection(source.n_features)
