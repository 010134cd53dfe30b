"""What is typical of each cluster: its profile, silhouette, spread, representative row, and record in a summary."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import pairwise_distances

from dc2.io.source import listed

if TYPE_CHECKING:
    from dc2.report.cluster_statistics import ClusterStatistics


def heaviest_of_clusters(labels: NDArray[np.int32], weights: NDArray[np.float64], most: int) -> NDArray[np.intp]:
    """Return signatures, heaviest first: of each cluster as many as its share of the weight, and at least one.

    Examples
    --------
    >>> labels = np.array([0, 0, 0, 1, 1, 1])
    >>> heaviest_of_clusters(labels, np.array([9.0, 8.0, 7.0, 1.0, 2.0, 1.0]), 4).tolist()
    [0, 1, 2, 4]
    """
    heaviest_first = np.argsort(-weights, kind="stable")
    if len(labels) <= most:
        return heaviest_first
    clusters, code = np.unique(labels[heaviest_first], return_inverse=True)
    size = np.bincount(code, weights[heaviest_first])
    by_cluster = np.argsort(code, kind="stable")
    rank = np.empty(len(code), np.intp)
    rank[by_cluster] = (
        np.arange(len(code)) - np.searchsorted(code[by_cluster], np.arange(len(clusters)))[code[by_cluster]]
    )
    # The signature of rank r stands for the r-th part of its cluster's share: the largest parts are drawn.
    part = (size[code] + np.finfo(float).tiny) / (rank + 0.5)
    part[rank == 0] = np.inf
    chosen = np.argsort(-part, kind="stable")[: max(most, len(clusters))]
    kept: NDArray[np.intp] = heaviest_first[np.sort(chosen)]
    return kept


ALONE = 0.9  # of a column's variation, explained by the clusters
LITTLE = 0.4  # of every other column's
FEWEST_ROWS = 50  # for a column to look like an id
MOST_NAMED = 5


def column_remarks(clusters: ClusterStatistics, n_rows: float) -> list[str]:
    """Return sentences on columns that are constant, may be ids, or explain the clusters alone.

    Examples
    --------
    >>> from dc2.report.cluster_statistics import ClusterStatistics
    >>> X, ones = np.array([[0.0, 5.0, 3.0], [1.0, 5.0, 3.1], [0.0, 5.0, 3.1], [1.0, 5.0, 3.0]]), np.ones(4)
    >>> labels = np.array([0, 1, 0, 1], np.int32)
    >>> found = ClusterStatistics(X, X, ones, ones, labels, ("member", "year", "size"), 2)
    >>> for remark in column_remarks(found, 4):
    ...     print(remark)
    'year' is constant: it has no information.
    'member' alone makes the clusters: they hardly differ in any other column. Leave it out to see what else there is.
    """
    names, constant = np.array(clusters.names, dtype=object), _constant(clusters)
    remarks = []
    if constant.any():
        is_, has = ("is", "it has") if constant.sum() == 1 else ("are", "they have")
        remarks.append(f"{listed(names[constant].tolist())} {is_} constant: {has} no information.")
    ids = [name for name, values in zip(names, clusters.values.T, strict=True) if _is_id(values, clusters, n_rows)]
    remarks += [f"'{name}' looks like the number of a row. Leave it out if it is an id." for name in ids]
    alone = _alone(clusters, constant)
    if alone is not None:
        remarks.append(
            f"'{alone}' alone makes the clusters: they hardly differ in any other column. Leave it out to see what "
            "else there is."
        )
    elif clusters.n_clusters > 1 and len(names) > 2:
        single = {k: clusters.profile.words(k) for k in range(clusters.n_clusters)}
        one_column = [(k, found[0]) for k, found in single.items() if len(found) == 1 and "very" in found[0][0]]
        remarks += [
            f"Cluster {k} differs from all rows in '{clusters.level_columns.get(column, names[column])}' alone."
            for k, (_, column) in one_column[:MOST_NAMED]
        ]
    return remarks


def variation_explained(clusters: ClusterStatistics) -> NDArray[np.float64]:
    """Return the share of each column's variation, over signatures by weight, that lies between clusters."""
    clusters = clusters.take(clusters.in_clusters)
    share = clusters.weights / clusters.weights.sum()
    points = clusters.of_columns
    total = share @ (points - share @ points) ** 2
    inside = share @ (points - clusters.means(points)[clusters.labels]) ** 2
    explained: NDArray[np.float64] = 1.0 - np.divide(inside, total, out=np.ones_like(total), where=total > 0)
    return np.maximum(explained, 0.0)


def _constant(clusters: ClusterStatistics) -> NDArray[np.bool_]:
    low, high = clusters.values.min(axis=0), clusters.values.max(axis=0)
    constant: NDArray[np.bool_] = high - low <= 1e-6 * np.maximum(np.abs(low), np.abs(high))
    return constant if len(clusters.values) > 1 else np.zeros_like(constant)


def _is_id(values: NDArray[np.float64], clusters: ClusterStatistics, n_rows: float) -> bool:
    """Return whether values are spread as evenly as numbers from one to the number of rows, and as widely."""
    reach = float(np.ptp(values))
    if n_rows < FEWEST_ROWS or not 0.9 * n_rows <= reach <= 1.1 * n_rows:
        return False
    order = np.argsort(values, kind="stable")
    below = np.cumsum(clusters.weights[order]) / clusters.weights.sum()
    even = (values[order] - values.min()) / reach
    return bool(np.abs(below - even).max() < 0.05)


def _alone(clusters: ClusterStatistics, constant: NDArray[np.bool_]) -> str | None:
    """Return the column, or the category, that explains the clusters while no other one does."""
    explained: dict[str, float] = {}
    for column, share in enumerate(variation_explained(clusters)):
        if not constant[column]:
            name = clusters.level_columns.get(column, clusters.names[column])
            explained[name] = max(explained.get(name, 0.0), float(share))
    if clusters.n_clusters < 2 or len(explained) < 2:
        return None
    (best, most), (_, next_most) = sorted(explained.items(), key=lambda item: -item[1])[:2]
    return best if most >= ALONE and next_most <= LITTLE else None


def representatives(
    clusters: ClusterStatistics, members: NDArray[Any], in_units: Callable[[NDArray[np.float64]], NDArray[np.float64]]
) -> NDArray[np.float64]:
    """Return one of the members of each cluster, in the units of the data, of shape (n_clusters, n_features)."""
    inside = clusters.in_clusters
    labels = clusters.labels[inside]
    off = members[inside].astype(np.float64) - clusters.means(clusters.points)[labels]
    squared = np.einsum("ij,ij->i", off, off)
    squared[clusters.weights[inside] <= 0] = np.inf  # a signature without rows represents none
    order = np.lexsort((squared, labels))
    found, first = np.unique(labels[order], return_index=True)
    rows = in_units(members[inside[order[first]]].astype(np.float64))
    known = clusters.known_in(slice(None))
    if known is not None:
        rows[known[inside[order[first]]] < 0.5] = np.nan
    chosen = np.full((clusters.n_clusters, rows.shape[1]), np.nan)
    chosen[found] = rows
    return chosen


ROWS_AT_A_TIME = 1024


@dataclass(frozen=True, eq=False)
class Silhouette:
    """The mean silhouette of each cluster and of all, by weight, and the other cluster most rows are nearest to."""

    per_cluster: NDArray[np.float64]
    overall: float
    closest: NDArray[np.intp]


def weighted_silhouette(
    points: NDArray[np.float64], labels: NDArray[np.int32], weights: NDArray[np.float64]
) -> Silhouette | None:
    """Return silhouettes, or None where there is only one cluster.

    Notes
    -----
    A point alone in its cluster has silhouette 0. With equal weights this is scikit-learn's `silhouette_score`.

    Examples
    --------
    >>> X = np.array([[0.0], [0.1], [5.0], [5.1]])
    >>> found = weighted_silhouette(X, np.array([0, 0, 1, 1]), np.ones(4))
    >>> found.per_cluster.round(2).tolist(), found.closest.tolist()
    ([0.98, 0.98], [1, 0])
    """
    k = int(labels.max()) + 1
    if k < 2:
        return None
    weights = np.maximum(weights, np.finfo(float).tiny)
    member = np.zeros((len(labels), k))
    member[np.arange(len(labels)), labels] = weights
    totals, counts = member.sum(axis=0), np.bincount(labels, minlength=k)
    silhouettes, nearest = np.zeros(len(labels)), np.zeros(len(labels), np.intp)
    for start in range(0, len(labels), ROWS_AT_A_TIME):
        rows = np.arange(start, min(start + ROWS_AT_A_TIME, len(labels)))
        sums = pairwise_distances(points[rows], points) @ member
        own, local = labels[rows], np.arange(len(rows))
        others_weight = totals[own] - weights[rows]
        inside = np.divide(sums[local, own], others_weight, out=np.zeros(len(rows)), where=others_weight > 0)
        to_clusters = sums / totals
        to_clusters[local, own] = np.inf
        nearest[rows] = to_clusters.argmin(axis=1)
        outside = to_clusters.min(axis=1)
        larger = np.maximum(inside, outside)
        silhouettes[rows] = np.divide(
            outside - inside, larger, out=np.zeros(len(rows)), where=(counts[own] > 1) & (larger > 0)
        )
    per_cluster = (member.T @ silhouettes) / totals
    votes = np.zeros((k, k))
    np.add.at(votes, (labels, nearest), weights)
    return Silhouette(per_cluster, float(weights @ silhouettes / weights.sum()), votes.argmax(axis=1))


TINY = np.finfo(float).tiny
COLUMNS_AT_A_TIME = 64  # copies of all columns of many signatures could be far larger than the rows
# A difference of at least so many standard deviations gets this word.
LEVELS = ((1.5, "very high", "very low"), (0.75, "high", "low"), (0.4, "rather high", "rather low"))


@dataclass(frozen=True, eq=False)
class Profile:
    """What is typical of clusters in each column, and how far that is from all rows that are in a cluster.

    Filled-in values do not count.
    """

    names: tuple[str, ...]
    difference: NDArray[np.float64]
    clusters: ClusterStatistics | None = None

    @cached_property
    def _found(self) -> dict[int, tuple[NDArray[np.float64], float]]:
        return {}

    def middles(self, column: int) -> tuple[NDArray[np.float64], float]:
        """Return the median of each cluster and of all rows, in units of the data; NaN if no value is known.

        For a column from 0 to 1, such as the share of a category, return means; for places, those on the globe.
        """
        if column not in self._found:
            assert self.clusters is not None
            self._found[column] = _middles(self.clusters, column)
        return self._found[column]

    def known(self, column: int) -> NDArray[np.float64] | None:
        """Return the share of rows of each cluster with a value in a column; None if no value is missing."""
        known = None if self.clusters is None else self.clusters.known_in(slice(column, column + 1))
        if known is None or self.clusters is None or (known == 1).all():
            return None
        return self.clusters.means(known[:, 0])

    def differing_columns(self, most: int) -> NDArray[np.intp]:
        """Return the columns in which clusters differ most, the largest difference first.

        The largest difference of every cluster comes before the second of any, so that each is represented.
        """
        size = np.abs(self.difference)
        rank = np.argsort(np.argsort(-size, axis=1, kind="stable"), axis=1, kind="stable")
        order = np.lexsort((-size.max(axis=0), rank.min(axis=0)))[:most]
        return order[np.argsort(-size.max(axis=0)[order], kind="stable")]

    def words(self, cluster: int, most: int = 4) -> list[tuple[str, int]]:
        """Return the word and the column of what is special about a cluster, the largest difference first.

        Examples
        --------
        >>> profile = Profile(("a", "b"), np.array([[0.1, -2.0]]))
        >>> profile.words(0)
        [('very low', 1)]
        """
        difference = self.difference[cluster]
        levels = {} if self.clusters is None else self.clusters.level_columns
        words: dict[Any, tuple[str, int]] = {}
        for column in map(int, np.argsort(-np.abs(difference), kind="stable")):
            word = level_word(difference[column])
            if not word or len(words) == most:
                break
            words.setdefault(levels.get(column, column), (word, column))  # of a category, its most telling value
        return list(words.values())

    def sentence(self, cluster: int) -> str:
        """Return the words as a phrase, such as "high temperature, low humidity".

        Examples
        --------
        >>> Profile(("t", "h"), np.array([[1.0, -0.8]])).sentence(0)
        'high t, low h'
        """
        phrase = ", ".join(f"{word} {self.names[column]}" for word, column in self.words(cluster))
        return phrase or "near the average in every column"


def cluster_profile(clusters: ClusterStatistics) -> Profile:
    """Compare clusters with all rows.

    Examples
    --------
    >>> from dc2.report.cluster_statistics import ClusterStatistics
    >>> X, ones = np.array([[0.0, 5.0], [1.0, 5.0]]), np.ones(2)
    >>> clusters = ClusterStatistics(X, X, ones, ones, np.array([0, 1], np.int32), ("a", "b"), 2)
    >>> cluster_profile(clusters).difference.tolist()
    [[-1.0, 0.0], [1.0, 0.0]]
    """
    if len(clusters.in_clusters) < len(clusters.labels):
        clusters = clusters.take(clusters.in_clusters)
    points = clusters.of_columns
    starts = range(0, points.shape[1], COLUMNS_AT_A_TIME)
    some = [_difference(clusters, points, slice(start, start + COLUMNS_AT_A_TIME)) for start in starts]
    difference = np.concatenate([*some, np.empty((clusters.n_clusters, 0))], axis=1)  # a given graph has no columns
    return Profile(clusters.names, difference, clusters)


def _difference(clusters: ClusterStatistics, points: NDArray[np.float64], columns: slice) -> NDArray[np.float64]:
    """Return how far the means of clusters lie from the mean of all, in standard deviations, for some columns."""
    points = points[:, columns]
    # Each column is brought to about 1 by a power of two: squares of very large and small values would be lost.
    points = np.ldexp(points, -np.frexp(np.abs(points).max(axis=0))[1])
    known = clusters.known_in(columns)
    if known is None:
        share = (clusters.weights / clusters.weights.sum())[:, None]
        means = clusters.means(points)
    else:
        share = clusters.weights[:, None] * known
        share = share / np.maximum(share.sum(axis=0), TINY)
        of_cluster = clusters.means(known)
        means = clusters.means(known * points) / np.where(of_cluster > 0, of_cluster, np.nan)
    centre = (share * points).sum(axis=0)
    deviation = np.sqrt((share * (points - centre) ** 2).sum(axis=0))
    # What is left of a constant column is rounding.
    varies = deviation > 1e-6 * np.maximum(np.abs(centre), TINY)
    difference: NDArray[np.float64] = np.divide(means - centre, deviation, out=np.zeros_like(means), where=varies)
    return np.where(np.isnan(difference), 0.0, difference)


def _middles(clusters: ClusterStatistics, column: int) -> tuple[NDArray[np.float64], float]:
    if clusters.sphere is not None:  # the mean of degrees is another place
        share = clusters.weights / clusters.weights.sum()
        of_all = clusters.in_units(share @ clusters.points)
        return clusters.in_units(clusters.means(clusters.points))[:, column], float(of_all[column])
    values, known = clusters.values[:, column], clusters.known_in(slice(column, column + 1))
    weights = clusters.weights if known is None else clusters.weights * known[:, 0]
    if column in clusters.level_columns or (values.min() == 0 and values.max() == 1):
        return clusters.means(values), float(weights @ values / max(weights.sum(), TINY))
    of_clusters = weighted_medians(values, weights, clusters.labels, clusters.n_clusters)
    return of_clusters, float(weighted_medians(values, weights, np.zeros_like(clusters.labels), 1)[0])


def weighted_medians(
    values: NDArray[np.float64], weights: NDArray[np.float64], labels: NDArray[np.int32], n_clusters: int
) -> NDArray[np.float64]:
    """Return the weighted median of each cluster, NaN for a cluster without weight.

    Examples
    --------
    >>> weighted_medians(np.array([1.0, 5.0, 9.0]), np.array([1.0, 1.0, 3.0]), np.zeros(3, np.int32), 2).tolist()
    [9.0, nan]
    """
    counted = np.flatnonzero(weights > 0)
    order = counted[np.lexsort((values[counted], labels[counted]))]
    reached = np.cumsum(weights[order])
    ends = np.append(0.0, reached)[np.searchsorted(labels[order], np.arange(n_clusters + 1))]
    medians = np.full(n_clusters, np.nan)
    there = np.flatnonzero(np.diff(ends) > 0)
    places = np.searchsorted(reached, (ends[there] + ends[there + 1]) / 2)
    medians[there] = values[order[places]]
    return medians


def level_word(difference: float) -> str:
    """Return the word for a standardised difference; an empty one for a small difference.

    Examples
    --------
    >>> level_word(2.0), level_word(-0.5), level_word(0.1)
    ('very high', 'rather low', '')
    """
    for least, high, low in LEVELS:
        if abs(difference) >= least:
            return high if difference > 0 else low
    return ""


NOISE = -1
MOST_WORDS = 4


def summary_records(statistics: ClusterStatistics) -> list[dict[str, Any]]:
    """Return a record for each cluster, and a last one for rows that are in none."""
    whole = statistics.unit == "rows"
    records = [_of_cluster(statistics, int(k), whole) for k in np.unique(statistics.labels) if k >= 0]
    classes = getattr(statistics.fitted, "classes_", None)
    if statistics.noise:
        own = {"rows": _count(statistics.noise, whole), "share": statistics.noise / statistics.total}
        nothing = dict.fromkeys(("stability", "spread", "nearest", "sets_apart", "typical"))
        records.append({"cluster": NOISE, **own, **nothing, "sets_apart": "in no cluster"})
    if classes is not None:
        for record in records:
            record["class"] = None if record["cluster"] == NOISE else classes[record["cluster"]]
    return records


def _of_cluster(statistics: ClusterStatistics, k: int, whole: bool) -> dict[str, Any]:
    nearest = statistics.silhouette
    return {
        "cluster": statistics.number_of(k),
        "rows": _count(statistics.sizes[k], whole),
        "share": float(statistics.shares[k]),
        "stability": float(statistics.stability[k]),
        "spread": float(statistics.radii[k]) if statistics.names else None,
        "nearest": None if nearest is None else statistics.number_of(int(nearest.closest[k])),
        "sets_apart": _sets_apart(statistics.profile, k) if statistics.names else None,
        "typical": _typical(statistics, k) if statistics.names else None,
    }


def _count(rows: float, whole: bool) -> int | float:
    return round(rows) if whole else float(rows)


def _sets_apart(profile: Profile, k: int) -> str:
    """Return words with values, such as "high temperature 21 (all 12), plan=gold 80% (all 20%)"."""
    words = [_difference_text(profile, k, word, column) for word, column in profile.words(k, MOST_WORDS)]
    return ", ".join(words) or "near the average in every column"


def _difference_text(profile: Profile, k: int, word: str, column: int) -> str:
    from dc2.report.page import percent, plain_number  # pages show statistics, which import this module

    assert profile.clusters is not None
    name, (of_clusters, of_all), known = profile.names[column], profile.middles(column), profile.known(column)
    if column in profile.clusters.level_columns:
        return f"{name} {percent(of_clusters[k])} (all {percent(of_all)})"
    rest = "" if known is None or known[k] > 0.995 else f", known for {percent(known[k])}"
    digits = 3 if profile.clusters.sphere is None else 6  # of degrees: within about 100 m
    of_cluster = plain_number(of_clusters[k], digits)
    return f"{word} {name} {of_cluster} (all {plain_number(of_all, digits)}{rest})"


def _typical(statistics: ClusterStatistics, k: int) -> str:
    """Return a row of the cluster, in the columns that tell it from others."""
    row, profile = statistics.model.representative_rows()[k], statistics.profile
    columns = [column for _, column in profile.words(k, MOST_WORDS)] or range(min(MOST_WORDS, len(row)))
    levels = statistics.level_columns
    digits = 4 if statistics.sphere is None else 6  # of degrees: within about 100 m
    shown = [_value_text(profile.names, row, column, levels, digits) for column in columns]
    return ", ".join(dict.fromkeys(shown))


def _value_text(
    names: Sequence[str], row: NDArray[np.float64], column: int, levels: Mapping[int, str], digits: int
) -> str:
    """Return the value of a column; of columns of levels that which the row has, such as "plan=gold"."""
    if np.isnan(row[column]):
        return f"{names[column]} missing"
    if column not in levels:
        return f"{names[column]}={float(row[column]):.{digits}g}"
    alike = [place for place, name in levels.items() if name == levels[column]]
    return names[max(alike, key=lambda place: float(row[place]))]
