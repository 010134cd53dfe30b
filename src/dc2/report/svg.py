"""Where a chart draws its points, lines, ticks and marks; and pictures as PNG files."""

from __future__ import annotations

import math
import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dc2.report.page import number

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
# Bits, colour type, and the only ways of compression, filtering and order.
_PALETTE_OF_BYTES = bytes([8, 3, 0, 0, 0])


def png_of_levels(levels: NDArray[np.uint8], palette: Sequence[tuple[int, int, int]]) -> bytes:
    """Return a PNG file.

    Examples
    --------
    >>> png_of_levels(np.zeros((2, 3), np.uint8), [(255, 255, 255)])[1:4]
    b'PNG'
    """
    height, width = levels.shape
    rows = np.zeros((height, width + 1), np.uint8)  # each row begins with the number of its filter: 0 is none
    rows[:, 1:] = levels
    return b"".join(
        [
            _SIGNATURE,
            _chunk(b"IHDR", struct.pack(">II", width, height) + _PALETTE_OF_BYTES),
            _chunk(b"PLTE", bytes(part for colour in palette for part in colour)),
            _chunk(b"IDAT", zlib.compress(rows.tobytes(), 9)),
            _chunk(b"IEND", b""),
        ]
    )


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


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


@dataclass(frozen=True)
class Chart:
    """A chart as the template draws it: places in the drawing and texts.

    Attributes
    ----------
    alt : str
        What the chart shows, for those who cannot see it.
    x_title, y_title : str
    x_ticks, y_ticks : list of (place, text)
    marks : list of dict
        Upright lines.
    series : list of dict
        Points with their tips, and the line through them.
    """

    alt: str
    x_title: str
    y_title: str
    x_ticks: list[tuple[str, str]]
    y_ticks: list[tuple[str, str]]
    marks: list[dict[str, str]]
    series: list[dict[str, Any]]
    width: float = WIDTH
    height: float = HEIGHT
    left: float = LEFT
    right: float = WIDTH - RIGHT
    top: float = TOP
    base: float = HEIGHT - BOTTOM


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
) -> Chart:
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
    >>> len(drawn.series[0]["points"])
    2
    """
    kept = [_drawable(one, x_log, y_log) for one in series]
    all_x = [x for points in kept for x, _ in points] or [1.0]
    all_y = [y for points in kept for _, y in points] or [1.0]
    at_x = _Axis.over(all_x, x_log, LEFT, WIDTH - RIGHT)
    at_y = _Axis.over(all_y, y_log, HEIGHT - BOTTOM, TOP)
    return Chart(
        alt,
        x_title,
        y_title,
        [(f"{at_x(tick):.1f}", number(tick)) for tick in at_x.ticks(whole_x)],
        [(f"{at_y(tick):.1f}", number(tick)) for tick in at_y.ticks()],
        [_placed_mark(at_x(mark.x), mark.label) for mark in marks],
        [_placed_series(one, points, at_x, at_y) for one, points in zip(series, kept, strict=True)],
    )


def _drawable(series: Series, x_log: bool, y_log: bool) -> list[tuple[float, float]]:
    pairs = zip(np.asarray(series.x, float).tolist(), np.asarray(series.y, float).tolist(), strict=True)
    return [
        (x, y)
        for x, y in pairs
        if math.isfinite(x) and math.isfinite(y) and (x > 0 or not x_log) and (y > 0 or not y_log)
    ]


def _placed_series(series: Series, points: list[tuple[float, float]], at_x: _Axis, at_y: _Axis) -> dict[str, Any]:
    places = [(f"{at_x(x):.1f}", f"{at_y(y):.1f}") for x, y in points]
    tips = [f"{series.label}: {number(x)}, {number(y)}" for x, y in points]
    return {
        "label": series.label,
        "colour": series.colour,
        "line": " ".join(map(",".join, places)) if series.line else "",
        "points": [(*place, tip) for place, tip in zip(places, tips, strict=True)],
    }


def _placed_mark(x: float, label: str) -> dict[str, str]:
    on_the_left = x > (LEFT + WIDTH - RIGHT) / 2
    text_at = x + (-8 if on_the_left else 8)
    return {"at": f"{x:.1f}", "text_at": f"{text_at:.1f}", "anchor": "end" if on_the_left else "start", "label": label}


def _round_step(rough: float) -> float:
    """Return the nearest step of 1, 2 or 5 times a power of ten that is not below a rough one."""
    power = 10.0 ** math.floor(math.log10(rough))
    return next(power * m for m in (1, 2, 5, 10) if power * m >= rough * 0.999)
