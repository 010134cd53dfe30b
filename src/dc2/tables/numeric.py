"""How a column of numbers is scaled, learned from a sample."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from dc2.tables.column_transforms import NumberTransform, VectorTransform, step_of
from dc2.tables.column_types import Number, Text, Vector
from dc2.tables.texts import TextTransform

SKEWED = 0.5
"""The skewness of a column whose upper twentieth lies three times as far from the median as its lower one."""
GAP = 0.2
"""Share of the range without its outer hundredths; a wider step between neighbouring quantiles may separate groups."""
FAR_OUT = 30.0
"""Quartile distances; a column with values farther out is put on a curve too."""
SHARES = np.linspace(0.0, 1.0, 257)
TEXT_WEIGHT = 0.5
"""The median distance of texts from their middle, in quartile distances of a number. At 0.25, three meaningless numbers
drowned the texts; at 1, random words drowned two meaningful numbers."""
SPACED_ROWS = 2048
SPACED_WIDTH = 64
"""From this many columns on, fewer rows are searched for their neighbour."""


def number_transform(number: Number, *, on_steps: bool = True) -> tuple[NumberTransform, str]:
    """Return how a column is scaled, also as text: by median and quartiles, or by a curve if it is heavily skewed.

    Values on steps are jittered within them if `on_steps`.

    Examples
    --------
    >>> part, words = number_transform(Number("x", "number", np.array([1.0, 2.0, 3.0, 4.0, np.nan])))
    >>> words, part.fill, part.scaled(np.array([2.0, 4.0])).tolist()
    ('scaled by median and quartiles', 2.0, [0.0, 1.0])
    """
    there = number.values[np.isfinite(number.values)]
    missing = 1.0 - len(there) / len(number.values)
    middle, size = _middle_and_size(there)
    reading: Literal["number", "time"] = "time" if number.reading == "time" else "number"
    step = step_of(there) if on_steps and number.reading == "number" else 0.0
    plain = NumberTransform(number.name, reading, middle, middle, 1.0 / size, step=step, missing=missing)
    if number.reading == "time" or not _is_heavy(there):
        return plain, "scaled by median and quartiles" + _spread_in_words(step)
    knots = np.unique(np.quantile(there, SHARES, method="inverted_cdf"))
    small = np.quantile(np.abs(there[there != 0]), 0.01, method="inverted_cdf")
    words = "heavily skewed: scaled on a logarithmic scale"
    bent = np.arcsinh(there / small)
    heights = np.arcsinh(knots / small)
    if _is_heavy(bent):
        words = "heavily skewed: scaled by quantiles"
        order = np.sort(there)
        heights = np.searchsorted(order, knots, "left") + np.searchsorted(order, knots, "right") + 0.0
        bent = np.interp(there, knots, heights)
    shift, size = _middle_and_size(bent)
    curve = NumberTransform(number.name, reading, middle, 0.0, 1.0, knots, (heights - shift) / size, step, missing)
    return curve, words + _spread_in_words(step)


def _spread_in_words(step: float) -> str:
    return f", jittered within its steps of {step:g}" if step else ""


def vector_transform(vector: Vector, alone: bool) -> tuple[VectorTransform, str]:
    """Return how lists of numbers are scaled, also as text: as they are, or all together.

    Examples
    --------
    >>> part, words = vector_transform(Vector("vec", np.array([[0.0, 0.0], [3.0, 4.0], [-3.0, -4.0]])), alone=False)
    >>> words, part.factor
    ('lists of 2 numbers, scaled together by their distance from the middle', 0.2)
    """
    width = vector.rows.shape[1]
    if alone:
        return VectorTransform(vector.name, width, 1.0), f"lists of {width} numbers, taken as they are"
    rows = vector.rows[:SPACED_ROWS].astype(np.float64)
    off = rows - np.quantile(rows, 0.5, axis=0, method="inverted_cdf")
    far = np.sqrt((off**2).sum(axis=1))
    size = float(np.quantile(far, 0.5, method="inverted_cdf")) or 1.0
    words = f"lists of {width} numbers, scaled together by their distance from the middle"
    return VectorTransform(vector.name, width, 1.0 / size), words


def text_transform(text: Text) -> tuple[TextTransform, str]:
    """Return how texts are scaled, also as text: by their distance from the middle, to count less than a number."""
    far = np.sqrt((text.rows**2).sum(axis=1))
    size = float(np.quantile(far[far > 0], 0.5, method="inverted_cdf"))
    kind = "text, though all are numbers: groups of their digits" if text.are_numbers else "text: groups of its letters"
    words = f"{kind}, {text.part.width} components that stand out, scaled together"
    return replace(text.part, factor=TEXT_WEIGHT / size), words


def _middle_and_size(values: NDArray[np.float64]) -> tuple[float, float]:
    low, middle, high = np.quantile(values, [0.25, 0.5, 0.75], method="inverted_cdf")
    size = float(high - low) or float(values.std()) or 1.0
    return float(middle), size


def _is_heavy(values: NDArray[np.float64]) -> bool:
    low, middle, high = np.quantile(values, [0.05, 0.5, 0.95], method="inverted_cdf")
    width = _middle_and_size(values)[1]
    if _in_groups(values):
        # The median is inside one of the groups, which looks like skew; but a curve would close the gap between them.
        return bool(max(values.max() - high, low - values.min()) > FAR_OUT * (high - low))
    skew = abs(high + low - 2 * middle) / (high - low) if high > low else 1.0
    far_out = np.abs(values - middle).max() > FAR_OUT * width
    return bool(far_out or skew > SKEWED)


def _in_groups(values: NDArray[np.float64]) -> bool:
    """Return whether a gap separates the values: a step more than twice as wide as any step beyond it.

    In a tail, by contrast, steps between quantiles grow towards the end, and the last is the widest.
    """
    count = min(max(len(values) // 8, 9), 65)
    steps = np.diff(np.quantile(values, np.linspace(0.01, 0.99, count), method="inverted_cdf"))
    widest = int(steps.argmax())
    before, beyond = steps[:widest], steps[widest + 1 :]
    gap = steps[widest]
    return bool(
        gap > GAP * steps.sum() and min(len(before), len(beyond)) >= 2 and 2 * max(before.max(), beyond.max()) < gap
    )


def spacing_of(rows: NDArray[np.float64]) -> float:
    """Return the median distance of a row to the nearest different one.

    Examples
    --------
    >>> spacing_of(np.array([[0.0], [0.0], [2.0], [4.0]]))
    2.0
    """
    rows = rows[:SPACED_ROWS]
    asked = rows[: max(1, SPACED_ROWS * SPACED_WIDTH // max(SPACED_WIDTH, rows.shape[1]))]
    nearest = np.empty(len(asked))
    for place, row in enumerate(asked):
        squares = ((rows - row) ** 2).sum(axis=1)
        others = squares[squares > 0]
        nearest[place] = others.min() if len(others) else 0.0
    return float(np.sqrt(np.median(nearest)))
