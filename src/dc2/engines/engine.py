"""The contract of engines, and progress: tqdm bars on a terminal or in a notebook, else a line for each stage."""

from __future__ import annotations

import builtins
import shutil
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib.util import find_spec
from typing import Any, ClassVar, Protocol, TextIO, TypeVar, runtime_checkable

from numpy.typing import NDArray

from dc2.io.source import Block, Source

R = TypeVar("R")

DEFAULT_BLOCK_BYTES = 16 * 2**20
"""Budget for one block of rows, in bytes. An engine keeps a few blocks alive, its threads plus two."""

Progress = Callable[[str, int, int | None], None]
"""Called as ``progress(stage, rows_done, rows_total)``; ``rows_total`` is None while it is not known."""


class Engine(Protocol):
    """Runs a function over all blocks of a source."""

    shares_memory: ClassVar[bool]

    def map(
        self,
        function: Callable[[Block], R],
        source: Source,
        *,
        stage: str,
        merge: Callable[[Sequence[R]], R] | None = None,
        result_bytes: int = 0,
    ) -> Iterator[R]:
        """Yield ``function(block)`` for every block of the source, in block order.

        With `merge`, results of consecutive blocks may come as one, which saves sending each from a remote worker.
        `result_bytes` is the size of one result: blocks are not much smaller, or passing results around would cost more
        than making them.
        """


@runtime_checkable
class HasOwnEngine(Protocol):
    """Optional ability of a source: its rows are elsewhere, and it brings the engine that works there."""

    def own_engine(self, progress: Progress | None) -> Engine:
        """Return that engine."""


@runtime_checkable
class MapsLazily(Protocol):
    """Optional ability of a source: results for its rows are computed when they are needed."""

    def lazy(self, function: Callable[[Block], NDArray[Any]], like: NDArray[Any]) -> Any:
        """Return what the function makes of every row, as a lazy array; `like` has its dtype and width."""


@runtime_checkable
class KeepsArrayKind(Protocol):
    """Optional ability of a source: results come as the kind of array that the user gave."""

    form: Callable[[Any], Any]


@runtime_checkable
class Closable(Protocol):
    """What must be closed at the end: a progress bar, a generator."""

    def close(self) -> Any:
        """Close it."""


SECONDS_BETWEEN_LINES = 30.0


def progress_for(verbose: int | bool) -> Progress | None:
    """Return what shows the stages, if asked for: bars where they can be drawn, else plain lines."""
    if not verbose:
        return None
    can_draw = sys.stderr.isatty() or hasattr(builtins, "__IPYTHON__")
    return StageBars() if can_draw and find_spec("tqdm") is not None else StageLines(sys.stderr)


def reported(
    results: Iterable[tuple[int, R]], progress: Progress | None, stage: str, rows_total: int | None
) -> Iterator[R]:
    """Yield results, each of which comes with its number of rows, and report progress after each.

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
        if isinstance(progress, Closable):
            progress.close()


class StageBars:
    """A bar of tqdm for each stage: in Jupyter a widget, on a terminal a line. A stage ends when the next begins."""

    def __init__(self) -> None:
        with warnings.catch_warnings():  # without widgets tqdm draws a plain bar, with a long warning
            warnings.simplefilter("ignore")
            from tqdm.auto import tqdm
        self._make = tqdm
        self._stage: str | None = None
        self._bar: Any = None

    def __call__(self, stage: str, rows_done: int, rows_total: int | None) -> None:
        """Draw how far a stage is; a stage is over when all of its rows are done, or the next begins."""
        if stage != self._stage:
            self.close()
            self._bar = self._make(
                total=rows_total, desc=f"{stage:<9}", unit=" rows", unit_scale=True, **_terminal_size()
            )
            self._stage = stage
        self._bar.total = rows_total
        self._bar.update(rows_done - self._bar.n)
        if rows_done and rows_done == rows_total:
            self.close()

    def close(self) -> None:
        """End the bar that is being drawn, if any."""
        if self._bar is not None:
            self._bar.close()
        self._stage = self._bar = None


def _terminal_size() -> dict[str, int]:
    """Return the size of the terminal, if there is one: some do not report it, and tqdm would then draw nothing."""
    if not sys.stderr.isatty():
        return {}
    columns, lines = shutil.get_terminal_size()
    return {"ncols": columns, "nrows": lines}


class StageLines:
    """A line for each stage that is done, and now and then one for a stage that takes long.

    Examples
    --------
    >>> lines = StageLines(sys.stdout)
    >>> lines("compress", 0, 2_000)
    >>> lines("compress", 2_000, 2_000)
    compress          2,000 rows ... s
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._stage: str | None = None
        self._rows = 0
        self._began = self._told = 0.0

    def __call__(self, stage: str, rows_done: int, rows_total: int | None) -> None:
        """Take news; a stage is over when all of its rows are done, or the next begins."""
        now = time.monotonic()
        if stage != self._stage:
            self.close()
            self._stage, self._began, self._told = stage, now, now
        self._rows = rows_done
        if rows_done and rows_done == rows_total:
            self.close()
        elif now - self._told >= SECONDS_BETWEEN_LINES:
            self._told = now
            of = "" if rows_total is None else f" of {rows_total:,}"
            self._write(f"{stage:<9} {rows_done:>13,} rows{of}, {format_time(now - self._began)} so far")

    def close(self) -> None:
        """Write the line of the stage that ran last, if any."""
        if self._stage is not None:
            rows = f"{self._rows:>13,} rows" if self._rows else " " * 18
            self._write(f"{self._stage:<9} {rows} {format_time(time.monotonic() - self._began):>8}")
        self._stage = None

    def _write(self, line: str) -> None:
        self._stream.write(line + "\n")
        self._stream.flush()


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


def format_time(seconds: float) -> str:
    """Write a time.

    Examples
    --------
    >>> format_time(2.345), format_time(4000)
    ('2.3 s', '1:06:40')
    """
    if seconds < 10:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
