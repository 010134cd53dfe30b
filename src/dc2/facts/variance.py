"""How much of the rows' variance their signatures keep."""

from __future__ import annotations

import numpy as np

from dc2.compress.signatures import Signatures

__all__ = ["variance_kept"]


def variance_kept(signatures: Signatures) -> float:
    """Return the share of the rows' variance that is left in their signatures; 1 where rows do not vary.

    Examples
    --------
    >>> variance_kept(Signatures(np.array([[0.0], [2.0]]), np.ones(2), np.array([1.0, 1.0])))
    0.5
    """
    weights = signatures.weights if signatures.weights.sum() > 0 else np.ones(len(signatures))
    share = weights / weights.sum()
    points = signatures.points.astype(np.float64)
    # Any power of two would do; this one keeps squares of very large and very small values in range.
    exponent = int(np.frexp(max(np.abs(points).max(), np.sqrt(signatures.spread.max())))[1])
    points = np.ldexp(points, -exponent)
    off = points - share @ points
    between = float(share @ (off * off).sum(axis=1))
    lost = float(share @ np.ldexp(signatures.spread, -2 * exponent))
    return between / (between + lost) if between + lost > 0 else 1.0
