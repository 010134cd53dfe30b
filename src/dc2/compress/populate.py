"""Populate: look up a result for each row by its signature, and score outliers by the signatures near a row."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dc2.compress.routing import Router, RowRouter
from dc2.compress.surroundings import Surroundings, likely_rows
from dc2.engines.map_rows import RunOptions, mapped_rows
from dc2.io.source import Block, Source


@dataclass(frozen=True, eq=False)
class Lookup:
    """Looks up a result for each row of a block; small enough to be sent to workers."""

    router: RowRouter
    table: NDArray[Any] | None  # the result for each signature; None gives the number of the signature
    names: tuple[str, ...] | None  # of the columns, for errors

    def __call__(self, block: Block) -> Any:
        """Return the result for each row."""
        stays = getattr(self.router, "takes_device_rows", False)
        ids = self.router.assign(block.native_rows if stays else block.X, self.names, block.start)
        return ids if self.table is None else entries_of(self.table, ids)


def entries_of(table: NDArray[Any], ids: Any) -> Any:
    """Return the entries of a table for some signatures, on the device of the ids."""
    if isinstance(ids, np.ndarray):
        return table[ids]
    from dc2.core.gpu.device_rows import table_at

    return table_at(table, ids)


def with_noise(labels: Any, is_noise: NDArray[np.bool_]) -> Any:
    """Return labels with -1 for noise, as the same kind of array; host arrays are changed in place."""
    if isinstance(labels, np.ndarray):
        labels[is_noise] = -1
        return labels
    from dc2.core.gpu.device_rows import form_like

    return form_like(labels)(with_noise(on_host(labels), is_noise))


def on_host(array: Any, places: NDArray[np.integer[Any]] | None = None) -> NDArray[Any]:
    """Return an array, or some entries of it, as a NumPy array; copy them if they are on a GPU."""
    if isinstance(array, np.ndarray):
        return array if places is None else np.asarray(array[places])
    from dc2.core.gpu.device_rows import host_array

    return host_array(array, places)


def populated(source: Source, router: RowRouter, table: NDArray[Any] | None, options: RunOptions) -> Any:
    """Return the table's entry for the signature of every row, or the signature's number; see `mapped_rows`."""
    lookup = Lookup(router, table, source.feature_names)
    return mapped_rows(source, lookup, lambda: np.empty(0, np.int32) if table is None else table[:0], options)


def in_one_array(results: Any) -> NDArray[Any]:
    """Return results of `mapped_rows`, an array or an iterator of arrays, as one array."""
    return np.asarray(results) if hasattr(results, "__array__") else np.concatenate(list(results))


NEAREST = 8  # signatures considered for each row
NEIGHBOURHOOD = 3.0  # size of a row's neighbourhood, in rows of an average signature
HALF_OUT = 2.0  # the score is one half at this many typical distances
FAR = 0.9  # rows farther from their neighbourhood than this share of all rows are far from it
FARTHEST = 1e290  # squared; a limit, since infinity times a weight of 0 is NaN


@dataclass(frozen=True, eq=False)
class OutlierScores:
    """Scores the rows of a block; small enough to be sent to workers.

    How far out a row is shows in the distances that reach a few percent of all rows (`Surroundings`), also if it is in
    a group of anomalies, which is its own neighbourhood. Rows between small clusters are far from their neighbourhood:
    the rows of its nearest signatures, as many as three average signatures hold. The mean squared distance d^2 to them
    is known exactly: the squared distance to a signature plus its spread, averaged by weight. If d is larger than
    that of nine rows in ten, `far`, the reach counts d / far times. The score is r / (2 + r) with r = reach / typical;
    it depends on density alone, never on clusters. It uses no function with a last bit that depends on the platform.

    Attributes
    ----------
    router : Router
        With neighbour lists.
    weights, spread : ndarray of shape (n_ids,), float64
        Of the signature for each number that the router gives.
    typical : float
        The reach of a typical row.
    surroundings : Surroundings
    far : float
    """

    router: Router
    weights: NDArray[np.float64]
    spread: NDArray[np.float64]
    typical: float
    surroundings: Surroundings
    far: float

    def __call__(self, block: Block) -> NDArray[np.float64]:
        """Return the score of each row, 0 to 1."""
        return self.of(block.native_rows)

    def of(self, X: Any) -> NDArray[np.float64]:
        """Return the score of each row of an array."""
        distances = np.sqrt(_squared_distances(self.router, self.weights, self.spread, X))
        rows, scaling = on_host(X), self.router.scaling
        reach = self.surroundings.reach(rows if scaling is None else scaling.apply(rows))
        ratio = np.minimum(reach / self.typical * np.maximum(distances / self.far, 1.0), FARTHEST)
        scores: NDArray[np.float64] = ratio / (HALF_OUT + ratio)
        return scores

    @property
    def unscaled(self) -> OutlierScores:
        """The same for rows that are scaled already."""
        return replace(self, router=replace(self.router, scaling=None))


@dataclass(frozen=True, eq=False)
class NegativeScores:
    """The negative scores of the rows of a block: higher is more ordinary."""

    scores_of: OutlierScores

    def __call__(self, block: Block) -> NDArray[np.float64]:
        """Return the negative score of each row."""
        return -self.scores_of(block)


def outlier_scores_of(
    router: Router, weights: NDArray[np.float64], spread: NDArray[np.float64], typical: float | None = None
) -> OutlierScores:
    """Return a scorer of rows, calibrated at the signatures; a typical reach that is given is taken.

    Parameters
    ----------
    router : Router
        With neighbour lists.
    weights, spread : ndarray of shape (n_ids,), float64
        Of the signature for each number that the router gives.
    typical : float, optional
    """
    unscaled = replace(router, scaling=None)
    rows = likely_rows(router.centres, weights, spread, lambda: unscaled.nearest_few(router.centres, 2)[0][:, -1])
    surroundings = Surroundings.of(rows)
    distances = np.sqrt(_squared_distances(unscaled, weights, spread, rows))
    far = float(np.quantile(distances, FAR, method="inverted_cdf")) or float(distances.max()) or surroundings.step
    if typical is None:
        typical = float(np.quantile(surroundings.reach(rows), 0.5, method="inverted_cdf")) or surroundings.step
    return OutlierScores(router, weights, spread, typical, surroundings, far)


def _squared_distances(
    router: Router, weights: NDArray[np.float64], spread: NDArray[np.float64], X: Any
) -> NDArray[np.float64]:
    """Return the mean squared distance of each row to the rows of its neighbourhood."""
    ids, to_centres = router.nearest_few(X, NEAREST)
    return _mean_squares(ids, to_centres, weights, spread)


def _mean_squares(
    ids: NDArray[np.int32], to_centres: NDArray[Any], weights: NDArray[np.float64], spread: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the same from each row's nearest signatures and the squared distances to these."""
    whole = NEIGHBOURHOOD * weights.mean()
    missing, total = np.full(len(ids), whole), np.zeros(len(ids))
    for k in range(ids.shape[1]):
        squared = np.minimum(to_centres[:, k].astype(np.float64), FARTHEST) + spread[ids[:, k]]
        taken = np.minimum(weights[ids[:, k]], missing)
        total += taken * squared
        missing -= taken
    # If the nearest signatures hold too few rows, the missing rows get the distance of the last signature.
    mean: NDArray[np.float64] = np.minimum((total + missing * squared) / whole, FARTHEST)
    return mean
