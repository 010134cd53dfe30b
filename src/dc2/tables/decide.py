"""What becomes of each column of a table, decided from a sample of its rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics.cluster import contingency_matrix

from dc2.errors import InputError
from dc2.io.columns import Columns
from dc2.tables.categories import beside_numbers, by_correspondence
from dc2.tables.column_transforms import (
    CYCLES,
    CycleTransform,
    NumberTransform,
    TableTransforms,
    complete_rows_of,
    cycle_places,
    spread,
)
from dc2.tables.column_types import Category, LeftOut, Number, TableSample, Text, Vector, kinds_of
from dc2.tables.numeric import SPACED_ROWS, number_transform, spacing_of, text_transform, vector_transform

LEAST_SHARE = 0.01
"""The share of another column's variation that must be explained, beyond chance."""
DEVIATIONS = 4.0


def ranks_of(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return ranks with mean 0 and standard deviation 1; equal values share a rank, and a constant column is 0.

    Examples
    --------
    >>> ranks_of(np.array([10.0, 30.0, 10.0, 1e9])).round(2).tolist()
    [-0.94, 0.47, -0.94, 1.41]
    """
    _, codes, counts = np.unique(values, return_inverse=True, return_counts=True)
    middle = np.cumsum(counts) - (counts + 1) / 2
    ranks: NDArray[np.float64] = middle[codes] - (len(values) - 1) / 2
    deviation = np.sqrt(np.mean(ranks**2))
    return ranks / deviation if deviation > 0 else ranks


def share_of_numbers(codes: NDArray[np.int64], ranks: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return how much of the variation of each column of ranks the levels explain, beyond chance.

    A share not beyond chance is 0.
    """
    n_rows = len(codes)
    present, codes, counts = np.unique(codes, return_inverse=True, return_counts=True)
    freedom = len(present) - 1
    shares = []
    for column in ranks.T:
        means = np.bincount(codes, column) / counts
        shares.append(float((counts * means**2).sum() / n_rows))
    beyond = np.array(shares) - freedom / n_rows
    return np.where(beyond > DEVIATIONS * np.sqrt(2 * max(freedom, 1)) / n_rows, beyond, 0.0)


def share_of_levels(one: NDArray[np.int64], other: NDArray[np.int64]) -> float:
    """Return Cramér's V squared of two columns of levels, less what chance would give; 0 if not beyond chance."""
    n_rows = len(one)
    table = contingency_matrix(one, other)
    fewest = min(table.shape) - 1
    if fewest == 0:
        return 0.0
    expected = np.outer(table.sum(axis=1), table.sum(axis=0)) / n_rows
    square = float(((table - expected) ** 2 / expected).sum() / n_rows)
    freedom = (table.shape[0] - 1) * (table.shape[1] - 1)
    beyond = square - freedom / n_rows
    return beyond / fewest if beyond > DEVIATIONS * np.sqrt(2 * freedom) / n_rows else 0.0


def tells(shares: NDArray[np.float64]) -> bool:
    """Return whether any share is large enough to keep a column."""
    return bool((shares >= LEAST_SHARE).any())


SAME = 0.999
"""From this rank correlation on, or Cramér's V for categories, two columns count as the same."""
WEIGHT = 0.5
"""Of all categories together, in units of the spacing of rows in the numbers."""
LEAST_BLANK = 0.01
BINS = 16
MOST_ASKED = 16
TELLS_NOTHING = "left out: tells nothing about any other column"


@dataclass
class _Choice:
    """The columns kept so far, and what was decided about each column."""

    numbers: list[Number] = field(default_factory=list)
    times: list[Number] = field(default_factory=list)
    categories: list[Category] = field(default_factory=list)
    cycles: list[tuple[Number, str]] = field(default_factory=list)
    vectors: list[Vector] = field(default_factory=list)
    texts: list[Text] = field(default_factory=list)
    said: dict[str, str] = field(default_factory=dict)

    def also(self, name: str, words: str) -> None:
        self.said[name] = f"{self.said[name]}; {words}" if name in self.said else words


def decide(
    sample: TableSample, categories: tuple[str, ...] = (), texts: tuple[str, ...] = (), *, for_target: bool = False
) -> TableTransforms:
    """Decide how each column of a table is used.

    Numbers are scaled. Other columns are kept only if they tell something about another column, and categories weigh
    less than the spacing of rows in the numbers. Without numbers, categories decide alone.

    Parameters
    ----------
    sample : TableSample
    categories : tuple of str
        Columns that are categories, whatever they look like.
    texts : tuple of str
        Columns whose texts are analysed.
    for_target : bool
        Whether a target is to be learned from the rows: it may depend on a column that tells nothing about another.
    """
    names = [column.name for column in sample.columns]
    choice = _Choice()
    for kind in kinds_of(sample, categories, texts, numbers_stay=for_target):
        if isinstance(kind, LeftOut):
            choice.said[kind.name] = kind.why
        elif isinstance(kind, Category):
            choice.categories.append(kind)
        elif isinstance(kind, Vector):
            choice.vectors.append(kind)
        elif isinstance(kind, Text):
            choice.texts.append(kind)
        else:
            (choice.times if kind.reading == "time" else choice.numbers).append(kind)
    _leave_out_repeats(choice)
    _leave_out_what_tells_nothing(choice, set(categories), for_target)
    if not (choice.numbers or choice.times or choice.categories or choice.vectors or choice.texts):
        raise InputError(
            f"no column of the table is of use (n_samples={sample.n_rows}): "
            + "; ".join(f"{name!r} is {words}" for name, words in choice.said.items())
            + ". Choose columns yourself, or take some as categories."
        )
    return _made(choice, names, for_target)


def _leave_out_repeats(choice: _Choice) -> None:
    """Of columns that order or divide the rows in the same way, keep one."""
    kept: list[tuple[Number, NDArray[np.float64]]] = []
    for number in [*choice.numbers, *choice.times]:
        ranks = ranks_of(_filled(number.values))
        same = next((other.name for other, there in kept if abs(np.mean(ranks * there)) > SAME), None)
        if same is None:
            kept.append((number, ranks))
        else:
            choice.said[number.name] = f"left out: nearly the same as {same!r}"
    choice.numbers = [number for number, _ in kept if number.reading == "number"]
    choice.times = [number for number, _ in kept if number.reading == "time"]
    different: list[Category] = []
    for one in choice.categories:
        same = next((other.name for other in different if _divides_alike(one, other)), None)
        if same is None:
            different.append(one)
        else:
            choice.said[one.name] = f"left out: nearly the same as {same!r}"
    choice.categories = different


def _divides_alike(one: Category, other: Category) -> bool:
    return len(one.levels) == len(other.levels) and share_of_levels(one.codes, other.codes) > SAME**2


def _leave_out_what_tells_nothing(choice: _Choice, wanted: set[str], keep_all: bool) -> None:
    """Keep categories, times, cycles and missing values that are informative about another column."""
    blanks = [
        Category(number.name, "blank", (), np.where(np.isfinite(number.values), 0, 1), "")
        for number in [*choice.numbers, *choice.times]
        if LEAST_BLANK <= np.mean(~np.isfinite(number.values)) <= 1 - LEAST_BLANK
    ]
    numbers, times, categories = choice.numbers, choice.times, choice.categories
    ranks = {number.name: ranks_of(_filled(number.values)) for number in [*numbers, *times]}
    codes = {one.name: one.codes for one in categories}
    in_lists = [ranks_of(column) for vector in choice.vectors for column in _some_columns(vector)]
    in_lists += [ranks_of(column) for text in choice.texts for column in text.rows.T]

    def telling(name: str, own: NDArray[np.int64]) -> bool:
        if keep_all:
            return True
        others = [*(column for other, column in ranks.items() if other != name), *in_lists]
        levels = [share_of_levels(own, column) for other, column in codes.items() if other != name]
        shares = share_of_numbers(own, np.stack(others, axis=1)) if others else np.empty(0)
        return tells(np.append(shares, levels))

    choice.times = [time for time in times if telling(time.name, _binned(ranks[time.name]))]
    choice.cycles = [
        (time, cycle) for time in times for cycle in CYCLES if telling(time.name, cycle_places(cycle, time.values))
    ]
    chosen = [one for one in categories if one.name in wanted or telling(one.name, one.codes)]
    if not (chosen or numbers or choice.times or choice.vectors or choice.texts):
        chosen, choice.times = categories, times  # a single column need not tell about others
    choice.categories = [*chosen, *(one for one in blanks if telling(one.name, one.codes))]
    used = {time.name for time in choice.times} | {one.name for one in chosen}
    for name in [*(time.name for time in times), *(one.name for one in categories)]:
        if name not in used:
            choice.said[name] = TELLS_NOTHING


def _made(choice: _Choice, names: Sequence[str], for_target: bool) -> TableTransforms:
    parts: list[NumberTransform] = []
    for number in [*choice.numbers, *choice.times]:
        part, words = number_transform(number, on_steps=not for_target)
        parts.append(part)
        choice.said[number.name] = words if number.reading == "number" else f"points in time, {words}"
    values = spread([number.values for number in [*choice.numbers, *choice.times]], [part.step for part in parts])
    rows = [part.scaled(column) for part, column in zip(parts, values, strict=True)]
    complete_rows = _complete_rows(choice, rows)
    vectors = []
    for vector in choice.vectors:
        alone = not (rows or choice.categories or choice.cycles or choice.texts or len(choice.vectors) > 1)
        together, choice.said[vector.name] = vector_transform(vector, alone)
        vectors.append(together)
        rows.extend(together.scaled(vector.rows).T)
    texts = []
    for text in choice.texts:
        scaled, choice.said[text.name] = text_transform(text)
        texts.append(scaled)
        rows.extend((text.rows * scaled.factor).T)
    needs_weight = rows and (choice.categories or choice.cycles)
    weight = WEIGHT * spacing_of(np.stack([row[:SPACED_ROWS] for row in rows], axis=1)) if needs_weight else 1.0
    if for_target:
        weight = np.sqrt(2.0 * max(1, len(choice.categories)))  # a column of zeros and ones for each level
    for one in choice.categories:
        how = "weighs little beside the numbers" if rows else "placed by correspondence analysis"
        if for_target:
            how = "weighs as much as a number"
        if one.reading == "blank":
            choice.also(one.name, f"that a value is missing {how.replace('weighs', 'is a category that weighs')}")
        else:
            choice.also(one.name, f"category, {one.words}, {how}")
    if rows or for_target:
        places = beside_numbers(choice.categories, weight, all_own=for_target)
    else:
        places = by_correspondence(choice.categories)
    cycles = tuple(CycleTransform(time.name, cycle, _circle(CYCLES[cycle], weight)) for time, cycle in choice.cycles)
    for time, cycle in choice.cycles:
        choice.said[time.name] = choice.said[time.name].replace(TELLS_NOTHING, "point in time")
        choice.also(time.name, f"the {cycle} as a cycle")
    decisions = tuple((name, choice.said[name]) for name in names)
    columns = Columns(len(names), tuple(names))
    return TableTransforms(
        columns, tuple(parts), cycles, *places, decisions, tuple(vectors), complete_rows, tuple(texts)
    )


def _complete_rows(choice: _Choice, rows: list[NDArray[np.float64]]) -> NDArray[np.float64]:
    """Return the complete rows, which fill the missing values of others, and note this in the decisions."""
    numbers = [*choice.numbers, *choice.times]
    if not numbers:
        return np.empty((0, 0))
    blank = np.stack([~np.isfinite(number.values) for number in numbers], axis=1)
    complete_rows = complete_rows_of(rows, blank)
    taken = "the median" if len(numbers) == 1 or not len(complete_rows) else "the value of the most similar row"
    for number, share in zip(numbers, blank.mean(axis=0).tolist(), strict=True):
        if share:
            choice.also(number.name, f"missing values ({share:.1%}) take {taken}")
    return complete_rows


def _some_columns(vector: Vector) -> NDArray[np.float64]:
    """Return some of the numbers in lists, one line each, to stand for all: checking every one would take too long."""
    step = -(-vector.rows.shape[1] // MOST_ASKED)
    return vector.rows[:, ::step].T.astype(np.float64)


def _filled(values: NDArray[np.float64]) -> NDArray[np.float64]:
    is_there = np.isfinite(values)
    middle = np.quantile(values[is_there], 0.5, method="inverted_cdf")
    return np.where(is_there, values, middle)


def _binned(ranks: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return a column of ranks in bins of about equal size."""
    edges = np.quantile(ranks, np.arange(1, BINS) / BINS, method="inverted_cdf")
    return np.searchsorted(edges, ranks).astype(np.int64)


def _circle(steps: int, weight: float) -> NDArray[np.float64]:
    angle = 2 * np.pi * np.arange(steps) / steps
    places = np.stack([np.sin(angle), np.cos(angle)], axis=1) * weight / 2
    return np.vstack([places, np.zeros(2)])
