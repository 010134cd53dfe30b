"""Colours of clusters that people with any kind of sight can tell apart, and shapes for when colours run out."""

from __future__ import annotations

__all__ = ["DARK_COLOURS", "LIGHT_COLOURS", "NOISE_COLOUR", "N_COLOURS", "SHAPES", "colour", "shape"]

# Chosen so that any two stay apart (OKLab) for normal sight and for the three kinds of colour blindness, and that
# the first few lie far from each other. One set for a white page, one for a dark page.
LIGHT_COLOURS = (
    "#1769aa", "#e8920c", "#0f9d8a", "#a3284f", "#6cc0f5", "#5b3a9e", "#8a6d1a", "#9870fc", "#6c2a01", "#a4c9a2",
    "#ee5866", "#502c5d", "#d568cb", "#28616d", "#735cdb", "#dd8fc0", "#9196fc", "#11869e", "#ebb16b", "#8b8b03",
)  # fmt: skip
DARK_COLOURS = (
    "#58a6ee", "#f5a93f", "#c8446b", "#a5efd6", "#6e4ad1", "#f1f135", "#fe72a3", "#b68910", "#1cd8fa", "#983793",
    "#a83a0e", "#7277f8", "#986eb4", "#c7c496", "#76a171", "#bbe679", "#167a58", "#b36111", "#f5abd4", "#df7bd0",
)  # fmt: skip
N_COLOURS = len(LIGHT_COLOURS)
NOISE_COLOUR = "#888888"

# Clusters beyond the twentieth use the colours again, with the next shape.
SHAPES = ("circle", "square", "triangle", "diamond")


def colour(cluster: int) -> str:
    """Return the colour of a cluster on a white page.

    Examples
    --------
    >>> colour(0), colour(20) == colour(0)
    ('#1769aa', True)
    """
    return LIGHT_COLOURS[cluster % N_COLOURS]


def shape(cluster: int) -> str:
    """Return the shape of a cluster's points: a circle for the first twenty.

    Examples
    --------
    >>> shape(19), shape(20)
    ('circle', 'square')
    """
    return SHAPES[cluster // N_COLOURS % len(SHAPES)]
