"""The dimension of rows: locally, and over distances as large as clusters."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import pdist

__all__ = ["dimension_for_cuts", "large_scale_dimension"]

NODES = 300
FEWEST_NODES = 30
# The shares of all pairs between whose distances the dimension is taken: farther apart than neighbours, yet within a
# cluster if there are up to ten.
SHARES = np.array([0.01, 0.1])
CURVE, NO_CURVE = 1.5, 2.5


def large_scale_dimension(points: NDArray[Any]) -> float:
    """Return with which power of the distance the number of pairs grows (the correlation dimension), at least 1.

    Infinite if there are too few points, or all are equally far apart.

    Examples
    --------
    >>> import numpy as np
    >>> turn = np.linspace(0, 2 * np.pi, 600)
    >>> ring = np.stack([np.cos(turn), np.sin(turn)], axis=1)
    >>> draw = np.random.default_rng(0)
    >>> round(large_scale_dimension(ring + draw.normal(0, 0.02, ring.shape)), 1)
    1.2
    >>> round(large_scale_dimension(draw.uniform(size=(600, 2))), 1)
    1.9
    """
    some = points[:: -(-len(points) // NODES)].astype(np.float64)
    if len(some) < FEWEST_NODES:
        return np.inf
    near, far = np.quantile(pdist(some), SHARES)
    if not 0 < near < far:
        return np.inf
    return max(float(np.log(SHARES[1] / SHARES[0]) / np.log(far / near)), 1.0)


def dimension_for_cuts(local: float, large: float) -> float:
    """Return the dimension that says how often chance cuts rows at the same places.

    Rows along a curve are cut at the same places again and again, however thick the curve is and whatever the dimension
    of its inside. So for a curve the dimension at large counts, otherwise the local one, and in between a part of both.

    Examples
    --------
    >>> dimension_for_cuts(5.0, 1.2), dimension_for_cuts(5.0, 2.0), dimension_for_cuts(5.0, 3.0)
    (1.2, 3.5, 5.0)
    """
    share = min(max((large - CURVE) / (NO_CURVE - CURVE), 0.0), 1.0)
    return local if share == 1 else share * local + (1 - share) * min(local, large)
