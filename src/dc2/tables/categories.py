"""Where the levels of categories lie: close together beside numbers, or in the space of a correspondence analysis."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from dc2.tables.kinds import Category
from dc2.tables.parts import CategoryPart

__all__ = ["beside_numbers", "by_correspondence"]

MOST_COMPONENTS = 8
MOST_COLUMNS = 32


def beside_numbers(
    categories: Sequence[Category], weight: float
) -> tuple[tuple[CategoryPart, ...], tuple[str, ...]]:
    """Return categories that together move a row by about `weight`, less than the spacing of rows in the numbers.

    A category puts gaps between rows, which a graph of neighbours would take for clusters. A few levels get a column
    each; many are reduced to the leading components of their correspondence analysis.
    """
    names = [f"{one.name}={level}" for one in categories for level in _named_lines(one)]
    if len(names) > MOST_COLUMNS:
        together, names_out = by_correspondence(categories)
        return _times(together, weight / max(1e-300, _size(categories, together))), names_out
    step = weight / np.sqrt(2.0 * max(1, len(categories)))
    parts: list[CategoryPart] = []
    place = 0
    for one in categories:
        lines = len(_named_lines(one))
        places = np.zeros((len(one.levels) + 2, len(names)))
        places[np.flatnonzero(_is_named(one)), place + np.arange(lines)] = step
        parts.append(CategoryPart(one.name, one.reading, one.levels, places))
        place += lines
    return tuple(parts), tuple(names)


def by_correspondence(categories: Sequence[Category]) -> tuple[tuple[CategoryPart, ...], tuple[str, ...]]:
    """Return the leading components of the multiple correspondence analysis of categories.

    Components that tell more than a single category would are kept, at least two and at most eight. The place of a
    row is the sum of the places of its levels; an unseen level lies in the middle.
    """
    shares = [np.bincount(one.codes, minlength=len(one.levels) + 2) / len(one.codes) for one in categories]
    starts = np.cumsum([0, *(len(share) for share in shares)])
    share = np.concatenate(shares)
    seen = share > 0
    lines = np.stack([one.codes + start for one, start in zip(categories, starts, strict=False)], axis=1)
    inverse = np.where(seen, 1.0 / np.sqrt(np.where(seen, share, 1.0) * len(categories)), 0.0)
    with threadpool_limits(limits=1):  # bits must not depend on the number of threads
        together = _pairs(lines, len(share)) / len(lines) - np.outer(share, share)
        values, vectors = np.linalg.eigh(together * np.outer(inverse, inverse))
    values, vectors = values[::-1], vectors[:, ::-1]
    telling = int((values > (1.0 - 1e-9) / len(categories)).sum())
    kept = int(np.clip(telling, min(2, seen.sum()), MOST_COMPONENTS))
    vectors = vectors[:, :kept]
    vectors = vectors * np.where(vectors[np.abs(vectors).argmax(axis=0), np.arange(kept)] < 0, -1.0, 1.0)
    places = vectors * inverse[:, None]
    parts = []
    for one, part_share, start in zip(categories, shares, starts, strict=False):
        own = places[start : start + len(part_share)]
        own = np.where(part_share[:, None] > 0, own - part_share @ own, 0.0)
        parts.append(CategoryPart(one.name, one.reading, one.levels, own))
    whose = ", ".join(one.name for one in categories[:3]) + (", ..." if len(categories) > 3 else "")
    return tuple(parts), tuple(f"{whose} ({number + 1})" for number in range(kept))


def _pairs(lines: NDArray[np.int64], width: int) -> NDArray[np.float64]:
    """Return how many rows have both of any two levels."""
    shown = np.zeros((len(lines), width))
    np.put_along_axis(shown, lines, 1.0, axis=1)
    return shown.T @ shown  # whole numbers: exact in any order


def _size(categories: Sequence[Category], parts: Sequence[CategoryPart]) -> float:
    """Return the root mean squared distance of rows from their middle."""
    rows = np.zeros((len(categories[0].codes), parts[0].places.shape[1]))
    for one, part in zip(categories, parts, strict=True):
        rows += part.places[one.codes]
    return float(np.sqrt((rows**2).sum(axis=1).mean()))


def _times(parts: Sequence[CategoryPart], factor: float) -> tuple[CategoryPart, ...]:
    return tuple(CategoryPart(p.name, p.reading, p.levels, p.places * factor) for p in parts)


def _is_named(one: Category) -> NDArray[np.bool_]:
    """Return which lines of the places occur; a level without rows gets no column."""
    return np.bincount(one.codes, minlength=len(one.levels) + 2) > 0


def _named_lines(one: Category) -> list[str]:
    names = [*one.levels, "other", "blank"] if one.reading == "level" else ["there", "blank"]
    return [name for name, is_there in zip(names, _is_named(one), strict=True) if is_there]
