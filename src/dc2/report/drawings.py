"""The two drawings of a report: the map of the signatures, and the matrix of their similarities."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dc2.graph.nodes import Description
from dc2.report.cluster_statistics import ClusterStatistics
from dc2.report.layout import Layout, variation_layout
from dc2.report.page import Picture, Section, number, percent
from dc2.report.svg import png_of_levels

WIDTH, HEIGHT, PAD = 720, 480, 26.0
ALL_VALUES_UP_TO, VALUES_SHOWN = 12, 8
INK_SHARE = 0.22  # of the map that the marks would cover if none overlapped

# Each of about the area of a circle of radius 1.
_PATHS = {
    "circle": "M1 0A1 1 0 1 1 -1 0A1 1 0 1 1 1 0Z",
    "square": "M-.89 -.89H.89V.89H-.89Z",
    "triangle": "M0 -1.35L1.17 .68H-1.17Z",
    "diamond": "M0 -1.25L1.25 0L0 1.25L-1.25 0Z",
    "noise": "M-1 -.7L-.7 -1L0 -.3L.7 -1L1 -.7L.3 0L1 .7L.7 1L0 .3L-.7 1L-1 .7L-.3 0Z",
}


def map_section(statistics: ClusterStatistics) -> tuple[Section, dict[str, Any]]:
    """Return the section with the map, and what its script reads."""
    drawn, layouts = statistics.drawn_signatures, statistics.layouts
    placed = [_placed(layout) for layout in layouts]
    names_at = [_label_places(drawn, xy, statistics.n_listed) for xy in placed]
    notes = [_note(layout) for layout in layouts]
    marks = zip(placed[0].tolist(), _radii(drawn.weights), drawn.labels.tolist(), strict=True)
    content = {
        "drawn": drawn,
        "layouts": layouts,
        "width": WIDTH,
        "height": HEIGHT,
        "paths": _PATHS,
        "marks": [(f"{x:.1f}", f"{y:.1f}", f"{r:.1f}", label) for (x, y), r, label in marks],
        "names_at": [(f"{x:.1f}", f"{y:.1f}") for x, y in names_at[0].tolist()],
        "note": notes[0],
        "left_out": len(statistics.points) - len(drawn.points),
        "has_noise": bool((drawn.labels < 0).any()),
    }
    data = {
        "layouts": [
            {"xy": _flat(xy), "at": _flat(at), "note": note}
            for xy, at, note in zip(placed, names_at, notes, strict=True)
        ],
        "cluster": drawn.labels.tolist(),
        "rows": [
            f"{number(weight)} {statistics.unit} ({percent(weight / statistics.total)})" for weight in drawn.weights
        ],
        "names": list(drawn.names),
        "values": _values(drawn),
    }
    lead = "Every mark represents a group of similar rows; colours and numbers are clusters."
    return Section("Map", lead, "map.html", content), data


def _placed(layout: Layout) -> NDArray[np.float64]:
    """Return places on the drawing; unless the axes are columns, one unit is as long across as up."""
    low, high = layout.xy.min(axis=0), layout.xy.max(axis=0)
    half = high / 2 - low / 2  # halves, since places may lie as far apart as numbers go
    half = np.where(half > 0, half, half.max() or 0.5)
    room = np.array([WIDTH, HEIGHT]) - 2.0 * PAD
    share = (layout.xy / 2 - (low / 4 + high / 4)) / half
    if layout.name != "columns":
        needed = half / half.max() / room
        room *= needed / needed.max()
    placed: NDArray[np.float64] = np.array([WIDTH, HEIGHT]) / 2 + share * room * (1.0, -1.0)
    return placed


def _radii(weights: NDArray[np.float64]) -> NDArray[np.float64]:
    share = weights / weights.sum()
    radii: NDArray[np.float64] = np.sqrt(INK_SHARE * WIDTH * HEIGHT * share / np.pi)
    return radii.clip(2.0, 14.0)


def _label_places(drawn: ClusterStatistics, xy: NDArray[np.float64], n_listed: int) -> NDArray[np.float64]:
    """Return for each cluster the place of the signature nearest to its middle, so that its number stands on a mark."""
    places = np.empty((n_listed, 2))
    for k in range(n_listed):
        own = xy[drawn.labels == k]
        places[k] = own[((own - np.median(own, axis=0)) ** 2).sum(axis=1).argmin()]
    return places


def _note(layout: Layout) -> str:
    if layout.name == "neighbours":
        return (
            "A t-SNE of the similarity: similar signatures are close. The distance between two groups means little, "
            "and the axes mean nothing."
        )
    if layout.name == "variation":
        return (
            f"Across: {layout.x_title}. Up: {layout.y_title}. These two directions mix all columns so that as much "
            "of the variance as possible is seen; groups may overlap."
        )
    (left, low), (right, high) = layout.xy.min(axis=0).tolist(), layout.xy.max(axis=0).tolist()
    return (
        f"Across: {layout.x_title}, from {number(left)} to {number(right)}. "
        f"Up: {layout.y_title}, from {number(low)} to {number(high)}."
    )


def _values(clusters: ClusterStatistics) -> list[list[Any]]:
    """Return per signature [column, value, column, value, ...]: all columns if few, else those most out of line."""
    if len(clusters.names) <= ALL_VALUES_UP_TO:
        columns = np.tile(np.arange(len(clusters.names)), (len(clusters.points), 1))
    else:
        deviation = clusters.points.std(axis=0)
        off = np.abs(clusters.points - clusters.points.mean(axis=0)) / np.where(deviation > 0, deviation, 1.0)
        columns = np.argsort(-off, axis=1, kind="stable")[:, :VALUES_SHOWN]
    values = np.take_along_axis(clusters.values, columns, axis=1)
    return [
        [part for column, value in zip(row.tolist(), given.tolist(), strict=True) for part in (column, number(value))]
        for row, given in zip(columns, values, strict=True)
    ]


def _flat(xy: NDArray[np.float64]) -> list[float]:
    flat: list[float] = xy.round(1).ravel().tolist()
    return flat


MOST_PIXELS = 360
N_LEVELS = 64
SIDE, STRIP = 400, 18  # of the drawing: the matrix, and the strip of cluster numbers beside it
NARROWEST_NAMED = 0.035
MOST_PAIRS = 8


def similarity_section(statistics: ClusterStatistics) -> tuple[Section, dict[str, Any]]:
    """Return the section with the matrix, and what its script reads."""
    compared, description = statistics.compared_signatures, statistics.similarity_text
    order = np.lexsort((variation_layout(compared).xy[:, 0], compared.labels))
    labels, strength = compared.labels[order], statistics.strength[np.ix_(order, order)]
    listed = statistics.n_listed
    edges = (np.searchsorted(labels, np.arange(compared.n_clusters + 1)) / len(order))[: listed + 1]
    pixels = _shrunk(strength)
    full = float(np.quantile(pixels, 0.99)) or 1.0
    levels = np.clip(np.sqrt(pixels / full) * (N_LEVELS - 1), 0, N_LEVELS - 1).astype(np.uint8)
    between = _between(strength, labels, compared.n_clusters)
    most = f"{_amount(description, full)} {description.whole}".strip()
    alt = "Similarity of all pairs of signatures, ordered by cluster; clusters are dark squares on the diagonal."
    content = {
        "description": description,
        "picture": Picture(png_of_levels(levels, _inks()), alt),
        "strip": STRIP,
        "side": SIDE,
        "strips": [_strip(k, low, high) for k, (low, high) in enumerate(pairwise(edges.tolist()))],
        "most": most if full >= 1.0 else f"{most} or more",
        "pairs": _closest_pairs(description, between),
    }
    means = [[_amount(description, value) for value in row] for row in between[:listed, :listed].tolist()]
    data = {"edges": edges.round(5).tolist(), "means": means, "words": description.unit}
    return Section("Similarity", _lead(between), "similarity.html", content), data


def _shrunk(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return means over blocks, so that the picture stays small."""
    n = len(matrix)
    starts = np.unique(np.linspace(0, n, min(n, MOST_PIXELS), endpoint=False).astype(int))
    sizes = np.diff(np.append(starts, n))
    sums = np.add.reduceat(np.add.reduceat(matrix, starts, axis=0), starts, axis=1)
    means: NDArray[np.float64] = sums / np.outer(sizes, sizes)
    return means


def _between(strength: NDArray[np.float64], labels: NDArray[np.int32], k: int) -> NDArray[np.float64]:
    """Return the mean over pairs of signatures of two clusters, of shape (k, k)."""
    member = (labels[:, None] == np.arange(k)).astype(float)
    member /= member.sum(axis=0)
    means: NDArray[np.float64] = member.T @ strength @ member
    return means


def _inks() -> list[tuple[int, int, int]]:
    """Return colours from paper to deep blue; dark pages turn them over."""
    stops = np.array([[255, 255, 255], [173, 208, 236], [55, 126, 184], [10, 42, 84]], float)
    at = np.linspace(0, len(stops) - 1, N_LEVELS)
    inks = np.column_stack([np.interp(at, np.arange(len(stops)), stops[:, i]) for i in range(3)])
    return [(int(r), int(g), int(b)) for r, g, b in inks.round()]


def _strip(cluster: int, low: float, high: float) -> dict[str, Any]:
    start, size = low * SIDE, (high - low) * SIDE
    return {
        "cluster": cluster,
        "start": f"{start:.1f}",
        "size": f"{size:.1f}",
        "middle": f"{start + size / 2:.1f}",
        "named": high - low >= NARROWEST_NAMED,
    }


def _closest_pairs(description: Description, between: NDArray[np.float64]) -> list[tuple[int, int, float, str]]:
    """Return the pairs of clusters that have most in common, with their similarity."""
    first, second = np.triu_indices(len(between), k=1)
    order = np.argsort(-between[first, second], kind="stable")[:MOST_PAIRS]
    pairs = zip(first[order].tolist(), second[order].tolist(), strict=True)
    return [(a, b, float(between[a, b]), _amount(description, between[a, b])) for a, b in pairs]


def _amount(description: Description, value: float) -> str:
    return percent(value) if description.whole else number(value, 2)


def _lead(between: NDArray[np.float64]) -> str:
    if len(between) == 1:
        return "The similarity of any two signatures."
    apart = between - np.diag(np.full(len(between), np.inf))
    first, second = sorted(int(i) for i in np.unravel_index(apart.argmax(), apart.shape))
    return (
        "The similarity of any two signatures, ordered by cluster. The two clusters with most in common are "
        f"{first} and {second}."
    )


FLOW_WIDTH, FLOW_HEIGHT, FLOW_BAR, FLOW_GAP = 520.0, 320.0, 14.0, 6.0
FLOW_TEXT = 90.0  # room beside the bars
THINNEST = 0.5


def changes_section(statistics: ClusterStatistics) -> Section | None:
    """Return what the last update changed: a flow of rows from old clusters to new ones, and a table."""
    changes = getattr(statistics.model, "changes_", None)
    if changes is None:
        return None
    bars, bands = _flow([way for way in changes.flow if way[2] > 0])
    content = {"changes": changes, "width": FLOW_WIDTH, "height": FLOW_HEIGHT, "bar": FLOW_BAR}
    lead = " ".join(changes.sentences()[:-1])
    return Section("What changed", lead, "changes.html", {**content, "bars": bars, "bands": bands})


def _flow(ways: list[tuple[int, int, float]]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return bars for old clusters on the left and new ones on the right, and a band for the rows they share."""
    left, right = FLOW_TEXT + FLOW_BAR, FLOW_WIDTH - FLOW_TEXT - FLOW_BAR
    middle, total = (left + right) / 2, sum(rows for *_, rows in ways)
    bars: list[dict[str, Any]] = []
    next_at, unit = [dict[int, float](), dict[int, float]()], [0.0, 0.0]
    for side, x in enumerate((FLOW_TEXT, right)):
        names = sorted({(old, new)[side] for old, new, _ in ways})
        gap, y = min(FLOW_GAP, FLOW_HEIGHT / 2 / len(names)), 0.0
        unit[side] = (FLOW_HEIGHT - gap * (len(names) - 1)) / total
        for name in names:
            rows = sum(rows for old, new, rows in ways if (old, new)[side] == name)
            text = ("new rows", "forgotten")[side] if name < 0 else f"{name}: {number(rows)}"
            height = rows * unit[side]
            bars.append({"x": x, "y": y, "height": max(height, THINNEST), "name": name, "text": text, "side": side})
            next_at[side][name] = y
            y += height + gap
    bands = []
    for old, new, rows in ways:
        a, b = next_at[0][old], next_at[1][new]
        c, d = a + rows * unit[0], b + rows * unit[1]
        next_at[0][old], next_at[1][new] = c, d
        path = (
            f"M{left:.1f} {a:.1f}C{middle:.1f} {a:.1f} {middle:.1f} {b:.1f} {right:.1f} {b:.1f}V{d:.1f}"
            f"C{middle:.1f} {d:.1f} {middle:.1f} {c:.1f} {left:.1f} {c:.1f}Z"
        )
        sides = ("new rows" if old < 0 else f"cluster {old}", "no cluster" if new < 0 else f"cluster {new}")
        tip = f"{number(rows)} rows: {sides[0]} to {sides[1]}"
        bands.append({"path": path, "tip": tip, "class": "stayed" if old == new else "moved"})
    return bars, bands
