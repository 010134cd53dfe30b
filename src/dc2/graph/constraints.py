"""What users know: labels of some rows, and pairs that must or must not share a cluster."""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array, diags_array
from scipy.sparse.csgraph import connected_components

from dc2.errors import InputError, ParameterError
from dc2.graph.n_clusters import RequestedClusters
from dc2.graph.resolutions import GraphNodes
from dc2.graph.size_limits import divided, join_most_connected, parting
from dc2.io.model_file import saved_record

UNKNOWN = -1
Labels = NDArray[np.int32]
MISSING = {"NAType", "NaTType", "NoneType"}
MOST_NAMED = 5  # labels in a message
# Probability that a random walk ends at a step without a label; steps until nearly all have ended.
STOP, STEPS = 0.05, 60
FEW = 5.0  # labels of a class that count as much as all others for the density of its labels


@dataclass(frozen=True, eq=False)
class RowLabels:
    """The labelled rows, ascending, the class of each, the user's names of classes, and how many rows there are."""

    rows: NDArray[np.int64]
    codes: Labels
    names: tuple[Any, ...]
    n_rows: int

    @classmethod
    def of(cls, y: Any) -> RowLabels | None:
        """Return the labels that `y` holds; None if it holds none, or if no row is without one (-1 or missing)."""
        if y is None:
            return None
        values = np.asarray(np.ma.filled(y.astype(object), None) if np.ma.isMaskedArray(y) else y)
        if values.dtype.kind in "US" and not isinstance(y, np.ndarray):  # a missing value would be a text
            values = np.asarray(y, dtype=object)
        if values.ndim != 1:
            return None
        known = _known(values)
        if known.all() or not known.any():
            return None
        rows = np.flatnonzero(known)
        plain = [_plain(value) for value in values[rows].tolist()]
        names = tuple(sorted(set(plain), key=lambda value: (str(type(value)), value)))
        code = {name: number for number, name in enumerate(names)}
        return cls(rows, np.array([code[value] for value in plain], dtype=np.int32), names, len(values))

    def check(self, n_rows: int, requested: RequestedClusters) -> None:
        """Raise if the labels are not those of the rows, or name more clusters than there may be."""
        if self.n_rows != n_rows:
            raise InputError(
                f"y has {self.n_rows:,} labels, but X has {n_rows:,} rows. Give one for each, -1 if unknown."
            )
        if requested.high is not None and len(self.names) > requested.high:
            some = ", ".join(map(repr, self.names[:MOST_NAMED])) + (", ..." if len(self.names) > MOST_NAMED else "")
            raise ParameterError(
                f"n_clusters: at most {requested.high} clusters are asked for, but y has {len(self.names)} labels "
                f"({some}). Ask for at least {len(self.names)}."
            )


def _known(values: NDArray[Any]) -> NDArray[np.bool_]:
    if values.dtype.kind in "iu":
        return np.asarray(values != UNKNOWN)
    if values.dtype.kind == "f":
        return np.asarray(~np.isnan(values) & (values != UNKNOWN))
    if values.dtype.kind in "mM":
        return np.asarray(~np.isnat(values))
    return np.array([not _is_unknown(value) for value in values.tolist()], dtype=bool)


def _is_unknown(value: Any) -> bool:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return type(value).__name__ in MISSING or (number and (value != value or value == UNKNOWN))


def _plain(value: Any) -> Any:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if isinstance(value, bool | int | float | str) else str(value)


@dataclass(frozen=True, eq=False)
class RowLinks:
    """Pairs of rows that must, or must not, share a cluster: arrays of shape (n_pairs, 2)."""

    must: NDArray[np.int64]
    cannot: NDArray[np.int64]

    @classmethod
    def of(cls, must_link: Any, cannot_link: Any) -> RowLinks | None:
        """Return the pairs, or None if there are none; raise if they are no pairs of row numbers."""
        links = cls(_pairs("must_link", must_link), _pairs("cannot_link", cannot_link))
        return links if len(links.must) or len(links.cannot) else None

    def check(self, n_rows: int, labels: RowLabels | None) -> None:
        """Raise if a row is not there, or if the links and labels contradict each other."""
        for name, pairs in (("must_link", self.must), ("cannot_link", self.cannot)):
            wrong = pairs[((pairs < 0) | (pairs >= n_rows)).any(axis=1)]
            if len(wrong):
                raise InputError(
                    f"{name}: {tuple(wrong[0].tolist())} is no pair of rows; X has rows 0 to {n_rows - 1:,}."
                )
        nothing = RowLabels(np.zeros(0, np.int64), np.zeros(0, np.int32), (), n_rows)
        rows, codes, names = (labels or nothing).rows, (labels or nothing).codes, (labels or nothing).names
        group = groups_of(n_rows, self.must, rows, codes)
        order = np.argsort(group[n_rows:], kind="stable")
        for one, other in itertools.pairwise(order.tolist()):
            if group[n_rows + one] == group[n_rows + other]:
                raise InputError(f"must_link joins rows with label {names[one]!r} to rows with label {names[other]!r}.")
        both = self.cannot[group[self.cannot[:, 0]] == group[self.cannot[:, 1]]]
        if len(both):
            raise InputError(
                f"cannot_link: rows {both[0, 0]} and {both[0, 1]} must not share a cluster, but they are one row, have "
                "one label, or must_link connects them."
            )


@dataclass(frozen=True, eq=False)
class RowsKnown:
    """What is known about rows: labels, links or both."""

    labels: RowLabels | None
    links: RowLinks | None

    def check(self, n_rows: int, requested: RequestedClusters) -> None:
        """Raise if something does not fit the rows or each other."""
        if self.labels is not None:
            self.labels.check(n_rows, requested)
        if self.links is not None:
            self.links.check(n_rows, self.labels)
            if requested.high == 1 and len(self.links.cannot):
                raise ParameterError("n_clusters=1: cannot_link needs at least two clusters. Ask for more.")

    @property
    def rows(self) -> NDArray[np.int64]:
        """The rows that something is known about, ascending."""
        labelled = [] if self.labels is None else [self.labels.rows]
        linked = [] if self.links is None else [self.links.must.ravel(), self.links.cannot.ravel()]
        return np.unique(np.concatenate([*labelled, *linked]))

    def of_nodes(self, ids: Labels, n_nodes: int, keep_rows: bool) -> Known:
        """Return what is known about nodes, given the node of each of `rows`."""
        labelled = np.zeros(0, np.int64) if self.labels is None else self.labels.rows
        known = Known.of(self.labels, ids[np.searchsorted(self.rows, labelled)], n_nodes, keep_rows)
        if self.links is None:
            return known
        must, cannot = (ids[np.searchsorted(self.rows, pairs)] for pairs in (self.links.must, self.links.cannot))
        return known.with_links(self.links, must, cannot)


def _pairs(name: str, pairs: Any) -> NDArray[np.int64]:
    found = np.asarray([] if pairs is None else pairs)
    if not found.size:
        return np.zeros((0, 2), np.int64)
    if found.ndim != 2 or found.shape[1] != 2 or found.dtype.kind not in "iu":
        raise InputError(f"{name} must hold pairs of row numbers, such as [(0, 5), (3, 8)]; got shape {found.shape}.")
    return found.astype(np.int64)


def groups_of(n: int, must: NDArray[Any], labelled: NDArray[Any], codes: Labels) -> Labels:
    """Return the group of each row or node, and then that of each class: those that must share a cluster are one."""
    n_classes = int(codes.max(initial=-1)) + 1
    one, other = np.concatenate([must[:, 0], labelled]), np.concatenate([must[:, 1], n + codes])
    size = n + n_classes
    edges = coo_array((np.ones(len(one)), (one, other)), shape=(size, size))
    return np.asarray(connected_components(edges, directed=False)[1], dtype=np.int32)


@saved_record
@dataclass(frozen=True, eq=False)
class Known:
    """What is known about nodes: the class of each (-1 if unknown), the users' names of classes, pairs of nodes.

    The labelled rows and their classes are kept if rows are in memory, and are not saved.
    """

    codes: Labels
    names: tuple[Any, ...]
    rows: NDArray[np.int64] | None = None
    row_codes: Labels | None = None
    must: Labels | None = None
    cannot: Labels | None = None

    def check(self) -> None:
        """Raise if the parts do not fit together; called when read from a model file."""
        codes = self.codes
        if (
            codes.ndim != 1
            or codes.dtype != np.int32
            or not all(isinstance(name, bool | int | float | str) for name in self.names)
            or codes.min(initial=0) < UNKNOWN
            or not np.array_equal(np.unique(codes[codes >= 0]), np.arange(len(self.names)))
            or (self.must is None) != (self.cannot is None)
            or any(
                pairs.shape[1:] != (2,) or not 0 <= pairs.min(initial=0) <= pairs.max(initial=0) < len(codes)
                for pairs in (self.must, self.cannot)
                if pairs is not None
            )
        ):
            raise InputError("the parts of Known do not fit together.")

    @classmethod
    def of(cls, labels: RowLabels | None, ids: Labels, n_nodes: int, keep_rows: bool) -> Known:
        """Return the classes of nodes: each takes that of most of its labelled rows; `ids` are the nodes of these."""
        if labels is None:
            return cls(np.full(n_nodes, UNKNOWN, np.int32), ())
        n_classes = len(labels.names)
        counts = coo_array((np.ones(len(ids)), (ids, labels.codes)), shape=(n_nodes, n_classes)).tocsr().tocoo()
        codes = np.full(n_nodes, UNKNOWN, np.int32)
        order = np.lexsort((-counts.col, counts.data))  # the most frequent class is written last
        codes[counts.row[order]] = counts.col[order]
        lost = np.setdiff1d(np.arange(n_classes), codes)
        if len(lost):
            name = labels.names[int(lost[0])]
            raise InputError(
                f"y: every row with label {name!r} is in a signature, or equal to rows, with more rows of another "
                "label. Give n_signatures a larger number, or label more rows."
            )
        return cls(codes, labels.names, labels.rows if keep_rows else None, labels.codes if keep_rows else None)

    def without_rows(self) -> Known:
        """Return the same without anything that has an entry per row."""
        return replace(self, rows=None, row_codes=None)

    def with_links(self, links: RowLinks, must: Labels, cannot: Labels) -> Known:
        """Return the same with pairs of nodes, or raise if a pair that must be apart is one node or connected."""
        labelled = np.flatnonzero(self.codes >= 0)
        group = groups_of(len(self.codes), must, labelled, self.codes[labelled])
        both = np.flatnonzero(group[cannot[:, 0]] == group[cannot[:, 1]])
        if len(both):
            one, other = links.cannot[both[0]].tolist()
            raise InputError(
                f"cannot_link: rows {one} and {other} are equal or in one signature, or in signatures that other links "
                "connect. Give n_signatures a larger number, or leave the pair out."
            )
        return replace(self, must=must, cannot=cannot)

    def classes_of(self, labels: Labels) -> NDArray[np.intp]:
        """Return for each cluster the class whose labelled nodes it holds; -1 if there are none, or several classes."""
        known = np.flatnonzero(self.codes >= 0)
        pairs = np.unique(np.stack([labels[known], self.codes[known]]), axis=1)
        classes = np.full(int(labels.max()) + 1, UNKNOWN, np.intp)
        alone = np.bincount(pairs[0], minlength=len(classes))[pairs[0]] == 1
        classes[pairs[0][alone]] = pairs[1][alone]
        return classes

    def keep(self, of_rows: Labels, labels: Labels) -> Labels:
        """Return labels of rows, in which labelled rows are in the cluster of their class if there is just one."""
        if self.rows is None or self.row_codes is None:
            return of_rows
        classes = self.classes_of(labels)
        named = np.flatnonzero(classes >= 0)
        cluster = np.full(len(self.names), UNKNOWN, np.int32)
        cluster[classes[named]] = named
        cluster[np.bincount(classes[named], minlength=len(self.names)) != 1] = UNKNOWN
        own = cluster[self.row_codes]
        kept = of_rows.copy()
        kept[self.rows[own >= 0]] = own[own >= 0]
        kept.setflags(write=of_rows.flags.writeable)
        return kept


def with_known(nodes: GraphNodes, found: Labels, known: Known, requested: RequestedClusters) -> Labels:
    """Return clusters that agree with known labels: one for each class, and those of the found ones without labels.

    From each node a random walk follows the edges. It takes the class of the first labelled node that it meets, or ends
    with a small probability at each step. Then the node has the classes of its found cluster in their shares; a cluster
    with no labels, or hardly any, is a class of its own. A node joins the class that is likeliest. So a few labels name
    whole clusters, many move borders, and clusters in which labels differ are divided. If there are more clusters than
    requested, unlabelled ones join those that they share most edges with; if fewer, the largest of them is divided.
    """
    n_classes = len(known.names)
    prior = _prior(found, known.codes, n_classes)
    likeliest = _walked(nodes.graph.matrix(), known.codes, prior[found])
    labels = _counted(np.where(known.codes >= 0, known.codes, likeliest))
    while requested.high is not None and int(labels.max()) + 1 > max(requested.high, n_classes):
        sizes = np.bincount(labels, nodes.node_weights)
        labels = _counted(join_most_connected(nodes, labels, n_classes + int(sizes[n_classes:].argmin())))
    unlabelled, missing = np.bincount(labels)[n_classes:], requested.low - int(labels.max()) - 1
    if len(unlabelled) and missing > 0:
        labels = divided(nodes, labels, n_classes + int(unlabelled.argmax()), missing + 1)
    return labels


def with_links(nodes: GraphNodes, labels: Labels, known: Known) -> Labels:
    """Return clusters that keep all links.

    Two clusters become one if more links join them than part them, and a cluster in which more pairs must be apart
    than together is cut where fewest edges cross for the pairs that are parted. At last, nodes that must share a
    cluster move to the one with most of them that has no node from which they must be apart.
    """
    assert known.must is not None and known.cannot is not None
    labels = _cut_between(nodes, _merged_by_links(labels, known), known.must, known.cannot)
    n = len(labels)
    labelled = np.flatnonzero(known.codes >= 0)
    group = groups_of(n, known.must, labelled, known.codes[labelled])
    apart: dict[int, set[int]] = {}
    for one, other in group[known.cannot].tolist():
        apart.setdefault(one, set()).add(other)
        apart.setdefault(other, set()).add(one)
    linked = np.unique(group[np.concatenate([known.must.ravel(), known.cannot.ravel(), labelled])])
    members = {g: np.flatnonzero(group[:n] == g) for g in linked.tolist()}
    named = set(group[n:].tolist())
    home: dict[int, int] = {}
    answer, matrix = labels.copy(), nodes.graph.matrix()
    for g in sorted(members, key=lambda g: (g not in named, -len(members[g]), g)):
        own = members[g]
        taken = {home[other] for other in apart.get(g, ()) if other in home}
        n_clusters = int(answer.max()) + 1
        holds = np.bincount(answer[own], minlength=n_clusters).astype(np.float64)
        inside = np.bincount(answer, matrix[own].sum(axis=0), n_clusters)
        holds += inside / (inside.sum() + 1.0)  # edges decide between equal numbers
        holds[list(taken)] = -1.0
        home[g] = int(holds.argmax()) if holds.max() > 0 else n_clusters
        answer[own] = home[g]
    return _counted(answer)


def _votes(labels: Labels, pairs: Labels | None) -> Counter[tuple[int, int]]:
    assert pairs is not None
    return Counter(map(tuple, np.sort(labels[pairs], axis=1).tolist()))


def _merged_by_links(labels: Labels, known: Known) -> Labels:
    """Merge clusters that more links join than part, unless both have labels; the pair with most links first."""
    while True:
        together, apart, classes = _votes(labels, known.must), _votes(labels, known.cannot), known.classes_of(labels)
        more = [pair for pair, votes in together.items() if pair[0] != pair[1] and votes > apart[pair]]
        joined = [(-together[pair], pair) for pair in more if min(classes[list(pair)]) < 0]
        if not joined:
            return labels
        one, other = min(joined)[1]
        labels = _counted(np.where(labels == other, one, labels))


def _cut_between(nodes: GraphNodes, labels: Labels, must: Labels, cannot: Labels) -> Labels:
    """Cut clusters in which more pairs must be apart than together."""
    while True:
        together, apart = _votes(labels, must), _votes(labels, cannot)
        crowded = [pair[0] for pair, votes in apart.items() if pair[0] == pair[1] and votes > together[pair]]
        if not crowded:
            return labels
        cluster = min(crowded)
        inside = cannot[(labels[cannot] == cluster).all(axis=1)]
        members = np.flatnonzero(labels == cluster)
        part = parting(nodes.graph.matrix(), members, np.searchsorted(members, inside))
        labels = labels.copy()
        labels[part] = labels.max() + 1


def _counted(labels: NDArray[Any]) -> Labels:
    """Return labels counted from 0 without gaps; the classes of known labels, which all have nodes, stay first."""
    return np.unique(labels, return_inverse=True)[1].astype(np.int32)


def _prior(found: Labels, codes: Labels, n_classes: int) -> csr_array:
    """Return for each found cluster the shares of the classes, and of a class of its own, among its nodes.

    A label stands for as many nodes as there are for each label where its class is; with few labels of the class, where
    any labels are. What no label stands for is of the cluster's own class; one label more is granted.
    """
    known, sizes = codes >= 0, np.bincount(found).astype(np.float64)[:, None]
    counts = np.zeros((len(sizes), n_classes))
    np.add.at(counts, (found[known], codes[known]), 1.0)
    labels = counts.sum(axis=1, keepdims=True)
    around_any = (labels**2 / sizes).sum() / labels.sum()  # the density of labels around a typical label
    density = ((counts**2 / sizes).sum(axis=0) + FEW * around_any) / (counts.sum(axis=0) + FEW)
    stood_for = counts / density
    total = np.maximum(stood_for.sum(axis=1, keepdims=True), 1e-300)
    named = np.where(labels > 0, np.minimum((labels + 1) / (labels * sizes / total + 1), 1.0), 0.0)
    return csr_array(np.hstack([named * stood_for / total, np.diag(1.0 - named[:, 0])]))


def _walked(graph: csr_array, codes: Labels, prior: csr_array) -> NDArray[np.intp]:
    """Return the likeliest class of each node at the end of random walks; see `with_known`."""
    total = np.asarray(graph.sum(axis=1)).ravel()
    step = diags_array(np.where(total > 0, (1 - STOP) / np.maximum(total, 1e-300), 0.0)) @ graph
    known = np.flatnonzero(codes >= 0)
    met = np.zeros((len(codes), int(codes.max()) + 1))
    for _ in range(STEPS):
        met[known] = 0.0
        met[known, codes[known]] = 1.0
        met = step @ met
    shares = prior.toarray() * (1.0 - met.sum(axis=1, keepdims=True))
    shares[:, : met.shape[1]] += met
    return np.asarray(shares.argmax(axis=1))
