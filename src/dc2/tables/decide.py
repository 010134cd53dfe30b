"""What becomes of each column of a table, decided from a sample of its rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics.cluster import contingency_matrix

from dc2.errors import InputError
from dc2.io.columns import Columns
from dc2.tables.categories import beside_numbers, by_correspondence
from dc2.tables.column_transforms import (
    CYCLES,
    ROWS_PER_VALUE,
    CycleTransform,
    NumberTransform,
    TableTransforms,
    complete_rows_of,
    cycle_places,
    spread,
)
from dc2.tables.column_types import (
    Category,
    LeftOut,
    Number,
    SampledColumn,
    TableSample,
    Text,
    Vector,
    category_of,
    kinds_of,
)
from dc2.tables.numeric import SPACED_ROWS, number_transform, spacing_of, text_transform, vector_transform
from dc2.tables.values import Words

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
FEWEST_CODES = 12
"""Distinct values; with fewer, chance could make any order look rough."""
ROUGH = 0.5
"""On 70 columns of public tables, quantities had at most .42, codes of industries and occupations at least .55."""
MOST_COMPARED = 6
"""Categories of a column, the most frequent ones."""
BINS = 16
MOST_ASKED = 16
MOST_OTHERS = 512
"""Columns that a column is compared with, so that very wide tables take time in proportion to their columns."""
PROBES = 16
NEARLY = 1.01 * np.sqrt(2.0 * (1.0 - SAME))
"""The farthest that the products of two such columns with a direction can be apart, and a little more."""
TELLS_NOTHING = "left out: tells nothing about any other column"


@dataclass
class _Choice:
    """The columns kept so far, and what was decided about each column."""

    numbers: list[Number] = field(default_factory=list)
    times: list[Number] = field(default_factory=list)
    clocks: list[Number] = field(default_factory=list)
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
    """
    names = [column.name for column in sample.columns]
    choice = _Choice()
    repeats = {} if for_target else _same_values(sample, {*categories, *texts})
    for kind in kinds_of(sample, categories, texts, numbers_stay=for_target):
        if kind.name in repeats:
            choice.said[kind.name] = f"left out: says the same as {repeats[kind.name]!r}"
        elif isinstance(kind, LeftOut):
            choice.said[kind.name] = kind.why
        elif isinstance(kind, Category):
            choice.categories.append(kind)
        elif isinstance(kind, Vector):
            choice.vectors.append(kind)
        elif isinstance(kind, Text):
            choice.texts.append(kind)
        else:
            {"number": choice.numbers, "time": choice.times, "clock": choice.clocks}[kind.reading].append(kind)
    _leave_out_repeats(choice)
    if not for_target:
        _take_codes_as_categories(choice)
    _leave_out_what_tells_nothing(choice, set(categories), for_target)
    used = (choice.numbers, choice.times, choice.cycles, choice.categories, choice.vectors, choice.texts)
    if not any(used):
        raise InputError(
            f"no column of the table is of use (n_samples={sample.n_rows}): "
            + "; ".join(f"{name!r} is {words}" for name, words in choice.said.items())
            + ". Choose columns yourself, or take some as categories."
        )
    return _made(choice, names, for_target)


def _same_values(sample: TableSample, declared: set[str]) -> dict[str, str]:
    """Return columns that divide the rows exactly as another one does, and that other: texts rather than numbers.

    Such are the code, the number and the name of a state. Columns with nearly as many values as rows are not compared.
    """
    kept: dict[bytes, str] = {}
    same: dict[str, str] = {}
    discrete = [column for column in sample.columns if column.reading in ("text", "category", "number")]
    for column in sorted(discrete, key=lambda column: (column.name not in declared, column.reading == "number")):
        values = column.values
        codes = values.codes if isinstance(values, Words) else np.unique(values, return_inverse=True)[1]
        _, first, codes = np.unique(codes, return_index=True, return_inverse=True)
        if 2 < len(first) <= len(codes) / ROWS_PER_VALUE:
            by_appearance = np.argsort(np.argsort(first))[codes].astype(np.int32).tobytes()
            other = kept.setdefault(by_appearance, column.name)
            if other != column.name:
                same[column.name] = other
    return same


def _take_codes_as_categories(choice: _Choice) -> None:
    """Take whole numbers as categories if they tell about other columns but their order does not."""
    columns = [ranks_of(_filled(number.values)) for number in [*choice.numbers, *choice.times]]
    columns += [
        ranks_of((one.codes == place).astype(np.float64)) for one in choice.categories for place in range(MOST_COMPARED)
    ]
    codes = []
    for own, number in enumerate(choice.numbers):
        others = _some(columns[:own] + columns[own + 1 :])
        is_whole = not (number.values[np.isfinite(number.values)] % 1).any()
        if is_whole and others and is_code(number.values, np.stack(others, axis=1)):
            codes.append(number)
            kind = category_of(SampledColumn(number.name, "category", number.values))
            if isinstance(kind, LeftOut):
                choice.said[kind.name] = kind.why
            else:
                choice.categories.append(replace(kind, words=f"codes whose order tells nothing, {kind.words}"))
    choice.numbers = [number for number in choice.numbers if number not in codes]


def is_code(values: NDArray[np.float64], others: NDArray[np.float64]) -> bool:
    """Return whether whole numbers are codes: other columns differ between them, but not smoothly in their order.

    The mean of another column at a value is compared with the middle of its means at the next lower and higher value.
    For codes, the squared difference is 1.5 times the variance of the means; for quantities it is far smaller.

    Examples
    --------
    >>> draw = np.random.default_rng(0)
    >>> codes = draw.integers(0, 30, 3000)
    >>> delay = ranks_of(draw.normal(size=30)[codes] + draw.normal(size=3000))[:, None]
    >>> is_code(codes + 0.0, delay), is_code(codes + 0.0, ranks_of(codes + 9 * draw.normal(size=3000))[:, None])
    (True, False)
    """
    is_there = np.isfinite(values)
    distinct, codes, counts = np.unique(values[is_there], return_inverse=True, return_counts=True)
    if (distinct % 1 != 0).any() or not FEWEST_CODES <= len(distinct) <= len(codes) / ROWS_PER_VALUE:
        return False
    ranks = others[is_there]
    shares = share_of_numbers(codes, ranks)
    if not tells(shares):
        return False
    inverse = 1.0 / counts
    noise_of_step = inverse[1:-1] + (inverse[:-2] + inverse[2:]) / 4
    weight = 1.0 / noise_of_step / (1.0 / noise_of_step).sum()
    rough = np.zeros(len(shares))
    for column in np.flatnonzero(shares >= LEAST_SHARE):
        means = np.bincount(codes, ranks[:, column]) * inverse
        within = np.sum((ranks[:, column] - means[codes]) ** 2) / (len(codes) - len(distinct))
        steps = weight @ ((means[1:-1] - (means[:-2] + means[2:]) / 2) ** 2 - within * noise_of_step) / 1.5
        inner = means[1:-1]
        spread = weight @ ((inner - weight @ inner) ** 2 - within * inverse[1:-1])
        rough[column] = np.clip(steps / max(spread, 1e-12), 0.0, 1.5)
    return bool(shares @ rough > ROUGH * shares[shares >= LEAST_SHARE].sum())


def _leave_out_repeats(choice: _Choice) -> None:
    """Of columns that order or divide the rows in the same way, keep one."""
    numbers = [*choice.numbers, *choice.times]
    ranks = {number.name: ranks_of(_filled(number.values)) for number in numbers}
    kept: list[Number] = []
    # Columns that are nearly the same have nearly the same products with any direction: few pairs are compared.
    products = np.empty((len(numbers), PROBES))
    for number in numbers:
        own = ranks[number.name]
        shown = np.abs(_probes(len(own)) @ own)
        near = np.flatnonzero((np.abs(products[: len(kept)] - shown) < NEARLY).all(axis=1))
        same = next((kept[i].name for i in near if abs(np.mean(own * ranks[kept[i].name])) > SAME), None)
        if same is None:
            products[len(kept)] = shown
            kept.append(number)
        else:
            choice.said[number.name] = f"left out: nearly the same as {same!r}"
    choice.numbers = [number for number in kept if number.reading == "number"]
    choice.times = [number for number in kept if number.reading == "time"]
    different: list[Category] = []
    for one in choice.categories:
        same = next((other.name for other in different if _divides_alike(one, other)), None)
        if same is None:
            different.append(one)
        else:
            choice.said[one.name] = f"left out: nearly the same as {same!r}"
    choice.categories = different


@lru_cache(maxsize=1)
def _probes(n_rows: int) -> NDArray[np.float64]:
    """Return directions of length 1, over the square root of the rows, since ranks have standard deviation 1."""
    probes: NDArray[np.float64] = np.random.default_rng(0).normal(size=(PROBES, n_rows))
    probes /= np.linalg.norm(probes, axis=1, keepdims=True) * np.sqrt(n_rows)
    return probes


def _some(others: Sequence[NDArray[Any]]) -> Sequence[NDArray[Any]]:
    """Return all of the other columns, or some at even steps if there are very many."""
    return others[:: -(-len(others) // MOST_OTHERS) or 1]


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
    ranks = {number.name: ranks_of(_filled(number.values)) for number in [*numbers, *times, *choice.clocks]}
    codes = {one.name: one.codes for one in categories}
    in_lists = [ranks_of(column) for vector in choice.vectors for column in _some_columns(vector)]
    in_lists += [ranks_of(column) for text in choice.texts for column in text.rows.T]

    def telling(name: str, own: NDArray[np.int64]) -> bool:
        if keep_all:
            return True
        others = _some([*(column for other, column in ranks.items() if other != name), *in_lists])
        levels = [share_of_levels(own, column) for column in _some([codes[one] for one in codes if one != name])]
        shares = share_of_numbers(own, np.stack(others, axis=1)) if others else np.empty(0)
        return tells(np.append(shares, levels))

    choice.times = [time for time in times if telling(time.name, _binned(ranks[time.name]))]
    cycles = [(time, cycle) for time in times for cycle in CYCLES if cycle != "time of day"]
    cycles += [(clock, "time of day") for clock in choice.clocks]
    choice.cycles = [(time, cycle) for time, cycle in cycles if telling(time.name, cycle_places(cycle, time.values))]
    chosen = [one for one in categories if one.name in wanted or telling(one.name, one.codes)]
    if not (chosen or numbers or choice.times or choice.cycles or choice.vectors or choice.texts):
        # a single column need not tell about others
        chosen, choice.times, choice.numbers = categories, times, choice.clocks
    choice.categories = [*chosen, *(one for one in blanks if telling(one.name, one.codes))]
    used = {one.name for one in [*choice.times, *choice.numbers]} | {one.name for one in chosen}
    for name in [*(one.name for one in [*times, *choice.clocks]), *(one.name for one in categories)]:
        if name not in used:
            choice.said[name] = TELLS_NOTHING


def _made(choice: _Choice, names: Sequence[str], for_target: bool) -> TableTransforms:
    parts: list[NumberTransform] = []
    for number in [*choice.numbers, *choice.times]:
        part, words = number_transform(number, on_steps=not for_target)
        parts.append(part)
        read = f"read from texts such as {number.written!r}, " if number.written else ""
        choice.said[number.name] = read + words if number.reading == "number" else f"points in time, {words}"
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
        if one.reading == "blank" and one.words:
            choice.also(one.name, one.words)
        elif one.reading == "blank":
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
