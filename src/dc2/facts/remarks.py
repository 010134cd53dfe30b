"""Remarks on columns: what a careful reader would ask about before trusting clusters."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dc2.facts.fitted import FittedClusters

__all__ = ["column_remarks", "variation_explained"]

ALONE = 0.9  # of a column's variation, explained by the clusters
LITTLE = 0.4  # of every other column's
FEWEST_ROWS = 50  # for a column to look like an id
MOST_NAMED = 5


def column_remarks(clusters: FittedClusters, n_rows: float) -> list[str]:
    """Return sentences on columns that are constant, look like ids, or make the clusters by themselves.

    Parameters
    ----------
    clusters : FittedClusters
    n_rows : float
        How many rows there were.

    Examples
    --------
    >>> X, ones = np.array([[0.0, 5.0, 3.0], [1.0, 5.0, 3.1], [0.0, 5.0, 3.1], [1.0, 5.0, 3.0]]), np.ones(4)
    >>> labels = np.array([0, 1, 0, 1], np.int32)
    >>> found = FittedClusters(X, X, ones, ones, labels, ("member", "year", "size"), 2)
    >>> for remark in column_remarks(found, 4):
    ...     print(remark)
    'year' is constant: it tells nothing.
    'member' alone makes the clusters: they are little more than its values. Leave it out to see what else there is.
    """
    names, constant = np.array(clusters.names, dtype=object), _constant(clusters)
    remarks = []
    if constant.any():
        remarks.append(f"{_named(names[constant])} {_is(constant)} constant: {_it(constant)} nothing.")
    ids = [name for name, values in zip(names, clusters.values.T, strict=True) if _is_id(values, clusters, n_rows)]
    remarks += [f"'{name}' looks like the number of a row: leave it out if it is one." for name in ids]
    alone = _alone(clusters, constant)
    if alone is not None:
        remarks.append(
            f"'{names[alone]}' alone makes the clusters: they are little more than its values. Leave it out to see "
            "what else there is."
        )
    return remarks


def variation_explained(clusters: FittedClusters) -> NDArray[np.float64]:
    """Return the share of each column's variation, over signatures by weight, that lies between clusters."""
    clusters = clusters.take(clusters.in_clusters)
    share = clusters.weights / clusters.weights.sum()
    centre = share @ clusters.points
    total = share @ (clusters.points - centre) ** 2
    inside = share @ (clusters.points - clusters.means(clusters.points)[clusters.labels]) ** 2
    explained: NDArray[np.float64] = 1.0 - np.divide(inside, total, out=np.ones_like(total), where=total > 0)
    return np.maximum(explained, 0.0)


def _constant(clusters: FittedClusters) -> NDArray[np.bool_]:
    low, high = clusters.values.min(axis=0), clusters.values.max(axis=0)
    constant: NDArray[np.bool_] = high - low <= 1e-6 * np.maximum(np.abs(low), np.abs(high))
    return constant if len(clusters.values) > 1 else np.zeros_like(constant)


def _is_id(values: NDArray[np.float64], clusters: FittedClusters, n_rows: float) -> bool:
    """Return whether values are spread as evenly as numbers from one to the number of rows, and as widely."""
    reach = float(np.ptp(values))
    if n_rows < FEWEST_ROWS or not 0.9 * n_rows <= reach <= 1.1 * n_rows:
        return False
    order = np.argsort(values, kind="stable")
    below = np.cumsum(clusters.weights[order]) / clusters.weights.sum()
    even = (values[order] - values.min()) / reach
    return bool(np.abs(below - even).max() < 0.05)


def _alone(clusters: FittedClusters, constant: NDArray[np.bool_]) -> int | None:
    if clusters.n_clusters < 2 or len(clusters.names) < 2:
        return None
    explained = variation_explained(clusters)
    best = int(explained.argmax())
    others = np.delete(explained, best)[np.delete(~constant, best)]
    return best if explained[best] >= ALONE and len(others) and others.max() <= LITTLE else None


def _named(names: NDArray[np.object_]) -> str:
    named = [f"'{name}'" for name in names[:MOST_NAMED]]
    more = len(names) - len(named)
    return ", ".join(named) + (f" and {more} more" if more else "")


def _is(which: NDArray[np.bool_]) -> str:
    return "is" if which.sum() == 1 else "are"


def _it(which: NDArray[np.bool_]) -> str:
    return "it tells" if which.sum() == 1 else "they tell"
