"""Rules that explain clusters: a few conditions on the user's columns, found by small decision trees."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.tree import DecisionTreeClassifier

DEPTH = 3  # conditions of a rule, at most
MOST_ROWS = 2000  # of a cluster, and of all others, that a tree sees
MOST_COLUMNS = 64
SHORTER = 0.02  # how much worse a shorter rule may be, by its F1 score
CLOSE = 0.005  # how far a threshold may be rounded, in the spread of its column

Split = tuple[int, bool, float]
Limits = dict[int, tuple[float, float]]


@dataclass(frozen=True)
class Rule:
    """Conditions that most rows of a cluster meet, and few others.

    Examples
    --------
    >>> str(Rule("age > 40", 0.98, 0.951))
    'age > 40 (precision 98.0%, coverage 95.1%)'
    """

    text: str
    precision: float
    coverage: float

    def __str__(self) -> str:
        return f"{self.text} (precision {self.precision:.1%}, coverage {self.coverage:.1%})"


@dataclass(frozen=True, eq=False)
class LabelledRows:
    """Rows in the units of the data with their clusters, to find rules for.

    Examples
    --------
    >>> values, labels = np.arange(6.0)[:, None], np.array([0, 0, 1, 1, 1, 0])
    >>> str(LabelledRows(values, labels, np.ones(6), ("age",), {}).rule(1))
    '1.5 < age <= 4.5 (precision 100.0%, coverage 100.0%)'
    """

    values: NDArray[np.float64]
    labels: NDArray[np.int32]
    weights: NDArray[np.float64]
    names: tuple[str, ...]
    categories: Mapping[int, str]

    def rule(self, cluster: int) -> Rule | None:
        """Return the best short rule for a cluster; None if it has no rows."""
        inside = self.labels == cluster
        own = float(self.weights[inside].sum())
        if own == 0:
            return None
        rows = np.concatenate([self._some(inside), self._some(~inside)])
        # Half way between counting rows, which ignores small clusters, and equal weights for both sides.
        weights = self.weights[rows] / np.sqrt(np.where(inside[rows], own, max(self.weights.sum() - own, 1e-300)))
        tree = DecisionTreeClassifier(max_depth=DEPTH, random_state=0)
        tree.fit(self._scaled[rows], inside[rows], weights)
        found = [self._measured(limits, inside, own) for limits in self._candidates(tree.tree_)]
        best = max(score for score, _, _ in found)
        _, _, rule = min((one for one in found if one[0] >= best - SHORTER), key=lambda one: (one[1], -one[0]))
        return rule

    def _some(self, which: NDArray[np.bool_]) -> NDArray[np.intp]:
        rows = np.flatnonzero(which & (self.weights > 0))
        return rows[:: max(1, -(-len(rows) // MOST_ROWS))]

    @cached_property
    def columns(self) -> NDArray[np.intp]:
        """The columns that rules may use: those of which clusters explain most."""
        if len(self.names) <= MOST_COLUMNS:
            return np.arange(len(self.names))
        _, codes = np.unique(self.labels, return_inverse=True)
        sizes = np.maximum(np.bincount(codes, self.weights), 1e-300)
        explained = [
            np.bincount(codes, self.weights * column) ** 2 @ (1 / sizes) / max(self.weights @ column**2, 1e-300)
            for column in (self.values - np.average(self.values, axis=0, weights=self.weights)).T
        ]
        return np.sort(np.argsort(-np.array(explained), kind="stable")[:MOST_COLUMNS])

    @cached_property
    def _ends(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        values = self.values[:, self.columns]
        low, reach = values.min(axis=0), np.ptp(values, axis=0)
        return low, np.where(reach > 0, reach, 1.0)

    @cached_property
    def _scaled(self) -> NDArray[np.float64]:
        """Values from 0 to 1: scikit-learn's trees work in float32."""
        low, reach = self._ends
        return (self.values[:, self.columns] - low) / reach

    def _candidates(self, tree: Any) -> Iterator[Limits]:
        """Yield the conditions of each node of a tree below its root; of the root where it is alone."""
        paths = list(_paths(tree))
        for path in paths[1:] or paths:
            limits: Limits = {}
            for place, above, threshold in path:
                column, at = int(self.columns[place]), self._rounded(place, threshold)
                low, high = limits.get(column, (-np.inf, np.inf))
                limits[column] = (max(low, at), high) if above else (low, min(high, at))
            yield limits

    def _rounded(self, place: int, scaled: float) -> float:
        """Return a threshold in the units of the column, with as few digits as it needs."""
        low, reach = self._ends
        threshold, values = float(low[place] + scaled * reach[place]), self.values[:, self.columns[place]]
        below, above = values[values <= threshold].max(initial=-np.inf), values[values > threshold].min(initial=np.inf)
        close = CLOSE * float(np.subtract(*np.quantile(values, [0.95, 0.05])))
        for digits in range(1, 17):
            rounded = float(f"{threshold:.{digits}g}")
            if below <= rounded < above or abs(rounded - threshold) <= close:
                return rounded
        return threshold

    def _measured(self, limits: Limits, inside: NDArray[np.bool_], own: float) -> tuple[float, int, Rule]:
        """Return the F1 score of some conditions, how many they are, and the rule."""
        meets = np.ones(len(inside), bool)
        for column, (low, high) in limits.items():
            meets &= (self.values[:, column] > low) & (self.values[:, column] <= high)
        met, hit = float(self.weights[meets].sum()), float(self.weights[meets & inside].sum())
        text = " and ".join(self._condition(column, *ends) for column, ends in limits.items())
        rule = Rule(text or "every row", hit / met if met else 0.0, hit / own)
        return 2 * hit / (met + own), int(np.isfinite(list(limits.values())).sum()), rule

    def _condition(self, column: int, low: float, high: float) -> str:
        name = self.names[column]
        if column in self.categories:
            category, has = name[len(self.categories[column]) + 1 :], np.isfinite(low)
            if category == "there":  # the column says whether there is a value
                category, has = "blank", not has
            is_missing = "missing" if category == "blank" else category
            return f"{self.categories[column]} {'is' if has else 'is not'} {is_missing}"
        if np.isfinite(low) and np.isfinite(high):
            return f"{low:.15g} < {name} <= {high:.15g}"
        return f"{name} > {low:.15g}" if np.isfinite(low) else f"{name} <= {high:.15g}"


def _paths(tree: Any, node: int = 0, path: tuple[Split, ...] = ()) -> Iterator[tuple[Split, ...]]:
    """Yield the splits above each node of a scikit-learn tree."""
    yield path
    for child, above in ((tree.children_left[node], False), (tree.children_right[node], True)):
        if child >= 0:
            yield from _paths(tree, child, (*path, (int(tree.feature[node]), above, float(tree.threshold[node]))))
