"""Compression that keeps every distinct row, for few rows."""

from __future__ import annotations

import numpy as np
from numpy.random import SeedSequence
from numpy.typing import NDArray

from dc2.compress.compress import Compression
from dc2.compress.distinct import DistinctRows
from dc2.compress.lookup import signature_router
from dc2.compress.populate import Lookup
from dc2.compress.router import Router
from dc2.compress.sample import Sample
from dc2.compress.scaling import Scaling
from dc2.compress.signatures import Signatures
from dc2.engines import Engine
from dc2.sources import Source
from dc2.trees.tree import NO_LIMIT

__all__ = ["keep_rows"]


def keep_rows(
    source: Source,
    engine: Engine,
    sample: Sample,
    distinct: DistinctRows,
    scaling: Scaling | None,
    seeds: SeedSequence,
    n_threads: int,
) -> Compression:
    """Return each distinct row as a signature of its own.

    Parameters
    ----------
    source : Source
        The rows.
    engine : Engine
        Checks rows of weight 0: they become no signatures, but bad values in them are refused all the same.
    sample : Sample
        All rows with a weight above 0, scaled.
    distinct : DistinctRows
        Which of these are equal.
    scaling : Scaling or None
        How they were scaled.
    """
    router, point_of_leaf = signature_router(sample.X[distinct.first], seeds, scaling, n_threads)
    leaf_of_point = np.empty_like(point_of_leaf)
    leaf_of_point[point_of_leaf] = np.arange(len(point_of_leaf), dtype=np.int32)
    of_row = leaf_of_point[distinct.of_row]
    weights = np.bincount(of_row, sample.weights, minlength=len(distinct)).astype(np.float64)
    signatures = Signatures(router.centres, weights, np.zeros(len(distinct)))
    if len(of_row) < sample.n_rows:
        of_row = _of_all_rows(source, engine, router)
    return Compression(router, signatures, sample.n_rows, of_row if source.in_memory else None)


def _of_all_rows(source: Source, engine: Engine, router: Router) -> NDArray[np.int32]:
    """Return the signature of every row, including rows of weight 0."""
    if source.in_memory:
        return router.assign(next(source.blocks(NO_LIMIT)).X, source.feature_names)
    lookup = Lookup(router, None, source.feature_names)
    return np.concatenate(list(engine.map(lookup, source, stage="compress")))
