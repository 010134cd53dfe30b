"""Families of shapes such as other benchmark suites have, drawn by seed: faces, frames, stripes, splashes, parabolas.

Importing this module adds them to `families.FAMILIES`. They were added after the rules had been made on the others.
"""

from __future__ import annotations

import numpy as np
from families import (
    Rng,
    arc,
    centres,
    count,
    factors,
    family,
    members,
    mixture,
    number,
    resample,
    rotation,
    skeleton,
    turned,
    with_background,
    with_columns,
)
from family_truth import SKELETON, Drawn, skeleton_densities
from numpy.typing import NDArray


def filled(rng: Rng, radius: float) -> NDArray[np.float64]:
    """Return the points of a disc, as many as `skeleton` takes for a figure that is no path."""
    angle, r = rng.uniform(0, 2 * np.pi, 4 * SKELETON), radius * np.sqrt(rng.uniform(0, 1, 4 * SKELETON))
    return np.stack([r * np.cos(angle), r * np.sin(angle)], axis=1)


def square(side: float, opening: float) -> NDArray[np.float64]:
    """Return the path around a square, open by a share of its length."""
    corners = side * np.array([[1, 0], [1, 1], [-1, 1], [-1, -1], [1, -1], [1, 0]], float)
    whole = resample(corners, 400)
    return whole[: round(400 * (1 - opening))]


def of_figures(
    rng: Rng, n: int, figures: list[NDArray[np.float64]], noise: float, shares: NDArray[np.float64]
) -> Drawn:
    """Draw figures with given shares of the rows instead of shares by length."""
    counts = np.maximum(np.round(n * shares / shares.sum()).astype(int), 12)
    dense = [one if len(one) == 4 * SKELETON else resample(one, 4 * SKELETON) for one in figures]
    X = np.concatenate(
        [
            one[rng.integers(len(one), size=m)] + noise * rng.normal(size=(m, 2))
            for one, m in zip(dense, counts, strict=True)
        ]
    )
    y = np.repeat(np.arange(1, len(figures) + 1), counts)
    return Drawn(
        X, y, lambda rows: skeleton_densities(X[rows], [one[::4] for one in dense], [noise] * len(dense)), True
    )


@family("choose")
def faces(rng: Rng, scale: float) -> Drawn:
    """A ring with two eyes and a mouth inside, perhaps a nose."""
    eye, mouth = rng.uniform(0.15, 0.4), rng.uniform(0.3, 0.8)
    figures = [
        arc((0, 0), 3, 0, 2 * np.pi),
        filled(rng, eye) + np.array([-1.1, 0.9]),
        filled(rng, eye) + np.array([1.1, 0.9]),
        arc((0, -0.2), 1.6, np.pi + mouth, 2 * np.pi - mouth),
    ]
    shares = np.array([6.0, 1.5, 1.5, 3.0])
    if rng.random() < 0.5:
        figures.append(filled(rng, 0.15))
        shares = np.append(shares, 1.0)
    return of_figures(rng, count(rng, scale, 500), figures, rng.uniform(0.03, 0.12), shares)


@family("report")
def frames(rng: Rng, scale: float) -> Drawn:
    """Square frames inside each other, closed or open like those of a labyrinth, perhaps around a disc."""
    k, opening = number(rng, 2, 4), float(rng.choice([0.0, 0.08, 0.15]))
    sides = np.cumsum(rng.uniform(0.7, 1.2, k))
    figures = [turned(square(side, opening), np.pi / 2 * rng.integers(4)) for side in sides]
    if rng.random() < 0.5:
        figures[0] = filled(rng, 0.35)
    shares = np.array([8 * side for side in sides]) ** rng.uniform(0.3, 1)
    return of_figures(rng, count(rng, scale, 600), figures, rng.uniform(0.04, 0.11), shares)


@family("report")
def splashes(rng: Rng, scale: float) -> Drawn:
    """Two or three clouds with dense middles and wide tails that reach into each other."""
    k = int(rng.integers(2, 4))
    y = members(rng, count(rng, scale, 300), k, rng.uniform(1, 2))
    means = centres(rng, k, 2, rng.uniform(4, 8))
    return mixture(rng, y, means, factors(rng, k, 2, 1.5, rng.uniform(1, 3)), rng.uniform(2, 4))


@family("choose")
def stripes(rng: Rng, scale: float) -> Drawn:
    """Wavy stripes side by side."""
    k, waves = number(rng, 2, 5), rng.uniform(0.5, 2)
    t = np.linspace(0, 1, 400)
    wave = rng.uniform(0.3, 1) * np.sin(2 * np.pi * waves * t)
    figures = [np.stack([6 * t, wave + i], axis=1) for i in range(k)]
    return skeleton(rng, count(rng, scale, 300), figures, rng.uniform(0.05, 0.2), 2)


@family("report")
def trajectories(rng: Rng, scale: float) -> Drawn:
    """Paths that begin near each other and part."""
    k = number(rng, 3, 6)
    t = np.linspace(rng.uniform(0.1, 0.3), 1, 400)
    angles = np.arange(k) * rng.uniform(0.35, 0.7)
    figures = [turned(np.stack([5 * t, rng.uniform(-1, 1) * t**2], axis=1), angle) for angle in angles]
    return skeleton(rng, count(rng, scale, 400), figures, rng.uniform(0.03, 0.12), 2)


@family("choose")
def few_rows_overlapping(rng: Rng, scale: float) -> Drawn:
    """A hundred or two rows in clouds that touch, whatever the scale asks for."""
    d, k = number(rng, 2, 5), number(rng, 2, 4)
    y = members(rng, count(rng, 1.0, 100, 250), k, rng.uniform(1, 2))
    return mixture(rng, y, centres(rng, k, d, rng.uniform(3, 5)), factors(rng, k, d, 2, 1.5))


@family("report")
def clouds_and_bars(rng: Rng, scale: float) -> Drawn:
    """Clouds, discs and bars of different densities, few rows."""
    k = number(rng, 3, 6)
    figures = []
    for place in centres(rng, k, 2, 1.0) * rng.uniform(2.6, 4):
        kind = rng.integers(3)
        bar = np.array([[-1.2, 0.0], [1.2, 0.0]])
        cloud = rng.normal(size=(4 * SKELETON, 2)) * 0.4
        figures.append((turned(bar, rng.uniform(0, 3)), filled(rng, 1.0), cloud)[kind] + place)
    return of_figures(rng, count(rng, scale, 300, 2000), figures, rng.uniform(0.08, 0.16), rng.uniform(1, 4, k))


@family("choose")
def dense_in_sparse(rng: Rng, scale: float) -> Drawn:
    """A dense cloud or two inside or at the side of a sparse one."""
    k, d = int(rng.integers(1, 3)), int(rng.integers(2, 4))
    spread = rng.uniform(8, 16)
    y = members(rng, count(rng, scale, 400), k + 1, rng.uniform(1, 2))
    means = np.concatenate(
        [np.zeros((1, d)), centres(rng, k, d, 8.0) if k > 1 else rng.normal(size=(1, d)) * spread / 3]
    )
    shapes = np.stack([np.eye(d) * (spread if i == 0 else 1.0) for i in range(k + 1)])
    return mixture(rng, y, means, shapes)


@family("choose")
def parabolas(rng: Rng, scale: float) -> Drawn:
    """Parabolas that open to each other, shifted."""
    t = np.linspace(-1, 1, 400)
    up = np.stack([t, rng.uniform(0.8, 2) * t**2], axis=1)
    down = np.stack([t + rng.uniform(0.4, 1.1), rng.uniform(0.6, 1.4) - up[:, 1]], axis=1)
    made = skeleton(rng, count(rng, scale, 400), [up, down], rng.uniform(0.03, 0.1), 2)
    return with_background(rng, made, rng.uniform(0, 0.1))


@family("report")
def rings_and_outliers(rng: Rng, scale: float) -> Drawn:
    """A cloud inside one or two rings, with background noise or small far groups."""
    k = int(rng.integers(1, 3))
    figures = [filled(rng, rng.uniform(0.3, 0.8)), *(arc((0, 0), 1.6 + 1.2 * i, 0, 2 * np.pi) for i in range(k))]
    shares = np.array([1.0, *(1.5 + i for i in range(k))])
    if rng.random() < 0.5:
        for turn in rng.uniform(0, 2 * np.pi, int(rng.integers(1, 3))):
            figures.append(filled(rng, 0.2) + 6 * np.array([np.cos(turn), np.sin(turn)]))
            shares = np.append(shares, 0.3)
        return of_figures(rng, count(rng, scale, 500), figures, rng.uniform(0.06, 0.16), shares)
    made = of_figures(rng, count(rng, scale, 500), figures, rng.uniform(0.06, 0.16), shares)
    return with_background(rng, made, rng.uniform(0.02, 0.12))


@family("choose")
def zigzags_and_noise(rng: Rng, scale: float) -> Drawn:
    """Long zigzags side by side in background noise."""
    k, corners = number(rng, 2, 5), int(rng.integers(4, 8))
    path = np.stack([np.arange(corners), np.where(np.arange(corners) % 2, 1.0, 0.0)], axis=1)
    figures = [path + np.array([0, 0.9 * i]) for i in range(k)]
    made = skeleton(rng, count(rng, scale, 600), figures, rng.uniform(0.03, 0.09), 1.5)
    return with_background(rng, made, rng.uniform(0, 0.1))


@family("choose")
def figures_in_noise(rng: Rng, scale: float) -> Drawn:
    """Six to nine figures of any kind, thousands of rows, background noise."""
    k = number(rng, 5, 9)
    figures = []
    for place in centres(rng, k, 2, 1.0) * rng.uniform(2.8, 3.6):
        kind = rng.integers(4)
        wave = np.stack([np.linspace(-1.3, 1.3, 400), 0.4 * np.sin(np.linspace(0, 9, 400))], axis=1)
        kinds = (wave, arc((0, 0), 1, 0, rng.uniform(3, 6)), filled(rng, 0.9), square(0.8, 0.25))
        figures.append(turned(kinds[kind], rng.uniform(0, 6)) + place)
    made = of_figures(rng, count(rng, scale, 3000, 8000), figures, rng.uniform(0.05, 0.12), rng.uniform(1, 2.5, k))
    return with_background(rng, made, rng.uniform(0.04, 0.12))


@family("report")
def moons_and_clouds(rng: Rng, scale: float) -> Drawn:
    """Moons beside clouds of different densities, in background noise."""
    k = number(rng, 1, 4)
    first = [arc((0, 0), 1, 0, np.pi), arc((1, 0.35), 1, np.pi, 2 * np.pi)]
    places = np.array([0.5, 0.2]) + centres(rng, k + 1, 2, 2.6)
    clouds = [rng.normal(size=(4 * SKELETON, 2)) * rng.uniform(0.15, 0.45) + place - places[0] for place in places[1:]]
    shares = np.concatenate([[2.0, 2.0], rng.uniform(0.8, 2, k)])
    made = of_figures(rng, count(rng, scale, 600), [*first, *clouds], rng.uniform(0.04, 0.1), shares)
    return with_background(rng, made, rng.uniform(0.02, 0.1))


@family("report")
def classes_overlapping(rng: Rng, scale: float) -> Drawn:
    """Classes in a table of standardised measurements: they overlap in a few hidden directions."""
    d, k, hidden = number(rng, 4, 34), number(rng, 2, 8), number(rng, 2, 5)
    y = members(rng, count(rng, 1.0, 150, 2000), k, rng.uniform(1, 8))
    drawn = mixture(rng, y, centres(rng, k, hidden, rng.uniform(2.5, 5)), factors(rng, k, hidden, 2, 2))
    X = drawn.X @ rng.normal(size=(hidden, d)) / np.sqrt(hidden)
    X += rng.normal(size=X.shape) * X.std(axis=0) * rng.uniform(0.1, 0.6)
    return with_columns(drawn, (X - X.mean(axis=0)) / X.std(axis=0))


@family("choose")
def waveforms(rng: Rng, scale: float) -> Drawn:
    """Signals of 20 to 60 samples: mixtures of two of three bumps, noise in every sample; classes overlap."""
    d, k = number(rng, 20, 60), int(rng.integers(2, 4))
    y = members(rng, count(rng, scale, 600, 5000), k, rng.uniform(1, 2))
    at = np.arange(d)
    bumps = np.stack(
        [np.maximum(6 - np.abs(at - middle) * 21 / d, 0) for middle in rng.permutation([d / 4, d / 2, 3 * d / 4])]
    )
    share = rng.uniform(0, rng.uniform(0.5, 1), (len(y), 1))
    X = share * bumps[y - 1] + (1 - share) * bumps[y % 3] + rng.uniform(0.5, 1) * rng.normal(size=(len(y), d))
    return Drawn(X @ rotation(rng, d), y)
