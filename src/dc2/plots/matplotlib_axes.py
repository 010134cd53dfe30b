"""Matplotlib, imported when a plot is drawn and not before."""

from __future__ import annotations

from typing import Any

__all__ = ["new_axes"]


def new_axes(ax: Any, who: str) -> Any:
    """Return the axes given, or those of a new figure; say what to install where matplotlib is missing."""
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise ImportError(f"{who} draws with matplotlib: pip install 'dc2[plot]'.") from error
    if ax is not None:
        return ax
    _, axes = pyplot.subplots(layout="constrained")
    return axes
