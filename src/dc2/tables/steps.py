"""Columns of few whole steps, such as counts and ratings: their values are spread within the steps.

Rows pile up at such values, and the empty space between them looks like a gap between clusters: a rating from 1 to 5
would cut every cluster into five. But a count can be seen as a measurement that was rounded. So each value is moved by
at most half a step, by a hash of the row's own numbers: equal rows move alike, wherever they are in the table.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dc2.core.reference import hash_at

__all__ = ["on_steps", "spread", "step_of"]

FEWEST_VALUES = 3
ROWS_PER_VALUE = 4  # on average; with fewer rows per value, they do not pile up


def step_of(values: NDArray[np.float64]) -> float:
    """Return the step that divides all differences of values; 0 if there is none, or if rows do not pile up.

    Examples
    --------
    >>> step_of(np.repeat([1.0, 2.0, 5.0], 10)), step_of(np.repeat([0.0, 0.5, 1.5], 10)), step_of(np.arange(100.0))
    (1.0, 0.5, 0.0)
    """
    there = np.sort(values[np.isfinite(values)])
    new = np.append(True, there[1:] != there[:-1])
    distinct = there[new]
    if not FEWEST_VALUES <= len(distinct) <= len(there) / ROWS_PER_VALUE:
        return 0.0
    gaps = np.diff(distinct)
    step = float(gaps.min())
    steps = gaps / step
    return step if (np.abs(steps - np.rint(steps)) < 1e-6).all() else 0.0


def spread(columns: Sequence[NDArray[np.float64]], steps: Sequence[float]) -> list[NDArray[np.float64]]:
    """Return the columns, with those on steps spread within their steps; blanks stay blank.

    Examples
    --------
    >>> ratings = np.array([1.0, 1.0, 2.0])
    >>> alone, other = spread([ratings, np.array([0.1, 0.2, 0.3])], [1.0, 0.0])
    >>> np.rint(alone).tolist(), bool(alone[0] != alone[1]), other.tolist()
    ([1.0, 1.0, 2.0], True, [0.1, 0.2, 0.3])
    """
    if not any(steps):
        return list(columns)
    key = np.zeros(len(columns[0]), np.uint64)
    for column in columns:
        # Adding 0 turns -0 into 0; blanks are not compared by their bits.
        bits = np.where(np.isfinite(column), column + 0.0, 0.0).view(np.uint64)
        key = hash_at(0, key ^ bits)
    answer = []
    for number, (column, step) in enumerate(zip(columns, steps, strict=True)):
        if step:
            drawn = (hash_at(number + 1, key) >> np.uint64(11)).astype(np.float64) * 2.0**-53
            answer.append(column + step * (drawn - 0.5))
        else:
            answer.append(column)
    return answer


def on_steps(values: NDArray[np.float64], step: float, one: float) -> NDArray[np.float64]:
    """Put spread values back on their steps; `one` is any value on a step."""
    return one + np.rint((values - one) / step) * step if step else values
