"""Charts as SVG: points and lines over two axes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from dc2.report.html import Html, tag
from dc2.report.numbers import number

__all__ = ["Mark", "Series", "chart"]

WIDTH, HEIGHT = 520.0, 300.0
LEFT, RIGHT, TOP, BOTTOM = 72.0, 14.0, 24.0, 52.0


@dataclass(frozen=True)
class Series:
    """Points of one kind.

    Attributes
    ----------
    x, y : array-like of equal length
    label : str
        What they are, for the legend and the tips.
    colour : str, default="var(--accent)"
        A CSS colour.
    line : bool, default=True
        Whether they are joined.
    """

    x: ArrayLike
    y: ArrayLike
    label: str
    colour: str = "var(--accent)"
    line: bool = True


@dataclass(frozen=True)
class Mark:
    """An upright line with words."""

    x: float
    label: str


@dataclass(frozen=True)
class _Axis:
    low: float
    high: float
    log: bool
    start: float
    end: float

    @classmethod
    def over(cls, values: Sequence[float], log: bool, start: float, end: float) -> _Axis:
        low, high = min(values), max(values)
        if log:
            pad = (high / low) ** 0.06 * 1.03
            # what lies beyond would overflow; no model that was fitted has such numbers
            low, high = min(max(low / pad, 1e-300), 1e299), max(min(high * pad, 1e300), 1e-299)
            return cls(low, high, log, start, end)
        pad = 0.05 * (high - low) or 0.5 * (abs(high) or 1.0)
        return cls(low - pad, high + pad, log, start, end)

    def __call__(self, value: float) -> float:
        low, high, at = (math.log(v) if self.log else v for v in (self.low, self.high, value))
        return self.start + (at - low) / (high - low) * (self.end - self.start)

    def ticks(self, whole: bool = False) -> list[float]:
        if self.log and self.high / self.low >= 8:
            powers = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
            every = [10.0**p * m for p in powers for m in ((1, 2, 5) if len(powers) <= 4 else (1,))]
            inside = [tick for tick in every if self.low <= tick <= self.high]
            return inside[:: max(1, math.ceil(len(inside) / 7))]
        step = _round_step((self.high - self.low) / 5)
        step = max(step, 1.0) if whole else step
        first = math.ceil(self.low / step - 1e-9)
        return [step * i for i in range(first, math.floor(self.high / step + 1e-9) + 1)]


def chart(
    series: Sequence[Series],
    *,
    alt: str,
    x_title: str,
    y_title: str,
    x_log: bool = False,
    y_log: bool = False,
    whole_x: bool = False,
    marks: Sequence[Mark] = (),
) -> Html:
    """Return a chart of points, joined or not; those that are not finite, or not above 0 on a log axis, are left out.

    Parameters
    ----------
    series : sequence of Series
    alt : str
        What the chart shows, for those who cannot see it.
    x_title, y_title : str
    x_log, y_log : bool, default=False
        Logarithmic axes.
    whole_x : bool, default=False
        Whether only whole numbers make sense as ticks of x.
    marks : sequence of Mark
        Upright lines.

    Examples
    --------
    >>> drawn = chart([Series([1, 2], [3, 4], "a")], alt="Rises.", x_title="x", y_title="y")
    >>> drawn.count("<circle")
    2
    """
    kept = [_drawable(one, x_log, y_log) for one in series]
    all_x = [x for points in kept for x, _ in points] or [1.0]
    all_y = [y for points in kept for _, y in points] or [1.0]
    at_x = _Axis.over(all_x, x_log, LEFT, WIDTH - RIGHT)
    at_y = _Axis.over(all_y, y_log, HEIGHT - BOTTOM, TOP)
    drawing = [
        *_x_axis(at_x, x_title, whole_x),
        *_y_axis(at_y, y_title),
        *(part for mark in marks for part in _mark(at_x, mark)),
        *(_points(one, points, at_x, at_y) for one, points in zip(series, kept, strict=True)),
    ]
    drawn = tag("svg", *drawing, viewBox=f"0 0 {WIDTH:g} {HEIGHT:g}", role="img", aria_label=alt, class_="chart")
    return tag("div", drawn, _legend(series) if len(series) > 1 else None)


def _drawable(series: Series, x_log: bool, y_log: bool) -> list[tuple[float, float]]:
    pairs = zip(np.asarray(series.x, float).tolist(), np.asarray(series.y, float).tolist(), strict=True)
    return [
        (x, y)
        for x, y in pairs
        if math.isfinite(x) and math.isfinite(y) and (x > 0 or not x_log) and (y > 0 or not y_log)
    ]


def _points(series: Series, points: list[tuple[float, float]], at_x: _Axis, at_y: _Axis) -> Html:
    places = [f"{at_x(x):.1f},{at_y(y):.1f}" for x, y in points]
    line = tag("polyline", points=" ".join(places), style=f"stroke:{series.colour}") if series.line else None
    dots = [
        tag(
            "circle",
            cx=f"{at_x(x):.1f}",
            cy=f"{at_y(y):.1f}",
            r="4.5",
            style=f"fill:{series.colour}",
            data_tip=f"{series.label}: {number(x)}, {number(y)}",
        )
        for x, y in points
    ]
    return tag("g", line, *dots)


def _x_axis(at: _Axis, title: str, whole: bool) -> list[Html]:
    base = HEIGHT - BOTTOM
    middle = (LEFT + WIDTH - RIGHT) / 2
    return [
        tag("line", x1=LEFT, x2=WIDTH - RIGHT, y1=base, y2=base, class_="axis"),
        *(
            tag("text", number(tick), x=f"{at(tick):.1f}", y=base + 18, text_anchor="middle")
            for tick in at.ticks(whole)
        ),
        tag("text", title, x=middle, y=HEIGHT - 8, text_anchor="middle", class_="title"),
    ]


def _y_axis(at: _Axis, title: str) -> list[Html]:
    parts = []
    for tick in at.ticks():
        y = f"{at(tick):.1f}"
        parts.append(tag("line", x1=LEFT, x2=WIDTH - RIGHT, y1=y, y2=y, class_="grid"))
        parts.append(tag("text", number(tick), x=LEFT - 8, y=y, dy="0.35em", text_anchor="end"))
    parts.append(tag("text", title, x=4, y=14, class_="title"))
    return parts


def _mark(at: _Axis, mark: Mark) -> list[Html]:
    x = at(mark.x)
    on_the_left = x > (LEFT + WIDTH - RIGHT) / 2
    return [
        tag("line", x1=f"{x:.1f}", x2=f"{x:.1f}", y1=TOP, y2=HEIGHT - BOTTOM, class_="mark"),
        tag(
            "text",
            mark.label,
            x=f"{x + (-8 if on_the_left else 8):.1f}",
            y=TOP + 12,
            text_anchor="end" if on_the_left else "start",
            class_="mark",
        ),
    ]


def _legend(series: Sequence[Series]) -> Html:
    entries = [
        tag("span", tag("i", class_="dot", style=f"background:{one.colour}"), one.label, class_="swatch")
        for one in series
    ]
    return tag("div", *entries, class_="legend")


def _round_step(rough: float) -> float:
    """Return the nearest step of 1, 2 or 5 times a power of ten that is not below a rough one."""
    power = 10.0 ** math.floor(math.log10(rough))
    return next(power * m for m in (1, 2, 5, 10) if power * m >= rough * 0.999)
