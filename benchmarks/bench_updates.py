"""Twelve months of a made series in which clusters drift, split, merge, die and are born; one update a month.

Writes docs/measured/updates.md. `--rows` sets the rows of a month, 2,000,000 by default.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from common import GOAL_HEAD, Goal, machine, table, write_page
from numpy.random import SeedSequence
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from sklearn.cluster import Birch
from sklearn.metrics import adjusted_rand_score, confusion_matrix

from dc2 import DC2Clustering
from dc2.cluster.fit import ClusterPlan
from dc2.graph.nodes import nodes_at

MONTHS, COLUMNS, FORGET = 12, 8, 0.95
APART = 14.0  # standard deviations between the middles of clusters, about
PEER_ROWS = 50_000  # of each month that BIRCH gets
EVENTS = {
    3: ("born", "cluster 6 is born"),
    7: ("split", "cluster 3, drawn out for two months, splits: cluster 7 leaves it"),
    8: ("merged", "clusters 4 and 5 become one"),
    9: ("gone", "cluster 1 dies"),
    10: ("born", "cluster 8 is born"),
}
LEAVES = {5: 3.0, 6: 5.5}  # standard deviations between clusters 3 and 7; then 8


def month_of(month: int, n_rows: int, seed: int = 0) -> tuple[NDArray[np.float32], NDArray[np.intp]]:
    """Return the rows of a month, from 0, and their true clusters.

    Cluster 0 drifts by half a standard deviation a month, cluster 2 grows; others come and go as `EVENTS` says.
    """
    draw = np.random.default_rng([seed, month])
    middles = np.random.default_rng(seed).normal(size=(9, COLUMNS))
    middles *= APART / np.linalg.norm(middles, axis=1, keepdims=True)
    weights = np.array([2, 1, 1 + 0.2 * month, 2, 1.2, 0.8, 0, 0, 0])
    middles[0] += 0.5 * month * np.eye(COLUMNS)[0]
    middles[7] = middles[3]
    if month >= 3:
        weights[6] = 0.5
    if month >= 5:
        weights[3], weights[7] = 1.2, 0.8
        middles[7] = middles[3] + LEAVES.get(month, 8.0) * np.eye(COLUMNS)[1]
    if month >= 8:
        weights[4], weights[5] = 2.0, 0.0
        middles[4] = (middles[4] + middles[5]) / 2
    if month >= 9:
        weights[1] = 0.0
    if month >= 10:
        weights[8] = 0.5
    truth = draw.choice(9, n_rows, p=weights / weights.sum())
    rows = middles[truth].astype(np.float32)
    rows += draw.standard_normal(rows.shape, np.float32)
    if month in LEAVES:  # not apart yet
        truth[truth == 7] = 3
    return rows, truth


class Numbers:
    """The number that each true cluster had when it first came: the one that it should keep."""

    def __init__(self) -> None:
        self.of: dict[int, int] = {}

    def right(self, truth: NDArray[np.intp], labels: NDArray[np.int32]) -> float:
        """Return the share of rows whose label is the number of their cluster."""
        for cluster in np.unique(truth).tolist():
            if cluster not in self.of:
                found, times = np.unique(labels[truth == cluster], return_counts=True)
                self.of[cluster] = int(found[times.argmax()])
        return float(np.mean(np.array([self.of.get(cluster, -1) for cluster in range(9)])[truth] == labels))


def timed(function: Callable[[], Any]) -> tuple[Any, float]:
    """Return the result, and the processor seconds of all threads."""
    start = time.process_time()
    return function(), time.process_time() - start


def conquer_seconds(model: Any) -> float:
    """Return the processor seconds to conquer the signatures of a model."""
    plan: ClusterPlan = model._plan()
    record = model._record
    nodes = nodes_at(record.signatures.points, record.signatures.weights)
    conqueror = plan.conqueror_of(record.similarity)
    seeds = SeedSequence(**record.seed)
    return timed(lambda: conqueror.conquer(record.similarity, nodes, record.requested, seeds, None))[1]


class Peer:
    """A peer whose labels are matched by hand, month by month, to those of the month before on the same rows."""

    def __init__(self) -> None:
        self.names: dict[int, int] = {}
        self.unused = 0

    def renamed(self, before: NDArray[Any] | None, labels: NDArray[Any]) -> NDArray[np.int32]:
        """Return labels with the numbers of the labels before on the same rows, where there are any."""
        found, at = np.unique(labels, return_inverse=True)
        names = np.full(len(found), -1, np.int32)
        if before is not None:
            overlap = confusion_matrix(before, at, labels=np.arange(max(before.max(), at.max()) + 1))
            overlap = overlap[:, : len(found)]
            for old, new in zip(*linear_sum_assignment(-overlap), strict=True):
                names[new] = old if overlap[old, new] else -1
        for place in np.flatnonzero(names < 0):
            names[place], self.unused = self.unused, self.unused + 1
        self.unused = max(self.unused, int(names.max()) + 1)
        return names[at]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=2_000_000, help="rows a month")
    parser.add_argument("--no-page", action="store_true", help="print only")
    options = parser.parse_args()
    about, lines = machine(), []
    own, fresh_numbers, birch_numbers = Numbers(), Numbers(), Numbers()
    hand = Peer()
    model, birch, fresh_before = None, Birch(threshold=3.0, n_clusters=None), None
    named, worst, least, slowest = [], 1.0, 1.0, 0.0
    for month in range(MONTHS):
        X, truth = month_of(month, options.rows)
        events = ""
        fresh, fit_seconds = timed(lambda: DC2Clustering(random_state=0).fit(X))  # noqa: B023
        if model is None:
            model, seconds, ratio = fresh, fit_seconds, np.nan
        else:
            changes, seconds = timed(lambda: model.update(X, forget=FORGET))  # noqa: B023
            needed = timed(lambda: model.predict(X))[1] + conquer_seconds(model)  # noqa: B023
            ratio = seconds / needed
            slowest = max(slowest, ratio)
            events = "; ".join(f"{c['cluster']} {c['event']}" for c in changes.clusters if c["event"] != "kept")
            if month in EVENTS:
                named.append(bool(changes.of(EVENTS[month][0])))
        labels = model.predict(X)
        right = own.right(truth, labels)
        score, fresh_score = adjusted_rand_score(truth, labels), adjusted_rand_score(truth, fresh.predict(X))
        # A fresh fit, matched by hand to the fit before on the rows of this month.
        fresh_labels = hand.renamed(None if fresh_before is None else fresh_before(X), fresh.predict(X))
        lookup = dict(zip(fresh.predict(X).tolist(), fresh_labels.tolist(), strict=True))
        fresh_before = _renamed(fresh, lookup)
        fresh_right = fresh_numbers.right(truth, fresh_labels)
        some = slice(PEER_ROWS)
        _, birch_seconds = timed(lambda: birch.partial_fit(X[some]))  # noqa: B023
        birch_labels = birch.predict(X[some]).astype(np.int32)
        birch_right = birch_numbers.right(truth[some], birch_labels)
        birch_score = adjusted_rand_score(truth[some], birch_labels)
        worst, least = min(worst, right), min(least, score - fresh_score)
        lines.append(
            [
                str(month + 1), EVENTS.get(month, ("", ""))[1], events, f"{right:.3f}", f"{fresh_right:.3f}",
                f"{birch_right:.3f}", f"{score:.3f}", f"{fresh_score:.3f}", f"{birch_score:.3f}", f"{seconds:.1f} s",
                "" if np.isnan(ratio) else f"{ratio:.2f}", f"{fit_seconds:.1f} s", f"{birch_seconds:.1f} s",
            ]
        )  # fmt: skip
        print(lines[-1], len(model.signatures_), flush=True)
    goals = [
        Goal("labels with the number of their cluster, in the worst month", "0.95", f"{worst:.3f}", worst >= 0.95),
        Goal("events named in the month they happen", "5 of 5", f"{sum(named)} of {len(named)}", all(named)),
        Goal("ARI less that of a fresh fit, in the worst month", "-0.02", f"{least:+.3f}", least >= -0.02),
        Goal("update by populate and conquer, in the worst month", "1.2", f"{slowest:.2f}", slowest <= 1.2),
    ]
    head = [
        "month", "what happens", "what `update` says", "numbers right", "fresh fit, matched by hand", "BIRCH", "ARI",
        "fresh fit", "BIRCH", "update", "by populate + conquer", "fresh fit", "BIRCH",
    ]  # fmt: skip
    text = [
        f"A made series: {options.rows:,} rows a month in {COLUMNS} columns, Gaussian clusters; months are numbered "
        f"from 1. Each month one `update` with `forget={FORGET}`, and, beside it, a fresh fit of that month whose "
        "clusters are matched to those of the month before by their rows. BIRCH is scikit-learn's `partial_fit`, "
        f"`threshold=3`, without a global step, on the first {PEER_ROWS:,} rows of each month. Times are of all "
        "processors.",
        table(head, lines),
        table(GOAL_HEAD, [goal.row() for goal in goals]),
    ]
    if not options.no_page:
        given = "" if options.rows == parser.get_default("rows") else f" --rows {options.rows}"
        write_page("updates", "Updates, measured", text, about, given)
    else:
        print(text[-1])


def _renamed(model: Any, lookup: dict[int, int]) -> Callable[[NDArray[Any]], NDArray[np.int32]]:
    def labels(X: NDArray[Any]) -> NDArray[np.int32]:
        return np.array([lookup[label] for label in range(max(lookup) + 1)], np.int32)[model.predict(X)]

    return labels


if __name__ == "__main__":
    main()
