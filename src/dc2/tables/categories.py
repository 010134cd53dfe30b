"""Where the levels of categories lie: close together beside numbers, or in the space of a correspondence analysis."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dc2.parameters import one_blas_thread
from dc2.tables.column_transforms import CategoryTransform
from dc2.tables.column_types import Category

MOST_COMPONENTS = 8
MOST_COLUMNS = 32
LEVELS_NAMED = 2
LETTERS_NAMED = 24


def beside_numbers(
    categories: Sequence[Category], weight: float, *, all_own: bool = False
) -> tuple[tuple[CategoryTransform, ...], tuple[str, ...]]:
    """Return categories that together move a row by about `weight`, less than the spacing of rows in the numbers.

    A category puts gaps between rows, which a graph of neighbours would take for clusters. A few levels get a column
    each; categories with too many levels are reduced to the leading components of their correspondence analysis, unless
    `all_own`.
    """
    own = list(categories) if all_own else _with_own_columns(categories)
    shared = [one for one in categories if one not in own]
    own_names = [f"{one.name}={level}" for one in own for level in _named_lines(one)]
    components, component_names = by_correspondence(categories, shared) if shared else ((), ())
    if shared:
        size = max(1e-300, _size(shared, components))
        components = _times(components, weight * np.sqrt(len(shared) / len(categories)) / size)
    step = weight / np.sqrt(2.0 * max(1, len(categories)))
    width, first = len(own_names) + len(component_names), 0
    remaining = iter(components)
    parts: list[CategoryTransform] = []
    for one in categories:
        places = np.zeros((len(one.levels) + 2, width))
        if one in own:
            lines = np.flatnonzero(_is_named(one))
            places[lines, first + np.arange(len(lines))] = step
            first += len(lines)
        else:
            places[:, len(own_names) :] = next(remaining).places
        parts.append(CategoryTransform(one.name, one.reading, one.levels, places))
    return tuple(parts), (*own_names, *component_names)


def by_correspondence(
    categories: Sequence[Category], wanted: Sequence[Category] | None = None
) -> tuple[tuple[CategoryTransform, ...], tuple[str, ...]]:
    """Return the leading components of the multiple correspondence analysis of categories.

    Components that tell more than a single category would are kept, at least two and at most eight. The place of a
    row is the sum of the places of its levels; an unseen level is in the middle.
    """
    shares = [np.bincount(one.codes, minlength=len(one.levels) + 2) / len(one.codes) for one in categories]
    starts = np.cumsum([0, *(len(share) for share in shares)])
    share = np.concatenate(shares)
    seen = share > 0
    lines = np.stack([one.codes + start for one, start in zip(categories, starts, strict=False)], axis=1)
    inverse = np.where(seen, 1.0 / np.sqrt(np.where(seen, share, 1.0) * len(categories)), 0.0)
    with one_blas_thread():  # bits must not depend on the number of threads
        together = _pairs(lines, len(share)) / len(lines) - np.outer(share, share)
        values, vectors = np.linalg.eigh(together * np.outer(inverse, inverse))
    values, vectors = values[::-1], vectors[:, ::-1]
    telling = int((values > (1.0 - 1e-9) / len(categories)).sum())
    kept = int(np.clip(telling, min(2, seen.sum()), MOST_COMPONENTS))
    vectors = vectors[:, :kept]
    vectors = vectors * np.where(vectors[np.abs(vectors).argmax(axis=0), np.arange(kept)] < 0, -1.0, 1.0)
    places = vectors * inverse[:, None]
    parts, counts = [], []
    for one, part_share, start in zip(categories, shares, starts, strict=False):
        if wanted is not None and one not in wanted:
            continue
        own = places[start : start + len(part_share)]
        own = np.where(part_share[:, None] > 0, own - part_share @ own, 0.0)
        parts.append(CategoryTransform(one.name, one.reading, one.levels, own))
        counts.append(part_share)
    return tuple(parts), _component_names(parts, counts)


def _component_names(parts: Sequence[CategoryTransform], shares: Sequence[NDArray[np.float64]]) -> tuple[str, ...]:
    """Name components by their columns, and by the levels that make most of either end."""
    levels = [
        _short(level if len(parts) == 1 else f"{part.name}={level}")
        for part in parts
        for level in _lines(part.reading, part.levels)
    ]
    places = np.concatenate([part.places for part in parts])
    pull = np.concatenate(shares)[:, None] * places * np.abs(places)
    whose = ", ".join(part.name for part in parts[:3]) + (", ..." if len(parts) > 3 else "")
    names = []
    for number, column in enumerate(pull.T):
        order = np.argsort(-column, kind="stable")
        high = [levels[line] for line in order[:LEVELS_NAMED] if column[line] > 0]
        low = [levels[line] for line in order[::-1][:LEVELS_NAMED] if column[line] < 0]
        ends = " against ".join(", ".join(end) for end in (high, low) if end)
        names.append(f"{whose} {number + 1} ({ends})" if ends else f"{whose} {number + 1}")
    return tuple(names)


def _short(name: str) -> str:
    return name if len(name) <= LETTERS_NAMED else f"{name[: LETTERS_NAMED - 1]}…"


def _with_own_columns(categories: Sequence[Category]) -> list[Category]:
    """Return those with fewest levels, as many as there are columns for."""
    narrow, room = [], MOST_COLUMNS
    for one in sorted(categories, key=lambda one: len(_named_lines(one))):
        room -= len(_named_lines(one))
        if room < 0:
            break
        narrow.append(one)
    return [one for one in categories if one in narrow]


def _pairs(lines: NDArray[np.int64], width: int) -> NDArray[np.float64]:
    """Return how many rows have both of any two levels."""
    shown = np.zeros((len(lines), width))
    np.put_along_axis(shown, lines, 1.0, axis=1)
    return shown.T @ shown  # whole numbers: exact in any order


def _size(categories: Sequence[Category], parts: Sequence[CategoryTransform]) -> float:
    """Return the root mean squared distance of rows from their middle."""
    rows = np.zeros((len(categories[0].codes), parts[0].places.shape[1]))
    for one, part in zip(categories, parts, strict=True):
        rows += part.places[one.codes]
    return float(np.sqrt((rows**2).sum(axis=1).mean()))


def _times(parts: Sequence[CategoryTransform], factor: float) -> tuple[CategoryTransform, ...]:
    return tuple(CategoryTransform(p.name, p.reading, p.levels, p.places * factor) for p in parts)


def _is_named(one: Category) -> NDArray[np.bool_]:
    """Return which lines of the places occur; a level without rows gets no column."""
    return np.bincount(one.codes, minlength=len(one.levels) + 2) > 0


def _named_lines(one: Category) -> list[str]:
    return [name for name, is_there in zip(_lines(one.reading, one.levels), _is_named(one), strict=True) if is_there]


def _lines(reading: str, levels: Sequence[str]) -> list[str]:
    """Return what the lines of the places stand for."""
    return [*levels, "other", "blank"] if reading == "level" else ["there", "blank"]
