"""Progress: told after every result; on a terminal one line per stage, with rows per second and the time left."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator
from typing import TextIO, TypeVar

from dc2.engines.base import Progress

__all__ = ["ProgressBar", "progress_for", "reported", "short_number", "time_in_words"]

R = TypeVar("R")

BAR_WIDTH = 24
SECONDS_BETWEEN_DRAWS = 0.1
CLEAR_LINE = "\r\x1b[2K"


def progress_for(verbose: int | bool) -> Progress | None:
    """Return a bar if one is asked for and standard error is a terminal."""
    return ProgressBar(sys.stderr) if verbose and sys.stderr.isatty() else None


def reported(
    results: Iterable[tuple[int, R]], progress: Progress | None, stage: str, rows_total: int | None
) -> Iterator[R]:
    """Yield results, each of which comes with its number of rows, and tell after each how far the stage is.

    A progress that has a ``close`` method is closed at the end, however it ends.

    Examples
    --------
    >>> list(reported([(2, "a"), (1, "b")], lambda *news: print(*news), "compress", 3))
    compress 0 3
    compress 2 3
    compress 3 3
    ['a', 'b']
    """
    report = progress or (lambda stage, rows_done, rows_total: None)
    rows_done = 0
    try:
        report(stage, 0, rows_total)
        for rows, result in results:
            rows_done += rows
            report(stage, rows_done, rows_total)
            yield result
        if rows_done != rows_total:
            report(stage, rows_done, rows_done)
    finally:
        close = getattr(progress, "close", None)
        if close is not None:
            close()


class ProgressBar:
    """Draws the stages (divide, compress, conquer, populate) as they come, a line each.

    Parameters
    ----------
    stream : text stream
        Where to draw.

    Examples
    --------
    >>> import io
    >>> stream = io.StringIO()
    >>> bar = ProgressBar(stream)
    >>> bar("compress", 0, 2_000)
    >>> bar("compress", 2_000, 2_000)
    >>> stream.getvalue().splitlines()[-1].split(CLEAR_LINE.lstrip())[-1].split()[:3]
    ['compress', '████████████████████████', '2,000']
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._stage: str | None = None
        self._began = 0.0
        self._drawn = 0.0

    def __call__(self, stage: str, rows_done: int, rows_total: int | None) -> None:
        """Draw how far a stage is; a stage is over when all of its rows are done."""
        now = time.monotonic()
        if stage != self._stage:
            self.close()
            self._stage, self._began, self._drawn = stage, now, 0.0
        finished = rows_done > 0 and rows_done == rows_total
        if finished or now - self._drawn >= SECONDS_BETWEEN_DRAWS:
            self._drawn = now
            self._stream.write(CLEAR_LINE + _line(stage, rows_done, rows_total, now - self._began))
            self._stream.flush()
        if finished:
            self.close()

    def close(self) -> None:
        """End the line that is being drawn, if any."""
        if self._stage is not None:
            self._stream.write("\n")
            self._stream.flush()
            self._stage = None


def _line(stage: str, rows_done: int, rows_total: int | None, seconds: float) -> str:
    parts = [f"{stage:<9}"]
    if rows_total:
        filled = BAR_WIDTH * rows_done // rows_total
        parts.append("█" * filled + "░" * (BAR_WIDTH - filled))
    parts.append(f"{rows_done:>13,} rows")
    if rows_done and seconds > 0:
        speed = rows_done / seconds
        parts.append(f"{short_number(speed):>6} rows/s")
        if rows_total is None or rows_done == rows_total:
            parts.append(f"{time_in_words(seconds)}")
        else:
            parts.append(f"{time_in_words((rows_total - rows_done) / speed)} left")
    return " ".join(parts)


def short_number(number: float) -> str:
    """Write a number with three digits or so.

    Examples
    --------
    >>> short_number(950), short_number(12_345_678)
    ('950', '12.3M')
    """
    for size, sign in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= size:
            return f"{number / size:.1f}{sign}"
    return f"{number:.0f}"


def time_in_words(seconds: float) -> str:
    """Write a time.

    Examples
    --------
    >>> time_in_words(2.345), time_in_words(4000)
    ('2.3 s', '1:06:40')
    """
    if seconds < 10:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
