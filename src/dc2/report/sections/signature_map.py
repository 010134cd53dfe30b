"""A map of the signatures, coloured by cluster and sized by rows, which shows values under the pointer."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dc2.facts.facts import Facts
from dc2.facts.fitted import FittedClusters
from dc2.facts.layout import Layout
from dc2.plots.palette import N_COLOURS, shape
from dc2.report.html import Html, join, more, paragraph, swatch, tag
from dc2.report.numbers import number, percent
from dc2.report.page import Section

__all__ = ["section"]

WIDTH, HEIGHT, PAD = 720.0, 480.0, 26.0
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
_CHOICES = {"columns": "Columns", "neighbours": "Neighbours", "variation": "Variation"}


def section(facts: Facts) -> tuple[Section, dict[str, Any]]:
    """Return the section, and what its script reads."""
    clusters, layouts = facts.drawn_clusters, facts.layouts
    placed = [_placed(layout) for layout in layouts]
    map_ = tag(
        "div",
        _buttons(layouts),
        _drawing(clusters, placed[0], facts.told),
        paragraph(_note(layouts[0]), id="map-note", class_="note"),
        _legend(facts.told),
        id="signature-map",
    )
    data = {
        "layouts": [
            {"xy": _flat(xy), "at": _flat(_label_places(clusters, xy, facts.told)), "note": _note(layout)}
            for layout, xy in zip(layouts, placed, strict=True)
        ],
        "cluster": clusters.labels.tolist(),
        "rows": _rows_texts(facts),
        "names": list(clusters.names),
        "values": _values(clusters),
    }
    left_out = len(facts.clusters.points) - len(clusters.points)
    body = join(
        map_,
        paragraph(
            f"{number(len(clusters.points))} signatures are drawn, the heaviest of each cluster; "
            f"{number(left_out)} are not.",
            class_="note",
        )
        if left_out
        else None,
        more(
            "How to read this map",
            paragraph(
                "Each mark is a signature: a small group of rows that are alike. The larger the mark, the more rows. "
                "Point at one, tap it, or press the arrow keys on the map, to see its values. Choose a cluster in the "
                "legend to see it alone."
            ),
            paragraph("Grey crosses are signatures whose rows are all noise. They lie in no cluster.")
            if (clusters.labels < 0).any()
            else None,
        ),
    )
    lead = "Every mark stands for a group of rows that are alike; colours and numbers are clusters."
    return Section("Map", lead, body), data


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


def _drawing(clusters: FittedClusters, xy: NDArray[np.float64], told: int) -> Html:
    marks = [
        tag(
            "use",
            href=f"#mark-{'noise' if label < 0 else shape(label)}",
            style=f"transform:translate({x:.1f}px,{y:.1f}px) scale({r:.1f});fill:"
            + ("var(--muted)" if label < 0 else f"var(--c{label % N_COLOURS})"),
        )
        for (x, y), r, label in zip(xy.tolist(), _radii(clusters.weights), clusters.labels.tolist(), strict=True)
    ]
    names = [
        tag(
            "text",
            str(k),
            style=f"transform:translate({x:.1f}px,{y:.1f}px)",
            dy="0.35em",
            text_anchor="middle",
        )
        for k, (x, y) in enumerate(_label_places(clusters, xy, told).tolist())
    ]
    shapes = [
        tag("path", id=f"mark-{name}", d=path, vector_effect="non-scaling-stroke") for name, path in _PATHS.items()
    ]
    alt = (
        f"Map of {len(clusters.points)} signatures in {clusters.n_clusters} clusters. "
        "Arrow keys go from one signature to the next."
    )
    return tag(
        "svg",
        tag("defs", *shapes),
        tag("g", *marks, class_="marks"),
        tag("g", *names, class_="names many" if len(names) > N_COLOURS else "names", aria_hidden="true"),
        viewBox=f"0 0 {WIDTH:g} {HEIGHT:g}",
        tabindex="0",
        role="img",
        aria_label=alt,
    )


def _label_places(clusters: FittedClusters, xy: NDArray[np.float64], told: int) -> NDArray[np.float64]:
    """Return for each cluster the place of the signature nearest to its middle, so that its number stands on a mark."""
    places = np.empty((told, 2))
    for k in range(told):
        own = xy[clusters.labels == k]
        places[k] = own[((own - np.median(own, axis=0)) ** 2).sum(axis=1).argmin()]
    return places


def _buttons(layouts: tuple[Layout, ...]) -> Html | None:
    if len(layouts) == 1:
        return None
    buttons = [
        tag("button", _CHOICES[layout.name], type="button", aria_pressed="false" if i else "true")
        for i, layout in enumerate(layouts)
    ]
    return tag("div", *buttons, class_="choices", role="group", aria_label="Layout of the map")


def _legend(n_clusters: int) -> Html:
    buttons = [
        tag("button", swatch(k), type="button", aria_pressed="false", aria_label=f"Show cluster {k} alone")
        for k in range(n_clusters)
    ]
    return tag("div", *buttons, class_="legend", role="group", aria_label="Clusters")


def _note(layout: Layout) -> str:
    if layout.name == "neighbours":
        return (
            "Signatures that the kernel finds alike lie together. How far apart two groups lie means little, and the "
            "axes mean nothing."
        )
    if layout.name == "variation":
        return (
            f"Across: {layout.x_title}. Up: {layout.y_title}. These two directions mix all columns so that as much "
            "as possible is seen; groups may lie on top of each other."
        )
    (left, low), (right, high) = layout.xy.min(axis=0).tolist(), layout.xy.max(axis=0).tolist()
    return (
        f"Across: {layout.x_title}, from {number(left)} to {number(right)}. "
        f"Up: {layout.y_title}, from {number(low)} to {number(high)}."
    )


def _rows_texts(facts: Facts) -> list[str]:
    total = facts.clusters.total
    return [f"{number(weight)} {facts.unit} ({percent(weight / total)})" for weight in facts.drawn_clusters.weights]


def _values(clusters: FittedClusters) -> list[list[Any]]:
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
