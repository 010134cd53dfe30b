"""Numbers written for people."""

from __future__ import annotations

import math

__all__ = ["count", "number", "percent", "seconds"]


def number(value: float, digits: int = 3) -> str:
    """Return a number with separators, or with a few significant digits if it is not whole.

    Examples
    --------
    >>> number(1234567), number(0.012345), number(1234.5), number(2.5e-9), number(float("nan"))
    ('1,234,567', '0.0123', '1,234', '2.5e−9', '–')
    """
    return _plain(value, digits).replace("-", "−")


def _plain(value: float, digits: int) -> str:
    if not math.isfinite(value):
        return "–" if math.isnan(value) else ("∞" if value > 0 else "-∞")
    if value == int(value) and abs(value) < 1e15:
        return f"{int(value):,}"
    size = abs(value)
    if size >= 1e9 or size < 1e-4:
        mantissa, exponent = f"{value:.{digits - 1}e}".split("e")
        plain = mantissa.rstrip("0").rstrip(".") if "." in mantissa else mantissa
        return f"{plain}e{int(exponent)}"
    decimals = max(digits - 1 - math.floor(math.log10(size)), 0)
    text = f"{value:,.{decimals}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def count(many: int, thing: str) -> str:
    """Return a number of things.

    Examples
    --------
    >>> count(1, "cluster"), count(2000, "row")
    ('1 cluster', '2,000 rows')
    """
    return f"{many:,} {thing}" + ("" if many == 1 else "s")


def percent(share: float) -> str:
    """Return a share as per cent, never rounded to none or all.

    Examples
    --------
    >>> percent(0.123), percent(0.0123), percent(0.00001), percent(0.9999), percent(1.0), percent(0.0)
    ('12%', '1.2%', '<0.1%', '99.9%', '100%', '0%')
    """
    if share in (0.0, 1.0) or not math.isfinite(share):
        return f"{number(100 * share)}%"
    if 0 < share < 0.001:
        return "<0.1%"
    if share >= 0.995:
        return f"{min(100 * share, 99.9):.1f}%"
    return f"{100 * share:.0f}%" if share >= 0.0995 else f"{100 * share:.1f}%"


def seconds(value: float) -> str:
    """Return a duration.

    Examples
    --------
    >>> seconds(0.0004), seconds(0.25), seconds(12.3), seconds(125), seconds(7300)
    ('<1 ms', '250 ms', '12.3 s', '2 min 5 s', '2 h 1 min')
    """
    if value < 0.001:
        return "<1 ms"
    if value < 1:
        return f"{1000 * value:.0f} ms"
    if value < 100:
        return f"{value:.1f} s"
    if value < 3600:
        return f"{int(value // 60)} min {int(value % 60)} s"
    return f"{int(value // 3600)} h {int(value % 3600 // 60)} min"
