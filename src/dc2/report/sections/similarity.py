"""The similarity matrix of the signatures, ordered by cluster, as a picture."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dc2.facts.facts import Facts
from dc2.facts.layout import variation_layout
from dc2.kernels.similarity import InWords
from dc2.plots.palette import N_COLOURS
from dc2.report.html import Cell, Html, image, join, more, paragraph, swatch, table, tag
from dc2.report.numbers import number, percent
from dc2.report.page import Section
from dc2.report.png import png_of_levels

__all__ = ["section"]

MOST_PIXELS = 360
N_LEVELS = 64
SIDE, STRIP = 400.0, 18.0  # of the drawing: the matrix, and the strip of cluster numbers beside it
NARROWEST_NAMED = 0.035
MOST_PAIRS = 8


def section(facts: Facts) -> tuple[Section, dict[str, Any]]:
    """Return the section, and what its script reads."""
    clusters, words = facts.shown_clusters, facts.similarity_in_words
    order = np.lexsort((variation_layout(clusters).xy[:, 0], clusters.labels))
    labels, strength = clusters.labels[order], facts.strength[np.ix_(order, order)]
    edges = np.searchsorted(labels, np.arange(clusters.n_clusters + 1)) / len(order)
    pixels = _shrunk(strength)
    full = float(np.quantile(pixels, 0.99)) or 1.0
    levels = np.clip(np.sqrt(pixels / full) * (N_LEVELS - 1), 0, N_LEVELS - 1).astype(np.uint8)
    between = _between(strength, labels, clusters.n_clusters)
    body = join(
        tag(
            "div",
            tag("div", _drawing(png_of_levels(levels, _inks()), edges[: facts.told + 1]), _key(words, full)),
            _closest_pairs(words, between),
            class_="beside",
        ),
        more(
            "How to read this picture",
            paragraph(
                "Signatures stand in the same order across and down, cluster by cluster, and each dot says how alike "
                "two of them are. Clusters show as dark squares along the diagonal. Dark patches beside the diagonal "
                "join two clusters that have much in common. Point at a patch to see its two clusters."
            ),
            paragraph(words.meaning),
        ),
    )
    data = {
        "edges": edges[: facts.told + 1].round(5).tolist(),
        "means": [[_amount(words, value) for value in row] for row in between[: facts.told, : facts.told].tolist()],
        "words": words.unit,
    }
    return Section("Similarity", _lead(between), body), data


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


def _drawing(png: bytes, edges: NDArray[np.float64]) -> Html:
    strips, lines = [], []
    for k, (low, high) in enumerate(pairwise(edges.tolist())):
        start, size = low * SIDE, (high - low) * SIDE
        fill = f"fill:var(--c{k % N_COLOURS})"
        strips.append(tag("rect", x=f"{start:.1f}", y="-16", width=f"{size:.1f}", height="13", style=fill))
        strips.append(tag("rect", y=f"{start:.1f}", x="-16", height=f"{size:.1f}", width="13", style=fill))
        if high - low >= NARROWEST_NAMED:
            middle = f"{start + size / 2:.1f}"
            strips.append(tag("text", str(k), x=middle, y="-9.5", dy="0.35em", text_anchor="middle"))
            strips.append(tag("text", str(k), y=middle, x="-9.5", dy="0.35em", text_anchor="middle"))
        if k:
            at = f"{start:.1f}"
            lines.append(tag("path", d=f"M{at} 0V{SIDE:g}M0 {at}H{SIDE:g}"))
    whole = STRIP + SIDE
    overlay = tag(
        "svg",
        tag("g", *strips),
        tag("g", *lines, class_="borders"),
        viewBox=f"{-STRIP:g} {-STRIP:g} {whole:g} {whole:g}",
        aria_hidden="true",
    )
    alt = "Similarity of all pairs of signatures, ordered by cluster; clusters are dark squares on the diagonal."
    return tag("div", image(png, alt), overlay, id="similarity-matrix")


def _key(words: InWords, full: float) -> Html:
    most = f"{_amount(words, full)} {words.whole}".strip()
    ends = ["none" if words.whole else "0", most if full >= 1.0 else f"{most} or more"]
    drawn = [tag("span", ends[0]), tag("i", class_="scale blue"), tag("span", ends[1])]
    return tag("div", *drawn, class_="key", aria_hidden="true")


def _closest_pairs(words: InWords, between: NDArray[np.float64]) -> Html | None:
    """Return a small table of the clusters that have most in common."""
    first, second = np.triu_indices(len(between), k=1)
    if len(first) == 0:
        return None
    order = np.argsort(-between[first, second], kind="stable")[:MOST_PAIRS]
    rows = [
        [
            Cell(join(swatch(a), " and ", swatch(b)), sort=f"{a} {b}"),
            Cell(_amount(words, between[a, b]), sort=float(between[a, b])),
        ]
        for a, b in zip(first[order].tolist(), second[order].tolist(), strict=True)
    ]
    return tag("div", table(["Most in common", words.unit], rows, label="Clusters with most in common"))


def _amount(words: InWords, value: float) -> str:
    return percent(value) if words.whole else number(value, 2)


def _lead(between: NDArray[np.float64]) -> str:
    if len(between) == 1:
        return "How alike any two signatures are."
    apart = between - np.diag(np.full(len(between), np.inf))
    first, second = sorted(int(i) for i in np.unravel_index(apart.argmax(), apart.shape))
    return (
        "How alike any two signatures are, ordered by cluster. The two clusters with most in common are "
        f"{first} and {second}."
    )
