"""What changed between two sets of clusters: which survive and keep their numbers, and what became of the others."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from dc2.errors import InputError
from dc2.io.columns import as_frame, frame_kind
from dc2.io.model_file import saved_record

Way = tuple[int, int, float, float]
"""The number of an old and of a new cluster, -1 for none, and the weight that both have in common, before and after."""

NO_CLUSTER = -1
SURVIVES = 0.25  # of the smaller of both clusters must be shared
PART = 0.1  # of a cluster: a smaller share that moves elsewhere is a change of its border, and no split
MOST = 0.5
GREW, SHRANK = 1.25, 0.8  # factors of its share
MOVED = 1.0  # radii


def matched_names(overlap: NDArray[np.float64], old: NDArray[np.int32], unused: int) -> tuple[NDArray[np.int32], int]:
    """Return the numbers of new clusters, and the first number that is still unused.

    The assignment of new clusters to old ones has the largest total overlap.

    Examples
    --------
    >>> names, unused = matched_names(np.array([[0.0, 9.0, 1.0]]), np.array([4], np.int32), unused=5)
    >>> names.tolist(), unused
    ([5, 4, 6], 7)
    """
    names = np.full(overlap.shape[1], NO_CLUSTER, np.int32)
    smaller = np.minimum(overlap.sum(axis=1)[:, None], overlap.sum(axis=0))
    for row, column in zip(*linear_sum_assignment(-overlap), strict=True):
        if overlap[row, column] > 0 and overlap[row, column] >= SURVIVES * smaller[row, column]:
            names[column] = old[row]
    new = np.flatnonzero(names == NO_CLUSTER)
    names[new] = np.arange(unused, unused + len(new))
    return names, unused + len(new)


def overlap_of(
    a: NDArray[np.int32], b: NDArray[np.int32], weights: NDArray[np.float64], old: NDArray[np.int32], n_new: int
) -> NDArray[np.float64]:
    """Return the weight that old clusters ``a`` share with the new clusters ``b``, counted from 0; -1 is left out."""
    both = (a >= 0) & (b >= 0)
    overlap = np.zeros((len(old), n_new))
    np.add.at(overlap, (np.searchsorted(old, a[both]), b[both]), weights[both])
    return overlap


@saved_record
@dataclass(frozen=True, eq=False)
class Changes:
    """What changed between two sets of clusters.

    Attributes
    ----------
    clusters : list of dict
        For each cluster, old or new: "cluster", its number; "event", one of kept, grown, shrunk, moved, split, merged,
        born, gone; "before" and "after", its rows; "share_before" and "share_after"; "overlap", the rows by which it
        was matched; "shift", how far its mean moved, in radii, if known; "others", the clusters that it split into,
        came from or merged with.
    flow : list of (int, int, float)
        Rows by old and new cluster, -1 for none.
    drift : dict of float
        "rows", new rows; "beyond", the share of them beyond every signature's reach (or, with `noise`, beyond the
        outlier threshold); "distortion_before" and "distortion_after". Empty if it is not known.

    Examples
    --------
    >>> changes = changes_between([(0, 0, 60.0, 60.0), (0, 2, 30.0, 30.0), (-1, 3, 0.0, 40.0)])
    >>> print(changes)
    Cluster 0 split: 90 rows before, 60 now; cluster 2 came from it.
    Cluster 2 split from cluster 0: 30 rows.
    Cluster 3 is new: 40 rows.
    """

    clusters: list[dict[str, Any]]
    flow: list[tuple[int, int, float]]
    drift: dict[str, float] = field(default_factory=dict)

    def check(self) -> None:
        """Raise if a part is missing; called when read from a model file."""
        needed = {"cluster", "event", "before", "after", "others"}
        if not all(needed <= set(cluster) for cluster in self.clusters) or not all(len(way) == 3 for way in self.flow):
            raise InputError("the parts of Changes do not fit together.")

    def of(self, *events: str) -> list[int]:
        """Return the numbers of the clusters with one of these events."""
        return [cluster["cluster"] for cluster in self.clusters if cluster["event"] in events]

    def sentences(self) -> list[str]:
        """Return a sentence for each cluster that changed, and one on the drift if it is known."""
        said = [_sentence(cluster) for cluster in self.clusters if cluster["event"] != "kept"]
        kept = len(self.clusters) - len(said)
        if kept:
            said.append(f"{kept} cluster{'s' if kept > 1 else ''} changed little.")
        if self.drift:
            said.append(
                f"{self.drift['beyond']:.1%} of {self.drift['rows']:,.0f} new rows lie beyond all rows before; the "
                f"distortion was {self.drift['distortion_before']:.4g} and is {self.drift['distortion_after']:.4g}."
            )
        return said

    def to_frame(self) -> Any:
        """Return the clusters as a data frame of whichever library is installed, or as a list of records."""
        rows = [{**cluster, "others": ", ".join(map(str, cluster["others"]))} for cluster in self.clusters]
        names = list(rows[0]) if rows else []
        return as_frame({name: [row[name] for row in rows] for name in names}, frame_kind(self, None))

    def to_json(self) -> str:
        """Return everything as JSON."""
        return json.dumps({"clusters": self.clusters, "flow": self.flow, "drift": self.drift}, indent=1)

    def __str__(self) -> str:
        return "\n".join(self.sentences())


def changes_between(
    ways: list[Way], shifts: dict[int, float] | None = None, drift: dict[str, float] | None = None
) -> Changes:
    """Return what changed."""
    before: dict[int, float] = {}
    after: dict[int, float] = {}
    shared: dict[tuple[int, int], float] = {}
    for old, new, was, now in ways:
        before[old] = before.get(old, 0.0) + was
        after[new] = after.get(new, 0.0) + now
        shared[old, new] = shared.get((old, new), 0.0) + now
    totals = (sum(before.values()) or 1.0, sum(after.values()) or 1.0)
    clusters = []
    for name in sorted({*before, *after} - {NO_CLUSTER}):
        was, now = before.get(name, 0.0), after.get(name, 0.0)
        shares = (was / totals[0], now / totals[1])
        shift = (shifts or {}).get(name)
        event, others = _event(name, before, after, shared, shares, shift)
        clusters.append(
            {
                "cluster": name,
                "event": event,
                "before": was,
                "after": now,
                "share_before": shares[0],
                "share_after": shares[1],
                "overlap": shared.get((name, name), 0.0),
                "shift": shift,
                "others": others,
            }
        )
    flow = [(old, new, rows) for (old, new), rows in sorted(shared.items())]
    return Changes(clusters, flow, drift or {})


def _event(
    name: int,
    before: dict[int, float],
    after: dict[int, float],
    shared: dict[tuple[int, int], float],
    shares: tuple[float, float],
    shift: float | None,
) -> tuple[str, list[int]]:
    """Return what became of a cluster, and the other clusters that took part."""
    to = {new: rows for (old, new), rows in shared.items() if old == name and new >= 0}
    since = {old: rows for (old, new), rows in shared.items() if new == name and old >= 0}
    left, came = sum(to.values()), sum(since.values())
    born = [n for n, rows in to.items() if n not in before and rows >= PART * left and rows >= MOST * after[n]]
    ended = [n for n, rows in since.items() if n not in after and rows >= MOST * _leaving(n, shared) > 0]
    if name not in before:
        others = [max(since, key=lambda n: since[n])] if came >= MOST * after[name] > 0 else []
        return ("split", others) if others else ("born", [])
    if name not in after:
        into = [n for n, rows in to.items() if rows >= MOST * left > 0]
        return ("merged", into) if into else ("split", sorted(to)) if to else ("gone", [])
    if born:
        return "split", sorted(born)
    if ended:
        return "merged", sorted(ended)
    if shift is not None and shift > MOVED:
        return "moved", []
    ratio = shares[1] / shares[0] if shares[0] else np.inf
    return ("grown" if ratio > GREW else "shrunk" if ratio < SHRANK else "kept"), []


def _leaving(name: int, shared: dict[tuple[int, int], float]) -> float:
    return sum(rows for (old, new), rows in shared.items() if old == name and new >= 0)


def _sentence(of: dict[str, Any]) -> str:
    name, others = f"Cluster {of['cluster']}", " and ".join(map(str, of["others"]))
    was, now = f"{of['before']:,.6g} rows", f"{of['after']:,.6g} rows"
    several = "s" if len(of["others"]) > 1 else ""
    if of["event"] == "born":
        return f"{name} is new: {now}."
    if of["event"] == "gone":
        return f"{name} is gone: {was} before."
    if of["event"] == "split" and not of["before"]:
        return f"{name} split from cluster {others}: {now}."
    if of["event"] == "split" and of["after"]:
        return f"{name} split: {was} before, {of['after']:,.6g} now; cluster{several} {others} came from it."
    if of["event"] == "split":
        return f"{name} is divided among cluster{several} {others}: {was} before."
    if of["event"] == "merged" and not of["after"]:
        return f"{name} merged into cluster {others}: {was} before."
    if of["event"] == "merged":
        return f"{name} took in cluster{several} {others}: {was} before, {of['after']:,.6g} now."
    moved = f" by {of['shift']:.1f} of its radii" if of["event"] == "moved" else ""
    verb = {"grown": "grew", "shrunk": "shrank", "moved": "moved"}[of["event"]]
    return f"{name} {verb}{moved}: {of['share_before']:.1%} of the rows before, {of['share_after']:.1%} now."


def counted_ways(old: Iterator[NDArray[np.int32]], new: Iterator[NDArray[np.int32]]) -> list[Way]:
    """Return the rows by old and new label, from two streams of labels whose blocks may differ."""
    counts: dict[tuple[int, int], int] = {}
    a = b = np.empty(0, np.int32)
    while True:
        a = next(old, a) if not len(a) else a
        b = next(new, b) if not len(b) else b
        both = min(len(a), len(b))
        if not both:
            break
        pairs, times = np.unique(np.stack([a[:both], b[:both]]), axis=1, return_counts=True)
        for first, second, count in zip(*pairs.tolist(), times.tolist(), strict=True):
            counts[first, second] = counts.get((first, second), 0) + count
        a, b = a[both:], b[both:]
    if len(a) or len(b):
        raise InputError("X gave the two models different numbers of rows; it must give the same rows each time.")
    return [(first, second, float(count), float(count)) for (first, second), count in counts.items()]
