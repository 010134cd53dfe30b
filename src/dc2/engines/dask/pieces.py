"""Dask collections of every kind as one: a row of pieces, each an array or a data frame, perhaps with weights."""

from __future__ import annotations

from typing import Any

import dask.array as da
import numpy as np
from dask.array.utils import meta_from_array

from dc2.errors import InputError, InputTypeError

__all__ = ["pieces_of_array", "pieces_of_frame", "rows_of_chunks", "weighed_pieces"]

OBJECTS = np.empty(0, object)
"""What Dask believes the pieces to be; it never looks inside."""


def pieces_of_array(array: da.Array) -> da.Array:
    """Return the row blocks of an array; columns that are cut up are joined."""
    if array.ndim != 2:
        raise InputError(
            f"Expected 2D array, got {array.ndim}D array instead (shape {array.shape}). Reshape your data: rows and "
            "columns are needed."
        )
    kind = type(meta_from_array(array))
    if not issubclass(kind, np.ndarray):
        raise InputTypeError(
            f"X is a dask array of {kind.__module__}.{kind.__name__} chunks, but NumPy "
            "chunks are needed. Convert them, for instance with X.map_blocks(numpy.asarray)."
        )
    if array.numblocks[1] != 1:
        array = array.rechunk({1: -1})
    return da.blockwise(_only, "i", array, "ij", concatenate=False, meta=OBJECTS)


def pieces_of_frame(frame: Any) -> da.Array:
    """Return the partitions of a data frame."""
    return frame.map_partitions(_itself, meta=OBJECTS, enforce_metadata=False)


def weighed_pieces(pieces: da.Array, weights: Any) -> da.Array:
    """Put the weights of its rows (an array or a series) beside every piece, as a pair.

    Chunk sizes of the pieces may be unknown if the weights come in as many chunks.
    """
    if not isinstance(weights, da.Array):
        weights = weights.to_dask_array()
    if weights.ndim != 1:
        raise InputError(f"sample_weight must be 1-dimensional, one number per row; got shape {weights.shape}.")
    rows, given = rows_of_chunks(pieces), rows_of_chunks(weights)
    if rows is not None and given is not None and rows != given:
        if sum(rows) != sum(given):
            raise InputError(f"sample_weight has {sum(given)} values but X has {sum(rows)} rows: give one each.")
        weights = weights.rechunk((rows,))
    if weights.numblocks != pieces.numblocks:
        raise InputError(
            f"sample_weight has {weights.numblocks[0]} chunks but X has {pieces.numblocks[0]}, and rows cannot be "
            "matched to weights while their chunk sizes are unknown. Call compute_chunk_sizes() on both first."
        )
    sizes = weights.chunks[0] if rows is None else rows
    return da.blockwise(
        _pair, "i", pieces, "i", weights, "i", align_arrays=False, adjust_chunks={"i": sizes}, meta=OBJECTS
    )


def rows_of_chunks(array: da.Array) -> tuple[int, ...] | None:
    """Return the number of rows of each chunk, or None where one is unknown."""
    sizes = array.chunks[0]
    return None if any(np.isnan(size) for size in sizes) else tuple(int(size) for size in sizes)


def _only(blocks: list[Any]) -> Any:
    (block,) = blocks
    return block


def _itself(piece: Any) -> Any:
    return piece


def _pair(piece: Any, weights: Any) -> tuple[Any, Any]:
    return piece, weights
